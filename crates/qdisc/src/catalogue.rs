//! The catalogue of disciplines and their parameters.

#[cfg(feature = "json")]
use serde_json::{Value, json};
use sojourn_schema::ParameterInfo;

use crate::parameters::{Entry, Profile, TcStatistics};
use crate::registry::QdiscSpec;

/// The description of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// The page of the documentation: the first name of the discipline; `None` for one from outside.
    pub page: Option<&'static str>,
    /// The generated Python class; `None` for a second name of the same defaults and for one from outside.
    pub class: Option<&'static str>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What no source gives and this implementation supplies, in one line; `None`: nothing.
    pub reconstruction: Option<&'static str>,
    /// What it can follow; the first is the default.
    pub profiles: &'static [Profile],
    /// What may be set.
    pub parameters: Vec<ParameterInfo>,
    /// What `tc -s qdisc` prints for it besides the statistics of its own.
    pub tc_statistics: TcStatistics,
}

/// Every discipline of this crate, aliases included, in the order in which to read about them.
pub fn catalogue() -> Vec<QdiscInfo> {
    QdiscSpec::entries().iter().map(info).collect()
}

fn info(entry: &Entry) -> QdiscInfo {
    let mut start = QdiscSpec::at_defaults(entry.name).map(|(_, spec)| spec);
    let parameters = entry.parameters.iter().map(|parameter| {
        let value = start.as_mut().and_then(|spec| spec.value(parameter.key));
        ParameterInfo {
            range: entry.range(parameter),
            choices: entry.choices(parameter),
            ..ParameterInfo::of(parameter, value.map(|value| &*value))
        }
    });
    QdiscInfo {
        name: entry.name,
        page: entry.page,
        class: entry.class,
        summary: entry.summary,
        source: entry.source,
        reconstruction: entry.reconstruction,
        profiles: entry.profiles,
        parameters: parameters.collect(),
        tc_statistics: entry.tc_statistics,
    }
}

/// Every discipline of this crate as a JSON array of objects, or only `name`, which may be an external queue:
///
/// `name`, `page`, `class`, `summary`, `source`, `reconstruction`, `profiles`, `parameters`, each of
/// which has `key`, `unit`, `default`, `derived`, `min`, `max`, `range`, `choices`, `meaning` and
/// `provenance`, and `tc_statistics`: `counters`, pairs of what `tc -s qdisc` calls a number of drops or
/// marks and its column, `leaves`, the part of the statistics with the queues inside, and `overlimits`,
/// whether the statistics have a number of that name.
/// `min` and `max` are in nanoseconds, bits per second, bytes or plain numbers.
#[cfg(feature = "json")]
pub fn catalogue_json(name: Option<&str>) -> String {
    let found = match name {
        None => catalogue(),
        Some(name) => {
            let entry = QdiscSpec::at_defaults(name);
            entry.iter().map(|(entry, _)| info(entry)).collect()
        }
    };
    Value::Array(found.iter().map(discipline).collect()).to_string()
}

#[cfg(feature = "json")]
fn discipline(info: &QdiscInfo) -> Value {
    let profiles: Vec<_> = info.profiles.iter().map(ToString::to_string).collect();
    let parameters = info.parameters.iter().map(sojourn_schema::json::entry);
    json!({
        "name": info.name,
        "page": info.page,
        "class": info.class,
        "summary": info.summary,
        "source": info.source,
        "reconstruction": info.reconstruction,
        "profiles": profiles,
        "parameters": parameters.collect::<Vec<_>>(),
        "tc_statistics": tc_statistics(info.tc_statistics),
    })
}

#[cfg(feature = "json")]
fn tc_statistics(of: TcStatistics) -> Value {
    let counters = of.counters.iter();
    let counters: Vec<_> = counters
        .map(|(name, counter)| json!([name, counter.name()]))
        .collect();
    json!({ "counters": counters, "leaves": of.leaves, "overlimits": of.overlimits })
}
