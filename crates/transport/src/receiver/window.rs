//! Growth of the advertised window.
//!
//! # Law
//!
//! Each round trip in which the application took more than in any before, `c` bytes instead of
//! `s`, raises the limit to `2c + 16 segments`, and by twice the relative growth more. The window
//! then climbs to the limit by two segments for each that arrives, and each such step makes the
//! acknowledgement immediate.
//!
//! # Differences from Linux
//!
//! The buffer may reach 2^30 bytes (RFC 7323 §2.3) instead of `tcp_rmem`; its overhead is taken
//! as half of it; the window is not rounded to the scale factor.

use std::num::NonZeroU32;

use sojourn_net::{Instant, IpVersion};

use crate::rtt::MAX_SAMPLE;
use crate::segment::Segment;

/// The window of a 128 kB buffer, before it is rounded to whole segments.
const INITIAL_LIMIT: u32 = 65_536;
/// Largest window that window scaling can express.
const MAX: u64 = 1 << 30;
/// Bytes of the timestamps, which the advertised MSS includes.
const TIMESTAMPS: u16 = 12;
/// Segments of the initial window (RFC 6928).
const INITIAL_SEGMENTS: u32 = 10;
/// Unit of advertised windows (window scale 11).
const SCALE: u32 = 2_048;

/// The window a receiver advertises.
#[derive(Clone, Debug)]
pub(super) struct AdvertisedWindow {
    window: u32,
    limit: u32,
    /// 8 times the round-trip time as the receiver sees it, in µs; `None` before the first sample.
    rtt8: Option<NonZeroU32>,
    last_echo: u32,
    /// Most bytes taken in one round trip.
    best: u32,
    round_began: Instant,
    delivered_then: u64,
    /// Payload of a full-sized segment.
    mss: u16,
    /// What an unread segment takes of the buffer.
    share_of_unread: u16,
}

impl AdvertisedWindow {
    pub(super) const fn new(ip: IpVersion, mss: u16) -> Self {
        let window = INITIAL_LIMIT - INITIAL_LIMIT % mss as u32;
        Self {
            window,
            limit: INITIAL_LIMIT,
            rtt8: None,
            last_echo: 0,
            best: INITIAL_SEGMENTS * (mss + TIMESTAMPS) as u32,
            round_began: Instant::ZERO,
            delivered_then: 0,
            mss,
            share_of_unread: memory(mss + ip.more_than_v4()) / 2,
        }
    }

    /// Payload of a full-sized segment.
    #[inline]
    pub(super) const fn mss(&self) -> u16 {
        self.mss
    }

    pub(super) const fn advertised(&self) -> u32 {
        self.window
    }

    /// The round-trip time as the receiver sees it, in µs; `None` before the first sample.
    #[inline]
    pub(super) fn rtt_micros(&self) -> Option<u32> {
        self.rtt8.map(|rtt8| rtt8.get() >> 3)
    }

    /// The connection is established.
    pub(super) fn begin(&mut self, now: Instant) {
        self.round_began = now;
    }

    pub(super) fn first_rtt(&mut self, micros: u32) {
        self.rtt8 = NonZeroU32::new(micros.clamp(1, MAX_SAMPLE) << 3);
    }

    /// Takes a sample from the timestamp that a segment echoes, once for each value.
    pub(super) fn measure_rtt(&mut self, stamp: u32, seg: &Segment) {
        if seg.ts_ecr == self.last_echo || seg.len < self.mss {
            return;
        }
        self.last_echo = seg.ts_ecr;
        let micros = stamp.wrapping_sub(seg.ts_ecr).clamp(1, MAX_SAMPLE / 1_000) * 1_000;
        // A smaller sample counts in full, a larger one by an eighth.
        let rtt8 = match self.rtt8.map(NonZeroU32::get) {
            Some(rtt8) if micros << 3 >= rtt8 => rtt8 - (rtt8 >> 3) + micros,
            _ => micros << 3,
        };
        self.rtt8 = NonZeroU32::new(rtt8);
    }

    /// A data segment of `len` bytes arrived, and `unread` segments wait to be read, which take their
    /// share of the buffer. Returns whether the window grew.
    pub(super) fn grow(&mut self, len: u16, unread: u32) -> bool {
        let limit = self
            .limit
            .saturating_sub(u32::from(self.share_of_unread) * unread);
        if len < 128 || self.window >= limit {
            return false;
        }
        let room = limit - self.window;
        self.window += room.min(2 * u32::from(self.mss + TIMESTAMPS));
        true
    }

    /// Whether the whole window can still be advertised while `unread` segments wait to be read.
    pub(super) fn holds(&self, unread: u32) -> bool {
        let scaled = |window: u32| window.div_ceil(SCALE);
        let free = self
            .limit
            .saturating_sub(u32::from(self.share_of_unread) * unread);
        scaled(free.min(self.window)) >= scaled(self.window)
    }

    /// Raises the limit at the end of a round trip in which more arrived than in any before.
    #[inline]
    pub(super) fn adjust(&mut self, now: Instant, delivered: u64) {
        if let Some(wanted) = self.end_round(now, delivered) {
            let wanted = u32::try_from(wanted.min(MAX)).unwrap_or(u32::MAX);
            self.limit = self.limit.max(wanted);
        }
    }

    /// The bytes of window that the connection needs, at the end of a round trip in which more arrived than in any
    /// before.
    #[inline]
    pub(super) fn end_round(&mut self, now: Instant, delivered: u64) -> Option<u64> {
        let round = now.since(self.round_began).as_micros();
        if self
            .rtt8
            .is_none_or(|rtt8| round < u64::from(rtt8.get() >> 3))
        {
            return None;
        }
        let taken = delivered - self.delivered_then;
        let best = u64::from(self.best);
        let mut needed = None;
        if taken > best {
            let mut wanted = 2 * taken + 16 * u64::from(self.mss + TIMESTAMPS);
            wanted += 2 * (wanted * (taken - best) / best);
            needed = Some(wanted);
            self.best = u32::try_from(taken).unwrap_or(u32::MAX);
        }
        self.round_began = now;
        self.delivered_then = delivered;
        needed
    }
}

/// Memory that a full-sized segment over IPv4 occupies: its frame with the room that a driver leaves before and the
/// kernel needs behind, in an allocation of a power of two, and its description.
const fn memory(mss: u16) -> u16 {
    const HEADERS: u16 = 66;
    const ROOM: u16 = 66 + 320;
    const DESCRIPTION: u16 = 256;
    (HEADERS + mss + ROOM).next_power_of_two() + DESCRIPTION
}

const _: () = assert!(memory(1_448) == 2_304 && memory(536) == 1_280);
