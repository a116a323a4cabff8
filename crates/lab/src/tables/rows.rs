//! The rows of each table.

use arrow_array::RecordBatch;
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{DropReason, MarkReason, Number};
use sojourn_records::{
    FlowKind, FlowRecord, FlowSample, Histogram, LinkCounters, LinkRecord, LinkSample, Records,
    Signal,
};
use sojourn_scenario::plan::Config;

use super::TABLES;
use super::applications::{applications, transactions};
use super::batch::Columns;
use super::flow::{FlowRow, kind_name};
use sojourn_scenario::Plan;

/// One run of an arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) arm: &'a str,
    pub(crate) replication: u32,
    pub(crate) plan: &'a Plan,
    pub(crate) records: &'a Records,
}

/// The piece of each table that a run adds, in the order of [`super::TableKind::ALL`].
pub(crate) fn batches(cell: Cell<'_>) -> [RecordBatch; TABLES] {
    [
        flows(cell),
        links(cell),
        flow_series(cell),
        link_series(cell),
        pings(cell),
        sojourn(cell),
        queue_statistics(cell),
        events(cell),
        transactions(cell),
        applications(cell),
    ]
}

impl Cell<'_> {
    pub(super) fn columns(&self, rows: usize) -> Columns {
        Columns::of(self.arm, self.replication, rows)
    }

    pub(super) fn config(&self) -> &Config {
        &self.plan.config
    }
}

fn flows(cell: Cell<'_>) -> RecordBatch {
    let records = &cell.records.flows;
    let known = cell.config().flows.iter().zip(&cell.plan.flows);
    let rows: Vec<_> = known
        .zip(records)
        .map(|((flow, label), record)| FlowRow::of(cell.config(), flow, label, record))
        .collect();
    let all = || rows.iter();
    let totals = || records.iter().map(|r| &r.totals);
    let secs = |at: Option<Instant>| at.map(Instant::as_secs_f64);
    cell.columns(rows.len())
        .text("flow", records.iter().map(|r| r.name.as_str()))
        .text("group", all().map(|r| r.label.group.as_str()))
        .text("kind", records.iter().map(|r| kind_name(r.kind)))
        .optional_text("direction", all().map(|r| r.label.direction))
        .optional_text("cc", all().map(|r| r.cc))
        .real("rtt_ms", all().map(|r| r.label.rtt.as_millis_f64()))
        .optional_real("started_s", records.iter().map(|r| secs(r.started)))
        .optional_real("connected_s", records.iter().map(|r| secs(r.connected)))
        .optional_real("fct_s", all().map(|r| r.fct_s))
        .optional_flag(
            "aborted",
            records
                .iter()
                .map(|r| r.kind.is_connection().then_some(r.aborted)),
        )
        .optional_count("bytes", all().map(|r| r.bytes))
        .optional_count(
            "delivered_bytes",
            records
                .iter()
                .map(|r| (r.kind != FlowKind::Ping).then_some(r.totals.delivered_bytes)),
        )
        .optional_real("goodput_mbit_per_s", all().map(|r| r.goodput_mbit_per_s))
        .count("sent_packets", totals().map(|t| t.sent_packets))
        .count("received_packets", totals().map(|t| t.received_packets))
        .optional_count(
            "retransmits",
            all().map(|r| r.of_connection(r.record.totals.retransmits)),
        )
        .optional_count(
            "timeouts",
            all().map(|r| r.of_connection(r.record.totals.timeouts)),
        )
        .optional_count(
            "syn_retransmits",
            all().map(|r| r.of_connection(r.record.totals.syn_retransmits)),
        )
        .optional_count(
            "handshake_losses",
            all().map(|r| r.of_connection(r.record.initial_losses.handshake.into())),
        )
        .optional_count("initial_losses", all().map(FlowRow::initial_losses))
        .optional_real("srtt_ms_mean", all().map(|r| r.srtt_ms_mean))
        .optional_real("ack_rtt_ms_mean", all().map(|r| r.ack_rtt_ms_mean))
        .optional_real("cwnd_packets_mean", all().map(|r| r.cwnd_packets_mean))
        .optional_real("owd_ms_mean", all().map(|r| r.owd_ms_mean))
        .optional_real("owd_ms_p95", all().map(|r| r.owd_ms_p95))
        .optional_real("owd_ms_max", all().map(|r| r.owd_ms_max))
        .optional_real("ping_ms_mean", all().map(|r| r.ping.mean))
        .optional_real("ping_ms_median", all().map(|r| r.ping.median))
        .optional_real("ping_ms_p95", all().map(|r| r.ping.p95))
        .optional_real("ping_ms_p99", all().map(|r| r.ping.p99))
        .optional_real("ping_ms_max", all().map(|r| r.ping.max))
        .optional_real("ping_ms_min", all().map(|r| r.ping.min))
        .optional_real("ping_loss", all().map(|r| r.ping.loss))
        .finish()
}

