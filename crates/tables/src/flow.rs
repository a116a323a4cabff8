//! The table `flows`, and the statistics of echo requests in it.

use sojourn_apps::PingSample;
use sojourn_net::{Duration, Instant};
use sojourn_records::{
    Column, FlowCounters, FlowKind, FlowRecord, FlowSample, Get, Histogram, LinkRecord,
};
use sojourn_scenario::FlowLabel;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, Traffic};

use super::{Cell, Frame, flow_columns, mbit_per_s, ms_of_nanos, ms_of_nanos_f64};
use crate::quantiles::{mean, quantile_of_sorted};

/// One row of `flows`.
#[derive(Clone, Debug)]
pub(crate) struct FlowRow<'a> {
    pub(crate) label: &'a FlowLabel,
    pub(crate) record: &'a FlowRecord,
    pub(crate) cc: Option<&'static str>,
    pub(crate) base_rtt_ms: f64,
    /// The link for which its data waits longest.
    pub(crate) bottleneck: Option<&'a str>,
    /// What it is to transfer.
    pub(crate) bytes: Option<u64>,
    pub(crate) fct_s: Option<f64>,
    pub(crate) goodput_mbit_per_s: Option<f64>,
    pub(crate) srtt_ms_mean: Option<f64>,
    pub(crate) ack_rtt_ms_mean: Option<f64>,
    pub(crate) ack_rtt_ms_max: Option<f64>,
    pub(crate) cwnd_packets_mean: Option<f64>,
    pub(crate) owd_ms_mean: Option<f64>,
    pub(crate) owd_ms_p95: Option<f64>,
    pub(crate) owd_ms_max: Option<f64>,
    pub(crate) ping: PingMetrics,
}

impl<'a> FlowRow<'a> {
    pub(crate) fn of(
        config: &Config,
        flow: &FlowConfig,
        label: &'a FlowLabel,
        record: &'a FlowRecord,
        links: &'a [LinkRecord],
    ) -> Self {
        let warm = Instant::ZERO + config.measure_from;
        let end = end(config, flow, record);
        // From the end of the warm-up, or the start of the flow, to its end: `None` if it did
        // not live then.
        let from = record.started.map(|at| at.max(warm)).filter(|&f| f < end);
        let lived =
            |sample: &&FlowSample| from.is_some_and(|from| from < sample.at && sample.at <= end);
        let alive = || record.series.iter().filter(lived);
        let srtts: Vec<_> = alive()
            .filter_map(|s| s.srtt.map(Duration::as_millis_f64))
            .collect();
        let (cc, bytes) = match flow.traffic {
            Traffic::Tcp { params, bytes } => (Some(params.cc.kind().name()), bytes),
            Traffic::Quic { params, bytes, .. } => (Some(params.cc.kind().name()), bytes),
            Traffic::App(ref app) => (Some(app.exchange().tcp.cc.kind().name()), None),
            Traffic::Datagrams(ref config) => (config.control(), None),
            Traffic::Program(_) | Traffic::Bridged => (None, None),
        };
        let windows: Vec<_> = alive()
            .filter_map(|s| s.cwnd.map(|cwnd| f64::from(cwnd.get())))
            .collect();
        let owd = record.one_way_delay.as_deref();
        Self {
            label,
            record,
            cc,
            base_rtt_ms: config.base_rtt(flow).as_millis_f64(),
            bottleneck: bottleneck(flow, links),
            bytes,
            fct_s: record
                .completed
                .zip(record.started)
                .map(|(done, start)| done.saturating_since(start).as_secs_f64()),
            goodput_mbit_per_s: from
                .filter(|_| record.kind != FlowKind::Echo)
                .map(|from| mbit_per_s(record.totals.delivered_bytes, end.since(from))),
            srtt_ms_mean: mean(&srtts),
            ack_rtt_ms_mean: mean_ack_rtt_ms(&record.totals),
            ack_rtt_ms_max: max_ack_rtt_ms(&record.totals),
            cwnd_packets_mean: mean(&windows),
            owd_ms_mean: owd.and_then(Histogram::mean).map(ms_of_nanos_f64),
            owd_ms_p95: owd.and_then(|h| h.quantile(0.95)).map(ms_of_nanos),
            owd_ms_max: owd.and_then(Histogram::max).map(ms_of_nanos),
            ping: PingMetrics::of(&record.pings, warm, end, label.rtt),
        }
    }

