//! UDP streams.

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

use super::{blank, scale, since};
use crate::config::Spacing;
use crate::histogram::Histogram;
use crate::packet::{Kind, Owner, Packet};
use crate::records::{FlowCounters, FlowKind, FlowRecord, FlowSample};

/// A stream of datagrams of a constant mean bit rate.
#[derive(Debug)]
pub(crate) struct Udp {
    started: Instant,
    gap: Duration,
    payload: u16,
    spacing: Spacing,
    rng: Rng,
    sent: u64,
    received: u64,
    sampled: u64,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

impl Udp {
    pub(crate) fn new(
        now: Instant,
        rate: Rate,
        payload: Bytes,
        spacing: Spacing,
        rng: Rng,
    ) -> Self {
        Self {
            started: now,
            gap: rate.serialise(payload),
            payload: u16::try_from(payload.0).unwrap_or(u16::MAX),
            spacing,
            rng,
            sent: 0,
            received: 0,
            sampled: 0,
            one_way_delay: Histogram::default(),
            series: Vec::new(),
            before: FlowCounters::default(),
        }
    }

    /// The next datagram, and when the one after it is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        // Nobody asks for the number of a datagram.
        let pkt = Packet::probe(owner, Kind::Udp, now, 0, self.payload);
        self.sent += 1;
        let factor = match self.spacing {
            Spacing::Even { spread } => 1.0 + spread * (2.0 * self.rng.uniform() - 1.0),
            // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
            Spacing::Poisson => -libm::log(1.0 - self.rng.uniform()),
        };
        (pkt, now + scale(self.gap, factor))
    }

    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) {
        self.received += 1;
        let delay = now.since(pkt.sent());
        self.one_way_delay.record(delay.as_nanos());
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let received = self.received - self.sampled;
        self.sampled = self.received;
        self.series.push(FlowSample {
            at,
            delivered_bytes: received * u64::from(self.payload),
            cwnd: 0,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
        });
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.counters();
        self.one_way_delay = Histogram::default();
    }

    fn counters(&self) -> FlowCounters {
        FlowCounters {
            delivered_bytes: self.received * u64::from(self.payload),
            sent_packets: self.sent,
            received_packets: self.received,
            ..FlowCounters::default()
        }
    }

    pub(crate) fn record(self) -> FlowRecord {
        let totals = since(&self.counters(), &self.before);
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals,
            one_way_delay: Some(Box::new(self.one_way_delay)),
            ..blank(FlowKind::Udp)
        }
    }
}
