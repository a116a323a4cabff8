//! A TCP connection and its record.

use sojourn_net::Instant;
use sojourn_transport::{Arrival, Receiver, Segment, Sender, SenderParams, State};

use super::{Hosts, blank};
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample};

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    started: Instant,
    connected: Option<Instant>,
    completed: Option<Instant>,
    stopped: bool,
    /// Bytes delivered up to the last sample.
    sampled_bytes: u64,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

impl Tcp {
    /// Opens a connection that will carry `bytes`, or data without end.
    pub(crate) fn open(
        now: Instant,
        params: SenderParams,
        bytes: Option<u64>,
        hosts: Hosts,
        out: &mut Vec<Segment>,
    ) -> Self {
        let mut sender = Sender::new(&params, hosts.near);
        sender.write(now, bytes.unwrap_or(u64::MAX), out);
        if bytes.is_some() {
            sender.close(now, out);
        }
        sender.connect(now, out);
        Self {
            sender,
            receiver: Receiver::answering(&params, hosts.far),
            started: now,
            connected: None,
            completed: None,
            stopped: false,
            sampled_bytes: 0,
            series: Vec::new(),
            before: FlowCounters::default(),
        }
    }

    /// Data reached the receiver.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        self.receiver.on_segment(now, seg, arrival, out);
        if self.receiver.finished() && self.completed.is_none() {
            self.completed = Some(now);
        }
    }

    /// An acknowledgement reached the sender; says whether the connection has ended.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) -> bool {
        self.sender.on_segment(now, seg, out);
        if self.connected.is_none() && self.sender.state() == State::Established {
            self.connected = Some(now);
        }
        self.is_over()
    }

    /// The scenario ends it.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.sender.abort();
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.sender.state(), State::Done | State::Aborted)
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let delivered = self.receiver.delivered_bytes();
        self.series.push(FlowSample {
            at,
            delivered_bytes: delivered - self.sampled_bytes,
            cwnd: self.sender.cwnd(),
            ssthresh: self.sender.ssthresh(),
            srtt: self.sender.srtt(),
            in_flight: self.sender.in_flight(),
        });
        self.sampled_bytes = delivered;
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.counters();
    }

    fn counters(&self) -> FlowCounters {
        let sender = self.sender.counters();
        FlowCounters {
            delivered_bytes: self.receiver.delivered_bytes(),
            sent_packets: sender.sent,
            received_packets: self.receiver.received_segments(),
            retransmits: sender.resent,
            timeouts: u64::from(sender.timeouts),
            syn_retransmits: u64::from(sender.syn_resent),
            rtt_samples: sender.rtt_samples,
            rtt_micros: sender.rtt_micros,
        }
    }

    /// The record so far; the series moves into it, with what was delivered since its last
    /// sample as an entry of the interval under way, see [`sample_remainder`].
    pub(crate) fn record(&mut self) -> FlowRecord {
        let all = self.counters();
        let mut series = std::mem::take(&mut self.series);
        let remainder = all.delivered_bytes - self.sampled_bytes;
        if self.is_over() && remainder > 0 {
            series.push(FlowSample {
                at: Instant::MAX,
                delivered_bytes: remainder,
                cwnd: self.sender.cwnd(),
                ssthresh: self.sender.ssthresh(),
                srtt: self.sender.srtt(),
                in_flight: 0,
            });
        }
        series.shrink_to_fit();
        FlowRecord {
            started: Some(self.started),
            connected: self.connected,
            completed: self.completed,
            aborted: !self.stopped && self.sender.state() == State::Aborted,
            series,
            totals: all.since(&self.before),
            ..blank(FlowKind::Tcp)
        }
    }
}

/// Dates the last entry of a connection that ended within the interval that ends `at`.
pub(crate) fn sample_remainder(record: &mut FlowRecord, at: Instant) {
    if let Some(last) = record.series.last_mut()
        && last.at == Instant::MAX
    {
        last.at = at;
    }
}

/// Removes it if the run ended first: an interval cut short is no sample of any flow.
pub(crate) fn drop_remainder(record: &mut FlowRecord) {
    record.series.pop_if(|last| last.at == Instant::MAX);
}
