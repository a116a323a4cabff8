//! The TCP segment.

use std::ops::{BitOr, BitOrAssign};

use sojourn_net::{Ecn, IpVersion, TcpHeader};

/// Payload of a full-sized segment over IPv4. The default and the maximum.
pub const MSS: u16 = full_payload(IpVersion::V4);

/// Payload of a full-sized segment with an MTU of 1500 B: less IP (20 or 40), TCP (20) and timestamps (12).
pub const fn full_payload(ip: IpVersion) -> u16 {
    1_500 - headers(ip)
}

/// Bytes of the headers of IP and of TCP with timestamps.
#[inline]
pub(crate) const fn headers(ip: IpVersion) -> u16 {
    ip.header() + 20 + 12
}

/// The number of whole segments of `mss` bytes in `bytes`. For the default MSS it multiplies, because a division takes
/// several times as long. `RECIPROCAL / 2^37` approximates 8 / [`MSS`] closely enough for every `u32`. With
/// `bytes / MSS` instead, the compiler merges both branches into one division.
#[inline]
pub(crate) const fn whole_segments(bytes: u32, mss: u32) -> u32 {
    const SHIFT: u32 = 37;
    const RECIPROCAL: u64 = (1_u64 << SHIFT).div_ceil(MSS as u64 / 8);
    const _: () = assert!(MSS.is_multiple_of(8), "MSS must be a multiple of 8");
    if mss == MSS as u32 {
        (((bytes / 8) as u64 * RECIPROCAL) >> SHIFT) as u32
    } else {
        bytes / mss
    }
}
/// Smallest payload of a full-sized segment that a sender may use: of shorter ones Linux does not grow the
/// receive window.
pub const SMALLEST_MSS: u16 = 128;

/// A half-open run `[start, end)` of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment received.
    pub start: u32,
    /// First segment after it that was not.
    pub end: u32,
}

/// A TCP segment: 48 bytes, so that a simulated packet fits a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the data segment; an acknowledgement without data has room for
    /// [`Segment::marked_bytes`] here.
    pub seq: u32,
    /// Every segment below this has arrived.
    pub ack: u32,
    /// Timestamp of the sender, in ms (RFC 7323).
    pub ts_val: u32,
    /// Echoed timestamp of the peer.
    pub ts_ecr: u32,
    /// Receive window in bytes.
    pub window: u32,
    /// SACK blocks, newest first; a DSACK (RFC 2883) comes first. See [`Segment::sack_blocks`].
    pub sacks: [SackBlock; 3],
    /// Bytes of payload.
    pub len: u16,
    /// Control bits, and what of the headers shares their word: see [`Segment::sack_count`] and
    /// [`Flags::ecn`].
    pub flags: Flags,
}

impl Segment {
    /// An empty segment.
    pub const EMPTY: Self = Self {
        seq: 0,
        ack: 0,
        ts_val: 0,
        ts_ecr: 0,
        window: 0,
        sacks: [SackBlock { start: 0, end: 0 }; 3],
        len: 0,
        flags: Flags::NONE,
    };

