//! Requests that are answered at once: ICMP echo, and the same in datagrams.
//!
//! # Source
//!
//! `ping` (84 B of IP); irtt, which sends datagrams by the clock; netperf's `UDP_RR`, which has one request
//! under way and sends the next when the reply is there. netperf of old waits for ever for a reply that was
//! lost; here a request is given up after a time-out.

use sojourn_net::{Bytes, Duration, Instant};

use super::blank;
use crate::config::PingPace;
use crate::packet::{Kind, Owner, Packet};
use crate::records::{FlowCounters, FlowKind, FlowRecord, PingSample};

/// What a host takes from a reply to its next request, at least; ours. It bounds the number of requests.
const TURNAROUND: Duration = Duration::from_micros(100);

/// Requests and how long their replies took.
#[derive(Debug)]
pub(crate) struct Ping {
    started: Instant,
    pace: PingPace,
    /// Of datagrams; 0: they are echo requests of ICMP.
    payload: u16,
    requests: Vec<PingSample>,
    /// How many of them belong to the warm-up.
    before: usize,
}

impl Ping {
    /// `payload`: of datagrams; else they are echo requests of ICMP.
    pub(crate) fn new(now: Instant, pace: PingPace, payload: Option<Bytes>) -> Self {
        Self {
            started: now,
            pace,
            payload: payload.map_or(0, |all| u16::try_from(all.0).unwrap_or(u16::MAX)),
            requests: Vec::new(),
            before: 0,
        }
    }

    /// The next request, and when the one after it is due at the latest.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let number = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        self.requests.push(PingSample {
            sent: now,
            rtt: None,
        });
        let pkt = Packet::probe(owner, Kind::Ping, now, number, self.payload);
        let (PingPace::Every(later) | PingPace::BackToBack { timeout: later }) = self.pace;
        (pkt, now + later)
    }

    /// When the next request is due, where replies decide it; `None`: the clock does.
    pub(crate) fn due(&self) -> Option<Instant> {
        let PingPace::BackToBack { timeout } = self.pace else {
            return None;
        };
        Some(match self.requests.last() {
            None => self.started,
            Some(PingSample { sent, rtt: None }) => *sent + timeout,
            Some(PingSample {
                sent,
                rtt: Some(rtt),
            }) => *sent + (*rtt).max(TURNAROUND),
        })
    }

    pub(crate) fn on_reply(&mut self, now: Instant, pkt: &Packet) {
        let rtt = now.since(pkt.sent());
        if let Some(request) = self.requests.get_mut(pkt.segment.seq as usize) {
            request.rtt.get_or_insert(rtt);
        }
    }

    pub(crate) const fn begin_measuring(&mut self) {
        self.before = self.requests.len();
    }

    pub(crate) fn record(self) -> FlowRecord {
        let measured = &self.requests[self.before..];
        FlowRecord {
            started: Some(self.started),
            totals: FlowCounters {
                sent_packets: measured.len() as u64,
                received_packets: measured.iter().filter(|p| p.rtt.is_some()).count() as u64,
                ..FlowCounters::default()
            },
            pings: self.requests,
            ..blank(FlowKind::Ping)
        }
    }
}
