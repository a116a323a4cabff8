//! The extension module `sojourn._core` with one more queue.

pub mod ramp;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Sojourn, and the queue `ramp`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    ramp::register().map_err(|e| PyImportError::new_err(e.to_string()))?;
    sojourn_py::add_to(module)
}