    /// Drops of the handshake and of the initial window.
    pub(crate) fn initial_losses(&self) -> Option<u64> {
        let lost = self.record.initial_losses;
        self.of_recovery(u64::from(lost.handshake) + u64::from(lost.window))
    }

    /// The share of one of the six causes in the time that they limited the flow.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ns of at most 104 days are exact"
    )]
    fn limited(&self, by: fn(&FlowCounters) -> u64) -> Option<f64> {
        let totals = &self.record.totals;
        let all = totals.limited_nanos();
        (all > 0).then(|| by(totals) as f64 / all as f64)
    }

    /// A number of packets by their IP ECN field.
    pub(crate) fn by_ecn(&self, n: u64) -> Option<u64> {
        self.record.counts_ecn.then_some(n)
    }

    /// A number of connections that not every backend counts.
    pub(crate) fn of_recovery(&self, n: u64) -> Option<u64> {
        self.of_connection(n)
            .filter(|_| self.record.counts_recovery)
    }

    /// A number that only connections have: TCP, QUIC, and an application of all its own.
    pub(crate) fn of_connection(&self, n: u64) -> Option<u64> {
        let kind = self.record.kind;
        (kind.is_connection() || (kind == FlowKind::App && self.cc.is_some())).then_some(n)
    }
}

/// The link on the way of the data for which packets waited longest, or that sent longest if none waited.
fn bottleneck<'a>(flow: &FlowConfig, links: &'a [LinkRecord]) -> Option<&'a str> {
    let way = flow.forward.iter().rev().filter_map(|hop| match *hop {
        Hop::Link(link) => links.get(link),
        Hop::Delay(_) => None,
    });
    // Of equal ones, the first on the way.
    let longest = way.max_by_key(|link| (link.busy, link.sending))?;
    Some(&longest.name)
}

pub(super) fn flows<F: Frame>(cell: Cell<'_>) -> F {
    let known = cell.config().flows.iter().zip(&cell.plan.flows);
    let rows: Vec<_> = known
        .zip(&cell.records.flows)
        .map(|((flow, label), record)| {
            FlowRow::of(cell.config(), flow, label, record, &cell.records.links)
        })
        .collect();
    F::of(cell, &rows, &columns())
}

pub(super) fn columns<'a>() -> Vec<Column<FlowRow<'a>>> {
    let mut columns = identity();
    columns.extend(transfer());
    columns.extend(connection());
    columns.extend(limits());
    columns.extend(probes());
    columns
}

