//! The retransmission timer, shared by SYN, tail loss probe, reordering and window probes.

use sojourn_net::{Duration, Instant};

use crate::clock::Ticks;

/// Time-outs without progress until the connection is given up (`tcp_retries2`).
const MAX_TIMEOUTS: u8 = 15;
/// Longest time-out, in ms.
const MAX_RTO_MS: u64 = 120_000;

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Syn,
    Rto,
    Probe,
    Reordering,
    /// The peer's window is closed.
    Persist,
}

/// A timer, set or not. Setting it is frequent and cheap; its slot on the timer wheel is computed
/// when it is read.
#[derive(Clone, Debug)]
pub(crate) struct RetransmitTimer {
    kind: Option<Kind>,
    backoff: u8,
    /// Time-outs without progress.
    timeouts_in_row: u8,
    ticks: u32,
    set_at: Instant,
}

impl RetransmitTimer {
    pub(crate) const fn new() -> Self {
        Self {
            kind: None,
            backoff: 0,
            timeouts_in_row: 0,
            ticks: 0,
            set_at: Instant::ZERO,
        }
    }

    #[inline]
    pub(crate) const fn kind(&self) -> Option<Kind> {
        self.kind
    }

    #[inline]
    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kind == Some(kind)
    }

    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, kind: Kind, ticks: u64) {
        self.kind = Some(kind);
        self.ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        self.set_at = now;
    }

    pub(crate) const fn cancel(&mut self) {
        self.kind = None;
        self.ticks = 0;
        self.set_at = Instant::ZERO;
    }

    /// When it expires on the timer wheel; `None`: it is not set.
    #[inline]
    pub(crate) fn expiry(&self, ticks: Ticks) -> Option<Instant> {
        self.kind
            .map(|_| ticks.expiry(self.set_at, u64::from(self.ticks)))
    }

    /// A time before which it does not expire, cheaper than [`RetransmitTimer::expiry`]: the wheel
    /// is never early.
    #[inline]
    pub(crate) fn earliest(&self) -> Instant {
        self.set_at + Duration::from_millis(u64::from(self.ticks))
    }

    /// The time-out with its back-off, when it is `rto_ms` without; both in ms.
    #[inline]
    pub(crate) fn backed_off(&self, rto_ms: u32) -> u64 {
        (u64::from(rto_ms) << self.backoff.min(16)).min(MAX_RTO_MS)
    }

    pub(crate) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    pub(crate) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Whether there were as many time-outs in a row as a connection survives.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.timeouts_in_row == MAX_TIMEOUTS
    }

    pub(crate) const fn has_timed_out(&self) -> bool {
        self.timeouts_in_row > 0
    }

    pub(crate) const fn count_timeout(&mut self) {
        self.timeouts_in_row += 1;
    }

    /// The peer has answered.
    pub(crate) const fn reset_timeouts(&mut self) {
        self.timeouts_in_row = 0;
    }
}

/// A tail loss probe that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailLossProbe {
    /// It is answered when everything below this is acknowledged.
    pub(crate) end: u32,
    /// It retransmitted a segment.
    pub(crate) is_resend: bool,
}
