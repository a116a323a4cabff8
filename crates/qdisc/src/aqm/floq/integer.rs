//! The drop chance in the arithmetic of the kernel module: shares and probabilities in 2^-30.

use sojourn_net::Bytes;

use super::FloqParams;
use super::connections::Class;
use crate::parts::fixed::{ONE_Q30, Q30, binary, mul_q30, power_q30, real};

/// The size that `gain` refers to.
const MTU: u64 = 1_514;

#[derive(Clone, Debug)]
pub(super) struct IntegerLaw {
    limit: u64,
    threshold: u64,
    gamma: u32,
    probability: u64,
    /// In the order of [`Class::ALL`].
    weights: [u64; 3],
    exponent: u32,
    /// Of [`MTU`] bytes.
    gain: u64,
    responsive_share: u64,
}

impl IntegerLaw {
    pub(super) fn new(params: &FloqParams) -> Self {
        let q30 = |fraction| binary(fraction, Q30);
        Self {
            limit: params.limit as u64,
            threshold: q30(params.threshold),
            gamma: params.gamma,
            probability: q30(params.probability),
            weights: [
                q30(params.setup_weight),
                q30(params.responsive_weight),
                q30(params.unresponsive_weight),
            ],
            exponent: params.exponent,
            gain: q30(params.gain),
            responsive_share: ONE_Q30 / 2,
        }
    }

    pub(super) fn change(&mut self, params: &FloqParams) {
        *self = Self {
            responsive_share: self.responsive_share,
            ..Self::new(params)
        };
    }

    pub(super) fn on_arrival(&mut self, class: Class, size: Bytes) {
        let gain = (self.gain.saturating_mul(size.0) / MTU).min(ONE_Q30);
        match class {
            Class::Setup => {}
            Class::Responsive => {
                self.responsive_share += mul_q30(gain, ONE_Q30 - self.responsive_share);
            }
            Class::Unresponsive => self.responsive_share -= mul_q30(gain, self.responsive_share),
        }
    }

    pub(super) fn probability(&self, class: Class, backlog: usize) -> u64 {
        let x = ((backlog as u64) << Q30) / self.limit;
        if x <= self.threshold {
            return 0;
        }
        let share = match class {
            Class::Setup => ONE_Q30,
            Class::Responsive => self.responsive_share,
            Class::Unresponsive => ONE_Q30 - self.responsive_share,
        };
        let above = ((x - self.threshold) << Q30) / (ONE_Q30 - self.threshold);
        let base = mul_q30(self.probability, power_q30(above, self.gamma));
        let base = mul_q30(base, power_q30(share, self.exponent));
        mul_q30(base, self.weights[class.place()]).min(ONE_Q30)
    }

    pub(super) fn responsive_share(&self) -> f64 {
        real(self.responsive_share, Q30)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::floq::RealLaw;

    #[test]
    fn shares_and_probabilities_are_those_of_real_numbers_within_a_millionth() {
        for params in [
            FloqParams::default(),
            FloqParams::fixed(),
            FloqParams {
                gamma: 3,
                setup_weight: 10.0,
                probability: 0.3,
                ..FloqParams::default()
            },
        ] {
            let (mut real_law, mut law) = (RealLaw::new(&params), IntegerLaw::new(&params));
            for n in 0..3_000_u64 {
                let class = Class::ALL[usize::try_from(n * n % 7 % 3).unwrap()];
                let size = Bytes(64 + n * 37 % 1_451);
                real_law.on_arrival(class, size);
                law.on_arrival(class, size);
                let backlog = usize::try_from(n * 13 % 1_000).unwrap();
                let (p, q) = (
                    real_law.probability(class, backlog),
                    real(law.probability(class, backlog), Q30),
                );
                assert!((p - q).abs() < 2e-6, "{n}: {p} {q}");
            }
            assert!((real_law.responsive_share - law.responsive_share()).abs() < 1e-6);
        }
    }
}
