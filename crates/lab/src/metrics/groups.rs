//! Metrics of groups of flows.

use arrow_schema::ArrowError;
use sojourn_scenario::{Measured, TrafficProperties, traffic_properties};

use super::formulas::{jain, mean, percent, percent_true, quantile, real, sum};
use super::rows::{Ordered, RunKey, Tables, Window, columns, table_of_groups};
use super::runs::TOTAL;
use super::{Metric, Role};
use crate::tables::{Table, TableKind};

type GroupMetric = Metric<fn(&Group<'_>) -> Option<f64>>;

/// Metrics of groups of flows.
pub(super) const METRICS: &[GroupMetric] = &[
    GroupMetric::new(
        "flows",
        "flows",
        (0, ""),
        "Number of flows that the row covers.",
        |group| Some(real(group.flows.len())),
    )
    .hidden()
    .whole(),
    GroupMetric::new(
        "goodput_mbit_per_s_mean",
        "goodput",
        (2, "Mbit/s"),
        "Mean goodput of the endless TCP and QUIC flows and of the UDP flows.",
        |group| {
            let counted = group.flows.iter().filter(|flow| !flow.is_transfer());
            mean(counted.map(|flow| flow.row.goodput_mbit_per_s))
        },
    )
    .role(Role::Compared),
    GroupMetric::new(
        "data_share_percent",
        "share of data",
        (1, "%"),
        "Share of the group in the payload delivered after *W* to all receivers of its \
         direction, applications included.",
        |group| percent(group.delivered_bytes, group.direction_bytes?),
    ),
    GroupMetric::new(
        "capacity_share_percent",
        "share of capacity",
        (1, "%"),
        "Payload that the group delivered after *W*, relative to what its bottleneck could \
         carry: 8 · payload / (`capacity_mbit_per_s` of the link · (*D* − *W*)). The \
         bottleneck is the link in the column `bottleneck` of `flows`. Headers, \
         acknowledgements and retransmissions use the rest of a link that is always busy.",
        |group| {
            let rate = group.delivered_bytes * 8e-6 / group.window.length;
            Some(rate / group.capacity_mbit_per_s? * 100.0)
        },
    ),
    GroupMetric::new(
        "rtt_inflation_ms_mean",
        "RTT inflation",
        (1, "ms"),
        "Endless TCP and QUIC flows: mean of `ack_rtt_ms_mean` minus `base_rtt_ms` of the \
         flow in `flows`: queueing and transmission at all links of the path.",
        |group| {
            mean(
                group
                    .endless()
                    .map(|row| Some(row.ack_rtt_ms_mean? - row.base_rtt_ms?)),
            )
        },
    )
    .role(Role::Compared),
    GroupMetric::new(
        "retransmit_percent",
        "retransmissions",
        (2, "%"),
        "TCP, QUIC: retransmitted packets per data packet sent.",
        |group| {
            let resent = sum(group.connections().map(|row| row.retransmits));
            percent(resent, sum(group.connections().map(|row| row.sent_packets)))
        },
    ),
    GroupMetric::new(
        "jain",
        "Jain",
        (3, ""),
        "Jain's index over the goodputs of the endless TCP and QUIC flows; only for more than \
         one.",
        |group| {
            let rates = || group.endless().filter_map(|row| row.goodput_mbit_per_s);
            if rates().count() > 1 {
                jain(rates())
            } else {
                None
            }
        },
    )
    .role(Role::Compared),
    GroupMetric::new(
        "limited_by_loss_percent",
        "limited by loss recovery",
        (0, "%"),
        "Mean of `limited_by_loss` of the TCP and QUIC flows in `flows`: the share of time in \
         which loss recovery limited a flow. It and the next five shares add up to 100 %.",
        |group| group.limited(|row| row.limited_by_loss),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "limited_by_application_percent",
        "limited by the application",
        (0, "%"),
        "The same of `limited_by_application`: nothing to send.",
        |group| group.limited(|row| row.limited_by_application),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "limited_by_receive_window_percent",
        "limited by the receive window",
        (0, "%"),
        "The same of `limited_by_receive_window`: the receive window of TCP or flow control \
         of QUIC.",
        |group| group.limited(|row| row.limited_by_receive_window),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "limited_by_pacing_percent",
        "limited by pacing",
        (0, "%"),
        "The same of `limited_by_pacing`: the pacing rate, while the congestion window had \
         room.",
        |group| group.limited(|row| row.limited_by_pacing),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "limited_by_link_percent",
        "limited by a link",
        (0, "%"),
        "The same of `limited_by_link`: the congestion window was full while a packet of the \
         flow waited in a queue.",
        |group| group.limited(|row| row.limited_by_link),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "limited_by_cwnd_percent",
        "limited by the congestion window",
        (0, "%"),
        "The same of `limited_by_cwnd`: the congestion window was full while no packet of the \
         flow waited in a queue.",
        |group| group.limited(|row| row.limited_by_cwnd),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "loss_percent",
        "loss",
        (2, "%"),
        "UDP: of the datagrams sent after *W* that arrived or were dropped by the end of the \
         run, the share that was dropped; duplicates count once.",
        |group| {
            // Under metric definitions 2, `received_packets` excludes packets sent before the warm-up
            // ended, and datagrams in flight at the end count as lost.
            let before = |row: &FlowRow<'_>| Some(row.sent_packets? - row.received_packets?);
            let missing = |row: &FlowRow<'_>| row.missing_packets.or_else(|| before(row));
            let lost = sum(group
                .datagrams()
                .map(|row| row.lost_packets.or_else(|| missing(row))));
            let sent = sum(group.datagrams().map(|row| row.sent_packets));
            percent(lost, sent - sum(group.datagrams().map(missing)) + lost)
        },
    ),
    GroupMetric::new(
        "initial_loss_percent",
        "connections with initial loss",
        (2, "%"),
        "Share of connections that lost a handshake packet or a segment of the initial \
         window, original or retransmitted; QUIC: a handshake packet or one of the first \
         `initial_window` packets with data.",
        |group| percent_true(group.begun().map(|row| Some(row.initial_losses? > 0.0))),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "handshake_loss_percent",
        "connections with handshake loss",
        (2, "%"),
        "TCP: share of connections that lost a SYN or SYN-ACK; QUIC: an Initial or Handshake \
         packet.",
        |group| percent_true(group.begun().map(|row| Some(row.handshake_losses? > 0.0))),
    )
    .role(Role::Minor),
    GroupMetric::new(
        "handshake_s_mean",
        "handshake",
        (3, "s"),
        "Mean time from the first SYN or Initial until the connection was established, over \
         established connections; a lost packet adds a timeout.",
        |group| {
            mean(
                group
                    .rows()
                    .map(|row| Some(row.connected_s? - row.started_s?)),
            )
        },
    )
    .role(Role::Minor),
    GroupMetric::new(
        "fct_s_mean",
        "completion",
        (3, "s"),
        "Mean completion time of the transfers completed within the run, from the first SYN \
         or Initial to the last byte.",
        |group| mean(group.rows().map(|row| row.fct_s)),
    )
    .role(Role::Compared),
    GroupMetric::new(
        "fct_s_p95",
        "completion p95",
        (3, "s"),
        "95th percentile of the completion times of the transfers completed within the run.",
        |group| quantile(group.rows().map(|row| row.fct_s), 0.95),
    ),
    GroupMetric::new(
        "fct_hit_s_mean",
        "completion after initial loss",
        (2, "s"),
        "Mean completion time of the transfers counted by `initial_loss_percent`.",
        |group| {
            let hit = group.rows().filter(|row| row.initial_losses > Some(0.0));
            mean(hit.map(|row| row.fct_s))
        },
    ),
];

columns! {
    /// A row of `flows`.
    FlowRow {
        texts: group kind direction bottleneck;
        numbers: bytes delivered_bytes goodput_mbit_per_s started_s connected_s fct_s sent_packets
            received_packets missing_packets lost_packets retransmits handshake_losses initial_losses
            ack_rtt_ms_mean base_rtt_ms limited_by_loss limited_by_application
            limited_by_receive_window limited_by_pacing limited_by_link limited_by_cwnd;
    }
}

columns! {
    /// A row of `links`.
    LinkRow {
        texts: link;
        numbers: capacity_mbit_per_s;
    }
}

/// A flow: large, since it has what all metrics need.
#[derive(Debug)]
struct Flow<'a> {
    row: FlowRow<'a>,
    traffic: TrafficProperties,
}

