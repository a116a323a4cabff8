//! The minimum RTT, and the state that asks for it.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.4.

use sojourn_net::Instant;

use super::cycle::AckPhase;
use super::{Bbr3, MIN_CWND, MIN_RTT_MS, PROBE_RTT_GAIN, PROBE_RTT_MS, State};
use crate::cc::{Ack, Progress, Window};

impl Bbr3 {
    /// Returns whether sending is held down on purpose.
    pub(super) fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        let expired = ack.tick > self.min_rtt_at + MIN_RTT_MS;
        if expired && self.state != State::ProbeRtt {
            let half = self.bdp(self.bw(), PROBE_RTT_GAIN);
            self.probe_rtt_cwnd = half.max(MIN_CWND);
        }
        if let Some(rtt) = ack.rtt_micros
            && (rtt < self.min_rtt || expired)
        {
            self.min_rtt = rtt;
            self.min_rtt_at = ack.tick;
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd(window.cwnd);
            self.state = State::ProbeRtt;
            self.probe_rtt_until = None;
            self.cycle.acks = AckPhase::Stopping;
            self.begin_round(p.delivered);
        }
        let probing = self.state == State::ProbeRtt;
        if probing {
            if self.probe_rtt_until.is_some() {
                self.probe_rtt_round_done |= self.round_began;
                if self.probe_rtt_round_done {
                    self.end_probe_rtt(window, ack.now, ack.tick, p.delivered);
                }
            } else if p.in_flight <= self.probe_rtt_cwnd {
                self.probe_rtt_until = Some(ack.tick + PROBE_RTT_MS);
                self.probe_rtt_round_done = false;
                self.begin_round(p.delivered);
            }
        }
        if p.newly_delivered > 0 {
            self.idle_restart = false;
        }
        probing
    }

    pub(super) fn end_probe_rtt(
        &mut self,
        window: &mut Window,
        now: Instant,
        tick: u64,
        delivered: u64,
    ) {
        if self.probe_rtt_until.is_none_or(|until| tick <= until) {
            return;
        }
        self.min_rtt_at = tick;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.bounds.forget_short_term();
        if self.full {
            self.go_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
