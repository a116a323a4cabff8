//! Running a scenario with Python's signal handling and progress callback.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_lab::{Kept, RunOptions};

use crate::backends::{ATTENTION, PyCapture, attached, registry, threads};
use crate::errors::Failure;
use crate::outcome::PyOutcome;
use crate::python_queue::queue_failure;
use crate::run_store::PyInvocation;
use crate::scenario::PyScenario;

/// Run every arm and replication on `jobs` threads (default: one per processor).
///
/// `invocation` stores each run when it ends, and has those that need not be repeated.
///
/// `backend` is one of `backend_names()`, by default the first.
///
/// `progress` is called with (finished, total) in the calling thread, at most every 50 ms; if it has a
/// method `reached`, that is called as often with the share of the simulated time that is done.
/// `capture` receives the packets of the run, of which there must be one.
/// `only` is the number of the only run to execute, counted arm by arm.
///
/// Ctrl-C ends the run and returns the finished runs, with `complete` false. An exception from
/// `progress` ends the run and is raised.
#[pyfunction]
#[pyo3(signature = (scenario, *, jobs=None, progress=None, backend=None, invocation=None, capture=None, only=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Bound<'_, PyScenario>,
    jobs: Option<i64>,
    progress: Option<Py<PyAny>>,
    backend: Option<&str>,
    invocation: Option<&Bound<'_, PyInvocation>>,
    capture: Option<&Bound<'_, PyCapture>>,
    only: Option<usize>,
) -> Result<PyOutcome, Failure> {
    let jobs = jobs.map(threads).transpose()?;
    let scenario = &scenario.get().0;
    let registry = registry();
    let backend = registry.get(backend)?;
    let simulated = AtomicU64::new(0);
    let total = scenario.arms().len() * scenario.replications() as usize;
    let mut watch = Watch {
        reached: (progress.as_ref()).and_then(|progress| progress.getattr(py, "reached").ok()),
        simulated: &simulated,
        whole: scenario.duration().as_secs_f64()
            * f64::from(u32::try_from(total).unwrap_or(u32::MAX)),
        progress,
        reported: 0,
        interruption: None,
    };
    let (cancel, finished) = (AtomicBool::new(false), AtomicUsize::new(0));
    let running = RunThreads::default();
    let invocation = invocation.map(|invocation| &invocation.get().0);
    let capture = capture.map(|capture| &capture.get().0);
    let outcome = py.detach(|| {
        let (done, waiting) = channel::<()>();
        thread::scope(|scope| {
            let (cancel, finished, simulated) = (&cancel, &finished, &simulated);
            let running = &running;
            let runs = scope.spawn(move || {
                // Dropped when the runs end, even by a panic: that wakes the thread below.
                let _done = done;
                let options = RunOptions {
                    simulated,
                    jobs,
                    cancel,
                    progress: &|n, _| finished.store(n, Ordering::Relaxed),
                    invocation,
                    capture,
                    only,
                    on_thread: &|work| running.attached(work),
                };
                sojourn_lab::run(backend, scenario, options).map_err(Failure::from)
            });
            let mut polls = 0;
            // Terminates: the runs finish or are cancelled.
            while waiting.recv_timeout(ATTENTION) == Err(RecvTimeoutError::Timeout) {
                if watch.is_interrupted(finished.load(Ordering::Relaxed), total) {
                    cancel.store(true, Ordering::Relaxed);
                    polls += 1;
                }
                if polls > PATIENCE {
                    running.interrupt();
                }
            }
            runs.join()
        })
    });
    let outcome = outcome.unwrap_or_else(|panic| Err(queue_failure(py, panic)));
    let outcome = outcome.map_err(|failure| watch.interruption(py).unwrap_or(failure))?;
    watch.is_interrupted(outcome.finished(), total);
    match watch.interruption {
        Some(error) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error.into()),
        _ => Ok(PyOutcome(outcome)),
    }
}

/// Run one run, counted arm by arm, and return it for `Outcome.assemble` in another process.
#[pyfunction]
#[pyo3(signature = (scenario, number, *, backend=None))]
pub(crate) fn run_one<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, PyScenario>,
    number: usize,
    backend: Option<&str>,
) -> Result<Bound<'py, PyBytes>, Failure> {
    let scenario = &scenario.get().0;
    let registry = registry();
    let backend = registry.get(backend)?;
    let run = || sojourn_lab::run_one(backend, scenario, number).map_err(Failure::from);
    let ran = py.detach(|| catch_unwind(AssertUnwindSafe(run)));
    let bytes = ran.unwrap_or_else(|panic| Err(queue_failure(py, panic)))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Return what the runs of a scenario take, as JSON; `metrics`: only their metrics are kept; `stored`: their series are
/// kept in the run store, not in memory.
///
/// `{runs, packets, events, cpu_s, peak_memory_bytes, memory: [{place, cause, bytes}]}`
#[pyfunction]
#[pyo3(signature = (scenario, *, jobs=None, metrics=false, stored=false))]
pub(crate) fn estimate(
    py: Python<'_>,
    scenario: &Bound<'_, PyScenario>,
    jobs: Option<i64>,
    metrics: bool,
    stored: bool,
) -> Result<String, Failure> {
    let jobs = jobs.map(threads).transpose()?;
    let scenario = &scenario.get().0;
    let of = if stored { Kept::Totals } else { kept(metrics) };
    Ok(py.detach(|| sojourn_lab::estimate(scenario, jobs, of).to_json()))
}

/// What is kept of runs of which only the metrics may be wanted.
const fn kept(metrics: bool) -> Kept {
    if metrics { Kept::Metrics } else { Kept::Tables }
}

