//! Runs every replication of every arm.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sojourn_backend::{Backend, BackendError, Cancellation, Completion, Unsupported, locked};
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{PYTHON_PREFIX, QueueFailure};
use sojourn_records::Records;
use sojourn_scenario::{Plan, Scenario, with_controlled_changes};

use crate::capture::{Capture, check_capture, comment};
use crate::gathered::{Gathered, Whereabouts};
use crate::invocation::Invocation;
use crate::jobs::Jobs;
use crate::keys::Keys;
use crate::manifest::{Build, Provenance};
use crate::outcome::Outcome;
use crate::piece::Piece;
use crate::tables::Cell;
use crate::watch::Watched;
use crate::{budget, watch};

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
    /// The number of the only run to execute, counted arm by arm; `None`: all.
    pub only: Option<usize>,
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
pub fn run(
    backend: &dyn Backend,
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<Outcome, BackendError> {
    check(backend, scenario)?;
    may_capture(backend, scenario, options)?;
    let mut numbers = in_order(scenario, options.invocation);
    if let Some(only) = options.only {
        numbers.retain(|&number| number == only);
    }
    let total = numbers.len();
    let jobs = Jobs::new(numbers);
    let ended = || options.cancel.load(Ordering::Relaxed) || jobs.is_stopped();
    let gathered = Mutex::new(Gathered::default());
    let execute = |number: usize| {
        let reached = AtomicU64::new(0);
        let count = |time: Instant| {
            let before = reached.swap(time.as_nanos(), Ordering::Relaxed);
            let step = time.as_nanos().saturating_sub(before);
            options.simulated.fetch_add(step, Ordering::Relaxed);
        };
        let cancellation = Cancellation::new(&ended).reporting(&count);
        let run = Run::numbered(backend, scenario, number);
        let piece = || run.piece(&cancellation, options.capture);
        let piece = catch_unwind(AssertUnwindSafe(piece)).unwrap_or_else(|panic| {
            // Code of a queue that does not return is interrupted, which is no failure.
            if options.cancel.load(Ordering::Relaxed) && panic.is::<QueueFailure>() {
                return Ok(None);
            }
            resume_unwind(panic)
        })?;
        let kept = piece.map(|piece| {
            let handed = options.invocation.and_then(|i| i.keep(number, &piece));
            let at = handed.map_or(Whereabouts::Memory, |(place, stored)| {
                Whereabouts::Handed(place, stored)
            });
            (piece, at)
        });
        Ok::<_, BackendError>(kept)
    };
    let work = |number| {
        if ended() {
            jobs.stop();
            return Ok(());
        }
        let stored = options.invocation.and_then(|i| i.piece(number));
        let ended = match stored {
            Some((piece, stored)) => Some((piece, Whereabouts::Store(stored))),
            None => execute(number)?,
        };
        if let Some((piece, at)) = ended {
            let mut gathered = locked(&gathered);
            gathered.add(number, piece, at);
            if let Some(invocation) = options.invocation {
                gathered.on_commit(invocation.committed_records());
            }
            // Reported under the lock, so that the numbers never go back.
            (options.progress)(gathered.runs(), total);
        }
        Ok(())
    };
    let threads = jobs.threads(options.jobs, backend.properties().max_concurrency);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (options.on_thread)(&|| jobs.work(work)));
        }
    });
    if let Some(invocation) = options.invocation {
        invocation.flush();
    }
    jobs.outcome()?;
    let mut finished = std::mem::take(&mut *locked(&gathered));
    if let Some(invocation) = options.invocation {
        finished.on_commit(invocation.committed_records());
    }
    Ok(Outcome::of(
        scenario.clone(),
        Provenance::of(backend),
        finished,
        total,
    ))
}

/// The numbers of the runs of a scenario: stored ones first, the others in the order of replications, so that an
/// interrupted comparison has runs of every arm.
fn in_order(scenario: &Scenario, invocation: Option<&Invocation>) -> Vec<usize> {
    let replications = scenario.replications() as usize;
    let mut numbers: Vec<usize> = (0..scenario.arms().len() * replications).collect();
    let stored: BTreeSet<_> = invocation.iter().flat_map(|i| i.finished()).collect();
    numbers.sort_by_key(|number| {
        let (arm, replication) = (number / replications, number % replications);
        (!stored.contains(number), replication, arm)
    });
    numbers
}

/// Checks that the packets of a scenario can be captured if they are to be.
fn may_capture(
    backend: &dyn Backend,
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<(), BackendError> {
    options.capture.map_or(Ok(()), |_| {
        check_capture(backend, scenario, options.only).map_err(|error| BackendError::Failed {
            backend: backend.name(),
            reason: error.to_string(),
        })
    })
}

/// A replication of an arm on a backend.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    backend: &'a dyn Backend,
    scenario: &'a Scenario,
    arm: usize,
    replication: u32,
}

