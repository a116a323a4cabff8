//! The catalogue as JSON, for the Python package and for generators.

use serde_json::{Value, json};

use crate::catalogue::{ParameterInfo, QdiscInfo, catalogue};
use crate::parameters::{TcStatistics, Unit};

/// Every discipline as a JSON array of objects, those that this process registered last:
///
/// `name`, `page`, `class`, `summary`, `source`, `reconstruction`, `profiles`, `parameters`, each of
/// which has `key`, `unit`, `default`, `derived`, `min`, `max`, `range`, `choices`, `meaning` and
/// `provenance`, and `tc_statistics`: `counters`, pairs of what `tc -s qdisc` calls a number of drops or
/// marks and its column, `leaves`, the part of the statistics with the queues inside, and `overlimits`,
/// whether the statistics have a number of that name.
/// `min` and `max` are in nanoseconds, bits per second, bytes or plain numbers.
pub fn catalogue_json() -> String {
    Value::Array(catalogue().iter().map(discipline).collect()).to_string()
}

fn discipline(info: &QdiscInfo) -> Value {
    let profiles: Vec<_> = info.profiles.iter().map(ToString::to_string).collect();
    let parameters: Vec<_> = (info.parameters.iter())
        .map(|each| parameter(each, &profiles))
        .collect();
    json!({
        "name": info.name,
        "page": info.page,
        "class": info.class,
        "summary": info.summary,
        "source": info.source,
        "reconstruction": info.reconstruction,
        "profiles": profiles,
        "parameters": parameters,
        "tc_statistics": tc_statistics(info.tc_statistics),
    })
}

fn tc_statistics(of: TcStatistics) -> Value {
    let counters = of.counters.iter();
    let counters: Vec<_> = counters
        .map(|(name, counter)| json!([name, counter.name()]))
        .collect();
    json!({ "counters": counters, "leaves": of.leaves, "overlimits": of.overlimits })
}

fn parameter(info: &ParameterInfo, profiles: &[String]) -> Value {
    let choices = match info.unit {
        Unit::Choice(words) => json!(words),
        Unit::Profile => json!(profiles),
        _ => Value::Null,
    };
    json!({
        "key": info.key,
        "unit": info.unit.name(),
        "default": info.default,
        "derived": info.derived,
        "min": info.min,
        "max": info.max,
        "range": info.range,
        "choices": choices,
        "meaning": info.meaning,
        "provenance": info.provenance,
    })
}
