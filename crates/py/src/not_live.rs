//! Live runs, which need Linux.

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

/// Raise `UnavailableError`.
#[pyfunction]
#[pyo3(signature = (
    _scenario, *, ecn=false, watch=None, flows=false, capture=None, internet=false, bridge=None, force=false
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
    flows: bool,
    capture: Option<&Bound<'_, PyCapture>>,
    internet: bool,
    bridge: Option<[String; 2]>,
    force: bool,
) -> Result<(PyOutcome, Option<i32>, bool), Failure> {
    let _ = (ecn, watch, flows, capture, internet, bridge, force);
    Err(unavailable())
}

fn unavailable() -> Failure {
    Failure::Unavailable("live runs need Linux; simulated runs also work on this system".to_owned())
}