    /// The SACK blocks in use.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        &self.sacks[..self.sack_count()]
    }

    /// The number of SACK blocks in use, at most 3.
    #[inline]
    pub const fn sack_count(&self) -> usize {
        (self.flags.0 >> Flags::SACK_SHIFT) as usize
    }

    /// Sets the number of SACK blocks in use, at most 3.
    pub const fn set_sack_count(&mut self, count: u8) {
        self.flags.0 &= (1 << Flags::SACK_SHIFT) - 1;
        self.flags.0 |= (count as u16) << Flags::SACK_SHIFT;
    }

    /// The bytes that arrived CE-marked, modulo 2^24, if the option of RFC 9768 reports them.
    #[inline]
    pub fn marked_bytes(&self) -> Option<u32> {
        self.flags.has(Flags::ACE_OPTION).then_some(self.seq)
    }

    /// Adds the option of RFC 9768 to an acknowledgement without data.
    #[inline]
    pub fn set_marked_bytes(&mut self, bytes: u32) {
        self.flags |= Flags::ACE_OPTION;
        self.seq = bytes % (1 << 24);
    }

    /// What a box on the way reads of a segment.
    #[inline]
    pub fn header(&self) -> TcpHeader {
        const BITS: [(Flags, u16); 7] = [
            (Flags::SYN, TcpHeader::SYN),
            (Flags::ACK, TcpHeader::ACK),
            (Flags::FIN, TcpHeader::FIN),
            (Flags::PSH, TcpHeader::PSH),
            (Flags::ECE, TcpHeader::ECE),
            (Flags::CWR, TcpHeader::CWR),
            (Flags::AE, TcpHeader::AE),
        ];
        let bits = BITS.iter().filter(|(flag, _)| self.flags.has(*flag));
        let mut sacks = [(0, 0); 4];
        for (sack, block) in sacks.iter_mut().zip(self.sack_blocks()) {
            *sack = (block.start, block.end);
        }
        TcpHeader {
            seq: self.seq,
            ack: self.ack,
            payload: self.len.into(),
            window: self.window,
            flags: bits.map(|(_, bit)| bit).sum(),
            timestamps: Some((self.ts_val, self.ts_ecr)),
            sacks,
            other_options: self.flags.has(Flags::SYN) || self.marked_bytes().is_some(),
        }
    }

    /// Bytes on an Ethernet (header 14 B, no FCS) over IPv4 with timestamps: 66 for a pure ACK, 74 for a
    /// SYN, 1514 for full-sized data. With [`Flags::UDP`] or [`Flags::ECHO`], those of a packet of that protocol.
    #[inline]
    pub const fn wire_size(&self) -> u64 {
        // A table instead of branches: every queue and link calls this.
        SIZES[(self.flags.0 >> Flags::OPTIONS_SHIFT) as usize] as u64 + self.len as u64
    }
}

/// Header sizes by the bits of [`Flags`] that determine the options.
const SIZES: [u8; 16] = {
    const SACK_OPTION: [u8; 4] = [0, 12, 20, 28];
    let mut sizes = [66; 16];
    let mut bits: u16 = 0;
    while bits < 16 {
        let flags = Flags(bits << Flags::OPTIONS_SHIFT);
        if flags.has(Flags::SYN) {
            sizes[bits as usize] += 8;
        }
        // Two counters of three bytes, kind and length.
        if flags.has(Flags::ACE_OPTION) {
            sizes[bits as usize] += 8;
        }
        sizes[bits as usize] += SACK_OPTION[(flags.0 >> Flags::SACK_SHIFT) as usize];
        bits += 1;
    }
    sizes[(Flags::UDP.0 >> Flags::OPTIONS_SHIFT) as usize] = 14 + 20 + 8;
    // `ping` sends 56 bytes of payload.
    sizes[(Flags::ECHO.0 >> Flags::OPTIONS_SHIFT) as usize] = 14 + 20 + 8 + 56;
    sizes
};

