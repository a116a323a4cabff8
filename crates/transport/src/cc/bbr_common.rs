//! Code shared by BBR versions 1 and 3: units, bandwidth-delay product, pacing rate.
//!
//! Gains are in 256ths, bandwidths in segments/µs times 2^24, as in Linux: delivery-rate samples count segments,
//! and a bandwidth in bytes would round differently. A bandwidth becomes a rate in bytes/s with the MSS of the
//! connection ([`Window::mss`]), as Linux uses `mss_cache`.

use super::{Episode, RateSample, Start, Window};

/// Binary places of a bandwidth.
pub(super) const BW_SCALE: u32 = 24;
/// A gain of 1.
pub(super) const BBR_UNIT: u64 = 256;
/// Most bytes in one burst.
const MAX_TSO_BYTES: u64 = 65_300;

/// The bandwidth of a delivery-rate sample.
pub(super) fn bandwidth(sample: &RateSample) -> u64 {
    (sample.delivered << BW_SCALE) / sample.interval_micros.max(1)
}

/// The bandwidth of the initial window in one round trip.
pub(super) fn initial_bandwidth(window: &Window, start: &Start) -> u64 {
    (u64::from(window.cwnd) << BW_SCALE) / u64::from(start.pacing_rtt_micros())
}

/// `gain` times `bw` less the pacing margin, in bytes/s, with segments of `mss` bytes.
pub(super) fn pacing_rate(bw: u64, gain: u64, margin_percent: u8, mss: u32) -> u64 {
    let margin = 1_000_000 / 100 * (100 - u64::from(margin_percent));
    // Below some Tbit/s, 64 bits hold the products.
    let bytes = bw
        .checked_mul(u64::from(mss) * gain)
        .map(|bytes| bytes >> 8);
    if let Some(product) = bytes.and_then(|bytes| bytes.checked_mul(margin)) {
        return product >> BW_SCALE;
    }
    let bytes = (u128::from(bw) * u128::from(mss) * u128::from(gain)) >> 8;
    u64::try_from((bytes * u128::from(margin)) >> BW_SCALE).unwrap_or(u64::MAX)
}

/// `gain` times the bandwidth-delay product, in segments times 2^24.
pub(super) fn scaled_bdp(bw: u64, min_rtt_micros: u32, gain: u64) -> u128 {
    u128::from(bw) * u128::from(min_rtt_micros) * u128::from(gain) / u128::from(BBR_UNIT)
}

/// The same in whole segments, rounded up.
pub(super) fn segments_of_bdp(bw: u64, min_rtt_micros: u32, gain: u64) -> u64 {
    let bdp = bw.checked_mul(u64::from(min_rtt_micros));
    if let Some(scaled) = bdp.and_then(|bdp| bdp.checked_mul(gain)) {
        return (scaled / BBR_UNIT).div_ceil(1 << BW_SCALE);
    }
    let segments = scaled_bdp(bw, min_rtt_micros, gain).div_ceil(1 << BW_SCALE);
    u64::try_from(segments).unwrap_or(u64::MAX)
}

/// Whole segments of `mss` bytes in `bytes` of a burst.
pub(super) fn burst_segments(bytes: u64, mss: u32) -> u64 {
    bytes.min(MAX_TSO_BYTES) / u64::from(mss)
}

/// The window to return to after a recovery or `PROBE_RTT` (`bbr_save_cwnd`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PriorCwnd(u32);

impl PriorCwnd {
    /// Remembers `cwnd`; while the window is held down by `episode` or `probing_rtt`, only a larger one.
    pub(super) fn save(&mut self, cwnd: u32, episode: Episode, probing_rtt: bool) {
        let undisturbed = episode == Episode::None && !probing_rtt;
        self.0 = if undisturbed { cwnd } else { self.0.max(cwnd) };
    }

    /// The larger of `cwnd` and the window remembered.
    pub(super) fn restore(self, cwnd: u32) -> u32 {
        cwnd.max(self.0)
    }
}

/// A value and when it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: u32,
    value: u64,
}

/// The largest value of the last `window` rounds.
///
/// # Source
///
/// Kathleen Nichols's windowed filter, as Linux's `win_minmax` uses it: it keeps the best reading and the
/// best of later parts of the window, so that a successor is known when the best expires.
#[derive(Clone, Debug)]
pub(in crate::cc) struct MaxFilter {
    window: u32,
    best: [Reading; 3],
}

impl MaxFilter {
    pub(in crate::cc) const fn new(window: u32) -> Self {
        const NONE: Reading = Reading { at: 0, value: 0 };
        Self {
            window,
            best: [NONE; 3],
        }
    }

    pub(in crate::cc) const fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds the reading of round `at`.
    pub(in crate::cc) fn update(&mut self, at: u32, value: u64) {
        let reading = Reading { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at - third.at > self.window {
            self.best = [reading; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (reading, reading);
        } else if value >= third.value {
            *third = reading;
        }
        let age = at - first.at;
        if age > self.window {
            // The best has expired; so may the second have.
            self.best = [*second, *third, reading];
            if at - self.best[0].at > self.window {
                self.best = [self.best[1], reading, reading];
            }
        } else if second.at == first.at && age > self.window / 4 {
            (*second, *third) = (reading, reading);
        } else if third.at == second.at && age > self.window / 2 {
            *third = reading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_64_bits_are_those_of_128() {
        // From 1 segment/s to beyond what 64 bits hold.
        for bw in (4..63).map(|shift| (1_u64 << shift) + 12_345) {
            for (gain, micros) in [
                (256, 1),
                (739, 50_000),
                (320, 10_000_000),
                (1_023, u32::MAX),
            ] {
                let bytes = (u128::from(bw) * 1_448 * u128::from(gain)) >> 8;
                let rate = (bytes * 990_000) >> BW_SCALE;
                let rate = u64::try_from(rate).unwrap_or(u64::MAX);
                assert_eq!(pacing_rate(bw, gain, 1, 1_448), rate);
                let segments = scaled_bdp(bw, micros, gain).div_ceil(1 << BW_SCALE);
                let segments = u64::try_from(segments).unwrap_or(u64::MAX);
                assert_eq!(segments_of_bdp(bw, micros, gain), segments);
            }
        }
    }

    #[test]
    fn the_maximum_is_forgotten_after_its_window() {
        let mut f = MaxFilter::new(10);
        f.update(0, 100);
        for at in 1..=10 {
            f.update(at, 50);
            assert_eq!(f.get(), 100, "round {at}");
        }
        f.update(11, 40);
        assert_eq!(f.get(), 50);
    }

    #[test]
    fn a_larger_value_counts_at_once() {
        let mut f = MaxFilter::new(10);
        f.update(0, 10);
        f.update(3, 20);
        assert_eq!(f.get(), 20);
        // And for its own ten rounds.
        f.update(13, 1);
        assert_eq!(f.get(), 20);
        f.update(14, 1);
        assert_eq!(f.get(), 1);
    }
}
