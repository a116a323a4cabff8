//! A UDP stream and its record.

use sojourn_apps::{Arrivals, UdpSource};
use sojourn_net::Instant;

use super::blank;
use crate::packet::{Kind, Owner, Packet};
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample, Histogram};

/// A source of datagrams, its receiver, and what is recorded of them.
#[derive(Debug)]
pub(crate) struct Udp {
    started: Instant,
    source: UdpSource,
    arrivals: Arrivals,
    received: u64,
    /// Of the datagrams sent since measuring began.
    received_of_measured: u64,
    sampled: u64,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

impl Udp {
    pub(crate) fn new(now: Instant, source: UdpSource) -> Self {
        Self {
            started: now,
            source,
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
        let (number, due) = self.source.send(now);
        let payload = self.source.payload();
        (
            Packet::of_probe(owner, Kind::Udp, now, number, payload),
            due,
        )
    }

    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) {
        let probe = pkt.probe();
        let number = u64::from(probe.number);
        if !self.arrivals.insert(number) {
            return;
        }
        self.received += 1;
        self.received_of_measured += u64::from(number >= self.before.sent_packets);
        let delay = now.since(probe.sent);
        self.one_way_delay.record(delay.as_nanos());
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let received = self.received - self.sampled;
        self.sampled = self.received;
        self.series.push(FlowSample {
            at,
            delivered_bytes: received * u64::from(self.source.payload()),
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
            delivered_bytes: self.received * u64::from(self.source.payload()),
            sent_packets: self.source.sent(),
            received_packets: self.received,
            ..FlowCounters::default()
        }
    }

    pub(crate) fn record(self) -> FlowRecord {
        let totals = FlowCounters {
            received_packets: self.received_of_measured,
            ..self.counters().since(&self.before)
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

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_apps::Spacing;
    use sojourn_net::{Bytes, Rate, Rng};

    #[test]
    fn packets_of_the_warm_up_and_duplicates_are_not_counted_as_received() {
        let owner = Owner::new(0, None);
        let size = Bytes(1_000);
        let source = UdpSource::new(Rate::mbit(1), size, Spacing::CONSTANT, Rng::new(1));
        let mut udp = Udp::new(Instant::ZERO, source);
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
