//! The minimum RTT, and the state that asks for it.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 §5.3.4.

use sojourn_net::Instant;

use super::cycle::AckPhase;
use super::{Bbr3, MIN_CWND, PROBE_RTT_GAIN, State};
use crate::cc::{Ack, Progress, Window};

/// How long a minimum RTT stands.
const MIN_RTT_MS: u64 = 10_000;
/// How long `PROBE_RTT` is put off by an RTT as small as any since.
const INTERVAL_MS: u64 = 5_000;
/// How long it lasts at least.
const DURATION_MS: u64 = 200;

/// The smallest RTT of a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// [`u32::MAX`]: none yet.
    pub(super) micros: u32,
    /// The tick of its measurement.
    pub(super) at: u64,
}

impl Least {
    pub(super) const NONE: Self = Self {
        micros: u32::MAX,
        at: 0,
    };
}

impl Bbr3 {
    /// Returns whether it is time to ask for the minimum.
    ///
    /// It is remembered for two intervals, so that the probe holds down what is in flight by the minimum the
    /// last one found, not by what a queue makes of it since.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let expired = ack.tick > self.probe_rtt_min.at + INTERVAL_MS;
        if let Some(micros) = ack.rtt_micros
            && (micros < self.probe_rtt_min.micros || expired)
        {
            self.probe_rtt_min = Least {
                micros,
                at: ack.tick,
            };
        }
        let stale = ack.tick > self.min_rtt.at + MIN_RTT_MS;
        if self.probe_rtt_min.micros < self.min_rtt.micros || stale {
            self.min_rtt = self.probe_rtt_min;
        }
        expired
    }

    /// The window while the minimum is asked for.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), PROBE_RTT_GAIN).max(MIN_CWND)
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
            } else if p.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_until = Some(ack.tick + DURATION_MS);
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
        self.probe_rtt_min.at = tick;
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