impl<'a> Flow<'a> {
    fn of(row: &FlowRow<'a>) -> Self {
        Self {
            row: *row,
            traffic: traffic_properties(row.kind.unwrap_or_default()),
        }
    }

    /// Whether it is a connection that transfers a number of bytes.
    const fn is_transfer(&self) -> bool {
        self.traffic.has_connection && self.row.bytes.is_some()
    }

    /// Whether the metrics of its group cover it: transfers that began before the warm-up ended are
    /// excluded.
    fn is_counted(&self, window: Window) -> bool {
        let is_measured = !self.is_transfer() || self.row.started_s >= Some(window.warmup);
        self.traffic.measured == Measured::Flows && is_measured
    }

    fn direction(&self) -> &'a str {
        self.row.direction.unwrap_or(TOTAL)
    }
}

/// The flows of a run.
#[derive(Debug, Default)]
struct Run<'a> {
    flows: Vec<&'a Flow<'a>>,
    links: Vec<LinkRow<'a>>,
}

/// A group of flows of a run.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Those that are counted.
    flows: Vec<&'a Flow<'a>>,
    window: Window,
    /// Payload delivered to the receivers of all of its flows.
    delivered_bytes: f64,
    /// Payload delivered to all receivers of its direction.
    direction_bytes: Option<f64>,
    /// Capacity of its bottleneck, if all of its flows have the same.
    capacity_mbit_per_s: Option<f64>,
}

