//! Sizes of transfers and waiting times: fixed, or drawn from a distribution.

use sojourn_net::{Bytes, Duration, Rng};

use crate::demand;

/// The largest size that is drawn: a run can number the segments of any distribution.
const MOST_DRAWN: f64 = 1_099_511_627_776.0;

/// A number of bytes, or the distribution that it is drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Always this size.
    Fixed(Bytes),
    /// Half of the draws are smaller than `median`.
    Lognormal {
        /// The median.
        median: Bytes,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Bytes,
    },
    /// One in `(x / least)^shape` is larger than x.
    Pareto {
        /// The least draw.
        least: Bytes,
        /// The exponent.
        shape: f64,
    },
}

impl Amount {
    /// Whole bytes, at least one and at most 2^40.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
        let mut positive = || 1.0 - rng.uniform();
        let drawn = match self {
            Self::Fixed(bytes) => return bytes.0,
            Self::Lognormal { median, sigma } => {
                let radius = (-2.0 * libm::log(positive())).sqrt();
                let normal = radius * libm::cos(std::f64::consts::TAU * positive());
                real(median) * libm::exp(sigma * normal)
            }
            Self::Exponential { mean } => -real(mean) * libm::log(positive()),
            Self::Pareto { least, shape } => real(least) * libm::pow(positive(), -1.0 / shape),
        };
        whole(drawn.round().clamp(1.0, MOST_DRAWN))
    }
}

impl Amount {
    /// The smallest draw.
    pub(crate) const fn least(self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Pareto { least: bytes, .. } => bytes.0,
            Self::Lognormal { .. } | Self::Exponential { .. } => 1,
        }
    }

    /// Bound on the sum of `draws` draws.
    pub(crate) fn most(self, draws: u64) -> u64 {
        let count = demand::real(draws);
        // Mean, standard deviation and a size that one draw in 10^9 exceeds.
        let (mean, deviation, largest) = match self {
            Self::Fixed(bytes) => return draws.saturating_mul(bytes.0),
            Self::Lognormal { median, sigma } => {
                let median = real(median);
                let mean = median * libm::exp(sigma * sigma / 2.0);
                let deviation = mean * (libm::exp(sigma * sigma) - 1.0).sqrt();
                (mean, deviation, median * libm::exp(6.0 * sigma))
            }
            Self::Exponential { mean } => (real(mean), real(mean), 21.0 * real(mean)),
            // Its deviation may be infinite: the sum is at most the mean and a few of its largest draws.
            Self::Pareto { least, shape } => {
                let largest = real(least) * libm::pow(1e9 * count, 1.0 / shape);
                let mean = if shape > 1.0 {
                    real(least) * shape / (shape - 1.0)
                } else {
                    f64::INFINITY
                };
                (mean, 0.0, largest)
            }
        };
        let sum = demand::above(count * mean, count.sqrt() * deviation, largest);
        // At least a byte each.
        demand::whole(sum + count).min(draws.saturating_mul(whole(MOST_DRAWN)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
const fn real(bytes: Bytes) -> f64 {
    bytes.0 as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 2^40"
)]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}

/// The longest time that is simulated or waited for.
pub const LONGEST: Duration = Duration::YEAR;

/// A time, or the distribution that it is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Always this long.
    Fixed(Duration),
    /// Exponential: what happens after it, again and again, is a Poisson process.
    Exponential {
        /// The mean.
        mean: Duration,
    },
}

impl Wait {
    /// Bound on the number of times that fit into `time` if each takes this and `more`, one that begins at once
    /// included.
    pub(crate) fn most_times(self, time: Duration, more: Duration) -> u64 {
        let (Self::Fixed(mean) | Self::Exponential { mean }) = self;
        let period = mean.as_nanos().saturating_add(more.as_nanos());
        let Some(times) = time.as_nanos().checked_div(period) else {
            return u64::MAX;
        };
        match self {
            Self::Fixed(_) => times.saturating_add(1),
            Self::Exponential { .. } => demand::most_events(times.saturating_add(1), 1.0),
        }
    }

    /// A time, at most a year.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a year is 2^55 ns"
    )]
    pub fn draw(self, rng: &mut Rng) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Exponential { mean } => {
                // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
                let seconds = -mean.as_secs_f64() * libm::log(1.0 - rng.uniform());
                Duration::from_nanos((seconds.min(LONGEST.as_secs_f64()) * 1e9).round() as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 transfers in order.
    fn drawn(amount: Amount) -> Vec<u64> {
        let root = Rng::new(1);
        let mut all: Vec<_> = (0..10_000)
            .map(|n| amount.draw(&mut root.fork(&n.to_string())))
            .collect();
        all.sort_unstable();
        all
    }

    /// Whether the value below which `share` of `all` lie is as wanted within 5 %.
    fn near(all: &[u64], share: f64, wanted: f64) {
        let rank = whole(share * 10_000.0);
        let got = real(Bytes(all[usize::try_from(rank).unwrap()]));
        assert!((got / wanted - 1.0).abs() < 0.05, "{share}: {got}");
    }

    #[test]
    fn quantiles_are_those_of_the_distributions() {
        let lognormal = drawn(Amount::Lognormal {
            median: Bytes(36_000),
            sigma: 1.0,
        });
        near(&lognormal, 0.5, 36_000.0);
        // One standard deviation: 84.13 % and 15.87 %.
        near(&lognormal, 0.8413, 36_000.0 * std::f64::consts::E);
        near(&lognormal, 0.1587, 36_000.0 / std::f64::consts::E);
        let exponential = drawn(Amount::Exponential {
            mean: Bytes(36_000),
        });
        near(&exponential, 0.5, 36_000.0 * std::f64::consts::LN_2);
        near(&exponential, 0.9, 36_000.0 * std::f64::consts::LN_10);
        let pareto = drawn(Amount::Pareto {
            least: Bytes(4_000),
            shape: 1.2,
        });
        assert!(pareto[0] >= 4_000);
        near(&pareto, 0.5, 4_000.0 * 1.781_797);
        near(&pareto, 0.9, 4_000.0 * 6.812_921);
    }

    #[test]
    fn a_transfer_is_a_byte_at_least_and_can_be_numbered() {
        for amount in [
            Amount::Exponential { mean: Bytes(1) },
            Amount::Pareto {
                least: Bytes(1 << 50),
                shape: 0.1,
            },
        ] {
            let all = drawn(amount);
            assert!(all[0] >= 1 && all[9_999] <= 1 << 40, "{amount:?}");
        }
    }

    #[test]
    fn exponential_waits_have_their_mean_and_their_median() {
        let mut rng = Rng::new(1);
        let mean = Duration::from_millis(200);
        let mut draw = || Wait::Exponential { mean }.draw(&mut rng).as_secs_f64();
        let mut all: Vec<f64> = (0..20_000).map(|_| draw()).collect();
        all.sort_by(f64::total_cmp);
        let got = all.iter().sum::<f64>() / 20_000.0;
        assert!((got / 0.2 - 1.0).abs() < 0.03, "{got}");
        let median = all[10_000];
        let wanted = 0.2 * std::f64::consts::LN_2;
        assert!((median / wanted - 1.0).abs() < 0.03, "{median}");
    }
}
