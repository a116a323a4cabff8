//! A simulated packet.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use sojourn_capture::Endpoints;
use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, IpVersion, Packet as View, Transport};
use sojourn_path::links::Carried;
use sojourn_scenario::plan::Client;
use sojourn_transport::quic::Datagram;
use sojourn_transport::{Flags, SackBlock, Segment};

/// What a packet carries, and in which direction of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP, from the side that has data to send.
    Data,
    /// TCP, back.
    Ack,
    /// TCP, from the side that asks for the data, of a connection that carries data both ways.
    Request,
    /// TCP, back.
    RequestAck,
    /// QUIC, from the side that has data to send.
    QuicData,
    /// QUIC, back.
    QuicBack,
    /// A UDP datagram.
    Udp,
    /// A request that is answered at once: a datagram if it has payload, else an echo request of
    /// ICMP. It has no kind of its own: every packet is asked for its kind.
    Ping,
    /// Its reply.
    Pong,
}

impl Kind {
    /// The inverse of `as u8`.
    #[inline]
    const fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Data,
            1 => Self::Ack,
            2 => Self::Request,
            3 => Self::RequestAck,
            4 => Self::QuicData,
            5 => Self::QuicBack,
            6 => Self::Udp,
            7 => Self::Ping,
            _ => Self::Pong,
        }
    }
}

/// A packet on its way: 64 bytes, a cache line.
///
/// Its order in memory is fixed. `tag` is a whole word that is not zero: an `Option<Packet>` then has the size of a
/// packet, and is copied in parts that do not overlap. With a niche of four bytes they overlap, and each waits for the
/// stores of the one before: 7 % of the time of S1 in `make bench`. What changes on the way comes before the payload,
/// so that the payload is copied in whole vectors, as it was stored.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// When it was last offered to a link, or reaches the end of the wire it is on.
    pub(crate) stamp: Instant,
    /// The [`Owner`] in the upper half; in the lower half the next step of its way, an index into the routes; then a
    /// [`Kind`] as a number; then DSCP and ECN, as in the IP header. One word, since a packet that is copied as it was
    /// made would wait for the stores of its parts.
    tag: NonZeroU64,
    pub(crate) payload: Payload,
}

const STEP_SHIFT: u32 = 16;
const KIND_SHIFT: u32 = 8;
const OWNER_SHIFT: u32 = 32;

/// The size over IPv6 of a packet that has this size over IPv4. Out of line: a branch costs IPv4 less.
#[cold]
const fn over_ipv6(size: u64) -> u64 {
    size + IpVersion::V6.more_than_v4() as u64
}

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// The fields that all packets share that an endpoint sends at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template {
    pub(crate) owner: Owner,
    pub(crate) kind: Kind,
    /// The first step of their way.
    pub(crate) step: u16,
    pub(crate) class: Dscp,
}

/// A [`Template`] encoded as the tag of packets at a step of their way, without the ECN field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(NonZeroU64);

impl Template {
    /// That of packets of the default class at step 0.
    const fn plain(owner: Owner, kind: Kind) -> Self {
        Self {
            owner,
            kind,
            step: 0,
            class: Dscp::DEFAULT,
        }
    }

    /// The label of packets at their first step.
    #[inline]
    pub(crate) const fn label(self) -> Label {
        self.label_at(self.step)
    }

    /// The label of packets at the step after their first one.
    #[inline]
    pub(crate) const fn label_after_first(self) -> Label {
        self.label_at(self.step + 1)
    }

    #[inline]
    const fn label_at(self, step: u16) -> Label {
        let class = (self.class.number() as u32) << 2;
        let word = (step as u32) << STEP_SHIFT | (self.kind as u32) << KIND_SHIFT | class;
        Label(tag(self.owner, word))
    }
}

impl Label {
    /// A segment, at `stamp`.
    #[inline]
    pub(crate) fn segment(self, stamp: Instant, segment: &Segment) -> Packet {
        self.packet(stamp, Payload::of_tcp(segment))
    }

