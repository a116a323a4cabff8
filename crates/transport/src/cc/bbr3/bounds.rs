//! The bounds that losses and marks set: short-term and long-term.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.5.10.

use super::Bbr3Params;
use crate::cc::Progress;

/// An upper bound, or none.
///
/// No bound is the largest number, the identity element of `min`: a bound takes no more space than a number, and to
/// apply it costs one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bound<T>(T);

/// Bounded quantities: bandwidths and numbers of segments.
pub(super) trait Quantity: Copy + Ord {
    const MAX: Self;
}

impl Quantity for u32 {
    const MAX: Self = Self::MAX;
}

impl Quantity for u64 {
    const MAX: Self = Self::MAX;
}

impl<T: Quantity> Bound<T> {
    pub(super) const NONE: Self = Self(T::MAX);

    pub(super) const fn at(value: T) -> Self {
        Self(value)
    }

    /// The bound, if there is one.
    pub(super) fn get(self) -> Option<T> {
        (self.0 < T::MAX).then_some(self.0)
    }

    /// `value`, or the bound if that is smaller.
    pub(super) fn limit(self, value: T) -> T {
        value.min(self.0)
    }

    /// Whether `value` does not exceed the bound.
    pub(super) fn allows(self, value: T) -> bool {
        value <= self.0
    }

    /// Whether `value` is the bound or more.
    pub(super) fn is_reached_by(self, value: T) -> bool {
        value >= self.0
    }
}

/// Bounds of rate and flight, and the congestion signals of the round.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: Bound<u64>,
    pub(super) inflight_shortterm: Bound<u32>,
    pub(super) inflight_longterm: Bound<u32>,
    /// The largest rate and delivered volume of the round.
    bw_latest: u64,
    pub(super) inflight_latest: u32,
    /// The round ends when a segment sent after this number of deliveries is delivered.
    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    loss_in_round: bool,
    pub(super) ce_in_round: bool,
    saved: (Bound<u64>, Bound<u32>, Bound<u32>),
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bw_shortterm: Bound::NONE,
            inflight_shortterm: Bound::NONE,
            inflight_longterm: Bound::NONE,
            bw_latest: 0,
            inflight_latest: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            ce_in_round: false,
            saved: (Bound::NONE, Bound::NONE, Bound::NONE),
        }
    }
}

impl Bounds {
    /// A loss or a mark after `delivered` deliveries. Returns whether it is the first of its round, and not one of
    /// several found `together`: the end of a probe at one of them does not change what undoing restores.
    pub(super) const fn note_congestion(&mut self, delivered: u64, together: bool) -> bool {
        let first = !self.loss_in_round;
        if first {
            self.loss_round_delivered = delivered;
        }
        let begins = first && !together;
        if begins {
            self.saved = (
                self.bw_shortterm,
                self.inflight_shortterm,
                self.inflight_longterm,
            );
        }
        self.loss_in_round = true;
        begins
    }

    /// An acknowledgement, before anything else but the losses and marks it reports.
    pub(super) fn update_latest_delivery_signals(&mut self, p: &Progress, bw: u64) {
        self.loss_round_start = false;
        let Some(sample) = p.sample else { return };
        let volume = u32::try_from(sample.delivered).unwrap_or(u32::MAX);
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(volume);
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = p.delivered;
            self.loss_round_start = true;
        }
    }

    /// An acknowledgement, after everything else.
    pub(super) fn advance_latest_delivery_signals(&mut self, p: &Progress, bw: u64) {
        if let Some(sample) = p.sample.filter(|_| self.loss_round_start) {
            self.bw_latest = bw;
            self.inflight_latest = u32::try_from(sample.delivered).unwrap_or(u32::MAX);
        }
    }

    /// Once a round: a loss or a mark while nothing was probed brings the short-term bounds down to what was
    /// delivered, to 0.7 of what they were at most.
    pub(super) fn adapt_lower_bounds(
        &mut self,
        params: &Bbr3Params,
        probing: bool,
        max_bw: u64,
        cwnd: u32,
    ) {
        if self.loss_in_round && !probing {
            let bw = params.beta_of_bw(self.bw_shortterm.limit(max_bw));
            self.bw_shortterm = Bound::at(self.bw_latest.max(bw));
            let inflight = params.beta_of(self.inflight_shortterm.get().unwrap_or(cwnd));
            self.inflight_shortterm = Bound::at(self.inflight_latest.max(inflight));
        }
        self.loss_in_round = false;
        self.ce_in_round = false;
    }

    pub(super) const fn reset_short_term_model(&mut self) {
        self.bw_shortterm = Bound::NONE;
        self.inflight_shortterm = Bound::NONE;
    }

    /// A probe is over: its signals do not apply to what follows.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.ce_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// A probe put too much in flight: `in_flight` at the time; the bound is 0.7 of `target` at least.
    pub(super) fn set_inflight_longterm(
        &mut self,
        params: &Bbr3Params,
        in_flight: u32,
        target: u32,
    ) {
        let least = params.beta_of(target).max(params.min_pipe_cwnd.into());
        self.inflight_longterm = Bound::at(in_flight.max(least));
    }

    /// The long-term bound less the room left to others.
    pub(super) fn inflight_with_headroom(&self, params: &Bbr3Params) -> Bound<u32> {
        let Some(bound) = self.inflight_longterm.get() else {
            return Bound::NONE;
        };
        let part = u64::from(bound) * u64::from(params.headroom) / 1_000;
        let headroom = u32::try_from(part).unwrap_or(u32::MAX).max(1);
        let rest = bound.saturating_sub(headroom);
        Bound::at(rest.max(params.min_pipe_cwnd.into()))
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
