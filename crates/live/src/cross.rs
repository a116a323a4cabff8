//! Cross traffic: packets of hosts that the run itself simulates, in the queues of real packets.
//!
//! # Source
//!
//! The scenarios `tcp-cross-traffic` and `udp-cross-traffic` of
//! [quic-network-simulator](https://github.com/quic-interop/quic-network-simulator): a Reno connection from the side of
//! the servers to that of the clients without a limit of its data, whose hosts are 1 ms away from the link; UDP packets
//! with 512 bytes at a constant rate from the side of the clients to that of the servers, from 20 s on.
//!
//! The hosts are the TCP of Sojourn, as in the simulator. Their packets have headers, for captures and queues; what TCP
//! needs of a segment is kept beside the network, by the number of its packet.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use sojourn_capture::{Connection, Protocol, Role, Synth};
use sojourn_net::{Dscp, Duration, Ecn, Instant, Rate};
use sojourn_transport::{
    Arrival, CcKind, CcSpec, Receiver, Segment, Sender, SenderParams, State, Ticks,
};

use crate::ethernet;
use crate::flows::Side;
use crate::frame::Frame;

/// Traffic of simulated hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cross {
    /// A connection of TCP with Reno that sends to the side of the clients.
    Tcp,
    /// UDP packets at this rate to the side of the servers.
    Udp(Rate),
}

/// The hosts of cross traffic.
#[derive(Debug)]
pub(crate) struct CrossTraffic {
    hosts: Hosts,
    /// The packets that are to enter the network.
    out: Vec<(Side, Segment)>,
    /// Bytes of one packet, with room for the header of Ethernet.
    buffer: Vec<u8>,
    written: Vec<u8>,
    identification: u16,
    /// Bytes of payload that have arrived.
    delivered: u64,
}

#[derive(Debug)]
enum Hosts {
    Tcp(Box<Tcp>),
    Udp { gap: Duration, next: Instant },
}

#[derive(Debug)]
struct Tcp {
    sender: Sender,
    receiver: Receiver,
    /// Sequence numbers of the packets.
    numbers: Connection,
    has_begun: bool,
    /// Segments in the network by the number of their packet, oldest first; of those to the client and to the server.
    under_way: [VecDeque<(u64, Segment)>; 2],
    /// Segments behind the link, and when they arrive at their host.
    behind: [VecDeque<(Instant, Segment, bool)>; 2],
    segments: Vec<Segment>,
}

