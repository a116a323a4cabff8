//! How STARTUP ends: by a plateau of the bandwidth, by losses or by marks.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.1 and §5.3.2; marks as the parent module says.

use sojourn_net::Instant;

use super::bounds::too_much_was_lost;
use super::{Bbr3, State, UNIT};
use crate::cc::{Episode, Progress, RateSample};

/// Growth of bandwidth that says there is more.
const FULL_BW_GROWTH: u64 = 320;
const FULL_BW_ROUNDS: u8 = 3;
/// Rounds DRAIN lasts at most.
const DRAIN_ROUNDS: u32 = 3;
/// Acknowledgements of a round that tell of losses, from which STARTUP ends.
const FULL_LOSSES: u32 = 6;
/// Rounds in a row with marks, from which it ends.
const FULL_MARKED_ROUNDS: u8 = 2;

/// Whether more rate brings more bandwidth.
#[derive(Clone, Debug, Default)]
pub(super) struct Plateau {
    bw: u64,
    rounds: u8,
    pub(super) now: bool,
}

/// What STARTUP may end by, apart from a plateau.
#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    recovery_rounds: u32,
    /// Acknowledgements of this round that told of losses.
    losses: u32,
    marked_rounds: u8,
}

impl Bbr3 {
    pub(super) fn check_plateau(&mut self, bw: u64, sample: &RateSample) {
        if self.plateau.now || !self.round_began || sample.app_limited {
            return;
        }
        if bw >= self.plateau.bw * FULL_BW_GROWTH / UNIT {
            self.look_for_plateau(bw);
            return;
        }
        self.plateau.rounds += 1;
        if self.plateau.rounds >= FULL_BW_ROUNDS {
            self.plateau.now = true;
            self.full = true;
        }
    }

    pub(super) fn look_for_plateau(&mut self, bw: u64) {
        self.plateau = Plateau {
            bw,
            ..Plateau::default()
        };
    }

    /// STARTUP ends by loss: a round of recovery with much lost, in several places.
    pub(super) fn check_startup_loss(&mut self, p: &Progress, lost: bool) {
        let seen = &mut self.congestion;
        if p.episode == Episode::Recovery {
            seen.recovery_rounds += u32::from(self.round_began);
        } else {
            seen.recovery_rounds = 0;
        }
        seen.losses += u32::from(lost);
        if !self.round_began {
            return;
        }
        let many = std::mem::take(&mut seen.losses) >= FULL_LOSSES;
        if self.state == State::Startup
            && seen.recovery_rounds > 1
            && many
            && p.sample.as_ref().is_some_and(too_much_was_lost)
        {
            self.undo_state = Some(State::Startup);
            self.end_startup_at_a_bound();
        }
    }

    /// STARTUP ends by marks: two rounds in a row of those that the bounds are set by.
    pub(super) fn check_startup_marks(&mut self) {
        if !self.bounds.round_ended {
            return;
        }
        let seen = &mut self.congestion;
        seen.marked_rounds = if self.bounds.marked_in_round {
            seen.marked_rounds.saturating_add(1)
        } else {
            0
        };
        if self.state == State::Startup && seen.marked_rounds >= FULL_MARKED_ROUNDS {
            self.end_startup_at_a_bound();
        }
    }

    fn end_startup_at_a_bound(&mut self) {
        self.full = true;
        let bdp = self.bdp(self.bw(), UNIT);
        self.bounds.inflight_longterm = bdp.max(self.bounds.inflight_latest);
    }

    pub(super) fn check_startup_and_drain(&mut self, now: Instant, p: &Progress) {
        if self.state == State::Startup && self.full {
            self.state = State::Drain;
            self.drain_began = self.rounds;
        }
        if self.state == State::Drain
            && (p.in_flight <= self.inflight(self.bw())
                || self.rounds > self.drain_began + DRAIN_ROUNDS)
        {
            self.go_down(now, p.delivered);
        }
    }
}
