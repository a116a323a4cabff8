//! The integer arithmetic of the kernel modules (`kernel/`), for the queues of profile `kernel`.
//!
//! A parameter that is a fraction is a whole number of millionths there.

use sojourn_net::{Duration, Rng};

/// One in millionths.
pub(crate) const MILLION: u64 = 1_000_000;

/// Fractional bits of probabilities and shares.
pub(crate) const Q30: u32 = 30;

/// One as a probability or share.
pub(crate) const ONE_Q30: u64 = 1 << Q30;

/// A parameter as the modules receive it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a fraction is not negative"
)]
pub(crate) fn millionths(fraction: f64) -> u64 {
    (fraction * 1e6).round() as u64
}

/// The same as a binary fraction with `bits` fractional bits.
pub(crate) fn binary(fraction: f64, bits: u32) -> u64 {
    ((millionths(fraction) << bits) + MILLION / 2) / MILLION
}

/// The product of two binary fractions, one of which is at most 1.
pub(crate) const fn mul_q30(a: u64, b: u64) -> u64 {
    (a * b) >> Q30
}

/// `base^exponent`.
pub(crate) fn power_q30(base: u64, exponent: u32) -> u64 {
    (0..exponent).fold(ONE_Q30, |product, _| mul_q30(product, base))
}

/// `a * b / c`, rounded down; 2^64 - 1 if it is larger than that.
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    saturating(u128::from(a) * u128::from(b) / u128::from(c))
}

/// `a * b / 2^bits`, rounded down; 2^64 - 1 if it is larger than that.
pub(crate) fn mul_shift(a: u64, b: u64, bits: u32) -> u64 {
    saturating((u128::from(a) * u128::from(b)) >> bits)
}

/// `n` times a number of millionths, rounded down.
pub(crate) fn scaled(n: u64, millionths: u64) -> u64 {
    mul_div(n, millionths, MILLION)
}

/// `n`, or the largest number of 64 bits.
pub(crate) fn saturating(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// `interval / sqrt(count)`; the root has 16 fractional bits.
pub(crate) fn div_sqrt(interval: Duration, count: u32) -> Duration {
    let root = (u64::from(count) << 32).isqrt();
    Duration::from_nanos(mul_div(interval.as_nanos(), 1 << 16, root))
}

/// A probability in the numbers of a profile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probability {
    Real(f64),
    Q30(u64),
}

impl Probability {
    /// Draws whether it happens; does not draw for 0.
    #[inline]
    pub(crate) fn happens(self, rng: &mut Rng) -> bool {
        match self {
            Self::Real(p) => p > 0.0 && rng.uniform() < p,
            Self::Q30(p) => p > 0 && rng.next_u64() >> (64 - Q30) < p,
        }
    }

    /// Whether it is 1.
    pub(crate) fn is_certain(self) -> bool {
        match self {
            Self::Real(p) => p >= 1.0,
            Self::Q30(p) => p >= ONE_Q30,
        }
    }

    /// For statistics.
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Real(p) => p,
            Self::Q30(p) => real(p, Q30),
        }
    }
}

/// A binary fraction, for statistics.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
pub(crate) fn real(fraction: u64, bits: u32) -> f64 {
    fraction as f64 / (1_u64 << bits) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_of_real_numbers_within_one_part_in_65536() {
        for count in [1, 2, 3, 10, 1_000, u32::MAX] {
            let interval = Duration::from_millis(100);
            let real = 1e8 / f64::from(count).sqrt();
            let gap = div_sqrt(interval, count).as_nanos();
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let error = gap as f64 - real;
            assert!(
                error >= -1.0 && error <= 1.0 + real / 65_536.0,
                "{count}: {error}"
            );
        }
        assert_eq!(
            div_sqrt(Duration::from_millis(100), 1),
            Duration::from_millis(100)
        );
    }

    #[test]
    fn products_saturate() {
        assert_eq!(mul_div(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(mul_div(u64::MAX, 3, 4), u64::MAX / 4 * 3 + 2);
        assert_eq!(mul_shift(u64::MAX, 1 << 32, 32), u64::MAX);
        assert_eq!(mul_shift(1 << 40, 1 << 40, 32), 1 << 48);
    }

    #[test]
    fn a_fraction_is_rounded_to_millionths_first() {
        assert_eq!(millionths(0.002), 2_000);
        assert_eq!(millionths(1.25), 1_250_000);
        assert_eq!(binary(0.5, Q30), ONE_Q30 / 2);
        assert_eq!(binary(1.000_000_4, Q30), ONE_Q30);
        assert_eq!(power_q30(ONE_Q30 / 2, 3), ONE_Q30 / 8);
    }

    #[test]
    fn a_probability_happens_as_often_as_it_says() {
        let mut rng = Rng::new(1);
        let p = Probability::Q30(ONE_Q30 / 4);
        let times = (0..100_000).filter(|_| p.happens(&mut rng)).count();
        // 25,000 expected; 5 standard deviations are 685.
        assert!((24_315..25_685).contains(&times), "{times}");
        assert!((0..1_000).all(|_| Probability::Q30(ONE_Q30).happens(&mut rng)));
        let before = rng.clone();
        assert!(!Probability::Q30(0).happens(&mut rng));
        assert_eq!(rng, before, "a probability of 0 draws nothing");
    }
}
