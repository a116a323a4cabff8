//! The controller and the marking of Linux 6.18, in its fixed-point arithmetic.
//!
//! A probability of 1 is 2^32 - 1; gains are passed in 1/256 Hz and kept per 64 ns.

use sojourn_net::{Bytes, Duration, Ecn, Rng};

use super::params::{DropEarly, DualPi2Params, LINUX_ALPHA, LINUX_BETA};
use super::{Band, Leaving, Verdict};
use crate::contract::MarkReason;

const MAX_PROB: u32 = u32::MAX;
/// Gains are passed in 2^-8 Hz.
const GAIN_SHIFT: u32 = 8;
/// Delays are multiplied with gains in nanoseconds, and gains are per 2^6 ns.
const GRANULARITY: u32 = 6;

#[derive(Clone, Debug)]
pub(super) struct Linux {
    target: u64,
    alpha: u32,
    beta: u32,
    coupling_factor: u32,
    step_thresh: Duration,
    drop_on_overload: bool,
    drop_early: DropEarly,
    /// A smaller backlog escapes the base probability.
    two_mtu: u64,

    prob: u32,
    last_qdelay: u64,
}

impl Linux {
    pub(super) fn new(params: &DualPi2Params, mtu: Bytes) -> Self {
        Self {
            target: params.target.as_nanos(),
            alpha: scaled(params.alpha.map_or(LINUX_ALPHA, granular)),
            beta: scaled(params.beta.map_or(LINUX_BETA, granular)),
            coupling_factor: params.coupling_factor,
            step_thresh: params.step_thresh(),
            drop_on_overload: params.drop_on_overload,
            drop_early: params.drop_early,
            two_mtu: 2 * mtu.0,
            prob: 0,
            last_qdelay: 0,
        }
    }

    /// The parameters of `next`; the state stays.
    pub(super) fn change(&mut self, next: &Self) {
        *self = Self {
            prob: self.prob,
            last_qdelay: self.last_qdelay,
            ..next.clone()
        };
    }

    /// Returns the verdict on a departing packet. With `drop_enqueue`, the probability was applied on
    /// arrival.
    #[inline]
    pub(super) fn judge(&self, pkt: &Leaving, rng: &mut Rng) -> Verdict {
        let verdict = if self.drop_early == DropEarly::Enqueue {
            Verdict::Pass
        } else {
            self.draw(pkt.band, pkt.ecn != Ecn::NotEct, pkt.left, rng)
        };
        let above = pkt.step && pkt.waited > self.step_thresh;
        match verdict {
            Verdict::Pass if above => Verdict::Mark(MarkReason::CeThreshold),
            decided => decided,
        }
    }

    /// Returns the verdict on a packet that arrives while the queues hold `backlog` bytes.
    pub(super) fn judge_arrival(
        &self,
        band: Band,
        markable: bool,
        backlog: Bytes,
        rng: &mut Rng,
    ) -> Verdict {
        match self.drop_early {
            DropEarly::Dequeue => Verdict::Pass,
            DropEarly::Enqueue => self.draw(band, markable, backlog, rng),
        }
    }

    /// The probability with which L's own threshold marks at this delay.
    pub(super) fn native(&self, delay: Duration) -> f64 {
        f64::from(u8::from(delay > self.step_thresh))
    }

    /// Applies the probability; `others` is the backlog without the packet.
    #[inline]
    fn draw(&self, band: Band, markable: bool, others: Bytes, rng: &mut Rng) -> Verdict {
        if others.0 < self.two_mtu {
            return Verdict::Pass;
        }
        let coupled = u64::from(self.prob) * u64::from(self.coupling_factor);
        let overload = coupled > u64::from(MAX_PROB);
        match band {
            Band::Classic => self.classic(markable, overload, rng),
            Band::L4s if overload => self.l4s_overload(rng),
            Band::L4s => Self::l4s(u32::try_from(coupled).unwrap_or(MAX_PROB), rng),
        }
    }

    fn classic(&self, markable: bool, overload: bool, rng: &mut Rng) -> Verdict {
        if !(roll(self.prob, rng) && roll(self.prob, rng)) {
            Verdict::Pass
        } else if markable && !overload {
            Verdict::Mark(MarkReason::Aqm)
        } else {
            Verdict::Drop
        }
    }

    fn l4s(coupled: u32, rng: &mut Rng) -> Verdict {
        if roll(coupled, rng) {
            Verdict::Mark(MarkReason::Aqm)
        } else {
            Verdict::Pass
        }
    }

    fn l4s_overload(&self, rng: &mut Rng) -> Verdict {
        if self.drop_on_overload && roll(self.prob, rng) && roll(self.prob, rng) {
            Verdict::Drop
        } else {
            Verdict::Mark(MarkReason::Aqm)
        }
    }

    /// Moves the base probability by the longer waiting time; products wrap as the kernel's.
    pub(super) fn update(&mut self, delay: Duration) {
        let qdelay = delay.as_nanos();
        let product = |other: u64, gain: u32| {
            let difference = qdelay.cast_signed().wrapping_sub(other.cast_signed());
            difference.wrapping_mul(i64::from(gain))
        };
        let delta =
            product(self.target, self.alpha).wrapping_add(product(self.last_qdelay, self.beta));
        self.last_qdelay = qdelay;
        let change = low_half(delta.unsigned_abs() >> GRANULARITY);
        self.prob = if delta > 0 {
            match self.prob.wrapping_add(change) {
                risen if risen < self.prob => MAX_PROB,
                risen => risen,
            }
        } else {
            match self.prob.wrapping_sub(change) {
                fallen if fallen > self.prob => 0,
                fallen => fallen,
            }
        };
        if !self.drop_on_overload {
            self.prob = self.prob.min(MAX_PROB / self.coupling_factor);
        }
    }

    pub(super) fn probability(&self) -> f64 {
        f64::from(self.prob) / f64::from(MAX_PROB)
    }

    /// The probability of the Classic queue and the coupled one of the L4S queue.
    pub(super) fn coupled(&self) -> (f64, f64) {
        let p = self.probability();
        (p * p, (f64::from(self.coupling_factor) * p).min(1.0))
    }
}

#[cfg(test)]
impl Linux {
    pub(super) const fn prob(&self) -> u32 {
        self.prob
    }

    pub(super) const fn gains(&self) -> (u32, u32) {
        (self.alpha, self.beta)
    }

    pub(super) const fn set_for_test(&mut self, prob: u32) {
        self.prob = prob;
    }
}

/// Whether a draw comes out within `prob`; even one of 0 may.
#[inline]
fn roll(prob: u32, rng: &mut Rng) -> bool {
    rng.next_u32() <= prob
}

/// A gain as `tc` tells it to the kernel, rounded down; 0 would be refused.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a gain is positive"
)]
fn granular(hertz: f64) -> u32 {
    ((hertz * f64::from(1_u32 << GAIN_SHIFT)) as u32).max(1)
}

/// A gain as the kernel keeps it.
fn scaled(gain: u32) -> u32 {
    let product = (u64::from(gain) * u64::from(MAX_PROB)) >> (GAIN_SHIFT - GRANULARITY);
    u32::try_from(product / 1_000_000_000).unwrap_or(u32::MAX)
}

/// The kernel keeps the low 32 bits of a change.
#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
const fn low_half(change: u64) -> u32 {
    change as u32
}
