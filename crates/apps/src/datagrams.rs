//! The interface of traffic without a connection: its configuration, and the datagrams that it sends.

use std::fmt::Debug;
use std::panic::RefUnwindSafe;

use sojourn_net::{Bytes, Duration, Ecn, Instant, Rng};

use crate::contract::Comparable;
use crate::report::{CallRecord, MediaRecord, MediaState, PingSample};

/// The largest payload of a UDP datagram over IPv4: 65535 bytes without the headers of both.
pub const MAX_UDP_PAYLOAD: Bytes = Bytes(65_507);

/// The format of the datagrams of a flow, and whether the other end answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// UDP with this payload; nobody answers.
    Udp(Bytes),
    /// UDP with this payload; the other end sends it back.
    UdpEcho(Bytes),
    /// ICMP echo requests in IP packets of 84 B, as `ping` sends them.
    IcmpEcho,
    /// UDP with at most this payload; the other end sends reports.
    Media(Bytes),
}

impl DatagramKind {
    /// Payload of a UDP datagram, the largest if it varies; `None`: ICMP.
    pub const fn payload(self) -> Option<Bytes> {
        match self {
            Self::Udp(payload) | Self::UdpEcho(payload) | Self::Media(payload) => Some(payload),
            Self::IcmpEcho => None,
        }
    }

    /// Whether the other end sends the datagrams back.
    pub const fn is_echo(self) -> bool {
        match self {
            Self::Udp(_) | Self::Media(_) => false,
            Self::UdpEcho(_) | Self::IcmpEcho => true,
        }
    }

    /// Whether the other end sends anything back.
    pub const fn is_answered(self) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::UdpEcho(_) | Self::IcmpEcho | Self::Media(_) => true,
        }
    }
}

/// A datagram of media to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its payload.
    pub payload: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// A running source of datagrams together with its receiver. The driver numbers the datagrams from 0,
/// in the order in which they are sent, and counts them.
pub trait DatagramSource: Debug {
    /// A datagram is sent now. Returns when the next one is due at the latest.
    fn send(&mut self, now: Instant) -> Instant;

    /// When the next datagram is due if replies pace them; `None`: the time returned by
    /// [`send`](Self::send) holds.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// A datagram that nobody answers has reached the other end. Returns false for a duplicate.
    fn on_arrival(&mut self, _number: u32, _delay: Duration) -> bool {
        false
    }

    /// The reply to a request has arrived. Returns false for a duplicate.
    fn on_reply(&mut self, _number: u32, _rtt: Duration) -> bool {
        false
    }

    /// The datagram of media that may be sent now; `None`: none may. The driver then calls [`send`](Self::send).
    fn outgoing(&mut self, _now: Instant) -> Option<Outgoing> {
        None
    }

    /// A datagram of media has reached the other end. Returns false for a duplicate.
    fn on_packet(&mut self, _now: Instant, _number: u32, _delay: Duration, _ecn: Ecn) -> bool {
        false
    }

    /// The report that the receiver of media sends after an arrival: its number and payload; `None`: none is due.
    fn report(&mut self) -> Option<(u32, Bytes)> {
        None
    }

    /// A report has reached the sender of media.
    fn on_report(&mut self, _now: Instant, _number: u32) {}

    /// The state of a media flow; `None` for other traffic.
    fn media_state(&self) -> Option<MediaState> {
        None
    }

    /// The warm-up has ended.
    fn begin_measuring(&mut self) {}

    /// The record of a media flow from datagram number `from` on; `None` for other traffic.
    fn media(&self, _from: u32) -> Option<MediaRecord> {
        None
    }

    /// The quality of a call from datagram number `from` to the time `end`; `None` for other traffic.
    fn call(&self, _from: u32, _end: Instant) -> Option<CallRecord> {
        None
    }

    /// The echo requests so far, in order; empty for other traffic.
    fn requests(&self) -> &[PingSample] {
        &[]
    }

    /// All echo requests, in order, those of the warm-up included; empty for other traffic.
    fn into_requests(self: Box<Self>) -> Vec<PingSample> {
        Vec::new()
    }
}

/// Configuration of traffic without a connection.
pub trait DatagramConfig: Comparable + Debug + RefUnwindSafe + Send + Sync {
    /// The datagrams that it sends.
    fn kind(&self) -> DatagramKind;

    /// The congestion control; `None`: it has none.
    fn control(&self) -> Option<&'static str> {
        None
    }

    /// Mean number of datagrams sent in `time`; the most if replies pace them.
    fn datagrams(&self, time: Duration) -> u64;

    /// Most datagrams sent in `time`, if a reply takes at least `rtt`.
    fn most_datagrams(&self, time: Duration, _rtt: Duration) -> u64 {
        self.datagrams(time)
    }

    /// Time from the start of the flow to the first datagram; `rng` is a stream of its own.
    fn phase(&self, rng: &mut Rng) -> Duration;

    /// The first broken rule of those that only this traffic has: the key and what it must be.
    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The source, which starts now; its random streams derive from `rng`.
    fn build(&self, now: Instant, rng: &Rng) -> Box<dyn DatagramSource>;
}

impl dyn DatagramConfig {
    /// The first broken rule: the key and what it must be.
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        match self.kind().payload() {
            Some(payload) if payload == Bytes(0) || payload > MAX_UDP_PAYLOAD => {
                Some(("payload", "must be 1 to 65507 bytes"))
            }
            _ => self.broken_rule(),
        }
    }
}

impl PartialEq for dyn DatagramConfig {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Phase;
    use crate::udp::{Spacing, UdpConfig};
    use sojourn_net::Rate;

    #[test]
    fn the_rule_of_the_payload_names_the_largest_one() {
        let broken = |payload| {
            let config = UdpConfig {
                rate: Rate::mbit(1),
                payload,
                spacing: Spacing::Poisson,
                phase: Phase::Random,
            };
            let config: &dyn DatagramConfig = &config;
            config.check()
        };
        assert_eq!(broken(MAX_UDP_PAYLOAD), None);
        let (key, rule) = broken(Bytes(MAX_UDP_PAYLOAD.0 + 1)).expect("too large");
        assert_eq!(key, "payload");
        assert_eq!(rule, format!("must be 1 to {} bytes", MAX_UDP_PAYLOAD.0));
    }
}
