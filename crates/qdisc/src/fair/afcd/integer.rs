//! The targets of AFCD in the arithmetic of the kernel module: shares in 2^-16, their ratio in 2^-32.

use super::AfcdParams;
use crate::parts::fixed;
use crate::parts::shadow::{IntegerFairShare, Q16};

/// Fractional bits of the ratio of two shares.
const Q32: u32 = 32;

#[derive(Clone, Debug)]
pub(super) struct IntegerTargets {
    /// The target at the fair share, in nanoseconds.
    target: u64,
    exponent: u32,
    /// The size of the shadow buffer.
    size: u32,
    /// Equation (5), where it is applied.
    average: Option<IntegerFairShare>,
}

impl IntegerTargets {
    pub(super) fn new(params: &AfcdParams) -> Self {
        let gains = (params.alpha, params.beta);
        Self {
            target: fixed::scaled(
                params.target.as_nanos(),
                fixed::millionths(params.target_scale),
            ),
            exponent: params.exponent,
            size: params.shadow,
            average: params
                .average
                .then(|| IntegerFairShare::new(gains, params.qtarget, params.limit, params.shadow)),
        }
    }

    pub(super) fn change(&mut self, params: &AfcdParams) {
        let mut next = Self::new(params);
        if let (Some(next), Some(known)) = (&mut next.average, self.average.take()) {
            let gains = (params.alpha, params.beta);
            *next = known;
            next.tune(gains, params.qtarget, params.limit);
        }
        *self = next;
    }

    pub(super) fn update(&mut self, packets: usize) {
        if let Some(average) = &mut self.average {
            average.update(packets);
        }
    }

    pub(super) fn restart(&mut self, flows: u32) {
        if let Some(average) = &mut self.average {
            average.restart(flows);
        }
    }

    /// `m_f` of this number of flows, in 2^-16.
    fn fair_share(&self, flows: u32) -> u64 {
        match &self.average {
            Some(average) => average.value(),
            None => u64::from(self.size / flows.max(1)) << Q16,
        }
    }

    pub(super) fn real_fair_share(&self, flows: u32) -> f64 {
        fixed::real(self.fair_share(flows), Q16)
    }

    pub(super) fn is_below_fair_share(&self, samples: u32, flows: u32) -> bool {
        u64::from(samples) << Q16 < self.fair_share(flows)
    }

    /// The target of a flow with `samples`, in nanoseconds; without any, beyond all delays.
    pub(super) fn target(&self, samples: u32, flows: u32) -> u64 {
        let share = self.fair_share(flows) << (Q32 - Q16);
        let Some(ratio) = share.checked_div(samples.into()) else {
            return u64::MAX;
        };
        let mut target = self.target;
        for _ in 0..self.exponent {
            // Once beyond all delays, it stays there.
            target = fixed::mul_shift(target, ratio, Q32);
            if target == u64::MAX {
                break;
            }
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::shadow::FairShare;

    #[test]
    fn targets_are_those_of_real_numbers_within_a_thousandth() {
        for params in [AfcdParams::default(), AfcdParams::kernel2012()] {
            let targets = IntegerTargets::new(&params);
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let base = params.target.as_nanos() as f64 * params.target_scale;
            for (samples, flows) in [(1, 1), (2_000, 1), (100, 20), (200, 20), (50, 20), (700, 3)] {
                let ratio = f64::from(2_000 / flows) / f64::from(samples);
                let expected = base * ratio.powi(i32::try_from(params.exponent).unwrap());
                #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
                let target = targets.target(samples, flows) as f64;
                let error = (target - expected).abs();
                assert!(
                    error < 2.0 + expected / 1e3,
                    "{samples} of {flows}: {target} {expected}"
                );
            }
            assert_eq!(targets.target(0, 3), u64::MAX);
        }
    }

    #[test]
    fn equation_5_is_that_of_real_numbers_within_a_sample() {
        let params = AfcdParams {
            average: true,
            qtarget: Some(20),
            ..AfcdParams::default()
        };
        let mut targets = IntegerTargets::new(&params);
        let mut real = FairShare {
            alpha: params.alpha,
            beta: params.beta,
            target: 20.0,
            most: 2_000.0,
            value: 2_000.0,
            old: 0.0,
        };
        for n in 0..2_000_usize {
            if n % 300 == 0 {
                targets.restart(7);
                real.restart(2_000.0 / 7.0);
            }
            let backlog = n * 7 % 45;
            targets.update(backlog);
            real.update(backlog);
            let off = (targets.real_fair_share(7) - real.value).abs();
            assert!(off < 1.0, "{n}: off by {off}");
        }
    }
}
