//! Code shared by BBR versions 1 and 3: units, bandwidth-delay product, pacing rate.
//!
//! Gains are in 256ths, bandwidths in segments/µs times 2^24, as in Linux. Rates in bytes/s are those of
//! segments of [`MSS`] bytes, which the constants of both versions refer to; [`scale_rate`] converts them
//! for other sizes.

mod max_filter;

use super::{Episode, RateSample, Start, Window};
use crate::segment::MSS;
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

/// `gain` times `bw` less the pacing margin, in bytes/s.
pub(super) fn pacing_rate(bw: u64, gain: u64, margin_percent: u8) -> u64 {
    let bytes = (u128::from(bw) * u128::from(MSS) * u128::from(gain)) >> 8;
    let margin = 1_000_000 / 100 * (100 - u128::from(margin_percent));
    u64::try_from((bytes * margin) >> BW_SCALE).unwrap_or(u64::MAX)
}

/// A rate of segments of [`MSS`] bytes as one of segments of `mss` bytes.
pub(super) fn scale_rate(rate: u64, mss: u32) -> u64 {
    if mss == u32::from(MSS) {
        rate
    } else {
        rate * u64::from(mss) / u64::from(MSS)
    }
}

/// `gain` times the bandwidth-delay product, in segments times 2^24.
pub(super) fn scaled_bdp(bw: u64, min_rtt_micros: u32, gain: u64) -> u128 {
    u128::from(bw) * u128::from(min_rtt_micros) * u128::from(gain) / u128::from(BBR_UNIT)
}

/// Whole segments in `bytes` of a burst.
pub(super) fn burst_segments(bytes: u64) -> u64 {
    bytes.min(MAX_TSO_BYTES) / u64::from(MSS)
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