impl<'a> Group<'a> {
    fn rows(&self) -> impl Iterator<Item = &FlowRow<'a>> {
        self.flows.iter().map(|flow| &flow.row)
    }

    fn connections(&self) -> impl Iterator<Item = &FlowRow<'a>> {
        let of = self.flows.iter().filter(|flow| flow.traffic.has_connection);
        of.map(|flow| &flow.row)
    }

    fn datagrams(&self) -> impl Iterator<Item = &FlowRow<'a>> {
        let of = self
            .flows
            .iter()
            .filter(|flow| !flow.traffic.has_connection);
        of.map(|flow| &flow.row)
    }

    /// Connections without end.
    fn endless(&self) -> impl Iterator<Item = &FlowRow<'a>> {
        self.connections().filter(|row| row.bytes.is_none())
    }

    /// The mean of a share of time over the connections that have it, in percent.
    fn limited(&self, share: fn(&FlowRow<'a>) -> Option<f64>) -> Option<f64> {
        mean(self.connections().map(share)).map(|share| 100.0 * share)
    }

    /// Connections that sent a packet.
    fn begun(&self) -> impl Iterator<Item = &FlowRow<'a>> {
        self.connections().filter(|row| row.started_s.is_some())
    }
}

impl<'a> Run<'a> {
    fn groups(&self, window: Window) -> Vec<(&'a str, Group<'a>)> {
        let mut bytes: Ordered<&str, f64> = Ordered::default();
        let mut all: Ordered<&str, Vec<&'a Flow<'a>>> = Ordered::default();
        for &flow in &self.flows {
            all.of(flow.row.group.unwrap_or_default()).push(flow);
            if flow.traffic.carries_data {
                *bytes.of(flow.direction()) += flow.row.delivered_bytes.unwrap_or_default();
            }
        }
        let group = |(name, flows): &(&'a str, Vec<&'a Flow<'a>>)| {
            let counted = flows.iter().filter(|flow| flow.is_counted(window));
            let counted: Vec<_> = counted.copied().collect();
            let first = counted.first()?;
            let group = Group {
                window,
                delivered_bytes: sum(flows.iter().map(|flow| flow.row.delivered_bytes)),
                direction_bytes: bytes.get(first.direction()).copied(),
                capacity_mbit_per_s: self.capacity(flows),
                flows: counted,
            };
            Some((*name, group))
        };
        all.items.iter().filter_map(group).collect()
    }

    /// The capacity of the bottleneck of some flows, if they have one in common.
    fn capacity(&self, flows: &[&Flow<'_>]) -> Option<f64> {
        let bottleneck = flows.first()?.row.bottleneck?;
        let is_common = |flow: &&Flow<'_>| flow.row.bottleneck == Some(bottleneck);
        if !flows.iter().all(is_common) {
            return None;
        }
        let link = self.links.iter().find(|link| link.link == Some(bottleneck));
        link?.capacity_mbit_per_s
    }
}

/// One row per run and group.
pub(super) fn metrics(tables: Tables<'_, '_>, window: Window) -> Result<Table, ArrowError> {
    let mut flows = Vec::new();
    FlowRow::read(tables(TableKind::Flows), |run, row| {
        flows.push((run, Flow::of(&row)));
    })?;
    let mut runs: Ordered<RunKey<'_>, Run<'_>> = Ordered::default();
    for (run, flow) in &flows {
        runs.of(*run).flows.push(flow);
    }
    LinkRow::read(tables(TableKind::Links), |run, row| {
        runs.of(run).links.push(row);
    })?;
    let groups = runs.items.iter().flat_map(|(run, of)| {
        let groups = of.groups(window).into_iter();
        groups.map(|(name, group)| (*run, vec![name.to_owned()], group))
    });
    table_of_groups(&["group"], &groups.collect::<Vec<_>>(), METRICS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone<'a>(flow: &'a Flow<'a>) -> Run<'a> {
        Run {
            flows: vec![flow],
            links: Vec::new(),
        }
    }

    /// A type of datagrams that no list names has the metrics of its groups.
    #[test]
    fn properties_decide_which_metrics_a_flow_has() {
        let row = FlowRow {
            group: Some("beacons"),
            goodput_mbit_per_s: Some(2.0),
            delivered_bytes: Some(500.0),
            sent_packets: Some(10.0),
            lost_packets: Some(1.0),
            missing_packets: Some(1.0),
            ..FlowRow::default()
        };
        let window = Window {
            warmup: 1.0,
            length: 2.0,
        };
        let of = |traffic| Flow { row, traffic };
        let datagrams = of(TrafficProperties::DATAGRAMS);
        let found = alone(&datagrams).groups(window);
        let values: Vec<_> = METRICS
            .iter()
            .map(|metric| (metric.value)(&found[0].1))
            .collect();
        let place = |name| {
            METRICS
                .iter()
                .position(|metric| metric.declared.name == name)
                .unwrap()
        };
        assert_eq!(values[place("goodput_mbit_per_s_mean")], Some(2.0));
        assert_eq!(values[place("loss_percent")], Some(10.0));
        assert_eq!(values[place("data_share_percent")], Some(100.0));
        assert_eq!(values[place("retransmit_percent")], None);
        for traffic in [TrafficProperties::APPLICATION, TrafficProperties::UNKNOWN] {
            assert!(alone(&of(traffic)).groups(window).is_empty());
        }
    }
}
