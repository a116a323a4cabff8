//! The catalogues, parsing of single values, and the build, for Python.

use std::collections::BTreeMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use sojourn_lab::{Build, Measured, Scope};
use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::{LinkFacts, QdiscSpec};

use sojourn_transport::CcSpec;

use crate::errors::Failure;

/// Return every queue as JSON; or the one called `name`, which may be from outside Sojourn, in a list.
///
/// [{name, page, class, summary, source, reconstruction, profiles, parameters: [{key, unit, default,
/// derived, min, max, range, choices, meaning, provenance}], `tc_statistics`: {counters, leaves, overlimits}}]
#[pyfunction]
#[pyo3(signature = (name=None))]
pub(crate) fn qdisc_catalogue(name: Option<&str>) -> String {
    sojourn_qdisc::catalogue_json(name)
}

/// Return the canonical form of a queue in the syntax of tc.
#[pyfunction]
pub(crate) fn parse_qdisc(text: &str) -> Result<String, Failure> {
    Ok(text.parse::<QdiscSpec>()?.to_string())
}

/// Return what to note about a queue in the syntax of tc: what tc reads otherwise than other readers may expect,
/// and words without effect.
#[pyfunction]
pub(crate) fn qdisc_notes(text: &str) -> Vec<String> {
    QdiscSpec::notes_on(text)
}

/// Return what follows tc qdisc replace dev DEVICE root for a queue on a link of this rate, every parameter stated.
#[pyfunction]
#[pyo3(signature = (text, bits_per_s=None))]
pub(crate) fn tc_line(text: &str, bits_per_s: Option<u64>) -> Result<String, Failure> {
    let rate = bits_per_s.and_then(Rate::from_bits_per_sec);
    Ok(text.parse::<QdiscSpec>()?.tc_line(rate)?)
}

/// Return the parameters of a queue as pairs of key and text, with what is derived on a link of this rate.
///
/// Flags are "on" or "off". Without a rate, the rate of the link varies.
#[pyfunction]
#[pyo3(signature = (text, bits_per_s=None))]
pub(crate) fn qdisc_parameters(
    text: &str,
    bits_per_s: Option<u64>,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut spec: QdiscSpec = text.parse()?;
    spec.resolve(&LinkFacts {
        rate: bits_per_s.and_then(Rate::from_bits_per_sec),
        ..LinkFacts::default()
    });
    Ok(spec.pairs())
}

/// Return every congestion control as JSON.
///
/// `[{name, class, summary, source, slow_starts, quic_slow_start, ecn, parameters: [{key, unit, of, default,
/// derived, min, max, range, choices, meaning, provenance}]}]`
#[pyfunction]
pub(crate) fn cc_catalogue() -> String {
    sojourn_transport::cc::spec::catalogue_json()
}

/// Return the canonical form of a congestion control such as cubic beta 0.8.
#[pyfunction]
pub(crate) fn parse_cc(text: &str) -> Result<String, Failure> {
    Ok(text.parse::<CcSpec>()?.to_string())
}

/// Return the parameters of the queue or congestion control `text` at a path such as links.up.qdisc.
///
/// Pairs of key and text; flags are "on" or "off", and None stands for a parameter without a value.
/// Empty if values at the path have no parameters.
#[pyfunction]
pub(crate) fn parameters_at(
    path: &str,
    text: &str,
) -> Result<Vec<(&'static str, Option<String>)>, Failure> {
    Ok(sojourn_lab::parameters_at(path, text)?)
}

/// Return a message on one line, of bounded length, with control characters escaped.
#[pyfunction]
pub(crate) fn message(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(sojourn_lab::message(&shown(text)?))
}

/// Return a text with control characters escaped.
#[pyfunction]
pub(crate) fn printable(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(sojourn_lab::printable(&shown(text)?).into_owned())
}

