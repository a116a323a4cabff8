//! The list of backends of this build.

use std::num::NonZeroUsize;

use pyo3::prelude::*;
use sojourn_backend::{BackendError, Registry};
use sojourn_lab::Build;
use sojourn_sim::Simulator;

use crate::errors::Failure;
use crate::scenario::PyScenario;

/// All backends; the first is the default.
pub(crate) fn registry() -> Registry {
    let commit = Build::current().commit;
    let simulator = Simulator {
        commit: commit.clone(),
    };
    with_live(Registry::new().with(Box::new(simulator)), commit)
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
