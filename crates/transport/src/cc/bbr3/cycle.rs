//! The cycle of `ProbeBW`: down, cruise, refill, up.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.3.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant, Rng};

use super::bounds::Bound;
use super::model::{AckPhase, Bbr3};
use super::state::State;
use crate::cc::{Progress, RateSample, Window};

/// The bound grows by 2^30 segments a round at most.
const MAX_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn start_probe_bw_down(&mut self, now: Instant, delivered: u64) {
        self.bounds.reset_congestion_signals();
        self.cycle.probe_up_cnt = None;
        self.cycle.rounds_since_bw_probe = u32::from(self.rng.below(2) == 1);
        self.cycle.bw_probe_wait = probe_wait(self.params.bw_probe_wait_base, &mut self.rng);
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    pub(super) fn start_probe_bw_refill(&mut self, delivered: u64) {
        self.bounds.reset_short_term_model();
        self.cycle.bw_probe_up_rounds = 0;
        self.cycle.bw_probe_up_acks = 0;
        self.cycle.stopped_risky_probe = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    fn start_probe_bw_up(&mut self, cwnd: u32, bw: u64, delivered: u64) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round(delivered);
        self.reset_full_bw(bw);
        self.state = State::Up;
        self.raise_inflight_longterm_slope(cwnd);
    }

    /// One acknowledgement of a flow that has filled its path.
    pub(super) fn update_probe_bw_cycle(
        &mut self,
        window: &Window,
        now: Instant,
        p: &Progress,
        bw: u64,
    ) {
        if self.adapt_long_term_model(window, now, p) {
            return;
        }
        match self.state {
            State::Down | State::Cruise => {
                if self.is_time_to_probe_bw(window.cwnd, now) {
                    self.start_probe_bw_refill(p.delivered);
                } else if self.state == State::Down
                    && self
                        .bounds
                        .inflight_with_headroom(&self.params)
                        .allows(p.in_flight)
                    && p.in_flight <= self.inflight(self.max_bw())
                {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_start => {
                self.cycle.bw_probe_samples = true;
                self.start_probe_bw_up(window.cwnd, bw, p.delivered);
            }
            State::Up => self.end_probe(window, now, p, bw),
            _ => {}
        }
    }

    fn is_time_to_probe_bw(&self, cwnd: u32, now: Instant) -> bool {
        let rounds = self
            .target_inflight(cwnd)
            .min(self.params.bw_probe_max_rounds.into());
        now > self.cycle.stamp + self.cycle.bw_probe_wait
            || self.cycle.rounds_since_bw_probe >= rounds
    }

    /// Ends the probe when it is time.
    fn end_probe(&mut self, window: &Window, now: Instant, p: &Progress, bw: u64) {
        if self.is_time_to_go_down(window.cwnd, p, bw) {
            self.cycle.prev_probe_too_high = false;
            self.start_probe_bw_down(now, p.delivered);
        }
    }

    pub(super) fn is_time_to_go_down(&mut self, cwnd: u32, p: &Progress, bw: u64) -> bool {
        let bound = self.bounds.inflight_longterm;
        if self.cycle.prev_probe_too_high && bound.is_reached_by(p.in_flight) {
            self.cycle.stopped_risky_probe = true;
            return true;
        }
        if self.cwnd_limited.is_set() && bound.is_reached_by(cwnd) {
            // The bound, not the path, limits the rate.
            self.reset_full_bw(bw);
            return false;
        }
        self.full_bw.now
    }

    /// Updates the ACK phase and the long-term bound. Returns whether the state has changed.
    fn adapt_long_term_model(&mut self, window: &Window, now: Instant, p: &Progress) -> bool {
        if self.round_start {
            match self.cycle.ack_phase {
                AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    if self.stop_probe(p) {
                        return true;
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::ProbeFeedback => {}
            }
        }
        let Some(sample) = &p.sample else {
            return false;
        };
        if self.marked || self.params.is_inflight_too_high(sample) {
            return self.cycle.bw_probe_samples
                && self.handle_inflight_too_high(window.cwnd, now, p, sample);
        }
        if let Some(bound) = self.bounds.inflight_longterm.get() {
            self.bounds.inflight_longterm = Bound::at(sample.in_flight_then.max(bound));
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(window.cwnd, p);
            }
        }
        false
    }

    /// The samples of a probe have all come.
    fn stop_probe(&mut self, p: &Progress) -> bool {
        self.cycle.bw_probe_samples = false;
        self.cycle.ack_phase = AckPhase::Init;
        if !self.state.probes_bw() {
            return false;
        }
        if !p.sample.is_some_and(|s| s.app_limited) {
            self.max_bw_filter = [self.max_bw_filter[1], 0];
        }
        let again = self.cycle.stopped_risky_probe && !self.cycle.prev_probe_too_high;
        if again {
            self.start_probe_bw_refill(p.delivered);
        }
        again
    }

    fn handle_inflight_too_high(
        &mut self,
        cwnd: u32,
        now: Instant,
        p: &Progress,
        sample: &RateSample,
    ) -> bool {
        self.cycle.prev_probe_too_high = true;
        // Once for each probe.
        self.cycle.bw_probe_samples = false;
        if !sample.app_limited {
            let target = self.target_inflight(cwnd);
            self.bounds
                .set_inflight_longterm(&self.params, sample.in_flight_then, target);
        }
        let up = self.state == State::Up;
        if up {
            // A mark is never spurious.
            self.undo_state = (!self.marked).then_some(State::Up);
            self.start_probe_bw_down(now, p.delivered);
        }
        up
    }

    fn raise_inflight_longterm_slope(&mut self, cwnd: u32) {
        let growth = 1 << self.cycle.bw_probe_up_rounds;
        self.cycle.bw_probe_up_rounds = (self.cycle.bw_probe_up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.probe_up_cnt = NonZeroU32::new((cwnd / growth).max(1));
    }

    /// The bound grows by 1, 2, 4, … segments a round.
    pub(super) fn probe_inflight_longterm_upward(&mut self, cwnd: u32, p: &Progress) {
        let bound = self.bounds.inflight_longterm.get();
        let Some(bound) = bound.filter(|&bound| self.cwnd_limited.is_set() && cwnd >= bound) else {
            return;
        };
        let cycle = &mut self.cycle;
        cycle.bw_probe_up_acks += p.newly_delivered;
        if let Some(per) = cycle.probe_up_cnt {
            let segments = cycle.bw_probe_up_acks / per;
            cycle.bw_probe_up_acks -= segments * per.get();
            self.bounds.inflight_longterm = Bound::at(bound.saturating_add(segments));
        }
        if self.round_start {
            self.raise_inflight_longterm_slope(cwnd);
        }
    }
}

/// The wait between two probes for bandwidth: up to 1 s more than `base_ms`.
pub(super) fn probe_wait(base_ms: u32, rng: &mut Rng) -> Duration {
    Duration::from_micros(1_000 * u64::from(base_ms) + rng.below(1_000_000))
}
