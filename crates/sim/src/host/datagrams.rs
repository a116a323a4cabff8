//! Datagrams without a connection, and their record.

use std::num::NonZeroU16;

use sojourn_apps::{CallRecord, DatagramConfig, DatagramKind, DatagramSource};
use sojourn_net::{Bytes, Instant, Rng};

use super::blank::blank;
use crate::packet::{Kind, Owner, Packet};
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample, Histogram};

/// A source of datagrams, its receiver, and what is recorded of them.
#[derive(Debug)]
pub(crate) struct Datagrams {
    started: Instant,
    kind: DatagramKind,
    /// Payload of its packets; `None`: ICMP.
    payload: Option<NonZeroU16>,
    source: Box<dyn DatagramSource>,
    /// Datagrams that arrived, without duplicates; of echo requests none are counted.
    received: u64,
    /// Of these, those before the interval in progress.
    sampled: u64,
    /// Of these, those of the warm-up.
    before: u64,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
}

impl Datagrams {
    pub(crate) fn new(now: Instant, config: &dyn DatagramConfig, rng: &Rng) -> Self {
        let kind = config.kind();
        let bytes = |payload: Bytes| u16::try_from(payload.0).unwrap_or(u16::MAX);
        Self {
            started: now,
            kind,
            payload: kind.payload().map(bytes).and_then(NonZeroU16::new),
            source: config.build(now, rng),
            received: 0,
            sampled: 0,
            before: 0,
            one_way_delay: Histogram::default(),
            series: Vec::new(),
        }
    }

    /// The packet to send now, and when the next one is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let (number, due) = self.source.send(now);
        let kind = if self.kind.is_echo() {
            Kind::Ping
        } else {
            Kind::Udp
        };
        let pkt = Packet::of_probe(owner, kind, now, number, self.payload);
        (pkt, due)
    }

    /// When the next packet is due if replies pace them; `None`: the clock does.
    pub(crate) fn paced_by_replies(&self) -> Option<Instant> {
        self.source.due()
    }

    /// A packet arrived; returns whether it asks for a reply.
    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) -> bool {
        let probe = pkt.probe();
        let elapsed = now.since(probe.sent);
        match pkt.kind() {
            Kind::Ping => return true,
            Kind::Pong => self.source.on_reply(probe.number, elapsed),
            kind => {
                debug_assert_eq!(kind, Kind::Udp, "a packet reached the wrong flow");
                if self.source.on_arrival(probe.number, elapsed) {
                    self.received += 1;
                    self.one_way_delay.record(elapsed.as_nanos());
                }
            }
        }
        false
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        let DatagramKind::Udp(payload) = self.kind else {
            return;
        };
        let received = self.received - self.sampled;
        self.sampled = self.received;
        self.series.push(FlowSample {
            at,
            delivered_bytes: received * payload.0,
            cwnd: None,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
        });
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        self.source.begin_measuring();
        self.before = self.received;
        self.one_way_delay = Histogram::default();
    }

    /// The record of a call by `end`; `None`: it is none.
    pub(crate) fn call(&self, end: Instant) -> Option<CallRecord> {
        self.source.call(end)
    }

    pub(crate) fn record(self) -> FlowRecord {
        let counts = self.source.counts();
        let delivered = match self.kind {
            DatagramKind::Udp(payload) => (self.received - self.before) * payload.0,
            DatagramKind::UdpEcho(_) | DatagramKind::IcmpEcho => 0,
        };
        let one_way = !self.kind.is_echo();
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals: FlowCounters {
                delivered_bytes: delivered,
                sent_packets: counts.sent,
                received_packets: counts.received,
                ..FlowCounters::default()
            },
            one_way_delay: one_way.then(|| Box::new(self.one_way_delay)),
            pings: self.source.into_requests(),
            ..blank(flow_kind(self.kind))
        }
    }
}

/// The kind that a flow of these datagrams is recorded as.
pub(super) const fn flow_kind(kind: DatagramKind) -> FlowKind {
    if kind.is_echo() {
        FlowKind::Echo
    } else {
        FlowKind::Datagrams
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_apps::{Spacing, UdpConfig};
    use sojourn_net::Rate;

    #[test]
    fn all_that_arrives_after_the_warm_up_is_goodput_once() {
        let owner = Owner::new(0, None);
        let config = UdpConfig {
            rate: Rate::mbit(1),
            payload: Bytes(1_000),
            spacing: Spacing::CONSTANT,
        };
        let mut udp = Datagrams::new(Instant::ZERO, &config, &Rng::new(1));
        let send = |udp: &mut Datagrams| udp.next(owner, Instant::ZERO).0;
        let early: Vec<_> = (0..3).map(|_| send(&mut udp)).collect();
        udp.begin_measuring();
        let late: Vec<_> = (0..100).map(|_| send(&mut udp)).collect();
        for pkt in early.iter().chain(&late[..90]).chain(&late[..10]) {
            udp.on_arrival(Instant::from_millis(5), pkt);
        }
        let totals = udp.record().totals;
        assert_eq!((totals.sent_packets, totals.received_packets), (100, 90));
        assert_eq!(totals.delivered_bytes, 93 * 1_000);
    }
}
