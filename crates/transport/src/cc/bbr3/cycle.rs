//! The cycle of `ProbeBW`: down, cruise, refill, up.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.3.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant, Rng};

use super::State;
use super::bounds::Bound;
use super::model::{AckPhase, Bbr3, FullBw, StampedMinRtt};
use crate::cc::bbr_common::BBR_UNIT;
use crate::cc::progress::MinRtt;
use crate::cc::{Ack, Episode, LostSegment, Progress, RateSample, Window};

/// A probe lost too much or was marked.
struct Excess {
    now: Instant,
    /// Segments delivered until then.
    delivered: u64,
    /// Segments in flight when it became too much.
    in_flight: u32,
    app_limited: bool,
    /// It was a mark, which is never spurious.
    marked: bool,
}

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

    /// One acknowledgement of a flow that has filled its path; `in_net` segments will be in the network when the next
    /// burst leaves.
    pub(super) fn update_probe_bw_cycle(
        &mut self,
        window: &Window,
        now: Instant,
        p: &Progress,
        bw: u64,
        in_net: u32,
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
                        .allows(in_net)
                    && in_net <= self.inflight(self.max_bw())
                {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_start => {
                self.cycle.bw_probe_samples = true;
                self.start_probe_bw_up(window.cwnd, bw, p.delivered);
            }
            State::Up => self.end_probe(window.cwnd, now, p.delivered, (in_net, bw)),
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
    fn end_probe(&mut self, cwnd: u32, now: Instant, delivered: u64, (in_net, bw): (u32, u64)) {
        if self.is_time_to_go_down(cwnd, in_net, bw) {
            self.cycle.prev_probe_too_high = false;
            self.start_probe_bw_down(now, delivered);
        }
    }

    pub(super) fn is_time_to_go_down(&mut self, cwnd: u32, in_net: u32, bw: u64) -> bool {
        let bound = self.bounds.inflight_longterm;
        if self.cycle.prev_probe_too_high && bound.is_reached_by(in_net) {
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
        if self.marked
            || self
                .params
                .is_inflight_too_high(sample.lost_since, sample.in_flight_then)
        {
            let excess = Excess {
                now,
                delivered: p.delivered,
                in_flight: sample.in_flight_then,
                app_limited: sample.app_limited,
                marked: self.marked,
            };
            return self.cycle.bw_probe_samples
                && self.handle_inflight_too_high(window.cwnd, &excess);
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

    /// A segment was lost: while the path is probed, it tells whether too much was in flight when it was sent.
    pub(super) fn handle_lost_segment(&mut self, cwnd: u32, lost: &LostSegment) {
        if self.cycle.bw_probe_samples
            && self
                .params
                .is_inflight_too_high(lost.lost_since, lost.in_flight_then)
        {
            let excess = Excess {
                now: lost.now,
                delivered: lost.delivered,
                in_flight: self.params.inflight_at_loss(lost),
                app_limited: lost.app_limited,
                marked: false,
            };
            self.handle_inflight_too_high(cwnd, &excess);
        }
    }

    /// Returns whether the state has changed.
    fn handle_inflight_too_high(&mut self, cwnd: u32, excess: &Excess) -> bool {
        self.cycle.prev_probe_too_high = true;
        // Once for each probe.
        self.cycle.bw_probe_samples = false;
        if !excess.app_limited {
            let target = self.target_inflight(cwnd);
            self.bounds
                .set_inflight_longterm(&self.params, excess.in_flight, target);
        }
        let up = self.state == State::Up;
        if up {
            self.undo_state = (!excess.marked).then_some(State::Up);
            self.start_probe_bw_down(excess.now, excess.delivered);
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

// The minimum RTT, and the state that probes for it.
//
// Source:
//
// draft-ietf-ccwg-bbr-06 §5.3.4.

impl Bbr3 {
    /// Returns whether it is time to probe for the minimum.
    ///
    /// The minimum is kept for two intervals, so that a probe limits the flight by the minimum found by the
    /// previous one, without the queue that has built up since.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let expired =
            ack.tick > self.probe_rtt_min.stamp + u64::from(self.params.probe_rtt_interval);
        if let Some(micros) = ack.rtt_micros
            && (self.probe_rtt_min.rtt.is_above(micros) || expired)
        {
            self.probe_rtt_min = StampedMinRtt {
                rtt: MinRtt::of(micros),
                stamp: ack.tick,
            };
        }
        let stale = ack.tick > self.min_rtt.stamp + u64::from(self.params.min_rtt_filter_len);
        let recent = self.probe_rtt_min.rtt.micros();
        if recent.is_some_and(|micros| self.min_rtt.rtt.is_above(micros)) || stale {
            self.min_rtt = self.probe_rtt_min;
        }
        expired
    }

    /// The window during the probe.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), self.params.probe_rtt_cwnd_gain.into())
            .max(self.min_pipe_cwnd())
    }

    /// Returns whether sending is held down on purpose.
    pub(super) fn check_probe_rtt(
        &mut self,
        window: &mut Window,
        ack: &Ack,
        p: &Progress,
        expired: bool,
    ) -> bool {
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd(window.cwnd);
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round(p.delivered);
        }
        let probing = self.state == State::ProbeRtt;
        if probing {
            if self.probe_rtt_done_stamp.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(window, ack.now, ack.tick, p.delivered);
                }
            } else if p.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp =
                    Some(ack.tick + u64::from(self.params.probe_rtt_duration));
                self.probe_rtt_round_done = false;
                self.start_round(p.delivered);
            }
        }
        if p.newly_delivered > 0 {
            self.idle_restart = false;
        }
        probing
    }

    pub(super) fn check_probe_rtt_done(
        &mut self,
        window: &mut Window,
        now: Instant,
        tick: u64,
        delivered: u64,
    ) {
        if self.probe_rtt_done_stamp.is_none_or(|until| tick <= until) {
            return;
        }
        self.probe_rtt_min.stamp = tick;
        window.cwnd = self.prior_cwnd.restore(window.cwnd);
        self.bounds.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

// The end of STARTUP: a bandwidth plateau, losses or marks.
//
// Source:
//
// draft-ietf-ccwg-bbr-06 §5.3.1 and §5.3.2; marks as the parent module says.

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
            && p.sample.is_some_and(|s| {
                self.params
                    .is_inflight_too_high(s.lost_since, s.in_flight_then)
            })
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
            && (self.in_net_at_departure(now, p, p.in_flight) <= self.inflight(self.bw())
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(now, p.delivered);
        }
    }
}