    /// A datagram of QUIC, at `stamp`.
    #[inline]
    pub(crate) fn datagram(self, stamp: Instant, datagram: &Datagram) -> Packet {
        self.packet(stamp, Payload::of_quic(datagram))
    }

    #[inline]
    fn packet(self, stamp: Instant, payload: Payload) -> Packet {
        debug_assert!(payload.ecn_bits() != 0b11, "no endpoint sends CE");
        Packet {
            tag: self.0 | u64::from(payload.ecn_bits()),
            stamp,
            payload,
        }
    }
}

impl Packet {
    /// Whose packet it is.
    #[inline]
    pub(crate) const fn owner(&self) -> Owner {
        let half = (self.tag.get() >> OWNER_SHIFT) as u32;
        match NonZeroU32::new(half) {
            Some(owner) => Owner(owner),
            None => Owner::new(0, None, IpVersion::V4),
        }
    }

    /// The wireless station that sends or receives it: 1 and the number of its client, or 0 without one.
    pub(crate) const fn station(&self) -> u8 {
        match self.owner().client() {
            Some(client) => client + 1,
            None => 0,
        }
    }

    /// The number of its flow.
    #[inline]
    pub(crate) const fn flow_number(&self) -> u32 {
        (self.tag.get() >> (OWNER_SHIFT + Owner::FLOW_SHIFT)) as u32
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn label(&self) -> u32 {
        self.tag.get() as u32
    }

    #[inline]
    const fn with_label(&self, label: u32) -> Self {
        Self {
            tag: tag(self.owner(), label),
            ..*self
        }
    }

    /// What it carries.
    #[inline]
    pub(crate) const fn kind(&self) -> Kind {
        Kind::of_code(self.label().to_le_bytes()[1])
    }

    /// Whether it is of this kind.
    #[inline]
    pub(crate) const fn is_of(&self, kind: Kind) -> bool {
        self.label().to_le_bytes()[1] == kind as u8
    }

    /// The direction of its flow, and its step.
    #[inline]
    pub(crate) const fn stream(&self) -> u64 {
        self.tag.get() >> KIND_SHIFT
    }

    /// Whether both are of the same direction of the same flow, and at the same step.
    #[inline]
    pub(crate) const fn is_of_same_stream(&self, other: &Self) -> bool {
        self.stream() == other.stream()
    }

    /// Whether it is addressed to a receiver of TCP.
    #[inline]
    pub(crate) const fn is_tcp_data(&self) -> bool {
        self.is_of(Kind::Data) || self.is_of(Kind::Request)
    }

    /// Whether it carries a segment of TCP.
    #[inline]
    const fn is_tcp(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Data | Kind::Ack | Kind::Request | Kind::RequestAck
        )
    }

    /// Whether it carries a datagram of QUIC.
    #[inline]
    pub(crate) const fn is_quic(&self) -> bool {
        self.is_of(Kind::QuicData) || self.is_of(Kind::QuicBack)
    }

    /// The next step on its path.
    #[inline]
    pub(crate) const fn step(&self) -> u16 {
        (self.label() >> STEP_SHIFT) as u16
    }

    /// The same packet with a new time stamp.
    #[inline]
    pub(crate) const fn stamped(mut self, stamp: Instant) -> Self {
        self.stamp = stamp;
        self
    }

    /// The same packet, but of that kind and at that step.
    #[inline]
    pub(crate) const fn turned(&self, kind: Kind, step: u16) -> Self {
        self.with_label(
            (step as u32) << STEP_SHIFT | (kind as u32) << KIND_SHIFT | self.tos() as u32,
        )
    }

    const fn tos(&self) -> u8 {
        self.label().to_le_bytes()[0]
    }

    /// The same packet in another class.
    #[inline]
    pub(crate) const fn in_class(self, dscp: Dscp) -> Self {
        self.with_label(self.label() & !0xFC | (dscp.number() as u32) << 2)
    }