/// A text that may contain the name of a file, whose bytes need not be UTF-8: Python has surrogates
/// in their place.
fn shown(text: &Bound<'_, PyString>) -> PyResult<String> {
    if let Ok(text) = text.to_str() {
        return Ok(text.to_owned());
    }
    let bytes = text.call_method1(intern!(text.py(), "encode"), ("utf-8", "surrogateescape"));
    match bytes {
        Ok(bytes) => Ok(String::from_utf8_lossy(bytes.cast::<PyBytes>()?.as_bytes()).into_owned()),
        // Other surrogates.
        Err(_) => Ok(text.to_string_lossy().into_owned()),
    }
}

/// Convert a time such as 5ms to seconds.
#[pyfunction]
pub(crate) fn parse_time_s(text: &str) -> Result<f64, Failure> {
    Ok(text.parse::<Duration>()?.as_secs_f64())
}

/// Convert a rate such as 10mbit to bits per second.
#[pyfunction]
pub(crate) fn parse_rate_bits_per_s(text: &str) -> Result<u64, Failure> {
    Ok(text.parse::<Rate>()?.bits_per_sec())
}

/// Return the mean bits per second of a trace, given as the `gaps_ms` of a scenario.
#[pyfunction]
pub(crate) fn parse_trace_bits_per_s(gaps_ms: &str) -> Result<u64, Failure> {
    Ok(sojourn_lab::trace_mean_rate(gaps_ms)?.bits_per_sec())
}

/// Convert a size such as 64kb to bytes; prefixes are powers of 1024.
#[pyfunction]
pub(crate) fn parse_size_bytes(text: &str) -> Result<u64, Failure> {
    Ok(text.parse::<Bytes>()?.0)
}

/// Return the tables of a result and their columns as JSON.
///
/// [{name, description, columns: [{name, type, nullable, unit, description}]}]
#[pyfunction]
pub(crate) fn column_catalogue() -> String {
    sojourn_lab::column_catalogue_json()
}

/// Return the keys of each table of a scenario.
#[pyfunction]
pub(crate) fn scenario_keys() -> BTreeMap<&'static str, Vec<&'static str>> {
    sojourn_lab::scenario_keys()
}

/// Return the metrics and their definitions as JSON.
///
/// [{column, scope, label, unit, digits, role, shown, description}]
#[pyfunction]
pub(crate) fn metric_catalogue() -> String {
    sojourn_lab::metric_catalogue_json()
}

/// Return the properties of each type of traffic.
///
/// {name: {measured: "group", "application" or None, `carries_data`, `has_connection`, `constant_rate`,
/// transactions: a word such as "pages", or None}}
#[pyfunction]
pub(crate) fn traffic_types(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let types = PyDict::new(py);
    for (name, properties) in sojourn_lab::traffic_types() {
        let measured = match properties.measured {
            Measured::Flows => Some(Scope::Group.name()),
            Measured::Applications => Some(Scope::Application.name()),
            Measured::Nothing => None,
        };
        let of = PyDict::new(py);
        of.set_item("measured", measured)?;
        of.set_item("carries_data", properties.carries_data)?;
        of.set_item("has_connection", properties.has_connection)?;
        of.set_item("constant_rate", properties.constant_rate)?;
        of.set_item("transactions", properties.transactions)?;
        types.set_item(name, of)?;
    }
    Ok(types)
}

/// Return the largest seed of a scenario.
#[pyfunction]
pub(crate) fn max_seed() -> i64 {
    sojourn_lab::MAX_SEED
}

/// Return the JSON Schema of scenario files.
#[pyfunction]
pub(crate) fn scenario_schema() -> String {
    sojourn_lab::json_schema()
}

/// Return the version of Sojourn.
#[pyfunction]
pub(crate) fn version() -> String {
    Build::current().version
}

/// Return the Git commit of this build; "unknown" outside Git, "-dirty" if changed.
#[pyfunction]
pub(crate) fn commit() -> String {
    Build::current().commit_text()
}
