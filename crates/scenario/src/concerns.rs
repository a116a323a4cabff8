//! Limitations of the results that follow from the scenario alone.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_net::Comparison;
use sojourn_transport::{CcKind, quic};

use crate::plan::{Config, LinkConfig, RadioConfig, Traffic};
use crate::start_up::start_up;

/// How much a concern matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It weakens conclusions.
    Warning,
    /// It is information.
    Note,
}

impl Severity {
    /// Its name in the list of findings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A limitation of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// How much it matters.
    pub severity: Severity,
    /// What it is, with its numbers.
    pub text: String,
}

/// Finds the concerns about a scenario with these arms.
pub(crate) fn of(arms: &[(&str, Config)]) -> Vec<Concern> {
    let warnings = by_arm(arms, excess_shapers)
        .into_iter()
        .chain(by_arm(arms, unknown_rates))
        .chain(by_arm(arms, |config| {
            start_up(config).into_iter().collect()
        }));
    let warnings = warnings.map(|text| Concern {
        severity: Severity::Warning,
        text,
    });
    let notes = comparisons(arms).into_iter().map(|text| Concern {
        severity: Severity::Note,
        text,
    });
    warnings.chain(notes).collect()
}

/// Applies `found` to each arm and merges equal texts; a text that does not apply to all arms begins
/// with their names.
fn by_arm(arms: &[(&str, Config)], found: impl Fn(&Config) -> Vec<String>) -> Vec<String> {
    let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, config) in arms {
        for text in found(config) {
            names.entry(text).or_default().push(name);
        }
    }
    let shown = names.into_iter().map(|(text, of)| {
        if of.len() == arms.len() {
            text
        } else {
            format!("{}: {text}", of.join(", "))
        }
    });
    shown.collect()
}

/// Queues whose shaper is faster than their link.
fn excess_shapers(config: &Config) -> Vec<String> {
    let steady = |link: &&LinkConfig| link.trace.is_none() && link.radio.is_none();
    let links = config.links.iter().filter(steady);
    let found = links.filter_map(|link| {
        let changes = link.changes.iter().filter_map(|change| change.rate);
        let rate = changes.fold(link.rate, Ord::max);
        let shaper = link.qdisc.shaper_rate().filter(|shaper| *shaper > rate)?;
        Some(format!(
            "the shaper of the queue of link {} ({shaper}) is faster than the link ({rate}) and has no effect.",
            link.name
        ))
    });
    found.collect()
}

/// Queues whose results depend on a rate that the link does not have.
fn unknown_rates(config: &Config) -> Vec<String> {
    let varies = |link: &LinkConfig| match (&link.trace, &link.radio) {
        (Some(_), _) => Some("follows a capacity trace"),
        (None, Some(_)) => Some("is wireless"),
        (None, None) => None,
    };
    let found = config.links.iter().filter_map(|link| {
        let (varies, assumed) = (varies(link)?, link.qdisc.assumed_rate()?);
        Some(format!(
            "the queue {} of link {} assumes a rate of {assumed}, but the link {varies}; set its bandwidth.",
            link.qdisc.kind(),
            link.name
        ))
    });
    found.collect()
}

/// The models that were not compared with a real implementation, only in part or in another profile.
fn comparisons(arms: &[(&str, Config)]) -> Vec<String> {
    let mut models = BTreeSet::new();
    for (_, config) in arms {
        for link in &config.links {
            let queues = link.qdisc.provenance().into_iter();
            models.extend(queues.map(|queue| {
                let kind = match queue.reconstruction {
                    Some(_) => format!("queue {} (a reconstruction)", queue.name),
                    None => format!("queue {}", queue.name),
                };
                (kind, queue.comparison)
            }));
            let radio = link.radio.is_some();
            models.extend(radio.then(|| ("wireless links".to_owned(), RadioConfig::COMPARISON)));
        }
        for flow in &config.flows {
            let (control, over_quic) = match &flow.traffic {
                Traffic::Tcp { params, .. } => (params.cc.kind(), false),
                Traffic::Quic { params, .. } => (params.cc.kind(), true),
                Traffic::Datagrams(_) | Traffic::Program(_) => continue,
                Traffic::App(app) => app
                    .quic()
                    .map_or_else(|| (app.tcp().cc.kind(), false), |q| (q.cc.kind(), true)),
            };
            models.insert(of_control(control));
            models.extend(over_quic.then(|| ("QUIC".to_owned(), quic::COMPARISON)));
        }
    }
    let none = models
        .iter()
        .filter(|(_, compared)| *compared == Comparison::None);
    let none: Vec<_> = none.map(|(name, _)| name.as_str()).collect();
    let partly = models.iter().filter_map(|(name, compared)| match compared {
        Comparison::Partial(what) => Some(format!("{name} (with {what})")),
        Comparison::None | Comparison::OtherProfile { .. } | Comparison::With(_) => None,
    });
    let partly: Vec<_> = partly.collect();
    let other = models.iter().filter_map(|(name, compared)| match compared {
        Comparison::OtherProfile {
            used,
            compared,
            with,
        } => Some(format!(
            "{name} (profile {used}; profile {compared} with {with})"
        )),
        Comparison::None | Comparison::Partial(_) | Comparison::With(_) => None,
    });
    let other: Vec<_> = other.collect();
    let texts = [
        (none.join(", "), "not compared with a real implementation"),
        (
            partly.join(", "),
            "compared with a real implementation only in part",
        ),
        (
            other.join(", "),
            "compared with a real implementation in another profile than the one in use",
        ),
    ];
    let texts = texts.into_iter().filter(|(names, _)| !names.is_empty());
    texts
        .map(|(names, what)| format!("{what}: {names}."))
        .collect()
}

fn of_control(control: CcKind) -> (String, Comparison) {
    let declared = control.declaration();
    let name = format!("congestion control {}", declared.name);
    (name, declared.comparison)
}
