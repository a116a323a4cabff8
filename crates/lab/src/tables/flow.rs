//! What a flow did, in the numbers of the table `flows`.

use sojourn_net::{Duration, Instant};
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample, Histogram};
use sojourn_scenario::plan::{Config, FlowConfig, Traffic};

use super::ping::PingMetrics;
use super::rows::{mbit_per_s, ms_of_nanos, ms_of_nanos_f64};
use crate::stats::mean;
use sojourn_scenario::FlowLabel;

/// One row of `flows`.
#[derive(Clone, Debug)]
pub(crate) struct FlowRow<'a> {
    pub(crate) label: &'a FlowLabel,
    pub(crate) record: &'a FlowRecord,
    pub(crate) cc: Option<&'static str>,
    /// What it is to transfer.
    pub(crate) bytes: Option<u64>,
    pub(crate) fct_s: Option<f64>,
    pub(crate) goodput_mbit_per_s: Option<f64>,
    pub(crate) srtt_ms_mean: Option<f64>,
    pub(crate) ack_rtt_ms_mean: Option<f64>,
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
            Traffic::Tcp { params, bytes } => (Some(params.cc.name()), bytes),
            Traffic::Quic { params, bytes, .. } => (Some(params.cc.name()), bytes),
            Traffic::App(ref app) => (Some(app.tcp().cc.name()), None),
            Traffic::Udp { .. }
            | Traffic::Ping { .. }
            | Traffic::UdpPing { .. }
            | Traffic::Voip { .. } => (None, None),
        };
        let has_window = record.kind.is_connection();
        let windows = alive().filter(|_| has_window).map(|s| f64::from(s.cwnd));
        let windows: Vec<_> = windows.collect();
        let owd = record.one_way_delay.as_deref();
        Self {
            label,
            record,
            cc,
            bytes,
            fct_s: record
                .completed
                .zip(record.started)
                .map(|(done, start)| done.saturating_since(start).as_secs_f64()),
            goodput_mbit_per_s: from
                .filter(|_| record.kind != FlowKind::Ping)
                .map(|from| mbit_per_s(record.totals.delivered_bytes, end.since(from))),
            srtt_ms_mean: mean(&srtts),
            ack_rtt_ms_mean: ack_rtt_ms(&record.totals),
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
        self.of_connection(u64::from(lost.handshake) + u64::from(lost.window))
    }

    /// A number that only connections have: TCP, QUIC, and an application of all its own.
    pub(crate) fn of_connection(&self, n: u64) -> Option<u64> {
        let kind = self.record.kind;
        (kind.is_connection() || (matches!(kind, FlowKind::App(_)) && self.cc.is_some()))
            .then_some(n)
    }
}

/// Mean round-trip time of the acknowledgements that told one.
#[expect(clippy::cast_precision_loss, reason = "exact below 285 years in all")]
fn ack_rtt_ms(totals: &FlowCounters) -> Option<f64> {
    let told = totals.rtt_samples > 0;
    told.then(|| totals.rtt_micros as f64 / totals.rtt_samples as f64 / 1e3)
}

pub(crate) const fn kind_name(kind: FlowKind) -> &'static str {
    match kind {
        FlowKind::Tcp => "tcp",
        FlowKind::Quic => "quic",
        FlowKind::Udp => "udp",
        FlowKind::Ping => "ping",
        FlowKind::App(kind) => kind.name(),
    }
}

/// When the flow ended: with its last byte, when it was stopped, or with the run.
fn end(config: &Config, flow: &FlowConfig, record: &FlowRecord) -> Instant {
    let run = Instant::ZERO + config.duration;
    let stop = flow.stop.map_or(run, |stop| Instant::ZERO + stop);
    record.completed.unwrap_or(run).min(stop).min(run)
}
