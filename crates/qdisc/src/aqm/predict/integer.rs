//! The rules of the forecast in the arithmetic of the kernel module: ratios of loads in 2^-24, deviations in 2^-16.

use sojourn_net::Duration;

use super::PredictParams;
use super::growth::{Growth, LEAST, MOST_ROUNDS, exact};
use super::history::History;
use crate::parts::fixed::{self, MILLION, Q30, millionths};

/// Fractional bits of the ratios of loads.
const Q24: u32 = 24;
/// Fractional bits of standard deviations, and of round-trip times while they are multiplied.
const Q16: u32 = 16;
/// No two candidates are further apart: 2 s and 500 µs.
const MOST_DOMINANCE: u64 = 4_000 * MILLION;

/// As [`Law`](super::forecast::Law), with factors in millionths.
#[derive(Clone, Debug)]
pub(super) struct IntegerLaw {
    rounds: usize,
    growth_min: u64,
    growth_max: u64,
    consistency: u64,
    significance: u64,
    persistence: u64,
    hold: u64,
    dominance: u64,
    full: u64,
    mark: u64,
    packet: u64,
}

impl IntegerLaw {
    pub(super) fn new(params: &PredictParams, packet: Duration) -> Self {
        Self {
            rounds: (params.rounds as usize).min(MOST_ROUNDS),
            growth_min: millionths(params.growth_min),
            growth_max: millionths(params.growth_max),
            consistency: millionths(params.consistency),
            significance: millionths(params.significance),
            persistence: millionths(params.persistence),
            hold: millionths(params.hold),
            dominance: millionths(params.dominance).min(MOST_DOMINANCE),
            full: millionths(params.full),
            mark: millionths(params.mark),
            packet: packet.as_nanos(),
        }
    }

    pub(super) fn set_packet(&mut self, packet: Duration) {
        self.packet = packet.as_nanos();
    }

    pub(super) fn enough(&self, window: u32) -> u32 {
        let slots = (u64::from(window) * self.persistence).div_ceil(MILLION);
        u32::try_from(slots.max(2)).unwrap_or(u32::MAX)
    }

    pub(super) fn hold(&self, rtt: Duration) -> u64 {
        rounded(rtt, self.hold)
    }

    pub(super) fn mark(&self, stretched: Duration) -> u64 {
        rounded(stretched, self.mark)
    }

    pub(super) fn counts(&self, rtt: Duration, top: Duration) -> bool {
        rtt.as_nanos() * self.dominance >= top.as_nanos() * MILLION
    }

    pub(super) fn is_little(&self, load: u64) -> bool {
        wide(load, MILLION) < wide(self.growth_min * LEAST, self.packet)
    }

    pub(super) fn growth(&self, candidate: usize, history: &History) -> Option<Growth> {
        let mut slot = history.next().checked_sub(1)?;
        let newest = history.load(candidate, slot);
        if self.is_little(newest) {
            return None;
        }
        let mut load = newest;
        let (mut least, mut most) = (u64::MAX, 0);
        let mut deviations = 0;
        for _ in 0..self.rounds {
            slot = history.round_before(candidate, slot)?;
            let earlier = history.load(candidate, slot);
            let grown = load * MILLION;
            if earlier < LEAST * self.packet
                || grown < self.growth_min * earlier
                || grown > self.growth_max * earlier
            {
                return None;
            }
            let growth = (load << Q24) / earlier;
            least = least.min(growth);
            most = most.max(growth);
            deviations += self.deviation(load, earlier);
            load = earlier;
        }
        let spread = (most << Q24) / least;
        let steady = spread * MILLION <= self.consistency << Q24;
        let real = deviations * MILLION >= self.significance << Q16;
        (steady && real).then(|| Growth {
            load: exact(newest),
            total: fixed::real((newest << Q24) / load, Q24),
            spread: fixed::real(spread, Q24),
        })
    }

    /// The difference of two loads, as counts of packets, in units of its standard deviation by chance.
    fn deviation(&self, load: u64, earlier: u64) -> u64 {
        let square = (load + earlier).saturating_mul(self.packet);
        ((load - earlier) << Q16) / square.isqrt()
    }

