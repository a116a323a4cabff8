//! Datagrams without a connection, and their record.

use std::num::NonZeroU16;

use sojourn_apps::{CallRecord, DatagramConfig, DatagramKind, DatagramSource};
use sojourn_net::{Bytes, Instant, Rng};

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
    sent: u64,
    /// Number of the first datagram sent after the warm-up.
    first_measured: u64,
    /// Datagrams or echo replies that arrived after the warm-up, without duplicates.
    received: u64,
    /// Number of those that were sent after the warm-up, or that reply to a request sent after it.
    received_of_measured: u64,
    /// Datagrams that arrived in the current interval, without duplicates; no echo requests.
    delivered_in_interval: u64,
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
            sent: 0,
            first_measured: 0,
            received: 0,
            received_of_measured: 0,
            delivered_in_interval: 0,
            one_way_delay: Histogram::default(),
            series: Vec::new(),
        }
    }

    /// The packet to send now, and when the next one is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let number = u32::try_from(self.sent).unwrap_or(u32::MAX);
        self.sent += 1;
        let due = self.source.send(now);
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
        let is_new = match pkt.kind() {
            Kind::Ping => return true,
            Kind::Pong => self.source.on_reply(probe.number, elapsed),
            kind => {
                debug_assert_eq!(kind, Kind::Udp, "a packet reached the wrong flow");
                let is_new = self.source.on_arrival(probe.number, elapsed);
                if is_new {
                    self.delivered_in_interval += 1;
                    self.one_way_delay.record(elapsed.as_nanos());
                }
                is_new
            }
        };
        let is_measured = u64::from(probe.number) >= self.first_measured;
        self.received += u64::from(is_new);
        self.received_of_measured += u64::from(is_new && is_measured);
        false
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        let DatagramKind::Udp(payload) = self.kind else {
            return;
        };
        let delivered = std::mem::take(&mut self.delivered_in_interval);
        self.series.push(FlowSample {
            at,
            delivered_bytes: delivered * payload.0,
            cwnd: None,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
        });
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        self.first_measured = self.sent;
        self.received = 0;
        self.received_of_measured = 0;
        self.one_way_delay = Histogram::default();
    }

    /// Number of the first datagram sent after the warm-up.
    pub(crate) const fn first_measured(&self) -> u64 {
        self.first_measured
    }

    /// The record of a call by `end`; `None` for other traffic.
    pub(crate) fn call(&self, end: Instant) -> Option<CallRecord> {
        let from = u32::try_from(self.first_measured).unwrap_or(u32::MAX);
        self.source.call(from, end)
    }

    /// The record; the network knows which datagrams were lost.
    pub(crate) fn record(self) -> FlowRecord {
        let payload = self.kind.payload().map_or(0, |payload| payload.0);
        let one_way = !self.kind.is_echo();
        let sent = self.sent - self.first_measured;
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals: FlowCounters {
                delivered_bytes: if one_way { self.received * payload } else { 0 },
                sent_packets: sent,
                received_packets: self.received,
                ..FlowCounters::default()
            },
            missing_packets: Some(sent - self.received_of_measured),
            one_way_delay: one_way.then(|| Box::new(self.one_way_delay)),
            pings: self.source.into_requests(),
            ..FlowRecord::blank(flow_kind(self.kind))
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
    use sojourn_apps::{PingConfig, PingPace, Spacing, UdpConfig};
    use sojourn_net::{Duration, Rate};

    #[test]
    fn a_reply_after_the_warm_up_counts_and_only_later_requests_may_be_missing() {
        let owner = Owner::new(0, None);
        let config = PingConfig {
            pace: PingPace::Every(Duration::from_millis(10)),
            payload: Some(Bytes(1)),
        };
        let mut ping = Datagrams::new(Instant::ZERO, &config, &Rng::new(1));
        let send = |ping: &mut Datagrams| ping.next(owner, Instant::ZERO).0;
        let early = send(&mut ping);
        ping.begin_measuring();
        let late = [send(&mut ping), send(&mut ping)];
        for pkt in [early, late[1], late[1]] {
            assert!(ping.on_arrival(Instant::ZERO, &pkt), "it asks for a reply");
            let reply = pkt.turned(Kind::Pong, 0);
            assert!(!ping.on_arrival(Instant::from_millis(3), &reply));
        }
        let record = ping.record();
        let totals = record.totals;
        // The reply to the early one arrives after the warm-up.
        assert_eq!((totals.sent_packets, totals.received_packets), (2, 2));
        assert_eq!(record.missing_packets, Some(1));
        assert_eq!((totals.delivered_bytes, record.pings.len()), (0, 3));
        assert!(record.one_way_delay.is_none() && record.series.is_empty());
    }

    #[test]
    fn all_that_arrives_after_the_warm_up_counts_once_as_packet_and_as_goodput() {
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
        let record = udp.record();
        let totals = record.totals;
        assert_eq!((totals.sent_packets, totals.received_packets), (100, 93));
        assert_eq!(totals.delivered_bytes, 93 * 1_000);
        // Of the hundred; those from before the warm-up do not make up for them.
        assert_eq!(record.missing_packets, Some(10));
    }
}