/// From a host to the link, and from the link to the other host.
const ACCESS: Duration = Duration::from_millis(2);
const SOURCE: Ipv4Addr = Ipv4Addr::new(193, 167, 49, 2);
const SINK: Ipv4Addr = Ipv4Addr::new(193, 167, 51, 1);
/// The ends of the link between the two routers.
const NEAR: Ipv4Addr = Ipv4Addr::new(193, 167, 50, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(193, 167, 50, 2);
/// Discard (RFC 863).
const DISCARD: u16 = 9;
const EPHEMERAL: u16 = 49_153;
/// Packets of UDP begin then.
const UDP_BEGINS: Duration = Duration::from_secs(20);
const UDP_PAYLOAD: u16 = 512;
/// More than a run can send.
const UNLIMITED: u64 = 1 << 50;
const TTL: u8 = 63;

impl CrossTraffic {
    pub(crate) fn new(cross: Cross) -> Self {
        let hosts = match cross {
            Cross::Tcp => Hosts::Tcp(Box::new(Tcp::new())),
            Cross::Udp(rate) => Hosts::Udp {
                gap: rate.serialise(sojourn_net::Bytes(UDP_PAYLOAD.into())),
                next: Instant::ZERO + UDP_BEGINS,
            },
        };
        Self {
            hosts,
            out: Vec::new(),
            buffer: Vec::new(),
            written: Vec::new(),
            identification: 0,
            delivered: 0,
        }
    }

    /// Whether a packet is one of this traffic: no host outside has these addresses.
    pub(crate) fn owns(frame: &Frame) -> bool {
        let source = frame.parsed.flow.source;
        [SOURCE, SINK, NEAR, FAR]
            .iter()
            .any(|own| source == u64::from(u32::from(*own)))
    }

    /// When [`CrossTraffic::turn`] is due.
    pub(crate) fn next(&self) -> Instant {
        match &self.hosts {
            Hosts::Udp { next, .. } => *next,
            Hosts::Tcp(tcp) => tcp.next(),
        }
    }

    /// Processes what is due; packets are then to be taken.
    pub(crate) fn turn(&mut self, now: Instant) {
        match &mut self.hosts {
            Hosts::Tcp(tcp) => self.delivered += tcp.turn(now, &mut self.out),
            Hosts::Udp { gap, next } => {
                // Ends: each turn moves `next`, unless the rate is so high that packets have no distance.
                while *next <= now && self.out.len() < 64 {
                    self.out.push((Side::Client, Segment::EMPTY));
                    *next += (*gap).max(Duration::from_nanos(1));
                }
            }
        }
        self.out.reverse();
    }

    /// Takes a packet that enters the network on a side, with `number`: its frame.
    pub(crate) fn take(&mut self, number: u64) -> Option<(Side, &[u8])> {
        let (side, segment) = self.out.pop()?;
        let (ends, ecn, protocol, payload) = match &mut self.hosts {
            Hosts::Udp { .. } => (
                [(NEAR, EPHEMERAL), (FAR, DISCARD)],
                Ecn::NotEct,
                Protocol::Udp,
                UDP_PAYLOAD,
            ),
            Hosts::Tcp(tcp) => {
                let (role, ends) = match side {
                    Side::Server => (Role::Data, [(SOURCE, EPHEMERAL), (SINK, DISCARD)]),
                    Side::Client => (Role::Ack, [(SINK, DISCARD), (SOURCE, EPHEMERAL)]),
                };
                tcp.under_way[side.other() as usize].push_back((number, segment));
                let header = tcp.numbers.send(role, &segment.header());
                (
                    ends,
                    segment.flags.ecn(),
                    Protocol::Tcp(header),
                    segment.len,
                )
            }
        };
        self.identification = self.identification.wrapping_add(1);
        let [source, destination] = ends.map(|(address, port)| SocketAddr::from((address, port)));
        let packet = Synth {
            source,
            destination,
            ecn,
            dscp: Dscp::default(),
            ttl: TTL,
            identification: self.identification,
            protocol,
            payload,
        };
        let length = packet.write(&mut self.written)?;
        self.buffer.clear();
        self.buffer.extend([0; ethernet::HEADER - 2]);
        self.buffer.extend(ethernet::IPV4.to_be_bytes());
        self.buffer.extend(&self.written);
        self.buffer
            .resize(ethernet::HEADER + usize::try_from(length).ok()?, 0);
        Some((side, &self.buffer))
    }

    /// A packet of this traffic has crossed the link.
    pub(crate) fn deliver(&mut self, now: Instant, to: Side, frame: &Frame) {
        match &mut self.hosts {
            Hosts::Udp { .. } => self.delivered += u64::from(frame.parsed.payload),
            Hosts::Tcp(tcp) => {
                let is_marked = Ecn::from_bits(frame.parsed.tos) == Ecn::Ce;
                tcp.deliver(now, to, frame.id, is_marked);
            }
        }
    }

    /// The goodput by `now`, since it began.
    pub(crate) fn described(&self, now: Instant) -> String {
        let (what, began) = match self.hosts {
            Hosts::Tcp(_) => ("TCP to the client", Duration::ZERO),
            Hosts::Udp { .. } => ("UDP to the server", UDP_BEGINS),
        };
        let elapsed = now
            .saturating_since(Instant::ZERO + began)
            .as_nanos()
            .max(1);
        let bits_per_s = u128::from(self.delivered) * 8 * 1_000_000_000 / u128::from(elapsed);
        format!("{what}: {} kbit/s", bits_per_s / 1_000)
    }
}

impl Tcp {
    fn new() -> Self {
        let params = SenderParams {
            cc: CcSpec::from(CcKind::Reno),
            ..SenderParams::default()
        };
        let ticks = Ticks::new(Duration::ZERO);
        Self {
            sender: Sender::new(&params, ticks),
            receiver: Receiver::answering(&params, ticks),
            numbers: Connection::new(params.mss),
            has_begun: false,
            under_way: [const { VecDeque::new() }; 2],
            behind: [const { VecDeque::new() }; 2],
            segments: Vec::new(),
        }
    }

    fn next(&self) -> Instant {
        if !self.has_begun {
            return Instant::ZERO;
        }
        let arrivals = self
            .behind
            .iter()
            .filter_map(|queue| queue.front().map(|(at, ..)| *at));
        let timers = [self.sender.next_timer(), self.receiver.next_timer()];
        let all = arrivals.chain(timers.into_iter().flatten());
        all.min().unwrap_or(Instant::MAX)
    }

    /// Processes arrivals and timers; returns the bytes that the receiver has delivered meanwhile.
    fn turn(&mut self, now: Instant, out: &mut Vec<(Side, Segment)>) -> u64 {
        let before = self.receiver.delivered_bytes();
        if !self.has_begun {
            self.has_begun = true;
            self.sender.connect(now, &mut self.segments);
            self.sender.write(now, UNLIMITED, &mut self.segments);
            self.send(Side::Server, out);
        }
        while let Some((at, segment, ce)) = due(&mut self.behind[Side::Client as usize], now) {
            let arrival = Arrival { ce, more: false };
            self.receiver
                .on_segment(at, &segment, arrival, &mut self.segments);
            self.send(Side::Client, out);
        }
        while let Some((at, segment, _)) = due(&mut self.behind[Side::Server as usize], now) {
            self.sender.on_segment(at, &segment, &mut self.segments);
            self.send(Side::Server, out);
        }
        if self.receiver.next_timer().is_some_and(|at| at <= now) {
            self.receiver.on_timer(now, &mut self.segments);
            self.send(Side::Client, out);
        }
        if self.sender.next_timer().is_some_and(|at| at <= now) {
            self.sender.on_timer(now, &mut self.segments);
            self.send(Side::Server, out);
        }
        if self.sender.state() == State::Aborted {
            *self = Self::new();
        }
        self.receiver.delivered_bytes().saturating_sub(before)
    }

    /// The segments that a host has sent.
    fn send(&mut self, from: Side, out: &mut Vec<(Side, Segment)>) {
        out.extend(self.segments.drain(..).map(|segment| (from, segment)));
    }

    /// A packet has crossed the link. Those before it in its direction, whose order queues keep, are lost.
    fn deliver(&mut self, now: Instant, to: Side, number: u64, is_marked: bool) {
        let under_way = &mut self.under_way[to as usize];
        while let Some((first, segment)) = under_way.pop_front() {
            if first == number {
                self.behind[to as usize].push_back((now + ACCESS, segment, is_marked));
                break;
            }
            if first > number {
                under_way.push_front((first, segment));
                break;
            }
        }
    }
}

/// Takes the first arrival, if it is due.
fn due(
    queue: &mut VecDeque<(Instant, Segment, bool)>,
    now: Instant,
) -> Option<(Instant, Segment, bool)> {
    let is_due = queue.front().is_some_and(|(at, ..)| *at <= now);
    if is_due { queue.pop_front() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_path::ip::Parsed;

    /// Carries packets over a link that loses every packet after `every`, with a delay of 15 ms, for `seconds`.
    fn carried(cross: Cross, every: u64, seconds: u64) -> (CrossTraffic, u64, u64) {
        let mut traffic = CrossTraffic::new(cross);
        let end = Instant::ZERO + Duration::from_secs(seconds);
        let mut wire: VecDeque<(Instant, Side, Frame)> = VecDeque::new();
        let (mut now, mut number, mut bytes) = (Instant::ZERO, 0, 0);
        while now < end {
            while wire.front().is_some_and(|(at, ..)| *at <= now) {
                let (at, to, frame) = wire.pop_front().expect("due");
                assert!(CrossTraffic::owns(&frame));
                traffic.deliver(at, to, &frame);
            }
            traffic.turn(now);
            while let Some((side, frame)) = traffic.take(number) {
                let packet = &frame[ethernet::HEADER..];
                let parsed = Parsed::of(packet).expect("a packet of IP");
                assert_eq!(usize::from(parsed.len), packet.len());
                bytes += packet.len() as u64;
                let to = side.other();
                number += 1;
                if !number.is_multiple_of(every) {
                    let at = now + Duration::from_millis(15);
                    wire.push_back((at, to, Frame::new(parsed, 0, number - 1, now)));
                }
            }
            let next = wire.front().map_or(Instant::MAX, |(at, ..)| *at);
            now = next
                .min(traffic.next())
                .max(now + Duration::from_micros(10));
        }
        (traffic, number, bytes)
    }

    #[test]
    fn tcp_survives_loss_and_delivers_what_it_sends() {
        let (traffic, packets, _) = carried(Cross::Tcp, 100, 20);
        // Reno with a loss rate p of about 1 %, an RTT of 34 ms: 1.22 / sqrt(p) segments per RTT (RFC 5348 §3.1).
        let expected = 1.22 / 0.01_f64.sqrt() / 0.034 * 1_448.0 * 20.0;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let share = traffic.delivered as f64 / expected;
        assert!((0.5..2.0).contains(&share), "{share}: {packets} packets");
        assert!(
            traffic
                .described(Instant::ZERO + Duration::from_secs(20))
                .starts_with("TCP to the client: ")
        );
    }

    #[test]
    fn udp_has_its_rate_from_twenty_seconds_on() {
        let kbit_512 = Rate::from_bits_per_sec(512_000).expect("positive");
        let (traffic, packets, bytes) = carried(Cross::Udp(kbit_512), u64::MAX, 25);
        // 8 ms per packet.
        assert_eq!(packets, 5_000 / 8);
        assert_eq!(bytes, packets * (28 + 512));
        // All but those on the wire.
        assert!(traffic.delivered >= (packets - 3) * 512);
        // The last packet was sent 8 ms before the end, so 624 have arrived within 5 s.
        let said = traffic.described(Instant::ZERO + Duration::from_secs(25));
        assert_eq!(said, "UDP to the server: 511 kbit/s");
    }
}
