//! A UDP stream: when datagrams are sent, and which of them have arrived.

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

use crate::datagrams::{DatagramConfig, DatagramKind, DatagramSource};
use crate::demand::most_events;
use crate::phase::Phase;

/// How far apart the datagrams of a stream are. The stream's rate sets the mean gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spacing {
    /// Each gap is scaled by a uniform factor in `[1 - spread, 1 + spread]`.
    Even {
        /// From 0, a constant bit rate, to 1.
        spread: f64,
    },
    /// Gaps are exponential: a Poisson process.
    Poisson,
}

impl Spacing {
    /// A constant bit rate.
    pub const CONSTANT: Self = Self::Even { spread: 0.0 };
}

/// A UDP stream with a constant mean bit rate. It does not respond to loss or marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpConfig {
    /// Rate of the payload.
    pub rate: Rate,
    /// Payload of a datagram.
    pub payload: Bytes,
    /// How datagrams are spaced.
    pub spacing: Spacing,
    /// When the first one leaves; the period is the mean gap.
    pub phase: Phase,
}

impl UdpConfig {
    /// The mean time between datagrams.
    fn gap(&self) -> Duration {
        self.rate.serialise(self.payload)
    }
}

impl DatagramConfig for UdpConfig {
    fn kind(&self) -> DatagramKind {
        DatagramKind::Udp(self.payload)
    }

    fn datagrams(&self, time: Duration) -> u64 {
        time.as_nanos() / self.gap().as_nanos().max(1) + 1
    }

    fn most_datagrams(&self, time: Duration, _rtt: Duration) -> u64 {
        let mean = self.datagrams(time);
        let spread = match self.spacing {
            Spacing::Even { spread } => spread,
            Spacing::Poisson => 1.0,
        };
        most_events(mean, spread)
    }

    fn phase(&self, rng: &mut Rng) -> Duration {
        self.phase.draw(self.gap(), rng)
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        match self.spacing {
            Spacing::Even { spread } if !(0.0..=1.0).contains(&spread) => {
                Some(("spread", "must be between 0 and 1"))
            }
            Spacing::Even { .. } | Spacing::Poisson => None,
        }
    }

    fn build(&self, _: Instant, rng: &Rng) -> Box<dyn DatagramSource> {
        Box::new(UdpStream {
            gap: self.gap(),
            spacing: self.spacing,
            rng: rng.fork("spacing"),
            arrivals: Arrivals::default(),
        })
    }
}

/// A running stream.
#[derive(Debug)]
struct UdpStream {
    gap: Duration,
    spacing: Spacing,
    rng: Rng,
    arrivals: Arrivals,
}

impl DatagramSource for UdpStream {
    fn send(&mut self, now: Instant) -> Instant {
        let factor = match self.spacing {
            Spacing::Even { spread } => 1.0 + spread * (2.0 * self.rng.uniform() - 1.0),
            // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
            Spacing::Poisson => -libm::log(1.0 - self.rng.uniform()),
        };
        now + self.gap.scaled(factor)
    }

    fn on_arrival(&mut self, number: u32, _: Duration) -> bool {
        self.arrivals.insert(u64::from(number))
    }
}

/// Set of datagrams that have arrived, one bit each.
#[derive(Debug, Default)]
struct Arrivals(Vec<u64>);

impl Arrivals {
    /// Records an arrival. Returns false for a duplicate.
    fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = (number / 64, 1 << (number % 64));
        let word = usize::try_from(word).unwrap_or(usize::MAX);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let first = self.0[word] & bit == 0;
        self.0[word] |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_is_recognised() {
        let mut arrivals = Arrivals::default();
        let new = [0, 64, 63, 64, 1_000, 0].map(|number| arrivals.insert(number));
        assert_eq!(new, [true, true, true, false, true, false]);
    }

    #[test]
    fn the_mean_gap_is_that_of_the_rate() {
        for spacing in [
            Spacing::CONSTANT,
            Spacing::Even { spread: 1.0 },
            Spacing::Poisson,
        ] {
            let config = UdpConfig {
                rate: Rate::mbit(8),
                payload: Bytes(1_000),
                spacing,
                phase: Phase::Random,
            };
            let mut source = config.build(Instant::ZERO, &Rng::new(1));
            let mut now = Instant::ZERO;
            for _ in 0..20_000 {
                now = source.send(now);
            }
            // 1,000 B at 8 Mbit/s: 1 ms each.
            let seconds = now.as_secs_f64();
            assert!(
                (seconds / 20.0 - 1.0).abs() < 0.02,
                "{spacing:?}: {seconds}"
            );
        }
    }
}
