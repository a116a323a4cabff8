//! The round-trip time estimator of QUIC.
//!
//! # Source
//!
//! RFC 9002 §5.
//!
//! # Law
//!
//! ```text
//! adjusted = latest - min(ack delay, max_ack_delay)     unless that falls below the minimum
//! rttvar   = 3/4 rttvar + 1/4 |smoothed - adjusted|
//! smoothed = 7/8 smoothed + 1/8 adjusted
//! ```
//!
//! Persistent congestion sets the minimum to the newest sample (§5.2), because the path may have changed.

use sojourn_net::Duration;

/// kInitialRtt (RFC 9002 §6.2.2).
pub(super) const INITIAL: Duration = Duration::from_millis(333);
/// kGranularity (RFC 9002 §6.1.2).
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimator of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    samples: Option<Samples>,
    smoothed: Duration,
    var: Duration,
}

/// The samples taken.
#[derive(Clone, Copy, Debug)]
struct Samples {
    latest: Duration,
    min: Duration,
}

#[inline]
const fn part(d: Duration, numerator: u64, denominator: u64) -> Duration {
    Duration::from_nanos(d.as_nanos() / denominator * numerator)
}

impl RttEstimator {
    pub(super) const fn new() -> Self {
        Self {
            samples: None,
            smoothed: INITIAL,
            var: part(INITIAL, 1, 2),
        }
    }

    /// Takes a sample; `delay` is the ACK delay that the peer reports, already limited.
    #[inline]
    pub(super) fn sample(&mut self, latest: Duration, delay: Duration) {
        let min = self.min().map_or(latest, |min| min.min(latest));
        if self.samples.is_none() {
            self.smoothed = latest;
            self.var = part(latest, 1, 2);
        } else {
            let adjusted = if latest >= min + delay {
                latest - delay
            } else {
                latest
            };
            let off = self.smoothed.as_nanos().abs_diff(adjusted.as_nanos());
            let off = Duration::from_nanos(off);
            self.var = part(self.var, 3, 4) + part(off, 1, 4);
            self.smoothed = part(self.smoothed, 7, 8) + part(adjusted, 1, 8);
        }
        self.samples = Some(Samples { latest, min });
    }

    /// Persistent congestion: the minimum is the newest sample.
    pub(super) const fn on_persistent(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.min = samples.latest;
        }
    }

    pub(super) const fn has_sample(&self) -> bool {
        self.samples.is_some()
    }

    #[inline]
    pub(super) const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Eight times the smoothed RTT, in µs; 0 before the first sample.
    #[inline]
    pub(super) fn smoothed_micros_8(&self) -> u32 {
        if self.samples.is_none() {
            return 0;
        }
        u32::try_from(self.smoothed.as_nanos() / 125).unwrap_or(u32::MAX)
    }

    /// The smallest RTT; `None` before the first sample.
    #[inline]
    pub(super) fn min(&self) -> Option<Duration> {
        self.samples.map(|samples| samples.min)
    }

    /// The smoothed RTT and four times its variation, without the peer's delay (RFC 9002 §6.2.1).
    #[inline]
    pub(super) fn pto(&self) -> Duration {
        self.smoothed + self.var.times(4).max(GRANULARITY)
    }

    /// How long after a later packet's acknowledgement an earlier one is declared lost (RFC 9002 §6.1.2).
    pub(super) fn loss_delay(&self) -> Duration {
        let latest = self.samples.map_or(INITIAL, |samples| samples.latest);
        let rtt = latest.max(self.smoothed);
        part(rtt, 9, 8).max(GRANULARITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_first_probe_of_a_connection_is_due_after_999_ms() {
        assert_eq!(RttEstimator::new().pto(), MS(999));
    }

    #[test]
    fn persistent_congestion_forgets_an_old_minimum() {
        let mut rtt = RttEstimator::new();
        rtt.on_persistent();
        assert_eq!(rtt.min(), None);
        rtt.sample(MS(20), MS(0));
        rtt.sample(MS(300), MS(0));
        assert_eq!(rtt.min(), Some(MS(20)));
        rtt.on_persistent();
        assert_eq!(rtt.min(), Some(MS(300)));
        // 310 - 25 lies below the minimum, so the delay is not believed.
        let before = rtt.smoothed;
        rtt.sample(MS(310), MS(25));
        assert_eq!(rtt.smoothed, part(before, 7, 8) + part(MS(310), 1, 8));
    }

    #[test]
    fn a_delay_is_believed_as_far_as_the_minimum_allows() {
        let mut rtt = RttEstimator::new();
        rtt.sample(MS(100), MS(25));
        assert_eq!((rtt.smoothed, rtt.var), (MS(100), MS(50)));
        rtt.sample(MS(125), MS(25));
        assert_eq!((rtt.smoothed, rtt.pto()), (MS(100), MS(250)));
        // 120 - 25 would lie below the minimum.
        rtt.sample(MS(120), MS(25));
        assert_eq!(rtt.smoothed, Duration::from_micros(102_500));
        assert_eq!(rtt.loss_delay(), MS(135));
    }
}
