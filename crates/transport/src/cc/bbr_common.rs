//! Code shared by BBR versions 1 and 3: units, bandwidth-delay product, pacing rate.
//!
//! Gains are in 256ths, bandwidths in segments/µs times 2^24, as in Linux: delivery-rate samples count segments,
//! and a bandwidth in bytes would round differently. A bandwidth becomes a rate in bytes/s with the MSS of the
//! connection ([`Window::mss`]), as Linux uses `mss_cache`.

mod max_filter;

use super::{Episode, RateSample, Start, Window};
pub(super) use max_filter::MaxFilter;

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
}
