//! Points in time and lengths of time, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A point on the clock the caller supplies, in nanoseconds since its origin.
///
/// The origin is the start of the simulation, or boot on a live host. Nothing in this
/// crate can read a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);

    /// A time no run reaches: 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds after the origin.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` milliseconds after the origin.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds since the origin, for display and records.
    #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: a clock that runs backwards is a bug in the
    /// caller, and hiding it would corrupt every delay we report.
    pub const fn since(self, earlier: Self) -> Duration {
        assert!(earlier.0 <= self.0, "the clock ran backwards");
        Duration(self.0 - earlier.0)
    }

    /// The time since `earlier`, or nothing if `earlier` has not come yet.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// This instant minus `rhs`; the origin if that is before it.
    #[must_use]
    pub const fn saturating_sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The latest time that can be represented: 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// A leap year, the longest time that is simulated or waited for. Sums of several stay far from 2^64 ns.
    pub const YEAR: Self = Self::from_secs(366 * 86_400);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The length in seconds.
    #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length in milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This duration, `n` times over.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0 * n)
    }

    /// `factor` times this duration, rounded down. The product must be below 2^64 ns.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "callers keep the product in range; precision is 2^-53"
    )]
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }

    /// This duration less `rhs`, or nothing if `rhs` is longer.
    #[must_use]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        self.0 += rhs.0;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        self.0 += rhs.0;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0 - rhs.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Self) {
        self.0 -= rhs.0;
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}ms", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "the clock ran backwards")]
    fn a_clock_that_runs_backwards_is_a_bug() {
        let _ = Instant::ZERO.since(Instant::from_nanos(1));
    }
}
