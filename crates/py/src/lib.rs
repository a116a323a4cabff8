//! Bindings for Python: they translate types and errors, and make no decisions.
//!
//! The names and types are those of `python/sojourn/_core.pyi`, which `stubtest` compares.

mod backends;
mod catalogue;
mod errors;
mod outcome;
mod python_queue;
mod run;
mod scenario;
mod statistics;

/// The Rust core of Sojourn: scenarios, runs, records and statistics.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::backends::backend_names;
    #[pymodule_export]
    use super::catalogue::{
        cc_catalogue, change_qdisc, column_catalogue, commit, parse_cc, parse_qdisc,
        parse_rate_bits_per_s, parse_size_bytes, parse_time_s, qdisc_catalogue, scenario_keys,
        scenario_schema, version,
    };
    #[pymodule_export]
    use super::errors::{QueueError, ResultError, ScenarioError, SojournError};
    #[pymodule_export]
    use super::outcome::{PyOutcome, PyTable};
    #[pymodule_export]
    use super::python_queue::{PyPacket, check_qdisc, python_prefix, register_python_queue};
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::scenario::{PyScenario, check_part};
    #[pymodule_export]
    use super::statistics::{bootstrap_difference, bootstrap_mean};
}