    /// Datagram or echo request number `number` of `owner`, sent now.
    pub(crate) fn of_probe(
        owner: Owner,
        kind: Kind,
        now: Instant,
        number: u32,
        payload: Option<NonZeroU16>,
    ) -> Self {
        let probe = Probe {
            number,
            sent: now,
            payload,
        };
        Template::plain(owner, kind)
            .label()
            .packet(Instant::ZERO, Payload::of_probe(&probe))
    }

    /// What a TCP packet carries.
    #[inline]
    pub(crate) const fn segment(&self) -> &Segment {
        self.payload.tcp()
    }

    /// What a QUIC packet carries.
    #[inline]
    pub(crate) const fn datagram(&self) -> Datagram {
        self.payload.quic()
    }

    /// What a datagram of UDP, an echo request or its reply carries.
    #[inline]
    pub(crate) const fn probe(&self) -> Probe {
        self.payload.probe()
    }

    /// Of a request that is answered at once, or its reply.
    const fn probe_protocol(&self) -> u8 {
        match (self.payload.len(), self.owner().ip()) {
            (0, IpVersion::V4) => ICMP,
            (0, IpVersion::V6) => ICMP_V6,
            _ => 17,
        }
    }
}

impl Carried for Packet {
    const NONE: Self = Self {
        tag: NonZeroU64::MIN,
        stamp: Instant::ZERO,
        payload: Payload::of_tcp(&Segment::EMPTY),
    };

    #[inline]
    fn stamp(&self) -> Instant {
        self.stamp
    }

    #[inline]
    fn onward(&self, stamp: Instant) -> Self {
        Self {
            tag: self.tag.saturating_add(1 << STEP_SHIFT),
            stamp,
            payload: self.payload,
        }
    }
}

impl View for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        let over_ipv4 = self.payload.wire_size();
        Bytes(match self.ip() {
            IpVersion::V4 => over_ipv4,
            IpVersion::V6 => over_ipv6(over_ipv4),
        })
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos())
    }

    /// A SYN has the field in its segment too: its receiver reports it (RFC 9768 table 2).
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        *self = self.with_label(self.label() & !0b11 | u32::from(ecn.bits()));
        if self.is_tcp() && self.segment().flags.has(Flags::SYN) {
            self.payload.0.flags = self.segment().flags.with_ecn(ecn);
        }
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.tos() >> 2).unwrap_or_default()
    }

    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        *self = self.in_class(dscp);
    }

    fn transport(&self) -> Transport {
        match self.kind() {
            Kind::Data | Kind::Ack | Kind::Request | Kind::RequestAck => {
                Transport::Tcp(self.segment().header())
            }
            Kind::QuicData | Kind::QuicBack if self.datagram().is_long() => Transport::QuicLong,
            Kind::Udp | Kind::QuicData | Kind::QuicBack => Transport::Udp,
            Kind::Ping | Kind::Pong if self.payload.len() > 0 => Transport::Udp,
            Kind::Ping | Kind::Pong => Transport::Other,
        }
    }

    /// Ports tell the flows of a client apart.
    #[inline]
    fn flow(&self) -> FlowKey {
        let (there, back) = self.owner().hosts();
        let (source, destination, protocol) = match self.kind() {
            Kind::Data | Kind::RequestAck => (there, back, 6),
            Kind::Ack | Kind::Request => (back, there, 6),
            Kind::Udp | Kind::QuicData => (there, back, 17),
            Kind::QuicBack => (back, there, 17),
            Kind::Ping => (there, back, self.probe_protocol()),
            Kind::Pong => (back, there, self.probe_protocol()),
        };
        FlowKey {
            source,
            destination,
            ports: self.flow_number(),
            protocol,
        }
    }

    #[inline]
    fn ip(&self) -> IpVersion {
        self.owner().ip()
    }

    /// As in captures, except that the ports of clients of applications number their slots, not their connections.
    fn headers(&self) -> FlowKey {
        let key = self.flow();
        let Some(ends) = Endpoints::of(&key, self.ip(), self.is_quic()) else {
            return key;
        };
        let of = |socket: SocketAddr| match socket.ip() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => FlowKey::folded(address.octets()),
        };
        let echo = matches!(key.protocol, ICMP | ICMP_V6);
        let [source, destination] =
            [ends.source, ends.destination].map(|ends| u32::from(ends.port()));
        FlowKey {
            source: of(ends.source),
            destination: of(ends.destination),
            ports: if echo { 0 } else { source << 16 | destination },
            protocol: key.protocol,
        }
    }
}

