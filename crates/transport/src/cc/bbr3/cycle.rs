//! The cycle of `ProbeBW`: down, cruise, refill, up.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.3.

use sojourn_net::{Duration, Instant};

use super::bounds::too_much_was_lost;
use super::{Bbr3, INFINITE, State, probe_wait};
use crate::cc::{Progress, RateSample, Window};

/// Rounds after which a flow probes at the latest, that others' Reno may keep up.
const MOST_ROUNDS: u32 = 63;
/// The bound grows by 2^30 segments a round at most.
const MOST_DOUBLINGS: u32 = 30;

/// What acknowledgements that come in now tell of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Where the cycle stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) acks: AckPhase,
    began: Instant,
    wait: Duration,
    pub(super) rounds_since_probe: u32,
    /// Samples come from a probe that has not been answered.
    probe_sample: bool,
    /// Rounds the bound has grown for, and what is acknowledged towards the next segment of it.
    up_rounds: u32,
    up_acked: u32,
    pub(super) up_acked_per_segment: u32,
    /// The last probe lost too much.
    too_high: bool,
    /// The last probe ended early, at the bound of one that had.
    precautionary: bool,
}

/// Whether the window was used up at any point in the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndLimit {
    this_round: bool,
    last_round: bool,
}

impl CwndLimit {
    /// An acknowledgement, before it moves the window.
    pub(super) const fn hear(&mut self, round_began: bool, window: &Window, p: &Progress) {
        if round_began {
            self.last_round = self.this_round;
            self.this_round = false;
        }
        self.this_round |= p.prior_in_flight >= window.cwnd;
    }

    pub(super) const fn holds(self) -> bool {
        self.this_round || self.last_round
    }
}

impl Bbr3 {
    pub(super) fn go_down(&mut self, now: Instant, delivered: u64) {
        self.bounds.forget_signals();
        self.cycle.up_acked_per_segment = INFINITE;
        self.cycle.rounds_since_probe = u32::from(self.rng.below(2) == 1);
        self.cycle.wait = probe_wait(&mut self.rng);
        self.cycle.began = now;
        self.cycle.acks = AckPhase::Stopping;
        self.begin_round(delivered);
        self.state = State::Down;
    }

    pub(super) fn refill(&mut self, delivered: u64) {
        self.bounds.forget_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.precautionary = false;
        self.cycle.acks = AckPhase::Refilling;
        self.begin_round(delivered);
        self.state = State::Refill;
    }

    fn go_up(&mut self, cwnd: u32, bw: u64, delivered: u64) {
        self.cycle.acks = AckPhase::Starting;
        self.begin_round(delivered);
        self.look_for_plateau(bw);
        self.state = State::Up;
        self.raise_slope(cwnd);
    }

    /// One acknowledgement of a flow that has filled its path.
    pub(super) fn update_cycle(&mut self, window: &Window, now: Instant, p: &Progress, bw: u64) {
        if self.adapt_long_term(window, now, p) {
            return;
        }
        match self.state {
            State::Down | State::Cruise => {
                if self.is_time_to_probe(window.cwnd, now) {
                    self.refill(p.delivered);
                } else if self.state == State::Down
                    && p.in_flight <= self.bounds.with_headroom()
                    && p.in_flight <= self.inflight(self.max_bw())
                {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_began => {
                self.cycle.probe_sample = true;
                self.go_up(window.cwnd, bw, p.delivered);
            }
            State::Up => self.end_probe(window, now, p, bw),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, cwnd: u32, now: Instant) -> bool {
        let rounds = self.target(cwnd).min(MOST_ROUNDS);
        now > self.cycle.began + self.cycle.wait || self.cycle.rounds_since_probe >= rounds
    }

    /// Ends the probe when it is time.
    fn end_probe(&mut self, window: &Window, now: Instant, p: &Progress, bw: u64) {
        if self.is_time_to_go_down(window.cwnd, p, bw) {
            self.cycle.too_high = false;
            self.go_down(now, p.delivered);
        }
    }

    pub(super) fn is_time_to_go_down(&mut self, cwnd: u32, p: &Progress, bw: u64) -> bool {
        if self.cycle.too_high && p.in_flight >= self.bounds.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if self.limit.holds() && cwnd >= self.bounds.inflight_longterm {
            // The bound, not the path, limits the rate.
            self.look_for_plateau(bw);
            return false;
        }
        self.plateau.now
    }

    /// Follows what acknowledgements tell of, and moves the long-term bound. Returns whether the
    /// state has changed.
    fn adapt_long_term(&mut self, window: &Window, now: Instant, p: &Progress) -> bool {
        if self.round_began {
            match self.cycle.acks {
                AckPhase::Starting => self.cycle.acks = AckPhase::Feedback,
                AckPhase::Stopping => {
                    if self.stop_probe(p) {
                        return true;
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::Feedback => {}
            }
        }
        let Some(sample) = &p.sample else {
            return false;
        };
        if self.marked || too_much_was_lost(sample) {
            return self.cycle.probe_sample && self.answer_too_high(window.cwnd, now, p, sample);
        }
        if self.bounds.inflight_longterm != INFINITE {
            let safe = sample.in_flight_then.max(self.bounds.inflight_longterm);
            self.bounds.inflight_longterm = safe;
            if self.state == State::Up {
                self.probe_upward(window.cwnd, p);
            }
        }
        false
    }

    /// The samples of a probe have all come.
    fn stop_probe(&mut self, p: &Progress) -> bool {
        self.cycle.probe_sample = false;
        self.cycle.acks = AckPhase::Init;
        if !self.state.probes_bw() {
            return false;
        }
        if !p.sample.is_some_and(|s| s.app_limited) {
            self.bw_of_cycles = [self.bw_of_cycles[1], 0];
        }
        let again = self.cycle.precautionary && !self.cycle.too_high;
        if again {
            self.refill(p.delivered);
        }
        again
    }

    fn answer_too_high(
        &mut self,
        cwnd: u32,
        now: Instant,
        p: &Progress,
        sample: &RateSample,
    ) -> bool {
        self.cycle.too_high = true;
        // Once for each probe.
        self.cycle.probe_sample = false;
        if !sample.app_limited {
            let target = self.target(cwnd);
            self.bounds.set_longterm(sample.in_flight_then, target);
        }
        let up = self.state == State::Up;
        if up {
            // A mark was not in error.
            self.undo_state = (!self.marked).then_some(State::Up);
            self.go_down(now, p.delivered);
        }
        up
    }

    fn raise_slope(&mut self, cwnd: u32) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.up_acked_per_segment = (cwnd / growth).max(1);
    }

    /// The bound grows by 1, 2, 4, … segments a round.
    pub(super) fn probe_upward(&mut self, cwnd: u32, p: &Progress) {
        if !self.limit.holds() || cwnd < self.bounds.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked += p.newly_delivered;
        let segments = cycle.up_acked / cycle.up_acked_per_segment;
        cycle.up_acked -= segments * cycle.up_acked_per_segment;
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.saturating_add(segments);
        if self.round_began {
            self.raise_slope(cwnd);
        }
    }
}
