//! The catalogue of disciplines and their parameters.

use crate::parameters::{Entry, Profile, TcStatistics, Unit};
use crate::registry::QdiscSpec;

/// The description of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// The page of the documentation: the first name of the discipline; `None` for one of another crate.
    pub page: Option<&'static str>,
    /// The generated Python class; `None` for a second name of the same defaults and for a discipline of
    /// another crate.
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

/// A parameter of a discipline, as a person setting it wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The name in a specification.
    pub key: &'static str,
    /// The kind of value.
    pub unit: Unit,
    /// The value if none is given, as text.
    pub default: String,
    /// Whether `default` describes a derived value instead of being one.
    pub derived: bool,
    /// The smallest allowed value in nanoseconds, bits per second, bytes or plain numbers.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// The allowed values, as text.
    pub range: String,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// The RFC section, kernel symbol or paper that it comes from.
    pub provenance: &'static str,
}

/// Every discipline, aliases included, in the order in which to read about them; those that this
/// process [registered](crate::register) come last.
pub fn catalogue() -> Vec<QdiscInfo> {
    QdiscSpec::entries().iter().map(info).collect()
}

fn info(entry: &Entry) -> QdiscInfo {
    let mut start = QdiscSpec::at_defaults(entry.name).map(|(_, spec)| spec);
    let parameters = entry.parameters.iter().map(|parameter| {
        let field = start.as_mut().and_then(|spec| spec.field(parameter.key));
        let default = field.and_then(|field| field.text());
        ParameterInfo {
            key: parameter.key,
            unit: parameter.unit,
            derived: default.is_none(),
            default: default.unwrap_or_else(|| parameter.unset.into()),
            min: parameter.min,
            max: parameter.max,
            range: parameter.range(entry.profiles),
            meaning: parameter.meaning,
            provenance: parameter.provenance,
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
