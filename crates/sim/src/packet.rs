//! A simulated packet.

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, Packet as View, TcpHeader, Transport};
use sojourn_transport::{Flags, Segment};

/// What a packet carries, and in which direction of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP, from the side that has data to send.
    Data,
    /// TCP, back.
    Ack,
    /// A UDP datagram.
    Udp,
    /// An echo request.
    Ping,
    /// Its reply.
    Pong,
}

/// A packet on its way: 64 bytes, a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it was last offered to a link.
    pub(crate) entered: Instant,
    /// UDP and ping keep their send time and number in its fields, see [`Packet::probe`].
    pub(crate) segment: Segment,
    pub(crate) flow: u32,
    /// The next step of its way, an index into the routes.
    pub(crate) step: u16,
    pub(crate) kind: Kind,
    /// DSCP and ECN, as in the IP header.
    pub(crate) tos: u8,
}

/// Ethernet, IP and UDP headers.
const UDP_HEADERS: u64 = 42;
/// An Ethernet frame with the 84-byte IP packet that `ping` sends.
const PING_SIZE: u64 = 98;

impl Packet {
    /// A TCP segment of `flow` at the first `step` of its way.
    #[inline]
    pub(crate) fn tcp(flow: u32, kind: Kind, step: u16, segment: &Segment) -> Self {
        let ecn = if segment.flags.has(Flags::ECT) {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        Self {
            entered: Instant::ZERO,
            segment: *segment,
            flow,
            step,
            kind,
            tos: ecn.bits(),
        }
    }

    /// The same packet in another class.
    #[inline]
    pub(crate) const fn in_class(mut self, dscp: Dscp) -> Self {
        self.tos = dscp.number() << 2 | self.tos & 0b11;
        self
    }

    /// A datagram or echo request number `number` of `flow`, sent now.
    pub(crate) fn probe(flow: u32, kind: Kind, now: Instant, number: u32, payload: u16) -> Self {
        let nanos = now.as_nanos();
        let segment = Segment {
            seq: number,
            ts_val: low(nanos),
            ts_ecr: low(nanos >> 32),
            len: payload,
            ..Segment::EMPTY
        };
        Self::tcp(flow, kind, 0, &segment)
    }

    /// When a datagram or echo request was sent.
    pub(crate) fn sent(&self) -> Instant {
        Instant::from_nanos(u64::from(self.segment.ts_ecr) << 32 | u64::from(self.segment.ts_val))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low(x: u64) -> u32 {
    x as u32
}

/// What a box on the way reads of a segment.
fn header(segment: &Segment) -> TcpHeader {
    const BITS: [(Flags, u8); 6] = [
        (Flags::SYN, TcpHeader::SYN),
        (Flags::ACK, TcpHeader::ACK),
        (Flags::FIN, TcpHeader::FIN),
        (Flags::PSH, TcpHeader::PSH),
        (Flags::ECE, TcpHeader::ECE),
        (Flags::CWR, TcpHeader::CWR),
    ];
    let bits = BITS.iter().filter(|(flag, _)| segment.flags.has(*flag));
    let mut sacks = [(0, 0); 3];
    for (sack, block) in sacks.iter_mut().zip(segment.sack_blocks()) {
        *sack = (block.start, block.end);
    }
    TcpHeader {
        seq: segment.seq,
        ack: segment.ack,
        payload: segment.len.into(),
        window: segment.window,
        flags: bits.map(|(_, bit)| bit).sum(),
        timestamps: Some((segment.ts_val, segment.ts_ecr)),
        sacks,
    }
}

impl View for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes(match self.kind {
            Kind::Data | Kind::Ack => self.segment.wire_size(),
            Kind::Udp => UDP_HEADERS + u64::from(self.segment.len),
            Kind::Ping | Kind::Pong => PING_SIZE,
        })
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.tos = self.tos & !0b11 | ecn.bits();
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.tos >> 2).unwrap_or_default()
    }

    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        *self = self.in_class(dscp);
    }

    fn transport(&self) -> Transport {
        match self.kind {
            Kind::Data | Kind::Ack => Transport::Tcp(header(&self.segment)),
            Kind::Udp => Transport::Udp,
            Kind::Ping | Kind::Pong => Transport::Other,
        }
    }

    /// All flows join one client and one server; ports tell them apart.
    #[inline]
    fn flow(&self) -> FlowKey {
        let (there, back) = (1, 2);
        let (source, destination, protocol) = match self.kind {
            Kind::Data => (there, back, 6),
            Kind::Ack => (back, there, 6),
            Kind::Udp => (there, back, 17),
            Kind::Ping => (there, back, 1),
            Kind::Pong => (back, there, 1),
        };
        FlowKey {
            source,
            destination,
            ports: self.flow,
            protocol,
        }
    }
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet fills a cache line");
