//! A UDP stream: when datagrams are sent, and which of them have arrived.

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

use crate::datagrams::{DatagramConfig, DatagramCounts, DatagramKind, DatagramSource};

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
}

impl DatagramConfig for UdpConfig {
    fn kind(&self) -> DatagramKind {
        DatagramKind::Udp(self.payload)
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
            gap: self.rate.serialise(self.payload),
            spacing: self.spacing,
            rng: rng.fork("spacing"),
            sent: 0,
            arrivals: Arrivals::default(),
            before: 0,
            received: 0,
        })
    }
}

/// A running stream.
#[derive(Debug)]
struct UdpStream {
    gap: Duration,
    spacing: Spacing,
    rng: Rng,
    sent: u64,
    arrivals: Arrivals,
    /// Datagrams sent during the warm-up.
    before: u64,
    /// Datagrams received of those sent after the warm-up.
    received: u64,
}

impl DatagramSource for UdpStream {
    fn send(&mut self, now: Instant) -> (u32, Instant) {
        let number = u32::try_from(self.sent).unwrap_or(u32::MAX);
        self.sent += 1;
        let factor = match self.spacing {
            Spacing::Even { spread } => 1.0 + spread * (2.0 * self.rng.uniform() - 1.0),
            // In (0, 1], so that its logarithm is finite. `libm` is the same on every machine.
            Spacing::Poisson => -libm::log(1.0 - self.rng.uniform()),
        };
        (number, now + self.gap.scaled(factor))
    }

    fn on_arrival(&mut self, number: u32, _: Duration) -> bool {
        let number = u64::from(number);
        let first = self.arrivals.insert(number);
        self.received += u64::from(first && number >= self.before);
        first
    }

    fn begin_measuring(&mut self) {
        self.before = self.sent;
        self.received = 0;
    }

    fn counts(&self) -> DatagramCounts {
        DatagramCounts {
            sent: self.sent - self.before,
            received: self.received,
        }
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
    fn datagrams_of_the_warm_up_and_duplicates_are_not_counted_as_received() {
        let config = UdpConfig {
            rate: Rate::mbit(1),
            payload: Bytes(1_000),
            spacing: Spacing::CONSTANT,
        };
        let mut stream = config.build(Instant::ZERO, &Rng::new(1));
        let send = |stream: &mut dyn DatagramSource| stream.send(Instant::ZERO).0;
        let early: Vec<_> = (0..3).map(|_| send(&mut *stream)).collect();
        stream.begin_measuring();
        let late: Vec<_> = (0..100).map(|_| send(&mut *stream)).collect();
        let arrived = early.iter().chain(&late[..90]).chain(&late[..10]);
        let new = arrived.filter(|&&number| stream.on_arrival(number, Duration::ZERO));
        assert_eq!(new.count(), 93);
        let counts = stream.counts();
        assert_eq!((counts.sent, counts.received), (100, 90));
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
            };
            let mut source = config.build(Instant::ZERO, &Rng::new(1));
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
