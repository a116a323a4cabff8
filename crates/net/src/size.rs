//! Quantities of data and bit rates.

use core::fmt;
use core::iter::Sum;
use core::num::NonZeroU64;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::Duration;

/// A quantity of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        self.0 += rhs.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0 - rhs.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Self) {
        self.0 -= rhs.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

/// A bit rate, at least one bit per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    bits_per_sec: NonZeroU64,
}

impl Rate {
    /// `n` bits per second; `None` if `n` is zero: a link that never sends is a topology
    /// error, not a rate.
    pub const fn from_bits_per_sec(n: u64) -> Option<Self> {
        match NonZeroU64::new(n) {
            Some(bits_per_sec) => Some(Self { bits_per_sec }),
            None => None,
        }
    }

    /// `n` megabits (10^6 bits) per second.
    ///
    /// # Panics
    /// If `n` is zero.
    pub const fn mbit(n: u64) -> Self {
        Self {
            bits_per_sec: NonZeroU64::new(n * 1_000_000).expect("a rate is positive"),
        }
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.bits_per_sec.get()
    }

    /// How long it takes to serialise `size` at this rate, rounded up, so that a link is never
    /// faster than its rate.
    ///
    /// Sizes are packets and buffers: below 2 GB the product stays within 64 bits, whose
    /// division is several times faster than that of 128.
    #[inline]
    pub const fn serialise(self, size: Bytes) -> Duration {
        const BIT_NANOS: u64 = 8 * 1_000_000_000;
        match size.0.checked_mul(BIT_NANOS) {
            Some(n) => Duration::from_nanos(n.div_ceil(self.bits_per_sec.get())),
            None => self.serialise_wide(size),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "2^64 ns is 584 years")]
    const fn serialise_wide(self, size: Bytes) -> Duration {
        let bit_nanos = size.0 as u128 * 8 * 1_000_000_000;
        Duration::from_nanos(bit_nanos.div_ceil(self.bits_per_sec.get() as u128) as u64)
    }

    /// How much this rate carries in `time`, rounded down.
    #[expect(clippy::cast_possible_truncation, reason = "saturated first")]
    pub const fn carries(self, time: Duration) -> Bytes {
        let bytes = self.bits_per_sec.get() as u128 * time.as_nanos() as u128 / (8 * 1_000_000_000);
        Bytes(if bytes > u64::MAX as u128 {
            u64::MAX
        } else {
            bytes as u64
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_sec.get();
        match bits {
            b if b % 1_000_000_000 == 0 => write!(f, "{}gbit", b / 1_000_000_000),
            b if b % 1_000_000 == 0 => write!(f, "{}mbit", b / 1_000_000),
            b if b % 1_000 == 0 => write!(f, "{}kbit", b / 1_000),
            b => write!(f, "{b}bit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_is_never_faster_than_the_link() {
        let rate = Rate::from_bits_per_sec(3).expect("positive");
        assert_eq!(
            rate.serialise(Bytes(1)),
            Duration::from_nanos(2_666_666_667)
        );
        assert_eq!(
            Rate::mbit(12).serialise(Bytes(1_500)),
            Duration::from_millis(1)
        );
    }

    #[test]
    fn large_transfers_do_not_overflow() {
        let year_at_1_bit = Rate::from_bits_per_sec(1)
            .expect("positive")
            .serialise(Bytes(4_000_000));
        assert_eq!(year_at_1_bit, Duration::from_secs(32_000_000));
        assert_eq!(
            Rate::mbit(8).serialise(Bytes(10_000_000_000)),
            Duration::from_secs(10_000)
        );
    }

    #[test]
    fn a_rate_carries_what_it_serialises() {
        assert_eq!(
            Rate::mbit(8).carries(Duration::from_millis(3)),
            Bytes(3_000)
        );
    }
}