/// Owner and label in a word.
#[inline]
const fn tag(owner: Owner, label: u32) -> NonZeroU64 {
    match NonZeroU64::new((owner.0.get() as u64) << OWNER_SHIFT | label as u64) {
        Some(tag) => tag,
        None => NonZeroU64::MIN,
    }
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet fills a cache line");
const _: () = assert!(
    size_of::<Option<Packet>>() == 64,
    "and so does its place in a queue"
);

#[cfg(test)]
impl Packet {
    /// An empty segment.
    pub(crate) fn empty(owner: Owner, kind: Kind) -> Self {
        Template::plain(owner, kind)
            .label()
            .segment(Instant::ZERO, &Segment::EMPTY)
    }
}

/// Whose packet it is: the flow, in 23 bits, its version of IP, in one bit, and its client, plus 1, in 8 bits.
///
/// Not zero, so that an `Option<Packet>` needs no more than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(NonZeroU32);

impl Owner {
    const FLOW_SHIFT: u32 = 9;
    const IPV6: u32 = 1 << 8;

    /// Flow number `flow`, below 2^23, of `client`.
    pub(crate) const fn new(flow: u32, client: Option<Client>, ip: IpVersion) -> Self {
        let code = match client {
            None => 0,
            Some(client) => 1 + 2 * client.number as u32 + client.receives as u32,
        };
        let ip = match ip {
            IpVersion::V4 => 0,
            IpVersion::V6 => Self::IPV6,
        };
        Self(NonZeroU32::MIN.saturating_add(flow << Self::FLOW_SHIFT | ip | code))
    }

    /// The same client's and with the same version of IP, but of flow number `flow`.
    pub(crate) const fn with_flow(self, flow: u32) -> Self {
        let ip = self.0.get() & Self::IPV6;
        Self(NonZeroU32::MIN.saturating_add(flow << Self::FLOW_SHIFT | ip | self.code()))
    }

    /// The version of IP.
    #[inline]
    pub(crate) const fn ip(self) -> IpVersion {
        if self.0.get() & Self::IPV6 == 0 {
            IpVersion::V4
        } else {
            IpVersion::V6
        }
    }

    /// The number of the flow.
    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.0.get() >> Self::FLOW_SHIFT
    }

    /// 0, or the client and whether it receives.
    #[inline]
    const fn code(self) -> u32 {
        (self.0.get() & 0xFF) - 1
    }

    /// The number of its client.
    pub(crate) const fn client(self) -> Option<u8> {
        match self.code().to_le_bytes()[0] {
            0 => None,
            code => Some((code - 1) / 2),
        }
    }

    /// Who sends data, and who receives it: a client, and a server that only this flow talks to.
    #[inline]
    const fn hosts(self) -> (u64, u64) {
        let server = 1 << 32 | self.flow() as u64;
        match self.code() as u64 {
            0 => (1, 2),
            code if code % 2 == 1 => (256 + code / 2, server),
            code => (server, 256 + code / 2 - 1),
        }
    }
}

/// A UDP datagram or an echo request of a probe, or its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) number: u32,
    pub(crate) sent: Instant,
    /// Bytes of UDP payload; `None`: an echo request of ICMP.
    pub(crate) payload: Option<NonZeroU16>,
}

