//! A bulk transfer over TCP or QUIC, and its record.

use sojourn_apps::Bulk;
use sojourn_net::Instant;

use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample};

/// A bulk transfer, and what is recorded of it.
#[derive(Debug)]
pub(crate) struct BulkFlow {
    kind: FlowKind,
    pub(crate) transfer: Bulk,
    started: Instant,
    stopped: bool,
    /// Bytes delivered up to the last sample.
    sampled_bytes: u64,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

impl BulkFlow {
    pub(crate) fn new(now: Instant, kind: FlowKind, transfer: Bulk) -> Self {
        Self {
            kind,
            transfer,
            started: now,
            stopped: false,
            sampled_bytes: 0,
            series: Vec::new(),
            before: FlowCounters::default(),
        }
    }

    /// The scenario stops the flow.
    pub(crate) const fn stop(&mut self) {
        self.stopped = true;
    }

    /// An interval of the series ends; `state` counts the bytes from the start.
    pub(crate) fn sample(&mut self, state: FlowSample) {
        self.series.push(FlowSample {
            delivered_bytes: state.delivered_bytes - self.sampled_bytes,
            ..state
        });
        self.sampled_bytes = state.delivered_bytes;
    }

    /// The warm-up has ended, with these totals.
    pub(crate) const fn begin_measuring(&mut self, counters: FlowCounters) {
        self.before = counters;
    }

    /// The record so far; the series moves into it. The second value is whether it got a last
    /// sample: what was delivered since the sample before, if the connection is `over`. That sample
    /// ends with the interval in progress.
    pub(crate) fn record(
        &mut self,
        state: FlowSample,
        counters: FlowCounters,
        over: bool,
        failed: bool,
    ) -> (FlowRecord, bool) {
        let remainder = over && state.delivered_bytes > self.sampled_bytes;
        if remainder {
            self.sample(FlowSample {
                in_flight: 0,
                ..state
            });
        }
        let mut series = std::mem::take(&mut self.series);
        series.shrink_to_fit();
        let record = FlowRecord {
            started: Some(self.started),
            connected: self.transfer.connected(),
            completed: self.transfer.completed(),
            aborted: !self.stopped && failed,
            series,
            totals: counters.since(&self.before),
            ..FlowRecord::blank(self.kind)
        };
        (record, remainder)
    }
}
