//! RACK state: the most recently delivered segment and the observed reordering (RFC 8985 §6).

use sojourn_net::{Duration, Instant};

use super::scoreboard::Delivered;
use crate::clock::micros;

/// Recoveries without a DSACK until a widened reordering window shrinks again.
const PERSIST: u8 = 16;
/// Segments by which packets may be reordered before any reordering was seen.
const INITIAL_REORDERING: u32 = 3;
/// Most segments that reordering is believed to span.
const MAX_REORDERING: u32 = 300;

/// The most recently sent segment known to be delivered, and what reordering was seen.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Last transmission of the newest delivery, and the segment after it.
    newest_at: Instant,
    newest_end: u32,
    /// The RTT of the newest delivery, in µs.
    rtt: u32,
    /// Reordering seen, in segments.
    reordering: u32,
    /// The round of the last DSACK ends when everything below this is acknowledged.
    round_end: u32,
    /// A delivery was seen since losses were last marked.
    advanced: bool,
    reordering_seen: bool,
    dsack_seen: bool,
    /// The reordering window is this many quarters of the minimum RTT.
    steps: u8,
    persist: u8,
}

impl Rack {
    pub(crate) const fn new() -> Self {
        Self {
            newest_at: Instant::ZERO,
            newest_end: 0,
            rtt: 0,
            reordering: INITIAL_REORDERING,
            round_end: 0,
            advanced: false,
            reordering_seen: false,
            dsack_seen: false,
            steps: 1,
            persist: 0,
        }
    }

    /// An acknowledgement begins.
    #[inline]
    pub(crate) const fn begin_ack(&mut self) {
        self.advanced = false;
    }

    /// A segment sent at `at` has been delivered.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        (at, end_seq): Delivered,
        ever_resent: bool,
        min_rtt: Option<u32>,
    ) {
        let rtt = micros(now.since(at));
        // Faster than the path: this acknowledges the original, not the retransmission.
        if ever_resent && min_rtt.is_none_or(|min| rtt < min) {
            return;
        }
        self.on_delivered(rtt, (at, end_seq));
    }

    /// A segment was delivered `rtt` µs after its last transmission (RFC 8985 §6.2, step 2). The caller excludes
    /// retransmissions whose original may have been acknowledged.
    #[inline]
    pub(crate) fn on_delivered(&mut self, rtt: u32, delivered: Delivered) {
        self.advanced = true;
        self.rtt = rtt;
        if delivered > self.newest() {
            (self.newest_at, self.newest_end) = delivered;
        }
    }

    /// Losses are to be marked even if nothing more is delivered.
    pub(crate) const fn force_advance(&mut self) {
        self.advanced = true;
    }

    /// Whether a delivery was seen since this was last asked.
    pub(crate) const fn take_advanced(&mut self) -> bool {
        std::mem::replace(&mut self.advanced, false)
    }

    /// The newest delivery.
    #[inline]
    pub(crate) const fn newest(&self) -> Delivered {
        (self.newest_at, self.newest_end)
    }

    /// RTT of the newest delivery, in µs.
    pub(crate) const fn rtt_micros(&self) -> u32 {
        self.rtt
    }

    /// The same as a [`Duration`].
    pub(crate) const fn rtt(&self) -> Duration {
        Duration::from_micros(self.rtt as u64)
    }

    /// Segments by which packets may be reordered.
    #[inline]
    pub(crate) const fn reordering(&self) -> u32 {
        self.reordering
    }

    /// Whether packets are reordered by more than is assumed of every path.
    #[inline]
    pub(crate) const fn is_reordering(&self) -> bool {
        self.reordering > INITIAL_REORDERING
    }

    /// Packets were reordered by `distance` segments.
    pub(crate) fn on_reordering(&mut self, distance: u32) {
        self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
        self.reordering_seen = true;
    }

    /// A time-out found loss where reordering was assumed.
    pub(crate) fn limit_reordering(&mut self) {
        self.reordering = self.reordering.min(INITIAL_REORDERING);
    }

    /// How much later than its successors a segment may arrive, in µs; `expects_loss`: without any
    /// sign of reordering, nothing is waited for.
    pub(crate) fn reordering_window(
        &self,
        expects_loss: bool,
        min_rtt: Option<u32>,
        srtt: Option<u32>,
    ) -> u32 {
        let Some(srtt) = srtt else { return 0 };
        if !self.reordering_seen && expects_loss {
            return 0;
        }
        min_rtt.map_or(srtt, |min| {
            (min / 4).saturating_mul(self.steps.into()).min(srtt)
        })
    }

    pub(crate) const fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// After an acknowledgement, with a DSACK or not: widens the reordering window for each round
    /// with one, and resets it after some recoveries without.
    #[inline]
    pub(crate) fn adapt_window(&mut self, dsack: bool, una: u32, next: u32) {
        if dsack && self.dsack_seen && una >= self.round_end {
            self.dsack_seen = false;
            self.steps = self.steps.saturating_add(1);
            self.persist = PERSIST;
            self.round_end = next;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A reduction was undone because of a DSACK.
    pub(crate) fn on_undo(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// A recovery ended without undo.
    pub(crate) const fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
}
