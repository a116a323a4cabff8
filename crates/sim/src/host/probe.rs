//! Datagrams without a connection: UDP streams, echo requests and calls.

use sojourn_apps::{CallRecord, PingPace, UdpSource};
use sojourn_net::{Instant, Rng};

use super::ping::Ping;
use super::udp::Udp;
use super::voip::Voip;
use crate::packet::{Kind, Owner, Packet};
use sojourn_records::FlowRecord;
use sojourn_scenario::plan::Traffic;

/// A source of datagrams and its peer.
#[derive(Debug)]
pub(crate) enum Probe {
    Udp(Udp),
    Ping(Ping),
    Voip(Voip),
}

impl Probe {
    /// The source for this traffic; `None`: it has a connection.
    pub(crate) fn new(now: Instant, traffic: &Traffic, rng: &Rng) -> Option<Self> {
        Some(match *traffic {
            Traffic::Udp {
                rate,
                payload,
                spacing,
            } => {
                let source = UdpSource::new(rate, payload, spacing, rng.fork("spacing"));
                Self::Udp(Udp::new(now, source))
            }
            Traffic::Ping { interval } => {
                Self::Ping(Ping::new(now, PingPace::Every(interval), None))
            }
            Traffic::UdpPing { pace, payload } => Self::Ping(Ping::new(now, pace, Some(payload))),
            Traffic::Voip { jitter_buffer } => Self::Voip(Voip::new(now, jitter_buffer)),
            Traffic::Tcp { .. } | Traffic::Quic { .. } | Traffic::App(_) => return None,
        })
    }

    /// The packet to send now, and when the next one is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        match self {
            Self::Udp(udp) => udp.next(owner, now),
            Self::Ping(ping) => ping.next(owner, now),
            Self::Voip(voip) => voip.next(owner, now),
        }
    }

    /// When the next request is due if replies pace the requests; `None`: the clock does.
    pub(crate) fn paced_by_replies(&self) -> Option<Instant> {
        match self {
            Self::Ping(ping) => ping.due(),
            Self::Udp(_) | Self::Voip(_) => None,
        }
    }

    /// A packet arrived; returns whether it asks for a reply.
    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) -> bool {
        match (self, pkt.kind()) {
            (Self::Udp(udp), Kind::Udp) => udp.on_arrival(now, pkt),
            (Self::Voip(voip), Kind::Udp) => voip.on_arrival(now, pkt),
            (Self::Ping(_), Kind::Ping) => return true,
            (Self::Ping(ping), Kind::Pong) => ping.on_reply(now, pkt),
            (_, kind) => debug_assert!(false, "a {kind:?} packet reached the wrong flow"),
        }
        false
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        match self {
            Self::Udp(udp) => udp.sample(at),
            Self::Voip(voip) => voip.sample(at),
            Self::Ping(_) => {}
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        match self {
            Self::Udp(udp) => udp.begin_measuring(),
            Self::Ping(ping) => ping.begin_measuring(),
            Self::Voip(voip) => voip.begin_measuring(),
        }
    }

    /// The record of a call by `end`; `None`: it is none.
    pub(crate) fn call(&self, end: Instant) -> Option<CallRecord> {
        match self {
            Self::Voip(voip) => Some(voip.call(end)),
            Self::Udp(_) | Self::Ping(_) => None,
        }
    }

    pub(crate) fn record(self) -> FlowRecord {
        match self {
            Self::Udp(udp) => udp.record(),
            Self::Ping(ping) => ping.record(),
            Self::Voip(voip) => voip.record(),
        }
    }
}
