//! The smallest RTT of a period.

use std::num::NonZeroU32;

/// The smallest RTT of a period, in µs; none before the first sample.
///
/// An RTT below 1 µs counts as 1 µs, so that a minimum takes 4 bytes and can be divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinRtt(Option<NonZeroU32>);

impl MinRtt {
    /// Before the first sample.
    pub(super) const NONE: Self = Self(None);

    /// A minimum of `micros`.
    pub(super) const fn of(micros: u32) -> Self {
        Self(Some(at_least_one(micros)))
    }

    /// The minimum in µs.
    #[inline]
    pub(super) fn micros(self) -> Option<u32> {
        self.0.map(NonZeroU32::get)
    }

    /// Whether `micros` would be a new minimum.
    #[inline]
    pub(super) fn is_above(self, micros: u32) -> bool {
        self.0.is_none_or(|min| at_least_one(micros) < min)
    }

    /// Takes a sample; returns the minimum with it.
    #[inline]
    pub(super) fn sample(&mut self, micros: u32) -> u32 {
        let sample = at_least_one(micros);
        let min = self.0.map_or(sample, |min| min.min(sample));
        self.0 = Some(min);
        min.get()
    }
}

const fn at_least_one(micros: u32) -> NonZeroU32 {
    match NonZeroU32::new(micros) {
        Some(micros) => micros,
        None => NonZeroU32::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_the_smallest_sample_and_at_least_1_us() {
        let mut min = MinRtt::NONE;
        assert!(min.is_above(u32::MAX) && min.micros().is_none());
        assert_eq!([50, 70, 40, 0].map(|rtt| min.sample(rtt)), [50, 50, 40, 1]);
        assert_eq!(min, MinRtt::of(1));
        assert!(!min.is_above(0));
        assert_eq!(size_of::<MinRtt>(), size_of::<u32>());
    }
}
