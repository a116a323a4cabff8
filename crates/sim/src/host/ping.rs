//! Echo requests and their record.

use sojourn_apps::{Ping as Requests, PingPace};
use sojourn_net::{Bytes, Instant};

use super::blank;
use crate::packet::{Kind, Owner, Packet};
use sojourn_records::{FlowCounters, FlowKind, FlowRecord};

/// Echo requests, and what is recorded of them.
#[derive(Debug)]
pub(crate) struct Ping {
    started: Instant,
    requests: Requests,
    /// Payload of a UDP request; 0: ICMP echo requests.
    payload: u16,
    /// Number of requests sent during the warm-up.
    before: usize,
}

impl Ping {
    /// `payload`: of a UDP request; `None`: ICMP echo requests.
    pub(crate) fn new(now: Instant, pace: PingPace, payload: Option<Bytes>) -> Self {
        Self {
            started: now,
            requests: Requests::new(now, pace),
            payload: payload.map_or(0, |all| u16::try_from(all.0).unwrap_or(u16::MAX)),
            before: 0,
        }
    }

    /// The next request, and when the one after it is due at the latest.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let (number, due) = self.requests.send(now);
        let pkt = Packet::of_probe(owner, Kind::Ping, now, number, self.payload);
        (pkt, due)
    }

    /// When the next request is due if replies pace them; `None`: the clock does.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.requests.due()
    }

    pub(crate) fn on_reply(&mut self, now: Instant, pkt: &Packet) {
        let probe = pkt.probe();
        let rtt = now.since(probe.sent);
        self.requests.on_reply(probe.number, rtt);
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.requests.requests().len();
    }

    pub(crate) fn record(self) -> FlowRecord {
        let measured = &self.requests.requests()[self.before..];
        FlowRecord {
            started: Some(self.started),
            totals: FlowCounters {
                sent_packets: measured.len() as u64,
                received_packets: measured.iter().filter(|p| p.rtt.is_some()).count() as u64,
                ..FlowCounters::default()
            },
            pings: self.requests.into_requests(),
            ..blank(FlowKind::Ping)
        }
    }
}