/// Return 80 % of the memory that this process may use, in bytes; None if the system names no limit.
#[pyfunction]
pub(crate) fn default_max_memory() -> Option<u64> {
    sojourn_lab::default_limit()
}

/// Stop runs of this process from now on before it takes more memory than `limit` bytes, without what it has in memory
/// besides Python and its libraries; None: no limit. The error is a `ScenarioError` whose path is `max_memory`.
///
/// `worker`: the process has a share of the memory of another one, and the pages that both share do not count.
#[pyfunction]
#[pyo3(signature = (limit, *, worker=false))]
pub(crate) fn limit_memory(limit: Option<u64>, worker: bool) {
    if worker {
        sojourn_lab::limit_worker_memory(limit);
    } else {
        sojourn_lab::limit_memory(limit);
    }
}

/// Return the share of each of several worker processes in the limit of this one, in bytes; None: no limit. This process
/// has room for the tables of `runs` runs, or for their metrics.
#[pyfunction]
#[pyo3(signature = (scenario, *, workers, runs, metrics=false))]
pub(crate) fn worker_memory(
    scenario: &Bound<'_, PyScenario>,
    workers: u64,
    runs: u64,
    metrics: bool,
) -> Option<u64> {
    let tables = sojourn_lab::kept_bytes(&scenario.get().0, runs, kept(metrics));
    sojourn_lab::worker_memory(workers, tables)
}

/// Return the number of events of the first run of a scenario in the simulator, for tests of the estimate.
#[pyfunction]
pub(crate) fn simulated_events(
    py: Python<'_>,
    scenario: &Bound<'_, PyScenario>,
) -> Result<u64, Failure> {
    let plan = scenario.get().0.plan(0, 0);
    let records = py.detach(|| sojourn_sim::run(&plan.config, &mut |_| true));
    let records = records.map_err(|error| Failure::Other(error.to_string()))?;
    Ok(records.map_or(0, |records| records.agenda_events))
}

/// Raise a `ScenarioError` if `run` does not accept this number of jobs.
#[pyfunction]
pub(crate) fn check_jobs(jobs: i64) -> Result<(), Failure> {
    threads(jobs).map(drop)
}

/// How often a run is asked to end, every [`ATTENTION`], before the Python code of its queues is
/// interrupted: half a second.
const PATIENCE: u32 = 10;

/// The threads of runs, as Python numbers them.
#[derive(Debug, Default)]
struct RunThreads(Mutex<Vec<u64>>);

impl RunThreads {
    /// Does `work` as [`attached`] does, on a thread that can be interrupted meanwhile.
    fn attached(&self, work: &(dyn Fn() + Sync)) {
        let number = Python::attach(|py| -> PyResult<u64> {
            py.import("threading")?.call_method0("get_ident")?.extract()
        });
        if let Ok(number) = number {
            self.numbers(|numbers| numbers.push(number));
        }
        attached(work);
    }

    /// Raises `KeyboardInterrupt` in Python code of queues, which may be in an endless loop. It is
    /// raised on every call, because the code may catch it.
    fn interrupt(&self) {
        let numbers = self.numbers(|numbers| numbers.clone());
        // What fails once may work at the next call.
        let _ = Python::attach(|py| -> PyResult<()> {
            let ctypes = py.import("ctypes")?;
            let raise = ctypes
                .getattr("pythonapi")?
                .getattr("PyThreadState_SetAsyncExc")?;
            let exception = py.get_type::<PyKeyboardInterrupt>();
            let exception = ctypes.call_method1("py_object", (exception,))?;
            for number in numbers {
                let number = ctypes.call_method1("c_ulong", (number,))?;
                raise.call1((number, &exception))?;
            }
            Ok(())
        });
    }

    fn numbers<T>(&self, with: impl FnOnce(&mut Vec<u64>) -> T) -> T {
        // A panic leaves the list as it was.
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state of the calling thread while the runs proceed.
struct Watch<'a> {
    progress: Option<Py<PyAny>>,
    /// The method `reached` of `progress`, if it has one.
    reached: Option<Py<PyAny>>,
    /// Nanoseconds that runs have simulated, and the seconds of all runs.
    simulated: &'a AtomicU64,
    whole: f64,
    /// Number of finished runs at the last call of `progress`.
    reported: usize,
    /// The exception that ended the run: Ctrl-C, or one from `progress`.
    interruption: Option<PyErr>,
}

impl Watch<'_> {
    /// The failure of a queue whose code was interrupted; `None` if it failed by itself.
    fn interruption(&self, py: Python<'_>) -> Option<Failure> {
        let error = self.interruption.as_ref()?;
        Some(Failure::Python(error.clone_ref(py)))
    }

    /// Checks for signals and reports progress; returns whether the run is to end.
    fn is_interrupted(&mut self, finished: usize, total: usize) -> bool {
        if self.interruption.is_none() {
            self.interruption = Python::attach(|py| self.report(py, finished, total)).err();
        }
        self.interruption.is_some()
    }

    fn report(&mut self, py: Python<'_>, finished: usize, total: usize) -> PyResult<()> {
        py.check_signals()?;
        if finished > self.reported {
            self.reported = finished;
            if let Some(progress) = &self.progress {
                progress.call1(py, (finished, total))?;
            }
        }
        if let Some(reached) = &self.reached {
            let simulated = Duration::from_nanos(self.simulated.load(Ordering::Relaxed));
            let share = simulated.as_secs_f64() / self.whole;
            reached.call1(py, (share.min(1.0),))?;
        }
        Ok(())
    }
}
