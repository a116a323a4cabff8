//! A UDP stream: when datagrams are sent, and which of them have arrived.

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

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

/// A source of datagrams with a constant mean bit rate. It does not respond to loss or marks.
#[derive(Debug)]
pub struct UdpSource {
    gap: Duration,
    payload: u16,
    spacing: Spacing,
    rng: Rng,
    sent: u64,
}

impl UdpSource {
    /// A source of datagrams with this payload. `rate` is the rate of the payload.
    pub fn new(rate: Rate, payload: Bytes, spacing: Spacing, rng: Rng) -> Self {
        Self {
            gap: rate.serialise(payload),
            payload: u16::try_from(payload.0).unwrap_or(u16::MAX),
            spacing,
            rng,
            sent: 0,
        }
    }

    /// Payload of a datagram, in bytes.
    pub const fn payload(&self) -> u16 {
        self.payload
    }

    /// Datagrams sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of the datagram to send now, and when the next one is due.
    pub fn send(&mut self, now: Instant) -> (u32, Instant) {
        let number = u32::try_from(self.sent).unwrap_or(u32::MAX);
        self.sent += 1;
        let factor = match self.spacing {
            Spacing::Even { spread } => 1.0 + spread * (2.0 * self.rng.uniform() - 1.0),
            // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
            Spacing::Poisson => -libm::log(1.0 - self.rng.uniform()),
        };
        (number, now + self.gap.scaled(factor))
    }
}

/// Set of datagrams that have arrived, one bit each.
#[derive(Debug, Default)]
pub struct Arrivals(Vec<u64>);

impl Arrivals {
    /// Records an arrival. Returns false for a duplicate.
    pub fn insert(&mut self, number: u64) -> bool {
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
            let mut source = UdpSource::new(Rate::mbit(8), Bytes(1_000), spacing, Rng::new(1));
            let mut now = Instant::ZERO;
            for number in 0..20_000 {
                let (sent, next) = source.send(now);
                assert_eq!(sent, number);
                now = next;
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