fn links(cell: Cell<'_>) -> RecordBatch {
    let (configs, records) = (&cell.config().links, &cell.records.links);
    let window = cell
        .config()
        .duration
        .saturating_sub(cell.config().measure_from);
    let sojourn = || records.iter().map(|r| &r.sojourn);
    let driver = || records.iter().map(|r| r.driver.as_deref());
    let qdiscs: Vec<_> = configs.iter().map(|c| c.qdisc.to_string()).collect();
    let columns = cell
        .columns(records.len())
        .text("link", records.iter().map(|r| r.name.as_str()))
        .real(
            "rate_mbit_per_s",
            configs.iter().map(|c| real(c.rate.bits_per_sec()) / 1e6),
        )
        .text("qdisc", qdiscs.iter().map(String::as_str));
    // A packet counts when it leaves, so that one may reach in from before the warm-up's end.
    let busy = |r: &LinkRecord| (r.busy.as_secs_f64() / window.as_secs_f64()).min(1.0);
    let used = |r: &LinkRecord| r.sending.as_secs_f64() / window.as_secs_f64();
    counters(columns, records.iter().map(|r| r.totals))
        .real("utilisation", records.iter().map(used))
        .optional_real(
            "sojourn_ms_mean",
            sojourn().map(|h| h.mean().map(ms_of_nanos_f64)),
        )
        .optional_real(
            "sojourn_ms_p50",
            sojourn().map(|h| h.quantile(0.5).map(ms_of_nanos)),
        )
        .optional_real(
            "sojourn_ms_p95",
            sojourn().map(|h| h.quantile(0.95).map(ms_of_nanos)),
        )
        .optional_real(
            "sojourn_ms_p99",
            sojourn().map(|h| h.quantile(0.99).map(ms_of_nanos)),
        )
        .optional_real(
            "sojourn_ms_max",
            sojourn().map(|h| h.max().map(ms_of_nanos)),
        )
        .real("busy_share", records.iter().map(busy))
        .optional_real(
            "driver_ms_mean",
            driver().map(|h| h.and_then(Histogram::mean).map(ms_of_nanos_f64)),
        )
        .optional_real(
            "driver_ms_p95",
            driver().map(|h| h.and_then(|h| h.quantile(0.95)).map(ms_of_nanos)),
        )
        .finish()
}

fn counters(columns: Columns, rows: impl Iterator<Item = LinkCounters> + Clone) -> Columns {
    columns
        .count("sent_packets", rows.clone().map(|c| c.sent_packets))
        .count("sent_bytes", rows.clone().map(|c| c.sent_bytes))
        .count("drops_overlimit", rows.clone().map(|c| c.drops_overlimit))
        .count("drops_aqm", rows.clone().map(|c| c.drops_aqm))
        .count("marks_aqm", rows.clone().map(|c| c.marks_aqm))
        .count(
            "marks_ce_threshold",
            rows.clone().map(|c| c.marks_ce_threshold),
        )
        .count("lost_packets", rows.clone().map(|c| c.lost_packets))
        .count("duplicated_packets", rows.map(|c| c.duplicated_packets))
}

fn flow_series(cell: Cell<'_>) -> RecordBatch {
    let flows = || cell.records.flows.iter().zip(&cell.plan.flows);
    let rows: Vec<(&FlowRecord, &str, &FlowSample, Instant)> = flows()
        .flat_map(|(record, label)| {
            let starts = std::iter::once(Instant::ZERO).chain(record.series.iter().map(|s| s.at));
            let samples = record.series.iter().zip(starts);
            samples.map(move |(sample, from)| (record, label.group.as_str(), sample, from))
        })
        .collect();
    let samples = || rows.iter().map(|(_, _, sample, _)| *sample);
    let window = |record: &FlowRecord, n: u32| record.kind.is_connection().then_some(n.into());
    cell.columns(rows.len())
        .real("t_s", samples().map(|s| s.at.as_secs_f64()))
        .text("flow", rows.iter().map(|(record, ..)| record.name.as_str()))
        .text("group", rows.iter().map(|(_, group, ..)| *group))
        .real(
            "goodput_mbit_per_s",
            rows.iter().map(|(_, _, sample, from)| {
                mbit_per_s(sample.delivered_bytes, sample.at.since(*from))
            }),
        )
        .optional_count(
            "cwnd_packets",
            rows.iter().map(|(r, _, s, _)| window(r, s.cwnd)),
        )
        .optional_count(
            "ssthresh_packets",
            samples().map(|s| s.ssthresh.map(u64::from)),
        )
        .optional_real(
            "srtt_ms",
            samples().map(|s| s.srtt.map(Duration::as_millis_f64)),
        )
        .optional_count(
            "in_flight_packets",
            rows.iter().map(|(r, _, s, _)| window(r, s.in_flight)),
        )
        .finish()
}