/// The content of a packet, in 48 bytes; the packet's [`Kind`](crate::packet::Kind) says which it
/// is.
///
/// An `enum` would need 8 bytes more for its tag, and a packet a second cache line. The storage is a
/// segment, which is what most packets carry; the fields of the others are placed in it here and
/// nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload(Segment);

impl Payload {
    #[inline]
    pub(crate) const fn of_tcp(segment: &Segment) -> Self {
        Self(*segment)
    }

    #[inline]
    pub(crate) const fn of_quic(datagram: &Datagram) -> Self {
        let (words, len, flags) = datagram.parts();
        let [seq, ack, ts_val, ts_ecr, window, sacks @ ..] = words;
        Self(Segment {
            seq,
            ack,
            ts_val,
            ts_ecr,
            window,
            sacks: [
                block(sacks[0], sacks[1]),
                block(sacks[2], sacks[3]),
                block(sacks[4], sacks[5]),
            ],
            len,
            flags: flags.with(Flags::UDP),
        })
    }

    pub(crate) const fn of_probe(probe: &Probe) -> Self {
        let nanos = probe.sent.as_nanos();
        Self(Segment {
            seq: probe.number,
            ts_val: low(nanos),
            ts_ecr: low(nanos >> 32),
            len: match probe.payload {
                Some(payload) => payload.get(),
                None => 0,
            },
            flags: match probe.payload {
                Some(_) => Flags::UDP,
                None => Flags::ECHO,
            },
            ..Segment::EMPTY
        })
    }

    /// The content of a TCP packet.
    #[inline]
    pub(crate) const fn tcp(&self) -> &Segment {
        &self.0
    }

    /// The content of a QUIC packet.
    #[inline]
    pub(crate) const fn quic(&self) -> Datagram {
        let Segment {
            seq,
            ack,
            ts_val,
            ts_ecr,
            window,
            sacks: [s, t, u],
            len,
            flags,
        } = self.0;
        let words = [
            seq, ack, ts_val, ts_ecr, window, s.start, s.end, t.start, t.end, u.start, u.end,
        ];
        Datagram::from_parts(words, len, flags.without(Flags::UDP))
    }

    /// The content of a probe.
    #[inline]
    pub(crate) const fn probe(&self) -> Probe {
        Probe {
            number: self.0.seq,
            sent: Instant::from_nanos((self.0.ts_ecr as u64) << 32 | self.0.ts_val as u64),
            payload: NonZeroU16::new(self.0.len),
        }
    }

    /// Bytes above the headers of TCP, UDP or ICMP.
    #[inline]
    pub(crate) const fn len(&self) -> u16 {
        self.0.len
    }

    /// Bytes on an Ethernet over IPv4: the flags of every content state its headers.
    #[inline]
    const fn wire_size(&self) -> u64 {
        self.0.wire_size()
    }

    /// Whether both have the same content, whatever became of the IP ECN field on the way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let plain = |payload: &Self| Segment {
            flags: payload.0.flags.with_ecn(Ecn::NotEct),
            ..payload.0
        };
        plain(self) == plain(other)
    }

    /// The part of the content that hardly ever is the same in two packets of an endpoint.
    pub(crate) const fn distinctive(&self) -> [u32; 4] {
        [self.0.seq, self.0.ack, self.0.ts_val, self.0.ts_ecr]
    }

    /// The IP ECN field that the transport asks for, as in the header.
    #[inline]
    pub(crate) const fn ecn_bits(&self) -> u8 {
        self.0.flags.ecn_bits()
    }
}

const fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start, end }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low(x: u64) -> u32 {
    x as u32
}

#[cfg(test)]
mod tests {
    use super::{Kind, Packet, *};
    use sojourn_net::Packet as View;

