//! What travels between the two ends.

use std::ops::{BitOr, BitOrAssign};

use sojourn_net::Ecn;

/// Payload of a full-sized segment: 1500 B less IP (20), TCP (20) and timestamps (12).
pub const MSS: u16 = 1_448;

/// A half-open run `[start, end)` of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment held.
    pub start: u32,
    /// First segment after it that is not.
    pub end: u32,
}

/// A TCP segment: 48 bytes, so that a simulated packet fits a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the data segment carried; with [`Flags::ACE_OPTION`], which only acknowledgements
    /// without data have, the bytes that arrived CE-marked, modulo 2^24.
    pub seq: u32,
    /// Every segment below this has arrived.
    pub ack: u32,
    /// The sender's millisecond clock (RFC 7323).
    pub ts_val: u32,
    /// The peer's clock, echoed.
    pub ts_ecr: u32,
    /// Receive window in bytes.
    pub window: u32,
    /// SACK blocks, newest first; a DSACK (RFC 2883) takes the first place.
    pub sacks: [SackBlock; 3],
    /// Bytes of payload.
    pub len: u16,
    /// Control bits.
    /// How many of `sacks` are in use is kept there too, see [`Segment::sack_count`].
    pub flags: Flags,
}

impl Segment {
    /// A segment with nothing in it.
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

    /// How many SACK blocks there are, at most 3.
    #[inline]
    pub const fn sack_count(&self) -> usize {
        (self.flags.0 >> Flags::SACK_SHIFT) as usize
    }

    /// Says how many of `sacks` are in use, at most 3.
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

    /// Bytes on an Ethernet (header 14 B, no FCS) with timestamps: 66 for a pure ACK, 74 for a
    /// SYN, 1514 for full-sized data.
    #[inline]
    pub const fn wire_size(&self) -> u64 {
        // A table instead of branches: every queue and link on the way asks.
        SIZES[(self.flags.0 >> Flags::OPTIONS_SHIFT) as usize] as u64 + self.len as u64
    }
}

/// Sizes without payload, by the bits of [`Flags`] that say which options there are.
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
    /// Hand the data to the application at once.
    pub const PSH: Self = Self(8);
    /// ECN-Echo (RFC 3168).
    pub const ECE: Self = Self(16);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(32);
    /// The IP header says ECT(0), or ECT(1) with [`Flags::ECT1`]; not a TCP bit, but decided by TCP.
    pub const ECT: Self = Self(64);
    /// The first SACK block reports a duplicate (RFC 2883).
    pub const DSACK: Self = Self(128);
    /// Accurate ECN (RFC 9768); with `CWR` and `ECE` a counter of three bits.
    pub const AE: Self = Self(256);
    /// What is ECN-capable is ECT(1): it asks for L4S (RFC 9331).
    pub const ECT1: Self = Self(512);
    /// The option of RFC 9768 tells how many bytes arrived CE-marked.
    pub const ACE_OPTION: Self = Self(2 << Self::OPTIONS_SHIFT);
    /// From here up lies what decides about the size of the header.
    const OPTIONS_SHIFT: u32 = 12;
    /// Where the number of SACK blocks lies.
    const SACK_SHIFT: u32 = 14;

    /// The IP ECN field that they ask for.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match (self.has(Self::ECT), self.has(Self::ECT1)) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        }
    }

    /// The union of two sets.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// A counter modulo 8 as RFC 9768 writes it.
    pub(crate) const fn of_ace(counter: u8) -> Self {
        let counter = counter as u16;
        let (ae, cwr, ece) = ((counter >> 2) & 1, (counter >> 1) & 1, counter & 1);
        Self((ae * Self::AE.0) | (cwr * Self::CWR.0) | (ece * Self::ECE.0))
    }

    /// That counter.
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

const _: () = assert!(
    size_of::<Segment>() == 48,
    "a packet is to fit a cache line"
);
