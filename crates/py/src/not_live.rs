//! Live runs, which need Linux.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::backends::PyCapture;
use crate::errors::Failure;
use crate::outcome::PyOutcome;
use crate::scenario::PyScenario;

/// Raise `UnavailableError`.
#[pyfunction]
pub(crate) fn enter_user_namespace() -> Result<(), Failure> {
    Err(unavailable())
}

/// Raise `UnavailableError`.
#[pyfunction]
pub(crate) fn live_buffer_bytes() -> Result<usize, Failure> {
    Err(unavailable())
}

/// Not available.
#[pyclass(name = "LinkControl", module = "sojourn._core", frozen)]
pub(crate) struct PyLinkControl;

#[pymethods]
impl PyLinkControl {
    #[new]
    fn new() -> Result<Self, Failure> {
        Err(unavailable())
    }

    /// Raise `UnavailableError`.
    fn change(
        &self,
        changes: Vec<(String, String)>,
    ) -> Result<(f64, Vec<(String, String)>), Failure> {
        let _ = (self, changes);
        Err(unavailable())
    }

    /// Raise `UnavailableError`.
    fn watch(&self) -> Result<(), Failure> {
        let _ = self;
        Err(unavailable())
    }
}

/// Raise `UnavailableError`.
#[pyfunction]
#[pyo3(signature = (
    _scenario, *, ecn=false, watch=None, links=false, flows=false, capture=None, internet=false, bridge=None,
    default_route=false, interop=None, control=None
))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "keywords in Python"
)]
pub(crate) fn run_program(
    _scenario: &Bound<'_, PyScenario>,
    ecn: bool,
    watch: Option<Py<PyAny>>,
    links: bool,
    flows: bool,
    capture: Option<&Bound<'_, PyCapture>>,
    internet: bool,
    bridge: Option<[String; 2]>,
    default_route: bool,
    interop: Option<&Bound<'_, PyInterop>>,
    control: Option<&Bound<'_, PyLinkControl>>,
) -> Result<(PyOutcome, Option<i32>, bool), Failure> {
    let _ = (
        ecn,
        watch,
        links,
        flows,
        capture,
        internet,
        bridge,
        default_route,
        interop,
        control,
    );
    Err(unavailable())
}

/// A scenario of the QUIC network simulator, which only live runs have.
#[pyclass(name = "Interop", module = "sojourn._core", frozen)]
pub(crate) struct PyInterop;

#[pymethods]
impl PyInterop {
    #[new]
    #[pyo3(signature = (words, interfaces, *, ready=None, logs=None))]
    fn new(
        words: Vec<String>,
        interfaces: [String; 2],
        ready: Option<u16>,
        logs: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let _ = (words, interfaces, ready, logs);
        Err(unavailable())
    }
}

fn unavailable() -> Failure {
    Failure::Unavailable("live runs need Linux; simulated runs also work on this system".to_owned())
}
