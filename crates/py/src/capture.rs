//! The Python class for packet captures.

use std::path::PathBuf;

use pyo3::prelude::*;
use sojourn_lab::Capture;

use crate::backends::registry;
use crate::errors::Failure;
use crate::scenario::PyScenario;

/// A file for the packets of a run, in the format pcapng.
#[pyclass(name = "Capture", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyCapture(pub(crate) Capture);

#[pymethods]
impl PyCapture {
    /// Capture into an existing file, whose content is replaced.
    #[new]
    const fn new(path: PathBuf) -> Self {
        Self(Capture::into_file(path))
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
    sojourn_lab::check_capture(backend, &scenario.get().0).map_err(Failure::Scenario)
}
