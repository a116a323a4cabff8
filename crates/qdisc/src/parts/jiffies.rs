//! The expiry times of kernel timers.

use sojourn_net::{Duration, Instant};

/// A tick of a kernel with `HZ=1000`.
const JIFFY: u64 = 1_000_000;

/// A level of the wheel has 64 slots; each next level is 8 times coarser.
const SLOTS: u64 = 64;
const COARSER: u32 = 3;
const LEVELS: u32 = 9;

/// When a timer set at `now` goes off that is to wait for `delay`.
///
/// The timer wheel of Linux (4.8 and later) never fires early: it rounds up to the next slot, and by
/// a whole one if the time is a slot's already. A timer of 15 ticks that is set again as it goes off
/// has a period of 16. From 63 ticks on a slot is 8 ticks wide, from 504 on 64, and so on.
pub(crate) fn timer(now: Instant, delay: Duration) -> Instant {
    let ticks = delay.as_nanos().div_ceil(JIFFY);
    let expires = (now.as_nanos() / JIFFY).saturating_add(ticks);
    let level = (0..LEVELS - 1)
        .find(|level| ticks < (SLOTS - 1) << (COARSER * level))
        .unwrap_or(LEVELS - 1);
    let slot = (expires >> (COARSER * level)) + 1;
    Instant::from_nanos((slot << (COARSER * level)).saturating_mul(JIFFY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fires(now_ms: u64, delay_ms: u64) -> u64 {
        let at = timer(
            Instant::from_millis(now_ms),
            Duration::from_millis(delay_ms),
        );
        at.since(Instant::ZERO).as_nanos() / JIFFY
    }

    #[test]
    fn a_short_timer_is_one_tick_late() {
        assert_eq!(fires(304, 15), 320);
        assert_eq!(fires(0, 62), 63);
    }

    #[test]
    fn a_long_timer_ends_with_a_slot() {
        assert_eq!(fires(0, 63), 64);
        assert_eq!(fires(1, 62), 64);
        assert_eq!(fires(1, 63), 72);
        assert_eq!(fires(1, 64), 72);
        // The last level has slots of 2^24 ticks, however long the delay.
        assert_eq!(fires(0, 62 << 24), 63 << 24);
        assert_eq!(fires(0, 64 << 24), 65 << 24);
        assert_eq!(fires(0, 600 << 24), 601 << 24);
        assert_eq!(fires(0, 500), 504);
        assert_eq!(fires(3, 500), 504);
        assert_eq!(fires(4, 500), 512);
        assert_eq!(fires(0, 504), 512);
        assert_eq!(fires(0, 10_000), 10_240);
    }

    #[test]
    fn a_fraction_of_a_tick_is_a_tick() {
        let at = timer(Instant::from_nanos(999_999), Duration::from_nanos(1));
        assert_eq!(at, Instant::from_millis(2));
    }

    #[test]
    fn no_delay_overflows() {
        let end = Instant::from_nanos(u64::MAX);
        assert!(timer(end, Duration::from_nanos(u64::MAX)) > Instant::from_millis(1));
    }
}
