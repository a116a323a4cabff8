//! Waiting times: fixed, or drawn from a distribution.

use sojourn_net::{Duration, Rng};

/// The longest time that is simulated or waited for: a leap year. Sums of several stay far from 2^64 ns.
pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

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
