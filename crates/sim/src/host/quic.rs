//! A QUIC connection and its record.

use sojourn_net::Instant;
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role, State};

use super::blank;
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample};

/// The stream that carries request and data.
const STREAM: u16 = 0;

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Quic {
    /// Where data comes from.
    pub(crate) near: Endpoint,
    /// Where it goes.
    pub(crate) far: Endpoint,
    /// Data waits for the request.
    asked: bool,
    bytes: Option<u64>,
    started: Instant,
    connected: Option<Instant>,
    completed: Option<Instant>,
    stopped: bool,
    /// Bytes delivered up to the last sample.
    sampled_bytes: u64,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

/// Which end of a connection, and so which way what it sends goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Near,
    Far,
}

impl Quic {
    /// Opens a connection that will carry `bytes` from near to far, or data without end. With a
    /// request the far end is the client and asks for them; else the near end is, and sends.
    /// Returns which end has something to send.
    pub(crate) fn open(
        now: Instant,
        params: &Params,
        bytes: Option<u64>,
        request: Option<u64>,
        out: &mut Vec<Datagram>,
    ) -> (Self, End) {
        let (near, far, first) = match request {
            Some(_) => (Role::Server, Role::Client, End::Far),
            None => (Role::Client, Role::Server, End::Near),
        };
        let mut quic = Self {
            near: Endpoint::new(near, params),
            far: Endpoint::new(far, params),
            asked: request.is_none(),
            bytes,
            started: now,
            connected: None,
            completed: None,
            stopped: false,
            sampled_bytes: 0,
            series: Vec::new(),
            before: FlowCounters::default(),
        };
        if let Some(request) = request {
            quic.far.write(now, STREAM, request, true, out);
            quic.far.connect(now, out);
        } else {
            quic.write(now, out);
            quic.near.connect(now, out);
        }
        (quic, first)
    }

    fn write(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        let bytes = self.bytes.unwrap_or(u64::MAX);
        self.near
            .write(now, STREAM, bytes, self.bytes.is_some(), out);
    }

    pub(crate) const fn end(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Near => &mut self.near,
            End::Far => &mut self.far,
        }
    }

    /// A datagram reached `end`, with a CE mark or not.
    #[inline]
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        end: End,
        (datagram, ce): (&Datagram, bool),
        out: &mut Vec<Datagram>,
    ) {
        self.end(end).on_datagram(now, datagram, ce, out);
        match end {
            End::Near if !self.asked && self.near.is_finished(STREAM) => {
                self.asked = true;
                self.write(now, out);
            }
            End::Far if self.completed.is_none() && self.far.is_finished(STREAM) => {
                self.completed = Some(now);
            }
            _ => {}
        }
        if self.connected.is_none() && self.client().is_connected() {
            self.connected = Some(now);
        }
        if end == End::Near && self.asked && self.near.all_acknowledged() {
            self.near.close(now, out);
        }
    }

    fn client(&self) -> &Endpoint {
        if self.far.role() == Role::Client {
            &self.far
        } else {
            &self.near
        }
    }

    /// The scenario ends it.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.near.abort();
    }

    /// Whether nothing follows: all is acknowledged, or an end has given up.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        let gone = |end: &Endpoint| matches!(end.state(), State::Closed | State::Aborted);
        gone(&self.near) || gone(&self.far)
    }

    fn has_given_up(&self) -> bool {
        [&self.near, &self.far]
            .iter()
            .any(|end| end.state() == State::Aborted)
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let delivered = self.far.delivered_of(STREAM);
        let sample = self.state(at, delivered - self.sampled_bytes);
        self.series.push(sample);
        self.sampled_bytes = delivered;
    }

    fn state(&self, at: Instant, delivered_bytes: u64) -> FlowSample {
        FlowSample {
            at,
            delivered_bytes,
            cwnd: self.near.cwnd(),
            ssthresh: self.near.ssthresh(),
            srtt: self.near.srtt(),
            in_flight: self.near.in_flight(),
        }
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.counters();
    }

    fn counters(&self) -> FlowCounters {
        let (near, far) = (self.near.counters(), self.far.counters());
        FlowCounters {
            delivered_bytes: self.far.delivered_of(STREAM),
            sent_packets: near.sent,
            received_packets: far.received,
            retransmits: near.resent,
            timeouts: near.probe_timeouts,
            syn_retransmits: near.handshake_resent + far.handshake_resent,
            rtt_samples: near.rtt_samples,
            rtt_micros: near.rtt_micros,
        }
    }

    /// The record so far, see [`super::Tcp::record`].
    pub(crate) fn record(&mut self) -> FlowRecord {
        let all = self.counters();
        let mut series = std::mem::take(&mut self.series);
        let remainder = all.delivered_bytes - self.sampled_bytes;
        if self.is_over() && remainder > 0 {
            series.push(FlowSample {
                in_flight: 0,
                ..self.state(Instant::MAX, remainder)
            });
        }
        series.shrink_to_fit();
        FlowRecord {
            started: Some(self.started),
            connected: self.connected,
            completed: self.completed,
            aborted: !self.stopped && self.has_given_up(),
            series,
            totals: all.since(&self.before),
            ..blank(FlowKind::Quic)
        }
    }
}
