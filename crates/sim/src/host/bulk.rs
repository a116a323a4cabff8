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

    /// The series so far.
    pub(crate) fn series(&self) -> &[FlowSample] {
        &self.series
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

    /// The record so far; the series moves into it. If the connection is `over`, what was delivered since the last
    /// sample is a sample more.
    pub(crate) fn record(
        &mut self,
        state: FlowSample,
        counters: FlowCounters,
        over: bool,
        failed: bool,
    ) -> BulkRecord {
        let remainder = over && state.delivered_bytes > self.sampled_bytes;
        if remainder {
            self.sample(FlowSample {
                in_flight: 0,
                ..state
            });
        }
        BulkRecord {
            kind: self.kind,
            aborted: !self.stopped && failed,
            ends_with_interval: remainder,
            started: self.started,
            connected: self.transfer.connected(),
            completed: self.transfer.completed(),
            series: std::mem::take(&mut self.series).into_boxed_slice(),
            totals: counters.since(&self.before),
        }
    }
}

/// The record of a bulk transfer: what is kept of one that has ended. It is smaller than a [`FlowRecord`], because a
/// run can have a million of them.
#[derive(Debug)]
pub(crate) struct BulkRecord {
    kind: FlowKind,
    aborted: bool,
    /// The last sample ends with the interval in progress, whose end is not known yet.
    ends_with_interval: bool,
    started: Instant,
    connected: Option<Instant>,
    completed: Option<Instant>,
    series: Box<[FlowSample]>,
    totals: FlowCounters,
}

impl BulkRecord {
    /// The series so far, without an interval in progress.
    pub(crate) fn series(&self) -> &[FlowSample] {
        let ended = self.series.len() - usize::from(self.ends_with_interval);
        &self.series[..ended]
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        if std::mem::take(&mut self.ends_with_interval)
            && let Some(last) = self.series.last_mut()
        {
            last.at = at;
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        self.totals = FlowCounters::default();
    }

    /// The record of the flow. An interval that the end of the run cuts short is no sample.
    pub(crate) fn finish(self) -> FlowRecord {
        let mut series = self.series.into_vec();
        if self.ends_with_interval {
            series.pop();
        }
        FlowRecord {
            started: Some(self.started),
            connected: self.connected,
            completed: self.completed,
            aborted: self.aborted,
            series,
            totals: self.totals,
            counts_ecn: self.kind == FlowKind::Tcp,
            ..FlowRecord::blank(self.kind)
        }
    }
}
