//! The coarse clock of a Linux host, and durations as its estimators store them.

use sojourn_net::{Duration, Instant};

const TICK_NANOS: u64 = 1_000_000;

/// The 1 ms tick counter of a host (`HZ` = 1000) and the timer wheel that counts it.
///
/// The wheel is why a 301 ms time-out fires up to 8 ms late and a 5 s one up to 512 ms: a timer
/// set for `n` ticks is rounded up to the next multiple of a granularity that grows with `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    phase: u64,
}

impl Ticks {
    /// A host whose tick counter was at `phase` when the run began.
    pub const fn new(phase: Duration) -> Self {
        Self {
            phase: phase.as_nanos(),
        }
    }

    /// The tick counter at `now`.
    #[inline]
    pub const fn at(self, now: Instant) -> u64 {
        (now.as_nanos() + self.phase) / TICK_NANOS
    }

    /// The tick counter as a TCP timestamp, which wraps at 2^32.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "timestamps wrap (RFC 7323)"
    )]
    pub const fn stamp(self, now: Instant) -> u32 {
        self.at(now) as u32
    }

    /// When a timer fires that is set at `now` for `n` ticks.
    #[inline]
    pub const fn expiry(self, now: Instant, n: u64) -> Instant {
        let granularity = match n {
            // Most timers have a granularity of one tick and need no rounding.
            0..63 => return self.start_of(self.at(now) + n + 1),
            63..504 => 8,
            504..4_032 => 64,
            4_032..32_256 => 512,
            _ => 4_096,
        };
        let due = self.at(now) + n;
        self.start_of((due / granularity + 1) * granularity)
    }

    /// When the tick counter reaches `tick`.
    #[inline]
    const fn start_of(self, tick: u64) -> Instant {
        Instant::from_nanos((tick * TICK_NANOS).saturating_sub(self.phase))
    }
}

/// Whether timestamp `a` is earlier than `b`, across a wrap.
pub(crate) const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// The longest duration the estimators can hold, in µs: 35 minutes, so that the sum of two fits.
pub(crate) const MAX_MICROS: u32 = u32::MAX / 2;

/// A duration in µs, as the estimators keep it.
#[inline]
pub(crate) fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).map_or(MAX_MICROS, |micros| micros.min(MAX_MICROS))
}

/// `micros` in ticks, rounded up.
#[inline]
pub(crate) const fn ticks_of_micros(micros: u64) -> u64 {
    micros.div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_at_the_next_multiple_of_their_granularity() {
        let ticks = Ticks::default();
        let fires = |ms, n| ticks.expiry(Instant::from_millis(ms), n).as_nanos() / TICK_NANOS;
        assert_eq!(fires(100, 40), 141);
        assert_eq!((fires(100, 62), fires(100, 63)), (163, 168));
        assert_eq!((fires(100, 503), fires(100, 504)), (608, 640));
        // The black hole of specification scenario M8: 301 armed at 408, doubling.
        assert_eq!(fires(408, 301), 712);
        assert_eq!(fires(712, 602), 1_344);
        assert_eq!(fires(1_000, 5_000), 6_144);
    }

    #[test]
    fn the_phase_shifts_the_wheel() {
        let ticks = Ticks::new(Duration::from_micros(3_500));
        assert_eq!(ticks.at(Instant::from_millis(1)), 4);
        let fires = ticks.expiry(Instant::from_millis(1), 10);
        assert_eq!(fires, Instant::from_nanos(11_500_000));
    }
}