    pub(super) fn fills(&self, growth: &Growth, rtt: Duration) -> bool {
        let full = fixed::scaled(rtt.as_nanos(), self.full);
        let needed = (full << Q24) / whole(growth.load);
        if needed > 2 << Q24 {
            return false;
        }
        let (mut power, mut doubled) = (1 << Q24, 1.0_f64);
        for _ in 0..self.rounds {
            power = (power * needed) >> Q24;
            doubled *= 2.0;
        }
        growth.total.min(doubled) >= fixed::real(power, Q24)
    }
}

/// As [`candidates`](super::forecast::candidates).
pub(super) fn candidates(least: Duration, most: Duration, per_octave: u32) -> Vec<Duration> {
    let ratio = root_of_two(per_octave);
    let mut rtts = Vec::new();
    let mut octave = least.as_nanos();
    while octave <= most.as_nanos() {
        let mut rtt = octave << Q16;
        for _ in 0..per_octave {
            let nanos = (rtt + (1 << (Q16 - 1))) >> Q16;
            rtt = fixed::mul_shift(rtt, ratio, Q30);
            if nanos <= most.as_nanos() {
                rtts.push(Duration::from_nanos(nanos));
            }
        }
        octave *= 2;
    }
    rtts
}

/// The `n`-th root of 2 in 2^-30, rounded up.
fn root_of_two(n: u32) -> u64 {
    let (mut low, mut high) = (fixed::ONE_Q30, 2 * fixed::ONE_Q30);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if reaches_two(middle, n) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Whether the `n`-th power of a number from 1 to 2 is 2 or more.
fn reaches_two(base: u64, n: u32) -> bool {
    let two = 2 * fixed::ONE_Q30;
    let powers = (0..n).try_fold(fixed::ONE_Q30, |power, _| {
        (power < two).then(|| fixed::mul_q30(power, base))
    });
    powers.is_none_or(|power| power >= two)
}

/// A number of millionths of `time`, to the nearest nanosecond.
fn rounded(time: Duration, millionths: u64) -> u64 {
    (time.as_nanos() * millionths + MILLION / 2) / MILLION
}

/// A load, which is below 2^53 ns.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number that is not negative"
)]
fn whole(load: f64) -> u64 {
    load as u64
}

fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::predict::forecast;

    #[test]
    fn candidates_are_those_of_real_numbers_within_20_parts_in_a_billion() {
        for (least, most, per_octave) in [(8, 700, 8), (1, 2_000, 16), (20, 21, 1), (8, 700, 5)] {
            let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
            let real = forecast::candidates(least, most, per_octave);
            let integer = candidates(least, most, per_octave);
            assert_eq!(integer.len(), real.len());
            for (a, b) in integer.iter().zip(&real) {
                let (a, b) = (a.as_nanos(), b.as_nanos());
                assert!(a.abs_diff(b) <= 1 + b / 50_000_000, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_growth_is_judged_as_with_real_numbers() {
        let params = PredictParams::default();
        let packet = Duration::from_micros(606);
        let mut history = History::new(vec![64, 128], 1_000_000, 2, true, true);
        history.forget(0);
        let (real, integer) = (params.rules(packet), IntegerLaw::new(&params, packet));
        let mut grown = 0;
        for slot in 0..1_500_u32 {
            // The busy time of a slot doubles in 128 slots, then stands.
            let busy = 4e4 * (f64::from(slot.min(700)) / 128.0).exp2();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            history.record((busy as u32).min(1_000_000), slot % 5 * 300_000);
            for candidate in 0..2 {
                let (a, b) = (
                    real.growth(candidate, &history),
                    integer.growth(candidate, &history),
                );
                assert_eq!(a.is_some(), b.is_some(), "slot {slot}: {a:?} {b:?}");
                let Some((a, b)) = a.zip(b) else { continue };
                grown += 1;
                assert!((a.total - b.total).abs() < 1e-6 && (a.spread - b.spread).abs() < 1e-6);
                let rtt = Duration::from_millis(128);
                assert_eq!(real.fills(&a, rtt), integer.fills(&b, rtt), "slot {slot}");
            }
        }
        assert!(grown > 100, "{grown}");
    }
}
