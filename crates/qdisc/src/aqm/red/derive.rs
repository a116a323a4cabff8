//! Derives the parameters of RED as iproute2 does before it passes them to the kernel.

use sojourn_net::{Bytes, Rate};

use super::RedParams;

/// Parameters of RED after derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedDerived {
    /// Average backlog where signals begin.
    pub min: Bytes,
    /// Average backlog where every packet is signalled.
    pub max: Bytes,
    /// Packets of a burst that shall pass.
    pub burst: u32,
    /// The weight of a sample in the average is `2^-wlog`.
    pub wlog: u32,
    /// Adaptation holds the average above this.
    pub target_min: Bytes,
    /// Adaptation holds the average below this.
    pub target_max: Bytes,
}

impl<L> RedParams<L> {
    /// The thresholds and the weight of the average.
    ///
    /// # Errors
    /// If the thresholds are not in order or no weight lets the burst pass.
    pub fn derive(&self) -> Result<RedDerived, String> {
        let (min, max) = self.thresholds();
        if min.0 == 0 || min >= max {
            return Err(format!("min {min} must be positive and below max {max}"));
        }
        let burst = self.burst_for(min, max);
        let wlog = wlog(min, burst, self.avpkt).ok_or_else(|| {
            let least = min.0.div_ceil(self.avpkt.0.max(1));
            if u64::from(burst) < least {
                // Of a limit in packets, too few bytes.
                let bytes = if self.min.is_none() && self.max.is_none() {
                    format!("; the limit of {} counts bytes", self.limit)
                } else {
                    String::new()
                };
                format!(
                    "burst {burst} is too small for min {min}; expected at least {least} (min / avpkt){bytes}"
                )
            } else {
                format!("burst {burst} is too large for min {min}; raise min or lower burst")
            }
        })?;
        Ok(self.derived(wlog))
    }

    /// Why the kernel refuses these thresholds, if it does.
    pub(crate) fn beyond_kernel(&self) -> Option<String> {
        let derived = self.derive().ok()?;
        beyond_kernel(derived.max.0, derived.wlog)
    }

    fn thresholds(&self) -> (Bytes, Bytes) {
        let max = self.max.unwrap_or(match self.min {
            Some(min) => Bytes(3 * min.0),
            None => Bytes(self.limit.0 / 4),
        });
        (self.min.unwrap_or(Bytes(max.0 / 3)), max)
    }

    fn burst_for(&self, min: Bytes, max: Bytes) -> u32 {
        self.burst.unwrap_or_else(|| {
            let derived = (2 * min.0 + max.0) / (3 * self.avpkt.0.max(1));
            u32::try_from(derived).unwrap_or(u32::MAX)
        })
    }

    fn derived(&self, wlog: u32) -> RedDerived {
        let (min, max) = self.thresholds();
        let fifth = max.0.saturating_sub(min.0) / 5;
        RedDerived {
            min,
            max,
            burst: self.burst_for(min, max),
            wlog,
            target_min: Bytes(min.0 + 2 * fifth),
            target_max: Bytes(min.0 + 3 * fifth),
        }
    }
}

impl RedDerived {
    /// What is derived of `params`; of typed parameters that bypassed the check something near.
    pub(crate) fn of<L>(params: &RedParams<L>) -> Self {
        params.derive().unwrap_or_else(|_| Self::crude(params))
    }

    /// Parameters that do not fit together, made to; the slowest average.
    fn crude<L>(params: &RedParams<L>) -> Self {
        let derived = params.derived(LARGEST_WLOG);
        Self {
            max: derived.max.max(derived.min),
            ..derived
        }
    }
}

const LARGEST_WLOG: u32 = 31;

/// What is wrong with a threshold that the kernel cannot scale by the weight (`red_check_params`): it keeps `2^wlog`
/// times the threshold in 31 bits.
pub(crate) fn beyond_kernel(max: u64, wlog: u32) -> Option<String> {
    let bits = u64::BITS - max.leading_zeros() + wlog;
    (bits >= 32).then(|| {
        format!(
            "max {max} is too large for a weight of 2^-{wlog} in the kernel; lower max or burst"
        )
    })
}

/// The smallest `w` with `burst + 1 - min / avpkt <= (1 - (1 - 2^-w)^burst) / 2^-w`: the heaviest
/// weight under which a burst from an empty queue does not lift the average to `min`.
fn wlog(min: Bytes, burst: u32, avpkt: Bytes) -> Option<u32> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a buffer is far below 2^53 bytes"
    )]
    let a = f64::from(burst) + 1.0 - min.0 as f64 / avpkt.0.max(1) as f64;
    if a < 1.0 {
        return None;
    }
    (1..=LARGEST_WLOG).find(|&w| {
        let weight = half_to_the(w);
        a <= (1.0 - power(1.0 - weight, burst)) / weight
    })
}

fn half_to_the(w: u32) -> f64 {
    (0..w).fold(1.0, |x, _| x / 2.0)
}

/// `base^exponent` by squaring: multiplication is the same on every machine, `powf` is not.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// `probability` as a fraction of 2^32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a probability is not negative"
)]
pub(super) fn q32(probability: f64) -> u32 {
    (probability * 4_294_967_296.0) as u32
}

/// The decay of the average while idle: a cell is `2^scell_log` microseconds, `stab[i]` the power
/// of 2 by which the average falls in `i` cells.
pub(super) fn idle_damping(wlog: u32, avpkt: Bytes, bandwidth: Rate) -> (u32, [u8; 256]) {
    const LARGEST_SHIFT: f64 = 31.0;
    // iproute2 serves one average packet in this many ticks of 64 ns, rounded down twice.
    let micros = u128::from(avpkt.0) * 8_000_000 / u128::from(bandwidth.bits_per_sec());
    let ticks = (micros * 125 / 8).max(1);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a packet's time is far below 2^53 ticks"
    )]
    let per_tick = minus_ln_one_minus(half_to_the(wlog)) / ticks as f64;

    let longest = LARGEST_SHIFT / per_tick;
    let mut scell_log = 0;
    let mut cell = 1.0;
    while longest / cell >= 512.0 && scell_log < 31 {
        scell_log += 1;
        cell *= 2.0;
    }
    let mut stab = [0; 256];
    for (i, shift) in (0_u8..255).zip(&mut stab) {
        *shift = whole_shift((f64::from(i) * cell * per_tick).min(LARGEST_SHIFT));
    }
    stab[255] = 31;
    (scell_log, stab)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 31"
)]
fn whole_shift(shift: f64) -> u8 {
    shift as u8
}

/// `-ln(1 - x)` for `x <= 1/2` from its series, to the last bits: `ln` differs between machines.
fn minus_ln_one_minus(x: f64) -> f64 {
    let terms = (1..60_u32).rev();
    terms.fold(0.0, |sum, k| (sum + 1.0 / f64::from(k)) * x)
}