/// What the flow is, and when it was at work.
fn identity<'a>() -> Vec<Column<FlowRow<'a>>> {
    let mut columns = flow_columns(|row: &FlowRow<'_>| &row.record.name, |row| &row.label.group);
    columns.extend([
        Column::new(
            "kind",
            "",
            "Type of the traffic block, such as tcp or web.",
            Get::Text(|row: &FlowRow<'_>| row.label.kind),
        ),
        Column::new(
            "direction",
            "",
            "Direction of the data: up or down; null if the traffic block sets a path.",
            Get::OptionalText(|row| row.label.direction),
        ),
        Column::new(
            "cc",
            "",
            "Congestion control; null for flows that have none and for programs.",
            Get::OptionalText(|row| row.cc),
        ),
        Column::new(
            "rtt_ms",
            "ms",
            "Base RTT of the flow, excluding the delays of links.",
            Get::Real(|row| row.label.rtt.as_millis_f64()),
        ),
        Column::new(
            "base_rtt_ms",
            "ms",
            "Base RTT of the flow, including the delays of links at the start of the run.",
            Get::OptionalReal(|row| Some(row.base_rtt_ms)),
        ),
        Column::new(
            "bottleneck",
            "",
            "Link on the way of the data for which packets waited longest after the warm-up; null if there are no links.",
            Get::OptionalText(|row| row.bottleneck),
        ),
        Column::new(
            "started_s",
            "s",
            "Time of the first packet.",
            Get::OptionalReal(|row| row.record.started.map(Instant::as_secs_f64)),
        ),
        Column::new(
            "connected_s",
            "s",
            "TCP, QUIC: time at which the connection was established.",
            Get::OptionalReal(|row| row.record.connected.map(Instant::as_secs_f64)),
        ),
        Column::new(
            "fct_s",
            "s",
            "Flow completion time of finite TCP and QUIC transfers, from the first packet.",
            Get::OptionalReal(|row| row.fct_s),
        ),
        Column::new(
            "aborted",
            "",
            "TCP, QUIC: whether an endpoint gave up on the connection.",
            Get::OptionalFlag(|row| {
                let record = row.record;
                record.kind.is_connection().then_some(record.aborted)
            }),
        ),
    ]);
    columns
}

/// What the flow transferred.
fn transfer<'a>() -> Vec<Column<FlowRow<'a>>> {
    vec![
        Column::new(
            "bytes",
            "B",
            "Bytes to transfer; null if endless.",
            Get::OptionalCount(|row: &FlowRow<'_>| row.bytes),
        ),
        Column::new(
            "delivered_bytes",
            "B",
            "Payload passed to the receiving application after the warm-up; null for ping.",
            Get::OptionalCount(|row| {
                let carries = row.record.kind != FlowKind::Echo;
                carries.then_some(row.record.totals.delivered_bytes)
            }),
        ),
        Column::new(
            "goodput_mbit_per_s",
            "Mbit/s",
            "Payload delivered from max(warm-up, start) to min(end, stop, completion), divided by the length of that interval.",
            Get::OptionalReal(|row| row.goodput_mbit_per_s),
        ),
        Column::new(
            "sent_packets",
            "",
            "Data packets sent after the warm-up, retransmissions included.",
            Get::Count(|row| row.record.totals.sent_packets),
        ),
        Column::new(
            "ect_packets",
            "",
            "tcp: of sent_packets, those sent ECN-capable: ECT(0) or ECT(1).",
            Get::OptionalCount(|row| row.by_ecn(row.record.totals.ect_packets)),
        ),
        Column::new(
            "received_packets",
            "",
            "Data packets received after the warm-up, duplicates included; UDP, voip, media and ping (replies): without duplicates.",
            Get::Count(|row| row.record.totals.received_packets),
        ),
        Column::new(
            "ce_packets",
            "",
            "tcp: of received_packets, those that arrived CE-marked; 0 without ECN.",
            Get::OptionalCount(|row| row.by_ecn(row.record.totals.ce_packets)),
        ),
        Column::new(
            "reported_ce_packets",
            "",
            "tcp: packets that the receiver reported as CE-marked with Accurate ECN; 0 without it.",
            Get::OptionalCount(|row| row.by_ecn(row.record.totals.reported_ce_packets)),
        ),
        Column::new(
            "missing_packets",
            "",
            "UDP, voip, media and ping: of sent_packets, those that had not arrived, or not been answered, by the end of the run.",
            Get::OptionalCount(|row| row.record.missing_packets),
        ),
        Column::new(
            "lost_packets",
            "",
            "UDP, voip, media and ping: of missing_packets, those that were dropped, or whose reply was; the others were waiting or in flight.",
            Get::OptionalCount(|row| row.record.lost_packets),
        ),
        Column::new(
            "retransmits",
            "",
            "TCP: retransmitted segments; QUIC: packets that resend data.",
            Get::OptionalCount(|row| row.of_connection(row.record.totals.retransmits)),
        ),
        Column::new(
            "timeouts",
            "",
            "TCP: retransmission timeouts; QUIC: probe timeouts of the data sender.",
            Get::OptionalCount(|row| row.of_recovery(row.record.totals.timeouts)),
        ),
        Column::new(
            "syn_retransmits",
            "",
            "TCP: retransmitted SYNs; QUIC: packets that resend handshake data.",
            Get::OptionalCount(|row| row.of_recovery(row.record.totals.syn_retransmits)),
        ),
        Column::new(
            "handshake_losses",
            "",
            "Handshake packets dropped or lost since the start of the flow.",
            Get::OptionalCount(|row| row.of_recovery(row.record.initial_losses.handshake.into())),
        ),
        Column::new(
            "initial_losses",
            "",
            "Packets of the handshake and the initial window dropped or lost since the start of the flow.",
            Get::OptionalCount(FlowRow::initial_losses),
        ),
    ]
}

/// The state of the connection.
fn connection<'a>() -> Vec<Column<FlowRow<'a>>> {
    vec![
        Column::new(
            "srtt_ms_mean",
            "ms",
            "Mean of the smoothed RTT over the sample intervals after the warm-up.",
            Get::OptionalReal(|row: &FlowRow<'_>| row.srtt_ms_mean),
        ),
        Column::new(
            "ack_rtt_ms_mean",
            "ms",
            "Mean of the RTT samples taken from acknowledgements after the warm-up.",
            Get::OptionalReal(|row| row.ack_rtt_ms_mean),
        ),
        Column::new(
            "ack_rtt_ms_max",
            "ms",
            "Largest RTT sample, also of selectively acknowledged data.",
            Get::OptionalReal(|row| row.ack_rtt_ms_max),
        ),
        Column::new(
            "cwnd_packets_mean",
            "packets",
            "Mean congestion window over the sample intervals after the warm-up.",
            Get::OptionalReal(|row| row.cwnd_packets_mean),
        ),
    ]
}

/// Why its connections did not send more.
fn limits<'a>() -> Vec<Column<FlowRow<'a>>> {
    vec![
        Column::new(
            "limited_by_loss",
            "",
            "TCP, QUIC: share of the time with an established connection after the warm-up in which loss recovery limited it; an application: of the time of all its connections. The six shares add up to 1.",
            Get::OptionalReal(|row: &FlowRow<'_>| row.limited(|totals| totals.limited_loss)),
        ),
        Column::new(
            "limited_by_application",
            "",
            "Share of that time, outside loss recovery, with nothing to send.",
            Get::OptionalReal(|row| row.limited(|totals| totals.limited_application)),
        ),
        Column::new(
            "limited_by_receive_window",
            "",
            "Share of that time in which the receive window (TCP) or flow control (QUIC) permitted no data.",
            Get::OptionalReal(|row| row.limited(|totals| totals.limited_receive_window)),
        ),
        Column::new(
            "limited_by_pacing",
            "",
            "Share of that time in which data waited for pacing while the congestion window had room.",
            Get::OptionalReal(|row| row.limited(|totals| totals.limited_pacing)),
        ),
        Column::new(
            "limited_by_link",
            "",
            "Share of that time in which the congestion window was full and a packet of the flow, in either direction, waited in a queue.",
            Get::OptionalReal(|row| row.limited(|totals| totals.limited_link)),
        ),
        Column::new(
            "limited_by_cwnd",
            "",
            "Share of that time in which the congestion window was full and no packet of the flow waited in a queue.",
            Get::OptionalReal(|row| row.limited(|totals| totals.limited_cwnd)),
        ),
    ]
}

/// Delays of datagrams and pings.
fn probes<'a>() -> Vec<Column<FlowRow<'a>>> {
    vec![
        Column::new(
            "owd_ms_mean",
            "ms",
            "UDP: mean one-way delay of datagrams sent after the warm-up.",
            Get::OptionalReal(|row: &FlowRow<'_>| row.owd_ms_mean),
        ),
        Column::new(
            "owd_ms_p95",
            "ms",
            "UDP: 95th percentile of the one-way delay of datagrams sent after the warm-up.",
            Get::OptionalReal(|row| row.owd_ms_p95),
        ),
        Column::new(
            "owd_ms_max",
            "ms",
            "UDP: longest one-way delay of datagrams sent after the warm-up.",
            Get::OptionalReal(|row| row.owd_ms_max),
        ),
        Column::new(
            "ping_ms_mean",
            "ms",
            "Mean RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.mean),
        ),
        Column::new(
            "ping_ms_median",
            "ms",
            "Median RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.median),
        ),
        Column::new(
            "ping_ms_p95",
            "ms",
            "95th percentile of the RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.p95),
        ),
        Column::new(
            "ping_ms_p99",
            "ms",
            "99th percentile of the RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.p99),
        ),
        Column::new(
            "ping_ms_max",
            "ms",
            "Longest RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.max),
        ),
        Column::new(
            "ping_ms_min",
            "ms",
            "Shortest RTT of the pings sent after the warm-up.",
            Get::OptionalReal(|row| row.ping.min),
        ),
        Column::new(
            "ping_loss",
            "",
            "Share of the pings sent after the warm-up that had no reply; those sent less than the longest RTT before the end of the run count only if they had one.",
            Get::OptionalReal(|row| row.ping.loss),
        ),
    ]
}

/// Mean round-trip time of the acknowledgements that gave one.
#[expect(clippy::cast_precision_loss, reason = "exact below 285 years in all")]
fn mean_ack_rtt_ms(totals: &FlowCounters) -> Option<f64> {
    let any = totals.rtt_samples > 0;
    any.then(|| totals.rtt_micros as f64 / totals.rtt_samples as f64 / 1e3)
}

/// Largest round-trip time of acknowledgements, also selective ones.
#[expect(clippy::cast_precision_loss, reason = "at most an hour")]
fn max_ack_rtt_ms(totals: &FlowCounters) -> Option<f64> {
    let any = totals.rtt_samples > 0;
    any.then(|| totals.rtt_max_micros as f64 / 1e3)
}

/// When the flow ended: with its last byte, when it was stopped, or with the run.
fn end(config: &Config, flow: &FlowConfig, record: &FlowRecord) -> Instant {
    let run = Instant::ZERO + config.duration;
    let stop = flow.stop.map_or(run, |stop| Instant::ZERO + stop);
    record.completed.unwrap_or(run).min(stop).min(run)
}

/// The echo requests of one flow since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PingMetrics {
    pub(crate) mean: Option<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) p95: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) min: Option<f64>,
    /// Share of requests without reply. A request that the end overtook, since it was sent less
    /// than the longest RTT before, counts neither as lost nor as answered.
    pub(crate) loss: Option<f64>,
}

impl PingMetrics {
    /// Of the requests sent from `from` on, in a flow that ended at `end`; in milliseconds.
    pub(crate) fn of(pings: &[PingSample], from: Instant, end: Instant, base: Duration) -> Self {
        let sent = || pings.iter().filter(|p| p.sent >= from);
        let longest = sent().filter_map(|p| p.rtt).max().unwrap_or(base).max(base);
        let unanswered = sent().filter(|p| p.rtt.is_none() && p.sent + longest < end);
        let lost = unanswered.count();
        let mut rtts: Vec<f64> = sent()
            .filter_map(|p| p.rtt.map(Duration::as_millis_f64))
            .collect();
        rtts.sort_by(f64::total_cmp);
        let judged = lost + rtts.len();
        Self {
            mean: mean(&rtts),
            median: quantile_of_sorted(&rtts, 0.5),
            p95: quantile_of_sorted(&rtts, 0.95),
            p99: quantile_of_sorted(&rtts, 0.99),
            max: rtts.last().copied(),
            min: rtts.first().copied(),
            loss: (judged > 0).then(|| count(lost) / count(judged)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 requests")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(sent_ms: u64, rtt_ms: Option<u64>) -> PingSample {
        PingSample {
            sent: Instant::from_millis(sent_ms),
            rtt: rtt_ms.map(Duration::from_millis),
        }
    }

    #[test]
    fn requests_under_way_at_the_end_are_not_lost() {
        let pings = [
            ping(50, Some(900)),
            ping(100, Some(20)),
            ping(200, None),
            ping(300, Some(30)),
            ping(400, Some(40)),
            ping(990, None),
        ];
        let metrics = PingMetrics::of(
            &pings,
            Instant::from_millis(100),
            Instant::from_millis(1_000),
            Duration::from_millis(10),
        );
        assert_eq!(metrics.loss, Some(0.25));
        assert_eq!(metrics.mean, Some(30.0));
        assert_eq!(metrics.median, Some(30.0));
        assert_eq!((metrics.min, metrics.max), (Some(20.0), Some(40.0)));
    }

    #[test]
    fn no_request_says_nothing() {
        let none = PingMetrics::of(&[], Instant::ZERO, Instant::MAX, Duration::ZERO);
        assert_eq!(none, PingMetrics::default());
    }
}
