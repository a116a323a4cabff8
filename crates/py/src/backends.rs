//! The backends of this build, the threads of their runs, and the file that captures packets.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use sojourn_backend::{BackendError, Registry};
use sojourn_kernel::{Folder, LinuxKernel};
use sojourn_lab::{Build, Capture};
use sojourn_sim::Simulator;

use crate::errors::Failure;
use crate::scenario::PyScenario;

/// All backends; the first is the default.
pub(crate) fn registry() -> Registry {
    let commit = Build::current().commit;
    let simulator = Simulator {
        commit: commit.clone(),
    };
    let kernels = LinuxKernel::all(&Folder::of_user(), commit.as_deref());
    let registry = with_live(Registry::new().with(Box::new(simulator)), commit);
    let add = |registry: Registry, kernel: LinuxKernel| registry.with(Box::new(kernel));
    kernels.into_iter().fold(registry, add)
}

/// Adds the backend of live runs.
#[cfg(target_os = "linux")]
fn with_live(registry: Registry, commit: Option<String>) -> Registry {
    let options = sojourn_live::Options::default();
    registry.with(Box::new(sojourn_live::Live::new(commit, options)))
}

/// Live runs need Linux.
#[cfg(not(target_os = "linux"))]
fn with_live(registry: Registry, _commit: Option<String>) -> Registry {
    registry
}

/// Return the names that `run` takes as `backend`, the default first.
#[pyfunction]
pub(crate) fn backend_names() -> Vec<&'static str> {
    registry().names().collect()
}

/// Check that a backend supports every arm of a scenario.
///
/// Raises `ScenarioError` if not; the message names the features that it does not support.
#[pyfunction]
#[pyo3(signature = (scenario, backend=None))]
pub(crate) fn check_backend(
    scenario: &Bound<'_, PyScenario>,
    backend: Option<&str>,
) -> Result<(), Failure> {
    let registry = registry();
    let backend = registry.get(backend)?;
    sojourn_lab::check(backend, &scenario.get().0).map_err(BackendError::from)?;
    Ok(())
}

/// Return how many runs a backend can do at once; None if only the processors limit it.
///
/// Raises `ScenarioError` if no backend has this name.
#[pyfunction]
#[pyo3(signature = (backend=None))]
pub(crate) fn backend_concurrency(backend: Option<&str>) -> Result<Option<NonZeroUsize>, Failure> {
    Ok(registry().get(backend)?.properties().max_concurrency)
}

/// Interval between checks for Ctrl-C: imperceptible to users, at negligible cost.
pub(crate) const ATTENTION: Duration = Duration::from_millis(50);

/// Does `work` on a thread that the interpreter knows meanwhile, without holding its lock: a queue
/// written in Python attaches twice per packet, which costs microseconds on an unknown thread.
pub(crate) fn attached(work: &(dyn Fn() + Sync)) {
    Python::attach(|py| py.detach(work));
}

/// A number of threads from Python.
pub(crate) fn threads(jobs: i64) -> Result<NonZeroUsize, Failure> {
    let threads = usize::try_from(jobs).ok().and_then(NonZeroUsize::new);
    threads.ok_or_else(|| {
        let message = format!("jobs: {jobs} is out of range; expected at least 1");
        Failure::Scenario(message.into())
    })
}

/// A file for the packets of a run, in the format pcapng.
#[pyclass(name = "Capture", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyCapture(pub(crate) Capture);

#[pymethods]
impl PyCapture {
    /// Capture into an existing file, whose content is replaced.
    ///
    /// `state`: events, if the scenario keeps them, have the state of the queue.
    #[new]
    #[pyo3(signature = (path, *, state=false))]
    const fn new(path: PathBuf, state: bool) -> Self {
        Self(Capture::into_file(path, state))
    }

    /// Why packets could not be written, if so.
    #[getter]
    fn failure(&self) -> Option<String> {
        self.0.failure()
    }
}

/// Raise a `ScenarioError` if a scenario has several runs or the backend does not capture packets.
#[pyfunction]
#[pyo3(signature = (scenario, backend=None))]
pub(crate) fn check_capture(
    scenario: &Bound<'_, PyScenario>,
    backend: Option<&str>,
) -> Result<(), Failure> {
    let registry = registry();
    let backend = registry.get(backend)?;
    Ok(sojourn_lab::check_capture(
        backend,
        &scenario.get().0,
        None,
    )?)
}
