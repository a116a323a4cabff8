//! The minimum RTT, and the state that probes for it.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.4.

use sojourn_net::Instant;

use super::model::{AckPhase, Bbr3, StampedMinRtt};
use super::state::State;
use crate::cc::min_rtt::MinRtt;
use crate::cc::{Ack, Progress, Window};

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
