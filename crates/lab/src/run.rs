//! Runs every replication of every arm.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use sojourn_backend::{Backend, BackendError, Cancellation, Completion, Unsupported};
use sojourn_net::Instant;
use sojourn_qdisc::QueueFailure;
use sojourn_records::Records;
use sojourn_scenario::Scenario;

use crate::manifest::Provenance;
use crate::outcome::{Outcome, Piece};
use crate::tables::Cell;

/// How a scenario is run; none of it changes the records of a deterministic backend.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Counts the nanoseconds that runs have simulated, those under way included.
    pub simulated: &'a AtomicU64,
    /// How many runs are under way at once; `None`: as many as there are processors.
    pub jobs: Option<NonZeroUsize>,
    /// Set to true to stop the runs.
    pub cancel: &'a AtomicBool,
    /// Called from any thread with how many runs have finished and how many there are.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// The numbers of the runs to do, counted arm by arm; `None`: all.
    pub only: Option<&'a [usize]>,
    /// Calls what it is given, once, on each thread that runs anything; it may prepare the thread
    /// before and clean up after.
    pub on_thread: &'a (dyn Fn(&(dyn Fn() + Sync)) + Sync),
}

impl Default for RunOptions<'_> {
    /// All runs on all processors, without a way to stop them.
    fn default() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        static UNREAD: AtomicU64 = AtomicU64::new(0);
        Self {
            simulated: &UNREAD,
            jobs: None,
            cancel: &NEVER,
            progress: &|_, _| {},
            only: None,
            on_thread: &|work| work(),
        }
    }
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("jobs", &self.jobs)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// Checks that `backend` supports every arm.
///
/// # Errors
/// The features of the first arm that it does not support, with their places in the scenario.
pub fn check(backend: &dyn Backend, scenario: &Scenario) -> Result<(), Unsupported> {
    (0..scenario.arms().len()).try_for_each(|arm| {
        let supported = backend.check(&scenario.plan(arm, 0));
        supported.map_err(|e| e.with_places(|place| scenario.place_of(arm, place)))
    })
}

/// Runs every replication of every arm on `backend`.
///
/// With a deterministic backend the outcome depends on the scenario alone, not on the number of
/// threads. If `cancel` becomes true it holds what had finished by then and is not complete.
///
/// # Errors
/// If the backend does not support an arm (before anything runs), or a run fails.
///
/// # Panics
/// If [`RunOptions::only`] has a number that no run has.
pub fn run(
    backend: &dyn Backend,
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<Outcome, BackendError> {
    check(backend, scenario)?;
    let arms: Vec<_> = scenario.arms().collect();
    let all: Vec<(usize, u32)> = (0..arms.len())
        .flat_map(|arm| (0..scenario.replications()).map(move |k| (arm, k)))
        .collect();
    let jobs: Vec<(usize, u32)> = match options.only {
        None => all.clone(),
        Some(numbers) => numbers.iter().map(|&number| all[number]).collect(),
    };
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
            let mut records = Records::default();
            let reached = AtomicU64::new(0);
            let count = |time: Instant| {
                let before = reached.swap(time.as_nanos(), Ordering::Relaxed);
                let step = time.as_nanos().saturating_sub(before);
                options.simulated.fetch_add(step, Ordering::Relaxed);
            };
            let cancellation = Cancellation::new(&ended).reporting(&count);
            let run = || backend.run(&plan, &cancellation, &mut records);
            // After a panic nothing reads the records.
            let completion = catch_unwind(AssertUnwindSafe(run))
                .unwrap_or_else(|panic| resume_unwind(in_run(panic, arms[arm], replication)));
            match completion {
                Ok(Completion::Cancelled) => {}
                Ok(Completion::Finished) => {
                    let piece = Piece::of(Cell {
                        arm: arms[arm],
                        replication,
                        plan: &plan,
                        records: &records,
                    });
                    let mut pieces = locked(&pieces);
                    pieces.insert(job, piece);
                    // Reported under the lock, so that the numbers never go back.
                    (options.progress)(pieces.len(), jobs.len());
                }
                Err(error) => {
                    *locked(&failure) = Some(error);
                    failed.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    let properties = backend.properties();
    let threads = threads(options.jobs, properties.max_concurrency).min(jobs.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| (options.on_thread)(&work)))
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
    });
    if let Some(error) = locked(&failure).take() {
        return Err(error);
    }
    let finished = std::mem::take(&mut *locked(&pieces));
    Ok(Outcome::of(
        scenario.clone(),
        Provenance::of(backend),
        finished.into_values().collect(),
        all.len(),
    ))
}

/// Adds the run to the failure of a queue from outside; any other panic stays as it is.
fn in_run(panic: Box<dyn Any + Send>, arm: &str, replication: u32) -> Box<dyn Any + Send> {
    match panic.downcast::<QueueFailure>() {
        Ok(mut failure) => {
            failure.run = Some(format!("arm \"{arm}\", replication {replication}"));
            failure
        }
        Err(panic) => panic,
    }
}

/// How many runs are under way at once.
fn threads(asked: Option<NonZeroUsize>, most: Option<NonZeroUsize>) -> usize {
    let threads = asked.or_else(|| thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    most.map_or(threads, |most| threads.min(most)).get()
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
