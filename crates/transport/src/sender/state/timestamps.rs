//! The timestamps of a connection (RFC 7323).

use sojourn_net::Instant;

use crate::clock::{Ticks, before};

/// The clock of this host, and the latest timestamp of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    ticks: Ticks,
    /// `TS.Recent`.
    recent: u32,
}

impl Timestamps {
    pub(crate) const fn new(ticks: Ticks) -> Self {
        Self { ticks, recent: 0 }
    }

    pub(crate) const fn ticks(&self) -> Ticks {
        self.ticks
    }

    /// The 1 ms tick of the host at `now`.
    #[inline]
    pub(crate) const fn tick(&self, now: Instant) -> u64 {
        self.ticks.at(now)
    }

    /// The timestamp of a segment sent at `now`.
    #[inline]
    pub(crate) const fn stamp(&self, now: Instant) -> u32 {
        self.ticks.stamp(now)
    }

    /// The timestamp to echo.
    #[inline]
    pub(crate) const fn echo(&self) -> u32 {
        self.recent
    }

    /// Whether a segment with timestamp `ts_val` was overtaken by another.
    #[inline]
    pub(crate) const fn is_overtaken(&self, ts_val: u32) -> bool {
        before(ts_val, self.recent)
    }

    /// A segment with timestamp `ts_val` arrived. `TS.Recent` never goes back (RFC 7323 §4.3).
    #[inline]
    pub(crate) const fn on_segment(&mut self, ts_val: u32) {
        if !self.is_overtaken(ts_val) {
            self.recent = ts_val;
        }
    }

    /// The handshake brought the peer's first timestamp.
    pub(crate) const fn begin(&mut self, ts_val: u32) {
        self.recent = ts_val;
    }
}
