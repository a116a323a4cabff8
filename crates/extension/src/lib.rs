//! The shared library that Python loads as `sojourn._core`: the bindings.

use pyo3::prelude::*;

/// The Rust core of Sojourn: scenarios, runs, records and statistics.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    sojourn_py::add_to(module)
}
