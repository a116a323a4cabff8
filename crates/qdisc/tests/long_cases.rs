//! Every discipline keeps the contract for a hundred thousand calls with random parameters and traffic.
//!
//! `make soak` continues with other seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sojourn_qdisc::catalogue;
use sojourn_qdisc::testing::fuzz::Case;

const CALLS: usize = 100_000;

/// Cases of each discipline.
const SEEDS: u64 = 4;

/// The first seed; `make soak` sets it.
fn first_seed() -> u64 {
    let set = std::env::var("SOJOURN_SOAK_SEED").ok();
    set.map_or(0, |seed| {
        let number: u64 = seed.parse().expect("SOJOURN_SOAK_SEED: a number");
        number * SEEDS
    })
}

/// Runs a case; returns the packets offered and those dropped or marked.
fn check(name: &str, seed: u64) -> (u64, usize) {
    let case = Case::long(name, seed, CALLS);
    let checked = catch_unwind(AssertUnwindSafe(|| case.check()));
    let Ok(history) = checked else {
        panic!("{name}, seed {seed}: {}", case.spec);
    };
    let signals = history.recorder.drops.len() + history.recorder.marks.len();
    (history.offered, signals)
}

#[test]
fn every_queue_keeps_the_contract_in_long_cases() {
    let first = first_seed();
    let names: Vec<_> = catalogue().iter().map(|kind| kind.name).collect();
    let cases: Vec<_> = (first..first + SEEDS)
        .flat_map(|seed| names.iter().map(move |&name| (name, seed)))
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut sums = (0, 0);
        while let Some(&(name, seed)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (offered, signals) = check(name, seed);
            sums = (sums.0 + offered, sums.1 + signals);
        }
        sums
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let sums: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|w| w.join().expect("a case fails"))
            .collect()
    });
    let offered: u64 = sums.iter().map(|sum| sum.0).sum();
    let signals: usize = sums.iter().map(|sum| sum.1).sum();
    // Else nothing was tried.
    let calls = u64::try_from(cases.len() * CALLS).expect("it fits");
    assert!(offered > calls / 4, "{offered} arrivals in {calls} calls");
    assert!(signals > 0, "no queue dropped or marked");
}
