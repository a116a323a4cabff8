//! The end of STARTUP: a bandwidth plateau, losses or marks.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.1 and §5.3.2; marks as the parent module says.

use sojourn_net::Instant;

use super::bounds::Bound;
use super::model::{Bbr3, FullBw};
use super::state::State;
use crate::cc::bbr_common::BBR_UNIT;
use crate::cc::{Episode, Progress, RateSample};

/// Longest duration of DRAIN, in rounds.
const DRAIN_ROUNDS: u32 = 3;
/// Consecutive rounds with marks from which it ends.
const FULL_MARKED_ROUNDS: u8 = 2;

impl Bbr3 {
    pub(super) fn check_full_bw_reached(&mut self, bw: u64, sample: &RateSample) {
        if self.full_bw.now || !self.round_start || sample.app_limited {
            return;
        }
        if bw >= self.full_bw.bw * u64::from(self.params.full_bw_thresh) / BBR_UNIT {
            self.reset_full_bw(bw);
            return;
        }
        self.full_bw.count += 1;
        if self.full_bw.count >= self.params.full_bw_count {
            self.full_bw.now = true;
            self.full_bw_reached = true;
        }
    }

    pub(super) fn reset_full_bw(&mut self, bw: u64) {
        self.full_bw = FullBw {
            bw,
            ..FullBw::default()
        };
    }

    /// STARTUP ends by loss: a round of recovery with much lost, in several places.
    pub(super) fn check_startup_high_loss(&mut self, p: &Progress, lost: bool) {
        let seen = &mut self.startup_signals;
        if p.episode == Episode::Recovery {
            let rounds = seen.recovery_rounds;
            seen.recovery_rounds = rounds.saturating_add(self.round_start.into());
        } else {
            seen.recovery_rounds = 0;
        }
        seen.loss_events_in_round += u32::from(lost);
        if !self.round_start {
            return;
        }
        let many =
            std::mem::take(&mut seen.loss_events_in_round) >= self.params.full_loss_count.into();
        if self.state == State::Startup
            && seen.recovery_rounds > 1
            && many
            && p.sample
                .as_ref()
                .is_some_and(|s| self.params.is_inflight_too_high(s))
        {
            self.undo_state = Some(State::Startup);
            self.end_startup_at_a_bound();
        }
    }

    /// STARTUP ends by marks: two rounds in a row of those that the bounds are set by.
    pub(super) fn check_startup_marks(&mut self) {
        if !self.bounds.loss_round_start {
            return;
        }
        let seen = &mut self.startup_signals;
        seen.marked_rounds = if self.bounds.ce_in_round {
            seen.marked_rounds.saturating_add(1)
        } else {
            0
        };
        if self.state == State::Startup && seen.marked_rounds >= FULL_MARKED_ROUNDS {
            self.end_startup_at_a_bound();
        }
    }

    fn end_startup_at_a_bound(&mut self) {
        self.full_bw_reached = true;
        let bdp = self.bdp(self.bw(), BBR_UNIT);
        self.bounds.inflight_longterm = Bound::at(bdp.max(self.bounds.inflight_latest));
    }

    pub(super) fn check_drain(&mut self, now: Instant, p: &Progress) {
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
        if self.state == State::Drain
            && (p.in_flight <= self.inflight(self.bw())
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(now, p.delivered);
        }
    }
}
