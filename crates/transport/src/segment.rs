//! What travels between the two ends.

use std::ops::{BitOr, BitOrAssign};

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
    /// Index of the data segment carried.
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
    pub flags: Flags,
    /// How many of `sacks` are in use.
    pub sack_count: u8,
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
        sack_count: 0,
    };

    /// The SACK blocks in use.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        &self.sacks[..usize::from(self.sack_count)]
    }

    /// Bytes on an Ethernet (header 14 B, no FCS) with timestamps: 66 for a pure ACK, 74 for a
    /// SYN, 1514 for full-sized data.
    #[inline]
    pub const fn wire_size(&self) -> u64 {
        // A table instead of branches: every queue and link on the way asks.
        const SACK_OPTION: [u8; 4] = [0, 12, 20, 28];
        let syn_options = if self.flags.has(Flags::SYN) { 8 } else { 0 };
        let sack_option = SACK_OPTION[(self.sack_count & 3) as usize] as u64;
        66 + syn_options + sack_option + self.len as u64
    }
}

/// Control bits of a [`Segment`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// Opens a connection.
    pub const SYN: Self = Self(1);
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
    /// The IP header says ECT(0); not a TCP bit, but decided by TCP.
    pub const ECT: Self = Self(64);
    /// The first SACK block reports a duplicate (RFC 2883).
    pub const DSACK: Self = Self(128);

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
