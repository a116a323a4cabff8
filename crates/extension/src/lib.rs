//! The shared library that Python loads as `sojourn._core`: the bindings, and no queue but ours.
//!
//! A crate that adds a queue builds a library like this one: see `examples/external-queue`.

use pyo3::prelude::*;

/// The Rust core of Sojourn: scenarios, runs, records and statistics.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    sojourn_py::add_to(module)
}