/// Control bits of a [`Segment`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// Opens a connection.
    pub const SYN: Self = Self(1 << Self::OPTIONS_SHIFT);
    /// `ack` is valid.
    pub const ACK: Self = Self(2);
    /// The last data of the connection.
    pub const FIN: Self = Self(4);
    /// Deliver the data to the application immediately.
    pub const PSH: Self = Self(8);
    /// ECN-Echo (RFC 3168).
    pub const ECE: Self = Self(16);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(32);
    /// The IP header has ECT(1), for L4S (RFC 9331): not a TCP bit, but set by TCP.
    pub const ECT1: Self = Self(1 << Self::ECN_SHIFT);
    /// The IP header has ECT(0).
    pub const ECT0: Self = Self(2 << Self::ECN_SHIFT);
    /// The bits of the IP ECN field.
    pub(crate) const IP_ECN: Self = Self::ECT0.with(Self::ECT1);
    /// Accurate ECN (RFC 9768); with `CWR` and `ECE` a counter of three bits.
    pub const AE: Self = Self(256);
    /// The first SACK block reports a duplicate (RFC 2883).
    pub const DSACK: Self = Self(512);
    /// The option of RFC 9768 with the number of bytes that arrived CE-marked.
    pub const ACE_OPTION: Self = Self(2 << Self::OPTIONS_SHIFT);
    /// Not of a segment but of a UDP datagram, whose payload it counts: a SYN has no SACK blocks.
    pub const UDP: Self = Self(0b1111 << Self::OPTIONS_SHIFT);
    /// Not of a segment but of an ICMP echo request or its reply.
    pub const ECHO: Self = Self(0b1011 << Self::OPTIONS_SHIFT);
    /// Position of the IP ECN field, with the bit values of the IP header.
    const ECN_SHIFT: u32 = 6;
    /// The bits from here on determine the size of the header.
    const OPTIONS_SHIFT: u32 = 12;
    /// Position of the number of SACK blocks.
    const SACK_SHIFT: u32 = 14;

    /// The IP ECN field of the segment.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        Ecn::from_bits(self.ecn_bits())
    }

    /// Its bits in the header: 0b10 for ECT(0), 0b01 for ECT(1).
    #[inline]
    pub const fn ecn_bits(self) -> u8 {
        (self.0 >> Self::ECN_SHIFT).to_le_bytes()[0] & 0b11
    }

    /// The same with this IP ECN field.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        let field = (ecn.bits() as u16) << Self::ECN_SHIFT;
        Self(self.0 & !Self::IP_ECN.0 | field)
    }

    /// Whether the segment is sent ECN-capable.
    pub(crate) const fn is_ect(self) -> bool {
        self.ecn_bits() != 0
    }

    /// The union of two sets.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// A counter modulo 8 in the bits of RFC 9768.
    pub(crate) const fn of_ace(counter: u8) -> Self {
        let counter = counter as u16;
        let (ae, cwr, ece) = ((counter >> 2) & 1, (counter >> 1) & 1, counter & 1);
        Self((ae * Self::AE.0) | (cwr * Self::CWR.0) | (ece * Self::ECE.0))
    }

    /// The report of the IP ECN field of a SYN in a SYN-ACK, or of a SYN-ACK in its acknowledgement (RFC 9768 tables 2
    /// and 3).
    pub(crate) const fn reporting(field: Ecn) -> Self {
        Self::of_ace(match field {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        })
    }

    /// The IP ECN field that [`Flags::reporting`] reports; `None`: the bits are no report.
    pub(crate) const fn reported(self) -> Option<Ecn> {
        match self.ace() {
            0b010 => Some(Ecn::NotEct),
            0b011 => Some(Ecn::Ect1),
            0b100 => Some(Ecn::Ect0),
            0b110 => Some(Ecn::Ce),
            _ => None,
        }
    }

    /// The bits that are not in `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The counter in the bits of RFC 9768.
    pub(crate) const fn ace(self) -> u8 {
        (self.has(Self::AE) as u8) << 2
            | (self.has(Self::CWR) as u8) << 1
            | self.has(Self::ECE) as u8
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, rhs: Self) {
        self.0 |= rhs.0;
    }
}

/// Whether no router may have changed the IP ECN field from what was sent to what arrived (RFC 3168 §18, RFC 9768
/// §3.2.2.3).
pub(crate) const fn is_mangled(sent: Ecn, arrived: Ecn) -> bool {
    matches!(sent, Ecn::NotEct) != matches!(arrived, Ecn::NotEct)
}

const _: () = assert!(size_of::<Segment>() == 48, "a packet must fit a cache line");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_segments_of_the_usual_size_are_those_of_a_division() {
        let mss = u32::from(MSS);
        for segments in 1..=u32::MAX / mss {
            let bytes = segments * mss;
            assert_eq!(whole_segments(bytes - 1, mss), segments - 1);
            assert_eq!(whole_segments(bytes, mss), segments);
        }
        assert_eq!(whole_segments(u32::MAX, mss), u32::MAX / mss);
    }

    #[test]
    fn a_report_of_the_ecn_field_is_read_as_it_was_written() {
        let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        for field in fields {
            assert_eq!(Flags::reporting(field).reported(), Some(field));
        }
        for ace in [0, 1, 5, 7] {
            assert_eq!(Flags::of_ace(ace).reported(), None);
        }
        let changes = |sent| fields.map(|arrived| is_mangled(sent, arrived));
        assert_eq!(changes(Ecn::NotEct), [false, true, true, true]);
        assert_eq!(changes(Ecn::Ect0), [true, false, false, false]);
        assert_eq!(changes(Ecn::Ect1), [true, false, false, false]);
    }

    #[test]
    fn the_ecn_field_has_two_bits() {
        for (flags, ecn) in [
            (Flags::NONE, Ecn::NotEct),
            (Flags::ECT0, Ecn::Ect0),
            (Flags::ECT1, Ecn::Ect1),
        ] {
            for flags in [
                flags,
                flags.with(Flags::of_ace(7)),
                flags.with(Flags::DSACK),
            ] {
                assert_eq!((flags.ecn(), flags.ecn_bits()), (ecn, ecn.bits()));
            }
        }
    }
}