impl<'a> Run<'a> {
    /// The run with this number, counted arm by arm.
    pub(crate) fn numbered(
        backend: &'a dyn Backend,
        scenario: &'a Scenario,
        number: usize,
    ) -> Self {
        let replications = scenario.replications() as usize;
        Self {
            backend,
            scenario,
            arm: number / replications,
            replication: u32::try_from(number % replications).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        self.scenario.plan(self.arm, self.replication)
    }

    /// What its records are, with its arm and replication.
    pub(crate) fn cell<'c>(&self, plan: &'c Plan, records: &'c Records) -> Cell<'c>
    where
        'a: 'c,
    {
        Cell {
            arm: self.arm(),
            replication: self.replication,
            plan,
            records,
        }
    }

    fn arm(&self) -> &'a str {
        self.scenario.arms().nth(self.arm).unwrap_or_default()
    }

    /// Executes it, captured or not, with memory left for `tables` bytes. A queue from outside that fails panics with
    /// the name of the run.
    pub(crate) fn records(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        capture: Option<&Capture>,
        tables: u64,
    ) -> Result<(Completion, Records), BackendError> {
        let (arm, replication) = (self.arm(), self.replication);
        let name = format!("arm \"{arm}\", replication {replication}");
        let execute = |cancellation: &Cancellation<'_>| {
            let Some(capture) = capture else {
                let mut records = Records::default();
                let completion = self.backend.run(plan, cancellation, &mut records)?;
                return Ok((completion, records));
            };
            let mut sink = capture.open(comment(self.scenario, self.arm(), self.replication));
            let completion = self.backend.run(plan, cancellation, &mut sink)?;
            Ok((completion, sink.records))
        };
        let mut links = plan.config.links.iter();
        let of = Watched {
            name: &name,
            duration: plan.config.duration,
            tables,
            is_python: plan.controller.is_some()
                || links.any(|link| link.qdisc.to_string().contains(PYTHON_PREFIX)),
        };
        let watched = || watch::watched(&of, cancellation, execute);
        catch_unwind(AssertUnwindSafe(watched)).unwrap_or_else(|mut panic| {
            if let Some(failure) = panic.downcast_mut::<QueueFailure>() {
                failure.run = Some(name.clone());
            }
            resume_unwind(panic)
        })
    }

    /// Its tables; `None`: it was cancelled.
    fn piece(
        &self,
        cancellation: &Cancellation<'_>,
        capture: Option<&Capture>,
    ) -> Result<Option<Piece>, BackendError> {
        let plan = self.plan();
        let tables = budget::tables(&plan.config);
        let (completion, records) = self.records(&plan, cancellation, capture, tables)?;
        let finished = completion == Completion::Finished;
        let plan = controlled(plan, &records);
        Ok(finished.then(|| Piece::of(self.cell(&plan, &records))))
    }
}

/// The plan with the changes that its controller made, which determine the capacity of links.
pub(crate) fn controlled(plan: Plan, records: &Records) -> Plan {
    if records.changes.is_empty() {
        return plan;
    }
    let changes = records.changes.iter();
    let changes = changes.map(|of| (of.at.since(Instant::ZERO), of.link, of.text.as_str()));
    with_controlled_changes(&plan, changes)
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
    let run = Run::numbered(backend, scenario, 0);
    let (_, records) = run.records(&run.plan(), cancellation, capture, 0)?;
    let millis = taken().as_nanos().div_ceil(1_000_000).max(1);
    let duration = ("duration".to_owned(), format!("\"{millis}ms\""));
    let lasted = scenario.changed(&[duration]);
    let lasted = lasted.map_err(|e| failed(format!("the run of {millis} ms is too short: {e}")))?;
    let plan = controlled(lasted.plan(0, 0), &records);
    let mut gathered = Gathered::default();
    let piece = Piece::of(run.cell(&plan, &records));
    gathered.add(0, piece, Whereabouts::Memory);
    Ok(Outcome::of(lasted, Provenance::of(backend), gathered, 1))
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
    let run = Run::numbered(backend, scenario, number);
    let piece = run.piece(&Cancellation::new(&|| false), None)?;
    let failed = |reason: &dyn fmt::Display| BackendError::Failed {
        backend: backend.name(),
        reason: reason.to_string(),
    };
    let piece = piece.ok_or_else(|| failed(&"ended the run without a request"))?;
    let keys = Keys::of(scenario, &Provenance::of(backend), &Build::current(), None);
    let bytes = piece.to_bytes(&keys.runs[number]);
    bytes
        .map(|(bytes, _)| bytes)
        .map_err(|error| failed(&error))
}
