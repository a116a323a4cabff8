//! Rates and buckets in the arithmetic of Linux: time per byte in fixed point, buckets in ticks of 64 ns.

use sojourn_net::Rate;

use super::params::HtbClass;
use super::values::LinkLayer;
use crate::parameters::Leaf;

/// Converts bytes to time, as `psched_l2t_ns` in the kernel: `(length * mult) >> shift`, rounded down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    mult: u64,
    shift: u32,
    overhead: u64,
    mpu: u64,
    cells: bool,
}

impl Pace {
    /// The pace of `rate` with the link layer of `class`.
    pub(super) fn of<L: Leaf>(rate: Option<Rate>, class: &HtbClass<L>) -> Self {
        let (mult, shift) = reciprocal(bytes_per_sec(rate));
        Self {
            mult,
            shift,
            overhead: class.overhead.into(),
            mpu: class.mpu.into(),
            cells: class.linklayer == LinkLayer::Atm,
        }
    }

    /// The time of a packet, in nanoseconds.
    #[inline]
    pub(super) fn nanos(self, bytes: u64) -> i64 {
        let counted = (bytes + self.overhead).max(self.mpu);
        let counted = if self.cells {
            counted.div_ceil(48) * 53
        } else {
            counted
        };
        let nanos = (u128::from(counted) * u128::from(self.mult)) >> self.shift;
        i64::try_from(nanos).unwrap_or(i64::MAX / 4)
    }
}

/// The rate in bytes per second, rounded down as in `tc`; at least 1.
pub(super) fn bytes_per_sec(rate: Option<Rate>) -> u64 {
    rate.map_or(1, |rate| (rate.bits_per_sec() / 8).max(1))
}

/// The largest multiplier below 2^32, and its shift, that give the time of a byte.
fn reciprocal(bytes_per_sec: u64) -> (u64, u32) {
    let (mut factor, mut shift) = (1_000_000_000_u64, 0);
    loop {
        let mult = factor / bytes_per_sec;
        if mult >> 31 != 0 || factor >> 63 != 0 {
            // The kernel keeps 32 bits.
            return (mult & 0xFFFF_FFFF, shift);
        }
        factor <<= 1;
        shift += 1;
    }
}

/// The depth of a bucket of `burst` bytes in nanoseconds: `tc` rounds it down to a microsecond, then to a tick.
#[expect(clippy::cast_possible_wrap, reason = "below 2^38")]
pub(super) fn depth(burst: u64, rate: Option<Rate>) -> i64 {
    const TICK: u64 = 64;
    let micros = u128::from(burst) * 1_000_000 / u128::from(bytes_per_sec(rate));
    let ticks = micros * 1_000 / u128::from(TICK);
    // Ticks are 32 bits wide.
    (u64::try_from(ticks)
        .unwrap_or(u64::MAX)
        .min(u32::MAX.into())
        * TICK) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_byte_has_31_bits() {
        for (rate, expected) in [
            (1_250_000, 1_211_200),
            (125_000, 12_112_000),
            (125_000_000, 12_112),
        ] {
            let (mult, shift) = reciprocal(rate);
            assert!((1 << 31..1 << 32).contains(&mult), "{rate}: {mult}");
            let nanos = (1_514 * mult) >> shift;
            assert!(expected - nanos <= 1, "{rate}: {nanos}");
        }
    }

    #[test]
    fn buckets_are_whole_ticks() {
        // 1600 B at 10 Mbit/s: 1.28 ms, 20,000 ticks.
        assert_eq!(depth(1_600, Some(Rate::mbit(10))), 1_280_000);
        // 1600 B at 3 Mbit/s: 4266.6 µs, of which `tc` takes 4266: 66,656 ticks.
        assert_eq!(depth(1_600, Some(Rate::mbit(3))), 66_656 * 64);
        assert_eq!(
            depth(1 << 30, Rate::from_bits_per_sec(8)),
            64 * i64::from(u32::MAX)
        );
    }
}
