//! The payload of a simulated packet: a TCP segment, a QUIC datagram or a probe.

use std::num::NonZeroU16;

use sojourn_net::Instant;
use sojourn_transport::quic::Datagram;
use sojourn_transport::{SackBlock, Segment};

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
            flags,
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
        Datagram::from_parts(words, len, flags)
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
    use super::*;

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
