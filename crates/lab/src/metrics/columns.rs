//! Which metrics the runs of a result have.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_scenario::Scenario;
use sojourn_scenario::plan::Traffic;

/// The direction of flows that have a path instead.
pub(super) const TOTAL: &str = "total";
/// The kind of flows that carry no data.
pub(super) const PING: &str = "ping";
/// Metrics that apply to every run.
pub(super) const SIGNALS: [&str; 2] = ["drops", "marks"];
/// Kinds of flows that have a connection of their own, with a congestion window.
const CONNECTIONS: [&str; 2] = ["tcp", "quic"];

/// Properties of a flow that determine the metrics to which it contributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity<'a> {
    pub(super) flow: &'a str,
    pub(super) kind: &'a str,
    pub(super) direction: &'a str,
    /// Whether it has a number of bytes to transfer.
    pub(super) is_finite: bool,
}

impl Identity<'_> {
    pub(super) fn carries_data(&self) -> bool {
        self.kind != PING
    }

    pub(super) fn has_connection(&self) -> bool {
        CONNECTIONS.contains(&self.kind)
    }
}

/// The metrics of a result: all runs have the same, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Directions of data, download first.
    pub(super) directions: Vec<String>,
    /// Links, download first.
    pub(super) links: Vec<String>,
    /// Directions that have several flows with a connection.
    pub(super) shared: Vec<String>,
    /// Whether any flow with a connection is endless: fairness then excludes finite transfers, whose
    /// goodput is not comparable.
    pub(super) only_endless: bool,
}

impl Columns {
    /// Of all flows and links of a result.
    pub(super) fn of<'a>(
        flows: impl Iterator<Item = Identity<'a>>,
        links: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut directions = BTreeSet::new();
        let mut connections: BTreeSet<(bool, &str, &str)> = BTreeSet::new();
        for flow in flows {
            if flow.carries_data() {
                directions.insert(flow.direction);
            }
            if flow.has_connection() {
                connections.insert((flow.is_finite, flow.direction, flow.flow));
            }
        }
        let only_endless = connections.iter().any(|&(is_finite, ..)| !is_finite);
        let mut counted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, direction, flow) in connections
            .into_iter()
            .filter(|&(is_finite, ..)| !(only_endless && is_finite))
        {
            counted.entry(direction).or_default().insert(flow);
        }
        let shared = counted.into_iter().filter(|(_, flows)| flows.len() > 1);
        Self {
            directions: download_first(directions),
            links: download_first(links.collect()),
            shared: download_first(shared.map(|(direction, _)| direction).collect()),
            only_endless,
        }
    }

    /// Of the runs of a scenario.
    pub(super) fn of_scenario(scenario: &Scenario) -> Self {
        let plans: Vec<_> = (0..scenario.arms().len())
            .map(|arm| scenario.plan(arm, 0))
            .collect();
        let flows = plans.iter().flat_map(|plan| {
            let known = plan.config.flows.iter().zip(&plan.flows);
            known.map(|(flow, label)| Identity {
                flow: &flow.name,
                kind: label.kind,
                direction: label.direction.unwrap_or(TOTAL),
                is_finite: matches!(
                    flow.traffic,
                    Traffic::Tcp { bytes: Some(_), .. } | Traffic::Quic { bytes: Some(_), .. }
                ),
            })
        });
        let links = plans.iter().flat_map(|plan| &plan.config.links);
        Self::of(flows, links.map(|link| link.name.as_str()))
    }

    /// Whether the fairness of its direction includes a flow.
    pub(super) fn is_compared(&self, flow: &Identity<'_>) -> bool {
        flow.has_connection() && !(self.only_endless && flow.is_finite)
    }

    /// Identifies what determines the metrics of a run, other than its own records.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.only_endless, self.names().join(" "))
    }

    /// The names of the metrics; `python/sojourn/result/catalogue.py` describes them.
    pub(super) fn names(&self) -> Vec<String> {
        let each = |names: &[String], name: fn(&str) -> String| -> Vec<String> {
            names.iter().map(|of| name(of)).collect()
        };
        let plain = |names: &[&str]| names.iter().copied().map(str::to_owned).collect();
        [
            each(&self.directions, |of| format!("goodput_{of}_mbit_per_s")),
            plain(&[
                "induced_latency_ms",
                "latency_above_base_ms",
                "ping_ms_p95",
                "ping_ms_p99",
            ]),
            each(&self.links, |of| format!("sojourn_{of}_ms_p95")),
            each(&self.links, |of| format!("driver_{of}_ms_p95")),
            plain(&SIGNALS),
            each(&self.shared, |of| format!("jain_{of}")),
        ]
        .concat()
    }
}

fn download_first(names: BTreeSet<&str>) -> Vec<String> {
    let mut names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    // Stable: the others stay in alphabetical order.
    names.sort_by_key(|name| name != "down");
    names
}
