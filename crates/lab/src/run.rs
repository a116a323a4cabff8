//! Running every replication of every arm.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use sojourn_net::Instant;
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, ConfigError};

use crate::outcome::Outcome;
use crate::tables::{Cell, batches};
use sojourn_scenario::Scenario;

/// How a scenario is run; none of it changes the records.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// How many runs go on at once; `None`: as many as there are processors.
    pub jobs: Option<NonZeroUsize>,
    /// Becomes true when the runs shall end.
    pub cancel: &'a AtomicBool,
    /// Told, from any thread, how many runs of how many have finished.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("jobs", &self.jobs)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// Runs every replication of every arm.
///
/// The outcome depends on the scenario alone, not on the number of threads. If `cancel` becomes
/// true it holds what had finished by then and is not complete.
///
/// # Errors
/// If the simulator refuses a configuration: the scenario was checked, so that is a defect.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<Outcome, ConfigError> {
    run_on(&sojourn_sim::run, scenario, options)
}

type Run = Result<Option<Records>, ConfigError>;

/// `engine` simulates; it asks, each sample interval, whether to go on.
fn run_on(
    engine: &(impl Fn(&Config, &mut dyn FnMut(Instant) -> bool) -> Run + Sync),
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<Outcome, ConfigError> {
    let arms: Vec<_> = scenario.arms().collect();
    let jobs: Vec<(usize, u32)> = (0..arms.len())
        .flat_map(|arm| (0..scenario.replications()).map(move |k| (arm, k)))
        .collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ended = || options.cancel.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (pieces, failure) = (Mutex::new(BTreeMap::new()), Mutex::new(None));

    let work = || {
        let _guard = EndOnPanic(&failed);
        // Ends: `next` grows in each turn.
        while !ended() {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(arm, replication)) = jobs.get(job) else {
                return;
            };
            let plan = scenario.plan(arm, replication);
            match engine(&plan.config, &mut |_| !ended()) {
                Ok(None) => {}
                Ok(Some(records)) => {
                    let piece = batches(Cell {
                        arm: arms[arm],
                        replication,
                        plan: &plan,
                        records: &records,
                    });
                    let mut pieces = locked(&pieces);
                    pieces.insert(job, piece);
                    // Told while locked, so that the numbers never go back.
                    (options.progress)(pieces.len(), jobs.len());
                }
                Err(error) => {
                    *locked(&failure) = Some(error);
                    failed.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = options
        .jobs
        .or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get).min(jobs.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
    });
    if let Some(error) = locked(&failure).take() {
        return Err(error);
    }
    let finished = std::mem::take(&mut *locked(&pieces))
        .into_values()
        .collect();
    Ok(Outcome::of(scenario.clone(), finished, jobs.len()))
}

/// Ends the other runs when one panics, rather than letting them finish for nothing.
struct EndOnPanic<'a>(&'a AtomicBool);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A thread that panicked while it held the lock ends the whole run anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
