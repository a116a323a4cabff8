//! Bindings for Python: they translate types and errors, and make no decisions.
//!
//! The names and types are those of `python/sojourn/_core.pyi`, which `stubtest` compares.

mod backends;
mod batch;
mod captures;
mod catalogue;
mod driven_queue;
mod errors;
#[cfg_attr(not(target_os = "linux"), path = "not_live.rs")]
mod live;
mod metrics;
mod outcome;
mod path;
mod plugin;
mod python_controller;
mod python_queue;
mod run;
mod run_store;
mod scenario;
mod statistics;
mod storage;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Adds all classes, exceptions and functions of `sojourn._core` to `module`.
///
/// # Errors
/// Those of Python.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions(module)?;
    module.add_class::<backends::PyCapture>()?;
    module.add_class::<batch::PyBatch>()?;
    module.add_class::<captures::PyCaptureAnalysis>()?;
    module.add_class::<driven_queue::PyDrivenQueue>()?;
    module.add_class::<live::PyLinkControl>()?;
    module.add_class::<metrics::PyMeasurements>()?;
    module.add_class::<metrics::PyMeter>()?;
    module.add_class::<outcome::PyClaim>()?;
    module.add_class::<outcome::PyOutcome>()?;
    module.add_class::<outcome::PyTable>()?;
    module.add_class::<path::PyPath>()?;
    module.add_class::<python_queue::PyPacket>()?;
    module.add_class::<run_store::PyRunStore>()?;
    module.add_class::<run_store::PyInvocation>()?;
    module.add_class::<scenario::PyScenario>()?;
    module.add_class::<storage::PyFolder>()?;
    module.add_class::<storage::PyReplacement>()?;
    let py = module.py();
    let errors = [
        py.get_type::<errors::SojournError>(),
        py.get_type::<errors::ScenarioError>(),
        py.get_type::<errors::ResultError>(),
        py.get_type::<errors::DamagedResultError>(),
        py.get_type::<errors::OccupiedError>(),
        py.get_type::<errors::QueueError>(),
        py.get_type::<errors::UnavailableError>(),
        py.get_type::<errors::NotRegularError>(),
    ];
    // Those that are raised in Python may lack the parts.
    for part in ["path", "value", "problem"] {
        py.get_type::<errors::ScenarioError>()
            .setattr(part, py.None())?;
    }
    errors.iter().try_for_each(|error| add_type(module, error))
}

fn add_type(module: &Bound<'_, PyModule>, class: &Bound<'_, PyType>) -> PyResult<()> {
    module.add(class.name()?, class)
}

fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(backends::backend_concurrency, module)?)?;
    module.add_function(wrap_pyfunction!(backends::check_backend, module)?)?;
    module.add_function(wrap_pyfunction!(backends::backend_names, module)?)?;
    module.add_function(wrap_pyfunction!(backends::check_capture, module)?)?;
    module.add_function(wrap_pyfunction!(captures::is_capture, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::cc_catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::column_catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::commit, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::max_seed, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::message, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parameters_at, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_cc, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::qdisc_notes, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::tc_line, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_rate_bits_per_s, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_size_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_time_s, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::parse_trace_bits_per_s, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::printable, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::qdisc_catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::qdisc_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::scenario_keys, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::metric_catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::traffic_types, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::scenario_schema, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::version, module)?)?;
    module.add_function(wrap_pyfunction!(live::enter_user_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(live::live_buffer_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(live::run_program, module)?)?;
    module.add_class::<live::PyInterop>()?;
    module.add_function(wrap_pyfunction!(metrics::averaged_pings, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::jain, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::table_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(plugin::load_plugin, module)?)?;
    module.add_function(wrap_pyfunction!(plugin::plugin_prefix, module)?)?;
    module.add_function(wrap_pyfunction!(plugin::queue_origin, module)?)?;
    module.add_function(wrap_pyfunction!(python_queue::check_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(python_queue::python_prefix, module)?)?;
    module.add_function(wrap_pyfunction!(
        python_controller::register_controller,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(
        python_queue::register_python_queue,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(run::check_jobs, module)?)?;
    module.add_function(wrap_pyfunction!(run::default_max_memory, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(run::limit_memory, module)?)?;
    module.add_function(wrap_pyfunction!(run::worker_memory, module)?)?;
    module.add_function(wrap_pyfunction!(run::simulated_events, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::run_one, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::check_part, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::bootstrap_means, module)?)?;
    module.add_function(wrap_pyfunction!(storage::add_derived_file, module)?)?;
    module.add_function(wrap_pyfunction!(storage::open_committed_file, module)?)?;
    module.add_function(wrap_pyfunction!(storage::open_regular_file, module)?)?;
    module.add_function(wrap_pyfunction!(storage::read_saved_table, module)?)?;
    module.add_function(wrap_pyfunction!(storage::scenario_sha256, module)?)
}
