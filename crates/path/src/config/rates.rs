//! Rate traces: the rate of a link over time.
//!
//! The rate is constant between the points of a trace and may be zero. After its period a trace repeats. A packet
//! leaves once the link has carried all of its bits, so that a change of the rate affects a packet in transmission.

use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, Rate};

use super::TraceError;

const NANOS_PER_S: u128 = 1_000_000_000;

/// Rates of a link, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    points: Arc<[Point]>,
    /// In ns.
    period: u64,
    /// What the link carries in a period, in bits times 10^9; not zero.
    whole: u128,
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    /// Since the beginning of the period, in ns.
    at: u64,
    /// In bit/s.
    rate: u64,
    /// What the link has carried in the period before, in bits times 10^9.
    before: u128,
}

impl RateTrace {
    /// A trace of times and rates in bit/s, the first of which is at zero, that lasts `period` and then repeats.
    ///
    /// ```
    /// use sojourn_path::{Duration, RateTrace};
    ///
    /// let rates = [(Duration::ZERO, 20_000_000), (Duration::from_secs(2), 4_000_000)];
    /// let trace = RateTrace::new(&rates, Duration::from_secs(5))?;
    /// # Ok::<(), sojourn_path::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// If the first time is not zero, the times do not increase or reach the period, or no rate is positive.
    pub fn new(rates: &[(Duration, u64)], period: Duration) -> Result<Self, TraceError> {
        match rates.first() {
            None => return Err(TraceError::whole("empty trace; expected at least one rate")),
            Some(&(first, _)) if first > Duration::ZERO => {
                return Err(TraceError::whole("the first time must be 0"));
            }
            Some(_) => {}
        }
        if !rates.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(TraceError::whole("the times must increase"));
        }
        if rates.last().is_some_and(|&(last, _)| last >= period) {
            return Err(TraceError::whole(
                "the last time must be before the end of the period",
            ));
        }
        let mut points: Vec<Point> = Vec::with_capacity(rates.len());
        let mut carried = 0;
        for (n, &(at, rate)) in rates.iter().enumerate() {
            let at = at.as_nanos();
            let end = rates
                .get(n + 1)
                .map_or(period, |&(next, _)| next)
                .as_nanos();
            points.push(Point {
                at,
                rate,
                before: carried,
            });
            carried += u128::from(end.saturating_sub(at)) * u128::from(rate);
        }
        if carried == 0 {
            return Err(TraceError::whole(
                "the rate is always zero; expected a rate > 0",
            ));
        }
        Ok(Self {
            points: points.into(),
            period: period.as_nanos(),
            whole: carried,
        })
    }

    /// Bytes that its points take.
    pub fn size(&self) -> u64 {
        size_of_val(&*self.points) as u64
    }

    /// What the link has carried up to `at`, in bits times 10^9.
    fn up_to(&self, at: Instant) -> u128 {
        let (round, within) = (at.as_nanos() / self.period, at.as_nanos() % self.period);
        let after = self.points.partition_point(|point| point.at <= within);
        let point = &self.points[after.saturating_sub(1)];
        let since = u128::from(within.saturating_sub(point.at)) * u128::from(point.rate);
        u128::from(round) * self.whole + point.before + since
    }

    /// When `size`, whose transmission begins at `now`, has been sent.
    pub fn finish(&self, now: Instant, size: Bytes) -> Instant {
        let end = self.up_to(now) + u128::from(size.0) * 8 * NANOS_PER_S;
        // The end of a period belongs to it.
        let (round, within) = ((end - 1) / self.whole, (end - 1) % self.whole + 1);
        let after = self.points.partition_point(|point| point.before < within);
        // The last point before, whose rate is not zero, since more has been carried after it.
        let point = &self.points[after.saturating_sub(1)];
        let since = (within - point.before).div_ceil(u128::from(point.rate.max(1)));
        let nanos = round * u128::from(self.period) + u128::from(point.at) + since;
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// What the link carries from `from` to `to`.
    pub fn offered(&self, from: Instant, to: Instant) -> Bytes {
        let bits = (self.up_to(to) - self.up_to(from)) / NANOS_PER_S;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// The mean rate, at least a bit per second.
    ///
    /// # Panics
    /// Never: the rate is at least 1 bit/s.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.whole / u128::from(self.period);
        let bits = u64::try_from(bits).unwrap_or(u64::MAX).max(1);
        Rate::from_bits_per_sec(bits).expect("one at least")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// 8 Mbit/s, nothing from 10 to 20 ms, then 80 Mbit/s up to 30 ms.
    fn trace() -> RateTrace {
        let rates = [(MS(0), 8_000_000), (MS(10), 0), (MS(20), 80_000_000)];
        RateTrace::new(&rates, MS(30)).expect("a trace")
    }

    #[test]
    fn a_packet_leaves_when_the_link_has_carried_it() {
        let trace = trace();
        // 1,000 B take 1 ms at 8 Mbit/s.
        assert_eq!(trace.finish(at(0), Bytes(1_000)), at(1));
        assert_eq!(trace.finish(at(9), Bytes(1_000)), at(10));
        // Half of it before the outage, half after it.
        let half = trace.finish(at(9) + Duration::from_micros(500), Bytes(1_000));
        assert_eq!(half, at(20) + Duration::from_micros(50));
        assert_eq!(trace.finish(at(15), Bytes(10_000)), at(21));
        // Across the end of the period, and over several periods of 110,000 B.
        assert_eq!(trace.finish(at(29), Bytes(11_000)), at(31));
        assert_eq!(trace.finish(at(0), Bytes(330_000)), at(90));
    }

    #[test]
    fn the_capacity_is_the_sum_over_time() {
        let trace = trace();
        assert_eq!(trace.offered(at(0), at(30)), Bytes(110_000));
        assert_eq!(
            trace.offered(at(5), at(45)),
            Bytes(5_000 + 100_000 + 10_000)
        );
        assert_eq!(trace.mean_rate().bits_per_sec(), 110_000 * 8 * 1_000 / 30);
    }

    #[test]
    fn a_trace_without_capacity_is_refused() {
        let error = RateTrace::new(&[(MS(0), 0)], MS(1)).expect_err("nothing is sent");
        assert_eq!(
            error.to_string(),
            "the rate is always zero; expected a rate > 0"
        );
    }
}
