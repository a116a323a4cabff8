//! The bounds that losses and marks set: short-term and long-term.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.5.10.

use super::{INFINITE, MIN_PIPE_CWND};
use crate::cc::{Progress, RateSample};

/// Tolerated losses are one segment in this number (2 %).
const LOSS_THRESH_DIVISOR: u64 = 50;

/// Bounds of rate and flight, and the congestion signals of the round.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u32,
    pub(super) inflight_longterm: u32,
    /// The largest rate and delivered volume of the round.
    bw_latest: u64,
    pub(super) inflight_latest: u32,
    /// The round ends when a segment sent after so many deliveries is delivered.
    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    loss_in_round: bool,
    pub(super) ce_in_round: bool,
    saved: (u64, u32, u32),
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bw_shortterm: u64::MAX,
            inflight_shortterm: INFINITE,
            inflight_longterm: INFINITE,
            bw_latest: 0,
            inflight_latest: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            ce_in_round: false,
            saved: (u64::MAX, INFINITE, INFINITE),
        }
    }
}

impl Bounds {
    /// An acknowledgement, before anything else: whether segments were lost since the one before, and
    /// whether it reports marks. Returns whether these are the first of their round.
    pub(super) fn update_latest_delivery_signals(
        &mut self,
        p: &Progress,
        bw: u64,
        lost: bool,
        marked: bool,
    ) -> bool {
        let mut first = false;
        if lost || marked {
            first = !self.loss_in_round;
            if first {
                self.loss_round_delivered = p.delivered;
                self.saved = (
                    self.bw_shortterm,
                    self.inflight_shortterm,
                    self.inflight_longterm,
                );
            }
            self.loss_in_round = true;
            self.ce_in_round |= marked;
        }
        self.loss_round_start = false;
        let Some(sample) = p.sample else { return first };
        let volume = u32::try_from(sample.delivered).unwrap_or(INFINITE);
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(volume);
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = p.delivered;
            self.loss_round_start = true;
        }
        first
    }

    /// An acknowledgement, after everything else.
    pub(super) fn advance_latest_delivery_signals(&mut self, p: &Progress, bw: u64) {
        if let Some(sample) = p.sample.filter(|_| self.loss_round_start) {
            self.bw_latest = bw;
            self.inflight_latest = u32::try_from(sample.delivered).unwrap_or(INFINITE);
        }
    }

    /// Once a round: a loss or a mark while nothing was probed brings the short-term bounds down to what was
    /// delivered, to 0.7 of what they were at most.
    pub(super) fn adapt_lower_bounds(&mut self, probing: bool, max_bw: u64, cwnd: u32) {
        if self.loss_in_round && !probing {
            let bw = self.bw_shortterm.min(max_bw);
            self.bw_shortterm = self.bw_latest.max(bw / 10 * 7);
            let inflight = match self.inflight_shortterm {
                INFINITE => cwnd,
                bound => bound,
            };
            self.inflight_shortterm = self.inflight_latest.max(beta(inflight));
        }
        self.loss_in_round = false;
        self.ce_in_round = false;
    }

    pub(super) const fn reset_short_term_model(&mut self) {
        self.bw_shortterm = u64::MAX;
        self.inflight_shortterm = INFINITE;
    }

    /// A probe is over: its signals do not apply to what follows.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.ce_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// A probe put too much in flight: `in_flight` at the time; the bound is 0.7 of `target` at least.
    pub(super) fn set_inflight_longterm(&mut self, in_flight: u32, target: u32) {
        self.inflight_longterm = in_flight.max(beta(target)).max(MIN_PIPE_CWND);
    }

    /// Leaves room for others: 15 % of the long-term bound.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        match self.inflight_longterm {
            INFINITE => INFINITE,
            bound => {
                let part = u64::from(bound) * 3 / 20;
                let headroom = u32::try_from(part).unwrap_or(INFINITE).max(1);
                bound.saturating_sub(headroom).max(MIN_PIPE_CWND)
            }
        }
    }

    /// The last losses were spurious.
    pub(super) fn restore(&mut self) {
        let (bw, short, long) = self.saved;
        self.bw_shortterm = self.bw_shortterm.max(bw);
        self.inflight_shortterm = self.inflight_shortterm.max(short);
        self.inflight_longterm = self.inflight_longterm.max(long);
        // Marks are never spurious.
        self.loss_in_round = self.ce_in_round;
    }
}

/// Whether more than 2 % of what was in flight when the newest segment delivered was sent is lost.
pub(super) fn is_inflight_too_high(sample: &RateSample) -> bool {
    sample.lost_since * LOSS_THRESH_DIVISOR > u64::from(sample.in_flight_then)
}

/// 0.7 of it.
fn beta(segments: u32) -> u32 {
    let part = u64::from(segments) * 7 / 10;
    u32::try_from(part).unwrap_or(INFINITE)
}
