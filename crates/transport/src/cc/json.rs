//! The catalogue of controls as JSON.

use serde_json::{Value, json};

use super::parameter::Unit;
use super::spec::{CcInfo, ParameterInfo, catalogue};

/// Every congestion control as a JSON array of objects:
///
/// `name`, `class`, `summary`, `source`, `slow_starts`, `quic_slow_start`, `ecn` (`optional`, `required` or
/// `accurate`) and `parameters`, each of which has `key`, `unit`, `of`, `default`, `derived`, `min`, `max`,
/// `range`, `choices`, `meaning` and `provenance`, as those of a queue have. `of` is the unit of a
/// count or the denominator of a ratio. A count whose `range` begins with `off` may be that too. `min` and
/// `max` are in nanoseconds or plain numbers. No control has derived defaults or choices yet.
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
        "quic_slow_start": info.quic_slow_start,
        "ecn": info.ecn.name(),
        "parameters": parameters,
    })
}

fn parameter(info: &ParameterInfo) -> Value {
    let (unit, of) = match info.unit {
        Unit::Flag => ("flag", String::new()),
        Unit::Count(what) | Unit::CountOrOff(what) => ("count", what.to_owned()),
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
        "derived": false,
        "min": bound(info.unit, info.bounds.0),
        "max": bound(info.unit, info.bounds.1),
        "range": info.range,
        "choices": null,
        "meaning": info.meaning,
        "provenance": info.provenance,
    })
}

/// A kept value in nanoseconds or as a plain number.
fn bound(unit: Unit, kept: u32) -> Value {
    match unit {
        Unit::Flag | Unit::Count(_) | Unit::CountOrOff(_) => json!(kept),
        Unit::Ratio(whole) | Unit::Ratios(whole) => json!(f64::from(kept) / f64::from(whole)),
        Unit::Decimal(places) => json!(f64::from(kept) / 10_f64.powi(places.cast_signed())),
        Unit::Millis => json!(1_000_000 * u64::from(kept)),
        Unit::Micros => json!(1_000 * u64::from(kept)),
    }
}