fn link_series(cell: Cell<'_>) -> RecordBatch {
    let rows: Vec<(&LinkRecord, &LinkSample)> = cell
        .records
        .links
        .iter()
        .flat_map(|record| record.series.iter().map(move |sample| (record, sample)))
        .collect();
    let samples = || rows.iter().map(|(_, sample)| *sample);
    let columns = cell
        .columns(rows.len())
        .real("t_s", samples().map(|s| s.at.as_secs_f64()))
        .text("link", rows.iter().map(|(record, _)| record.name.as_str()))
        .count("backlog_packets", samples().map(|s| s.backlog_packets))
        .count("backlog_bytes", samples().map(|s| s.backlog_bytes))
        .optional_real(
            "sojourn_ms_mean",
            samples().map(|s| s.sojourn_mean.map(Duration::as_millis_f64)),
        )
        .optional_real(
            "sojourn_ms_max",
            samples().map(|s| s.sojourn_max.map(Duration::as_millis_f64)),
        );
    counters(columns, rows.iter().map(|(_, sample)| sample.counters)).finish()
}

fn pings(cell: Cell<'_>) -> RecordBatch {
    let rows: Vec<_> = cell
        .records
        .flows
        .iter()
        .flat_map(|record| record.pings.iter().map(move |ping| (record, ping)))
        .collect();
    cell.columns(rows.len())
        .real("t_s", rows.iter().map(|(_, ping)| ping.sent.as_secs_f64()))
        .text("flow", rows.iter().map(|(record, _)| record.name.as_str()))
        .optional_real(
            "rtt_ms",
            rows.iter()
                .map(|(_, ping)| ping.rtt.map(Duration::as_millis_f64)),
        )
        .finish()
}

fn sojourn(cell: Cell<'_>) -> RecordBatch {
    let rows: Vec<_> = cell
        .records
        .links
        .iter()
        .flat_map(|record| record.sojourn.buckets().map(move |bucket| (record, bucket)))
        .collect();
    cell.columns(rows.len())
        .text("link", rows.iter().map(|(record, _)| record.name.as_str()))
        .real(
            "low_ms",
            rows.iter().map(|(_, (low, _, _))| ms_of_nanos(*low)),
        )
        .real(
            "high_ms",
            rows.iter().map(|(_, (_, high, _))| ms_of_nanos(*high)),
        )
        .count("count", rows.iter().map(|(_, (_, _, n))| *n))
        .finish()
}

fn queue_statistics(cell: Cell<'_>) -> RecordBatch {
    let rows: Vec<_> = cell
        .records
        .links
        .iter()
        .flat_map(|record| record.statistics.iter().map(move |s| (record, s)))
        .collect();
    let parts = || rows.iter().map(|(_, s)| s.part);
    cell.columns(rows.len())
        .text("link", rows.iter().map(|(record, _)| record.name.as_str()))
        .optional_text("part", parts().map(|p| Some(p?.0)))
        .optional_count("part_number", parts().map(|p| Some(p?.1 as u64)))
        .text("name", rows.iter().map(|(_, s)| s.name))
        .text("type", rows.iter().map(|(_, s)| number(s.value).0))
        .real("value", rows.iter().map(|(_, s)| number(s.value).1))
        .finish()
}

/// What kind of number it is, and the number.
fn number(value: Number) -> (&'static str, f64) {
    match value {
        Number::Count(n) => ("count", real(n)),
        Number::Real(x) => ("real", x),
        Number::Flag(flag) => ("flag", f64::from(u8::from(flag))),
    }
}

fn events(cell: Cell<'_>) -> RecordBatch {
    let rows = &cell.records.events;
    let link = |n: u32| cell.records.links[n as usize].name.as_str();
    let flow = |n: u32| cell.records.flows[n as usize].name.as_str();
    cell.columns(rows.len())
        .real("t_s", rows.iter().map(|e| e.at.as_secs_f64()))
        .text("link", rows.iter().map(|e| link(e.link)))
        .text("flow", rows.iter().map(|e| flow(e.flow)))
        .text("action", rows.iter().map(|e| signal_names(e.signal).0))
        .text("reason", rows.iter().map(|e| signal_names(e.signal).1))
        .finish()
}

const fn signal_names(signal: Signal) -> (&'static str, &'static str) {
    match signal {
        Signal::Drop(DropReason::Overlimit) => ("drop", "overlimit"),
        Signal::Drop(DropReason::Aqm) => ("drop", "aqm"),
        Signal::Mark(MarkReason::Aqm) => ("mark", "aqm"),
        Signal::Mark(MarkReason::CeThreshold) => ("mark", "ce_threshold"),
        Signal::Lost => ("loss", "wire"),
    }
}

pub(crate) fn mbit_per_s(bytes: u64, time: Duration) -> f64 {
    8.0 * real(bytes) / time.as_secs_f64() / 1e6
}

pub(crate) fn ms_of_nanos(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_millis_f64()
}

pub(crate) fn ms_of_nanos_f64(nanos: f64) -> f64 {
    nanos / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
fn real(n: u64) -> f64 {
    n as f64
}
