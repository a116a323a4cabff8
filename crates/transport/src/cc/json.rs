//! The catalogue of controls as JSON.

use serde_json::{Value, json};

use super::parameter::Unit;
use super::spec::{CcInfo, ParameterInfo, catalogue};

/// Every congestion control as JSON.
///
/// `[{name, class, summary, source, slow_starts, parameters: [{key, unit, of, default, range, meaning,
/// provenance}]}]`, where `of` is the unit of a count or the denominator of a ratio.
pub fn catalogue_json() -> String {
    Value::Array(catalogue().iter().map(control).collect()).to_string()
}

fn control(info: &CcInfo) -> Value {
    let parameters: Vec<_> = info.parameters.iter().map(parameter).collect();
    json!({
        "name": info.name,
        "class": info.class,
        "summary": info.summary,
        "source": info.source,
        "slow_starts": info.slow_starts,
        "parameters": parameters,
    })
}

fn parameter(info: &ParameterInfo) -> Value {
    let (unit, of) = match info.unit {
        Unit::Flag => ("flag", String::new()),
        Unit::Count(what) => ("count", what.to_owned()),
        Unit::Ratio(whole) => ("ratio", whole.to_string()),
        Unit::Ratios(whole) => ("ratios", whole.to_string()),
        Unit::Decimal(_) => ("decimal", String::new()),
        Unit::Millis | Unit::Micros => ("time", String::new()),
    };
    json!({
        "key": info.key,
        "unit": unit,
        "of": of,
        "default": info.default,
        "range": info.range,
        "meaning": info.meaning,
        "provenance": info.source,
    })
}
