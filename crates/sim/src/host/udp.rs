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
    arrivals: Arrivals,
    received: u64,
    /// Of those sent since measuring began.
    received_of_measured: u64,
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
            arrivals: Arrivals::default(),
            received: 0,
            received_of_measured: 0,
            sampled: 0,
            one_way_delay: Histogram::default(),
            series: Vec::new(),
            before: FlowCounters::default(),
        }
    }

    /// The next datagram, and when the one after it is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let number = u32::try_from(self.sent).unwrap_or(u32::MAX);
        let pkt = Packet::probe(owner, Kind::Udp, now, number, self.payload);
        self.sent += 1;
        let factor = match self.spacing {
            Spacing::Even { spread } => 1.0 + spread * (2.0 * self.rng.uniform() - 1.0),
            // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
            Spacing::Poisson => -libm::log(1.0 - self.rng.uniform()),
        };
        (pkt, now + scale(self.gap, factor))
    }

    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) {
        let number = u64::from(pkt.segment.seq);
        if !self.arrivals.is_first(number) {
            return;
        }
        self.received += 1;
        self.received_of_measured += u64::from(number >= self.before.sent_packets);
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
        self.received_of_measured = 0;
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
        let totals = FlowCounters {
            received_packets: self.received_of_measured,
            ..since(&self.counters(), &self.before)
        };
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals,
            one_way_delay: Some(Box::new(self.one_way_delay)),
            ..blank(FlowKind::Udp)
        }
    }
}

/// Which datagrams have arrived, a bit each.
#[derive(Debug, Default)]
struct Arrivals(Vec<u64>);

impl Arrivals {
    /// Notes an arrival; says whether it is the first of this number.
    fn is_first(&mut self, number: u64) -> bool {
        let (word, bit) = (number / 64, 1 << (number % 64));
        let word = usize::try_from(word).unwrap_or(usize::MAX);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let first = self.0[word] & bit == 0;
        self.0[word] |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_warm_up_ended_and_what_comes_twice_is_not_received() {
        let owner = Owner::new(0, None);
        let mut udp = Udp::new(
            Instant::ZERO,
            Rate::mbit(1),
            Bytes(1_000),
            Spacing::CONSTANT,
            Rng::new(1),
        );
        let send = |udp: &mut Udp| udp.next(owner, Instant::ZERO).0;
        let early: Vec<_> = (0..3).map(|_| send(&mut udp)).collect();
        udp.begin_measuring();
        let late: Vec<_> = (0..100).map(|_| send(&mut udp)).collect();
        for pkt in early.iter().chain(&late[..90]).chain(&late[..10]) {
            udp.on_arrival(Instant::from_millis(5), pkt);
        }
        let totals = udp.record().totals;
        assert_eq!((totals.sent_packets, totals.received_packets), (100, 90));
        // All that arrived is goodput, once.
        assert_eq!(totals.delivered_bytes, 93 * 1_000);
    }
}
