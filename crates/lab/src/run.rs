//! Runs every replication of every arm.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use sojourn_backend::{Backend, BackendError, Cancellation, Completion, Unsupported, locked};
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::QueueFailure;
use sojourn_records::Records;
use sojourn_scenario::Scenario;

use crate::capture::{Capture, check_capture, comment};
use crate::invocation::Invocation;
use crate::keys::Keys;
use crate::manifest::{Build, Provenance};
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
    /// Stores each run when it finishes, and has the runs that need not be repeated.
    pub invocation: Option<&'a Invocation>,
    /// Receives the packets of the run, of which there must be one. A stored run has none.
    pub capture: Option<&'a Capture>,
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
            invocation: None,
            capture: None,
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
pub fn run(
    backend: &dyn Backend,
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<Outcome, BackendError> {
    check(backend, scenario)?;
    may_capture(backend, scenario, options.capture)?;
    let arms: Vec<_> = scenario.arms().collect();
    let replications = scenario.replications() as usize;
    let total = arms.len() * replications;
    let mut jobs: Vec<usize> = (0..total).collect();
    // Stored runs come first. The others are executed in the order of replications, so that an
    // interrupted comparison has runs of every arm.
    let stored: BTreeSet<_> = options
        .invocation
        .iter()
        .flat_map(|i| i.finished())
        .collect();
    jobs.sort_by_key(|&number| {
        let (arm, replication) = (number / replications, number % replications);
        (!stored.contains(&number), replication, arm)
    });
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ended = || options.cancel.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (pieces, failure) = (Mutex::new(BTreeMap::new()), Mutex::new(None));

    let work = || {
        let _guard = EndOnPanic(&failed);
        // Ends: `next` grows in each turn.
        while !ended() {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some(&number) = jobs.get(job) else {
                return;
            };
            let reached = AtomicU64::new(0);
            let count = |time: Instant| {
                let before = reached.swap(time.as_nanos(), Ordering::Relaxed);
                let step = time.as_nanos().saturating_sub(before);
                options.simulated.fetch_add(step, Ordering::Relaxed);
            };
            let cancellation = Cancellation::new(&ended).reporting(&count);
            let run = || {
                let arm = number / replications;
                let replication = u32::try_from(number % replications).unwrap_or(u32::MAX);
                // After a panic nothing reads the records.
                let run = || {
                    one(
                        backend,
                        scenario,
                        arm,
                        replication,
                        &cancellation,
                        options.capture,
                    )
                };
                catch_unwind(AssertUnwindSafe(run))
                    .unwrap_or_else(|panic| resume_unwind(in_run(panic, arms[arm], replication)))
            };
            let read = options
                .invocation
                .and_then(|invocation| invocation.piece(number));
            let piece = match read {
                Some(piece) => Ok(Some(piece)),
                None => run().inspect(|piece| {
                    if let (Some(invocation), Some(piece)) = (options.invocation, piece) {
                        invocation.keep(number, piece);
                    }
                }),
            };
            match piece {
                Ok(None) => {}
                Ok(Some(piece)) => {
                    let mut pieces = locked(&pieces);
                    pieces.insert(number, piece);
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
    if let Some(invocation) = options.invocation {
        invocation.flush();
    }
    if let Some(error) = locked(&failure).take() {
        return Err(error);
    }
    let finished = std::mem::take(&mut *locked(&pieces));
    Ok(Outcome::of(
        scenario.clone(),
        Provenance::of(backend),
        finished.into_values().collect(),
        total,
    ))
}

/// Checks that the packets of a scenario can be captured if they are to be.
fn may_capture(
    backend: &dyn Backend,
    scenario: &Scenario,
    capture: Option<&Capture>,
) -> Result<(), BackendError> {
    capture.map_or(Ok(()), |_| {
        check_capture(backend, scenario).map_err(|reason| BackendError::Failed {
            backend: backend.name(),
            reason,
        })
    })
}

/// Runs a replication of an arm, captured or not; `None`: it was cancelled.
fn one(
    backend: &dyn Backend,
    scenario: &Scenario,
    arm: usize,
    replication: u32,
    cancellation: &Cancellation<'_>,
    capture: Option<&Capture>,
) -> Result<Option<Piece>, BackendError> {
    let plan = scenario.plan(arm, replication);
    let name = scenario.arms().nth(arm).unwrap_or_default();
    let (completion, records) =
        recorded(backend, scenario, arm, replication, cancellation, capture)?;
    Ok((completion == Completion::Finished).then(|| {
        Piece::of(Cell {
            arm: name,
            replication,
            plan: &plan,
            records: &records,
        })
    }))
}

/// The records of a run, captured or not.
pub(crate) fn recorded(
    backend: &dyn Backend,
    scenario: &Scenario,
    arm: usize,
    replication: u32,
    cancellation: &Cancellation<'_>,
    capture: Option<&Capture>,
) -> Result<(Completion, Records), BackendError> {
    let plan = scenario.plan(arm, replication);
    let Some(capture) = capture else {
        let mut records = Records::default();
        let completion = backend.run(&plan, cancellation, &mut records)?;
        return Ok((completion, records));
    };
    let name = scenario.arms().nth(arm).unwrap_or_default();
    let mut sink = capture.open(comment(scenario, name, replication));
    let completion = backend.run(&plan, cancellation, &mut sink)?;
    Ok((completion, sink.records))
}

/// Runs the first run of a scenario, which may end before its duration, and returns the outcome of the same scenario with
/// the duration that the run took, in whole milliseconds; `taken` tells it afterwards.
///
/// # Errors
/// If the backend does not support the arm, or the run fails or is too short to be recorded.
pub fn run_while_it_lasts(
    backend: &dyn Backend,
    scenario: &Scenario,
    cancellation: &Cancellation<'_>,
    capture: Option<&Capture>,
    taken: impl FnOnce() -> Duration,
) -> Result<Outcome, BackendError> {
    check(backend, scenario)?;
    let failed = |reason: String| BackendError::Failed {
        backend: backend.name(),
        reason,
    };
    let arm = scenario.arms().next().unwrap_or_default().to_owned();
    let (_, records) = recorded(backend, scenario, 0, 0, cancellation, capture)?;
    let millis = taken().as_nanos().div_ceil(1_000_000).max(1);
    let duration = ("duration".to_owned(), format!("\"{millis}ms\""));
    let lasted = scenario.changed(&[duration]);
    let lasted = lasted.map_err(|e| failed(format!("the run of {millis} ms is too short: {e}")))?;
    let plan = lasted.plan(0, 0);
    let piece = Piece::of(Cell {
        arm: &arm,
        replication: 0,
        plan: &plan,
        records: &records,
    });
    Ok(Outcome::of(lasted, Provenance::of(backend), vec![piece], 1))
}

/// Runs one run, counted arm by arm, and returns it as bytes for [`Outcome::assemble`] in another
/// process of the same build.
///
/// # Errors
/// If the backend does not support the arm, or the run fails.
///
/// # Panics
/// If there is no such run. A panic of a queue from outside passes through.
pub fn run_one(
    backend: &dyn Backend,
    scenario: &Scenario,
    number: usize,
) -> Result<Vec<u8>, BackendError> {
    let replications = scenario.replications() as usize;
    let (arm, replication) = (number / replications, number % replications);
    let replication = u32::try_from(replication).unwrap_or(u32::MAX);
    let name = scenario.arms().nth(arm).unwrap_or_default();
    let run = || {
        one(
            backend,
            scenario,
            arm,
            replication,
            &Cancellation::new(&|| false),
            None,
        )
    };
    let piece = catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| resume_unwind(in_run(panic, name, replication)))?;
    let failed = |reason: &dyn fmt::Display| BackendError::Failed {
        backend: backend.name(),
        reason: reason.to_string(),
    };
    let piece = piece.ok_or_else(|| failed(&"ended the run without a request"))?;
    let keys = Keys::of(scenario, &Provenance::of(backend), &Build::current(), None);
    piece
        .to_bytes(&keys.runs[number])
        .map_err(|error| failed(&error))
}

/// Adds the run to the failure of a queue from outside; any other panic stays as it is.
pub(crate) fn in_run(
    panic: Box<dyn Any + Send>,
    arm: &str,
    replication: u32,
) -> Box<dyn Any + Send> {
    match panic.downcast::<QueueFailure>() {
        Ok(mut failure) => {
            failure.run = Some(format!("arm \"{arm}\", replication {replication}"));
            failure
        }
        Err(panic) => panic,
    }
}

/// How many runs are under way at once.
pub(crate) fn threads(asked: Option<NonZeroUsize>, most: Option<NonZeroUsize>) -> usize {
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

#[cfg(test)]
mod tests;
