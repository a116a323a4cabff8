//! Round-trip time and the retransmission timeout.
//!
//! # Source
//!
//! RFC 6298 as Linux 6.1 computes it.
//!
//! # Law
//!
//! ```text
//! srtt   += (m - srtt) / 8
//! mdev   += (|m - srtt| - mdev) / 4        eight times more slowly when the RTT falls below it
//! rttvar  = max of mdev over the last window, at least 200 ms / 4, decaying by 1/4 per window
//! RTO     = srtt + 4 rttvar                so never below srtt + 200 ms
//! ```
//!
//! # Differences from RFC 6298
//!
//! The minimum of 200 ms applies to the *variance*, not to the time-out (of at least 1 s in the RFC);
//! a falling RTT does not increase the deviation.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};

/// Least value of four times the deviation, in µs.
const MIN_VAR4: u32 = 200_000;
/// Longest sample, in µs: twice the longest time-out, and eight of them fit 32 bits.
pub(crate) const MAX_SAMPLE: u32 = 240_000_000;
/// Longest time-out, in ms.
const MAX_RTO_MS: u32 = 120_000;
/// How long a minimum RTT is kept before a larger one may replace it.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The estimator of one connection. Times are in µs unless their name says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// 8 times the smoothed RTT; `None` before the first sample.
    srtt8: Option<NonZeroU32>,
    mdev4: u32,
    mdev_max4: u32,
    rttvar4: u32,
    /// The window over which `mdev_max4` is taken ends when this segment is acknowledged.
    window_end: u32,
    rto_ms: u32,
    /// The smallest RTT of the last minutes; `None` before the first sample.
    min: Option<NonZeroU32>,
    min_at: Instant,
    /// The largest RTT since it was reset, for reports only; 0 before the first sample.
    max: u32,
}

impl RttEstimator {
    pub(crate) const fn new() -> Self {
        Self {
            srtt8: None,
            mdev4: 0,
            mdev_max4: MIN_VAR4,
            rttvar4: MIN_VAR4,
            window_end: 0,
            rto_ms: 1_000,
            min: None,
            min_at: Instant::ZERO,
            max: 0,
        }
    }

    /// Notes an RTT of `rtt` µs for the maximum.
    pub(crate) const fn sample_max(&mut self, rtt: u32) {
        if rtt > self.max {
            self.max = rtt;
        }
    }

    /// The largest RTT since [`Self::reset_max`], in µs; 0 without one.
    pub(crate) const fn max_micros(&self) -> u32 {
        self.max
    }

    pub(crate) const fn reset_max(&mut self) {
        self.max = 0;
    }

    /// Takes a sample of `m` µs on an acknowledgement that advanced to `snd_una`.
    pub(crate) fn sample(&mut self, m: u32, snd_una: u32, snd_nxt: u32) {
        let m = m.clamp(1, MAX_SAMPLE);
        let srtt8 = if let Some(srtt8) = self.srtt8 {
            let srtt8 = self.smooth(srtt8.get(), m);
            self.mdev_max4 = self.mdev_max4.max(self.mdev4);
            self.rttvar4 = self.rttvar4.max(self.mdev_max4);
            if snd_una > self.window_end {
                if self.mdev_max4 < self.rttvar4 {
                    self.rttvar4 -= (self.rttvar4 - self.mdev_max4) >> 2;
                }
                self.window_end = snd_nxt;
                self.mdev_max4 = MIN_VAR4;
            }
            srtt8
        } else {
            self.mdev4 = m << 1;
            self.rttvar4 = self.mdev4.max(MIN_VAR4);
            self.mdev_max4 = self.rttvar4;
            self.window_end = snd_nxt;
            m << 3
        };
        self.srtt8 = NonZeroU32::new(srtt8);
        let rto = (srtt8 >> 3) + self.rttvar4;
        #[expect(
            clippy::manual_div_ceil,
            reason = "the sum cannot overflow; `div_ceil` needs three more instructions to handle overflow"
        )]
        let rto_ms = (rto + 999) / 1_000;
        self.rto_ms = rto_ms.min(MAX_RTO_MS);
    }

    /// Updates the deviation; returns 8 times the smoothed RTT.
    fn smooth(&mut self, srtt8: u32, m: u32) -> u32 {
        let srtt = srtt8 >> 3;
        if m >= srtt {
            let e = m - srtt;
            self.mdev4 = self.mdev4 + e - (self.mdev4 >> 2);
            srtt8 + e
        } else {
            let e = srtt - m;
            let quarter = self.mdev4 >> 2;
            if e > quarter {
                self.mdev4 += (e - quarter) >> 3;
            } else {
                self.mdev4 -= quarter - e;
            }
            srtt8 - e
        }
    }

    /// Takes a sample for the minimum.
    #[inline]
    pub(crate) fn sample_min(&mut self, now: Instant, m: u32) {
        let keep = self.min.is_some_and(|min| m > min.get());
        if !keep || now.since(self.min_at) > MIN_RTT_WINDOW {
            self.min = NonZeroU32::new(m.max(1));
            self.min_at = now;
        }
    }

    /// The time-out without back-off, in ms.
    pub(crate) const fn rto_ms(&self) -> u32 {
        self.rto_ms
    }

    /// The smoothed RTT; `None` before the first sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt8
            .map(|srtt8| Duration::from_nanos(u64::from(srtt8.get()) * 125))
    }

    /// The smoothed RTT in µs; `None` before the first sample.
    #[inline]
    pub(crate) fn srtt_micros(&self) -> Option<u32> {
        self.srtt8.map(|srtt8| srtt8.get() >> 3)
    }

    /// 8 times the smoothed RTT in µs; `None` before the first sample.
    #[inline]
    pub(crate) const fn srtt8(&self) -> Option<NonZeroU32> {
        self.srtt8
    }

    /// The smallest RTT of the last minutes, in µs; `None` before the first sample.
    #[inline]
    pub(crate) fn min_micros(&self) -> Option<u32> {
        self.min.map(NonZeroU32::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_200_ms_applies_to_the_variance() {
        let mut rtt = RttEstimator::new();
        rtt.sample(100_100, 1, 10);
        assert_eq!(rtt.rto_ms(), 301); // as measured on the kernel
        for n in 0..100 {
            rtt.sample(100_100, 10 * n, 10 * n + 10);
        }
        assert_eq!(rtt.rto_ms(), 301);
    }

    #[test]
    fn a_first_sample_of_a_lost_handshake_spans_the_wait() {
        let mut rtt = RttEstimator::new();
        rtt.sample(2_154_000, 1, 10);
        assert_eq!(rtt.rto_ms(), 6_462); // specification scenario M3, from the kernel
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(2_154)));
    }

    #[test]
    fn a_falling_rtt_raises_the_deviation_eight_times_more_slowly() {
        let deviation = |m| {
            let mut rtt = RttEstimator::new();
            for n in 0..400 {
                rtt.sample(500_000, n, n + 1);
            }
            rtt.sample(m, 500, 501);
            rtt.mdev4
        };
        let (up, down) = (deviation(580_000), deviation(420_000));
        assert!(up > 7 * down && up < 9 * down, "{up} {down}");
    }
}