    #[test]
    fn a_ping_with_payload_is_a_datagram() {
        let owner = Owner::new(7, None, IpVersion::V4);
        let sent = |payload| {
            let payload = NonZeroU16::new(payload);
            Packet::of_probe(owner, Kind::Ping, Instant::ZERO, 0, payload)
        };
        let seen = |pkt: &Packet| (pkt.size().0, pkt.flow().protocol, pkt.transport());
        assert_eq!(seen(&sent(0)), (98, 1, Transport::Other));
        assert_eq!(seen(&sent(60)), (102, 17, Transport::Udp));
        assert_eq!(
            seen(&sent(60).turned(Kind::Pong, 0)),
            (102, 17, Transport::Udp)
        );
    }

    #[test]
    fn packets_of_ipv6_are_20_bytes_larger_and_replies_are_too() {
        let client = Client {
            number: Client::MOST,
            receives: true,
        };
        let owner = |ip| Owner::new(0x7F_FFFF, Some(client), ip);
        let [v4, v6] = IpVersion::ALL.map(owner);
        assert_eq!((v6.ip(), v6.flow()), (IpVersion::V6, 0x7F_FFFF));
        assert_eq!(v6.client(), v4.client());
        assert_eq!(v6.with_flow(3).ip(), IpVersion::V6);
        assert_eq!(v6.with_flow(3).client(), v4.client());
        let probe = |owner, payload| {
            let payload = NonZeroU16::new(payload);
            Packet::of_probe(owner, Kind::Ping, Instant::ZERO, 0, payload)
        };
        let segment = |owner| Packet::empty(owner, Kind::Ack);
        // Ethernet 14, IP 20 or 40, then TCP with timestamps 32, ICMP with 56 bytes 64, UDP with 60 bytes 68.
        let sizes =
            |owner| [segment(owner), probe(owner, 0), probe(owner, 60)].map(|pkt| pkt.size().0);
        assert_eq!(sizes(v4), [66, 98, 102]);
        assert_eq!(sizes(v6), [86, 118, 122]);
        let reply = probe(v6, 0).turned(Kind::Pong, 0);
        assert_eq!((reply.size().0, reply.flow().protocol), (118, ICMP_V6));
        assert_eq!(segment(v6).flow(), segment(v4).flow());
    }

    #[test]
    fn a_client_is_the_same_host_in_both_directions() {
        let hosts = |number, receives, kind| {
            let client = Some(Client { number, receives });
            let owner = Owner::new(0x7F_FFFF, client, IpVersion::V4);
            assert_eq!(owner.client(), Some(number));
            assert_eq!(owner.flow(), 0x7F_FFFF);
            let key = Packet::empty(owner, kind).flow();
            (key.source, key.destination)
        };
        for number in [0, 1, Client::MOST] {
            let (client, server) = hosts(number, false, Kind::Data);
            assert_eq!(client, 256 + u64::from(number));
            assert_eq!(hosts(number, false, Kind::Ack), (server, client));
            assert_eq!(hosts(number, true, Kind::Data), (server, client));
            assert_eq!(hosts(number, true, Kind::Ack), (client, server));
        }
        let key = Packet::empty(Owner::new(7, None, IpVersion::V4), Kind::Data).flow();
        assert_eq!((key.source, key.destination, key.ports), (1, 2, 7));
    }

    #[test]
    fn each_content_is_read_as_it_was_written() {
        let probe = Probe {
            number: 7,
            sent: Instant::from_nanos(0x1_2345_6789_ABCD),
            payload: NonZeroU16::new(60),
        };
        assert_eq!(Payload::of_probe(&probe).probe(), probe);
        let words = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        let flags = sojourn_transport::Flags::ECT0;
        let datagram = Datagram::from_parts(words, 1_200, flags);
        let payload = Payload::of_quic(&datagram);
        assert_eq!(payload.quic(), datagram);
        assert_eq!((payload.len(), payload.ecn_bits()), (1_200, 0b10));
    }
}
