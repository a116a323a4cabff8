//! The controller of RFC 8033, Appendix A, with the enhancements of §5.4 and §5.5.

use sojourn_net::{Bytes, Duration, Rng};

use super::PieParams;
use crate::contract::Statistic;

/// RFC 8033 `MAX_BURST`.
const MAX_BURST: Duration = Duration::from_millis(150);
/// RFC 8033 `MAX_ECNTH`.
const MAX_ECNTH: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct Rfc {
    qdelay_ref: Duration,
    t_update: Duration,
    /// In 1/s.
    alpha: f64,
    /// In 1/s.
    beta: f64,
    mean_pktsize: Bytes,
    derandomise: bool,
    cap: bool,

    burst_allowance: Duration,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: Duration,
    current_qdelay: Duration,
}

impl Rfc {
    pub(super) fn new(params: &PieParams, mtu: Bytes) -> Self {
        Self {
            qdelay_ref: params.target(),
            t_update: params.tupdate(),
            alpha: f64::from(params.alpha) / 16.0,
            beta: f64::from(params.beta) / 16.0,
            mean_pktsize: mtu,
            derandomise: params.derandomise,
            cap: params.cap,
            burst_allowance: MAX_BURST,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: Duration::ZERO,
            current_qdelay: Duration::ZERO,
        }
    }

    /// Other parameters; the state stays.
    pub(super) fn change(&mut self, params: &PieParams, mtu: Bytes) {
        *self = Self {
            burst_allowance: self.burst_allowance,
            drop_prob: self.drop_prob,
            accu_prob: self.accu_prob,
            qdelay_old: self.qdelay_old,
            current_qdelay: self.current_qdelay,
            ..Self::new(params, mtu)
        };
    }

    pub(super) fn statistics(&self) -> [Statistic; 2] {
        [
            Statistic::real("prob", self.drop_prob),
            Statistic::count("delay", self.current_qdelay.as_micros()),
        ]
    }

    /// The same, and the sum of the probabilities since the last signal.
    pub(super) fn numbers(&self) -> Vec<Statistic> {
        let sum = self.derandomise.then_some(self.accu_prob);
        let sum = sum.map(|sum| Statistic::real("accu_prob", sum));
        self.statistics().into_iter().chain(sum).collect()
    }

    /// Less than half of `QDELAY_REF`.
    fn is_low(&self, qdelay: Duration) -> bool {
        qdelay.times(2) < self.qdelay_ref
    }

    #[inline]
    pub(super) fn drop_early(&mut self, backlog: Bytes, rng: &mut Rng) -> bool {
        // Probabilities are clamped, never approached: 0 is exact.
        let idle = self.drop_prob <= 0.0;
        if idle && self.is_low(self.current_qdelay) && self.is_low(self.qdelay_old) {
            self.burst_allowance = MAX_BURST;
        }
        if self.burst_allowance > Duration::ZERO
            || (self.is_low(self.qdelay_old) && self.drop_prob < 0.2)
            || backlog.0 <= 2 * self.mean_pktsize.0
        {
            return false;
        }
        if self.derandomise {
            if idle {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        rng.uniform() < self.drop_prob
    }

    pub(super) fn may_mark(&self) -> bool {
        self.drop_prob < MAX_ECNTH
    }

    pub(super) fn on_signal(&mut self) {
        self.accu_prob = 0.0;
    }

    #[inline]
    pub(super) fn on_dequeue(&mut self, timestamp_delay: Duration) {
        self.current_qdelay = timestamp_delay;
    }

    pub(super) fn calculate_drop_prob(&mut self) {
        let current = self.current_qdelay.as_secs_f64();
        let mut p = self.alpha * (current - self.qdelay_ref.as_secs_f64())
            + self.beta * (current - self.qdelay_old.as_secs_f64());
        p /= match self.drop_prob {
            x if x < 0.000_001 => 2048.0,
            x if x < 0.000_01 => 512.0,
            x if x < 0.000_1 => 128.0,
            x if x < 0.001 => 32.0,
            x if x < 0.01 => 8.0,
            x if x < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.cap && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == Duration::ZERO && self.qdelay_old == Duration::ZERO {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.t_update);
    }
}
