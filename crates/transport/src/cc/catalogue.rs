//! The catalogue of congestion controls and their parameters.

#[cfg(feature = "json")]
use serde_json::{Value, json};
use sojourn_schema::ParameterInfo;
#[cfg(feature = "json")]
use sojourn_schema::Unit;

use super::declaration::EcnNeed;
use super::{CcKind, CcSpec, SlowStart};

/// Description of a congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CcInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// The name of its class in Python.
    pub class: String,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The slow-start exit heuristics it offers, its default first.
    pub slow_starts: Vec<&'static str>,
    /// The slow-start exit heuristic over QUIC, where its default differs.
    pub quic_slow_start: Option<&'static str>,
    /// Which ECN it needs.
    pub ecn: EcnNeed,
    /// What may be set.
    pub parameters: Vec<ParameterInfo>,
}

/// Every congestion control, in the order in which to read about them.
pub fn catalogue() -> Vec<CcInfo> {
    CcKind::ALL.into_iter().map(info).collect()
}

fn info(kind: CcKind) -> CcInfo {
    let declaration = kind.declaration();
    let mut defaults = CcSpec::from(kind);
    let parameters = kind.parameters().map(|parameter| {
        let value = defaults.value(parameter.key);
        ParameterInfo::of(parameter, value.map(|value| &*value))
    });
    CcInfo {
        name: declaration.name,
        class: format!("{kind:?}"),
        summary: declaration.summary,
        source: declaration.source,
        slow_starts: declaration.slow_starts.iter().map(|s| s.name()).collect(),
        quic_slow_start: declaration.quic_slow_start.map(SlowStart::name),
        ecn: declaration.ecn,
        parameters: parameters.collect(),
    }
}

/// Every congestion control as a JSON array of objects:
///
/// `name`, `class`, `summary`, `source`, `slow_starts`, `quic_slow_start`, `ecn` (`optional`, `required` or
/// `accurate`) and `parameters`, each of which has `key`, `unit`, `of`, `default`, `derived`, `min`, `max`,
/// `range`, `choices`, `meaning` and `provenance`, as those of a queue have. `of` is the unit of a
/// count or the denominator of a ratio. A count whose `range` begins with `off` may be that too. `min` and
/// `max` are in nanoseconds or plain numbers. No control has derived defaults or choices yet.
#[cfg(feature = "json")]
pub fn catalogue_json() -> String {
    Value::Array(catalogue().iter().map(control).collect()).to_string()
}

#[cfg(feature = "json")]
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

#[cfg(feature = "json")]
fn parameter(info: &ParameterInfo) -> Value {
    let of = match info.unit {
        Unit::Count(what) | Unit::CountOrOff(what) => what.to_owned(),
        Unit::Ratio(whole) | Unit::Ratios(whole) => whole.to_string(),
        _ => String::new(),
    };
    let mut entry = sojourn_schema::json::entry(info);
    entry["of"] = of.into();
    entry
}
