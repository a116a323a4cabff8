//! Capacity traces: the delivery opportunities of a link.
//!
//! # Source
//!
//! The traces of Mahimahi (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP",
//! USENIX ATC 2015), `mm-link(1)`: each line of a file is a time in milliseconds at which as much
//! as one packet of the largest size may leave. At its end the file repeats, with its last time as
//! the new zero.

use std::fmt;
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, Rate};

const NANOS_PER_MS: u64 = 1_000_000;

/// Why a trace is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceError {
    /// The time that breaks the rule, from 0, which is a line of a file; `None`: the whole trace does.
    pub at: Option<usize>,
    /// What is wrong and what is accepted. It does not quote the line.
    pub rule: String,
}

impl TraceError {
    fn at(at: usize, rule: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            ..Self::whole(rule)
        }
    }

    pub(super) fn whole(rule: impl Into<String>) -> Self {
        Self {
            at: None,
            rule: rule.into(),
        }
    }
}

impl fmt::Display for TraceError {
    /// The line, from 1, if there is one, and the rule.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "line {}: {}", at + 1, self.rule),
            None => f.write_str(&self.rule),
        }
    }
}

impl std::error::Error for TraceError {}

/// Opportunities to send, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// In milliseconds; not empty, never decreasing, the last one is positive.
    times_ms: Arc<[u32]>,
}

impl Trace {
    /// What may leave at each opportunity: an IP packet of 1500 B and the 4 B that precede it on
    /// the device Mahimahi reads.
    pub const OPPORTUNITY: Bytes = Bytes(1_504);

    /// Reads a file of Mahimahi: one time in whole milliseconds per line.
    ///
    /// ```
    /// use sojourn_path::Trace;
    ///
    /// let trace = Trace::parse("0\n2\n2\n5\n").unwrap();
    /// assert_eq!(trace.times_ms(), [0, 2, 2, 5]);
    /// let error = Trace::parse("3\n2\n").unwrap_err();
    /// assert_eq!(error.to_string(), "line 2: 2 follows 3; expected non-decreasing times");
    /// ```
    ///
    /// # Errors
    /// If a line is no time, or as [`Trace::new`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let times = text.lines().enumerate().map(|(n, line)| {
            let wrong = "not a time; expected whole milliseconds below 2^32, one time per line";
            line.trim().parse().map_err(|_| TraceError::at(n, wrong))
        });
        Self::new(times.collect::<Result<_, _>>()?)
    }

    /// A trace of these times, in milliseconds.
    ///
    /// # Errors
    /// If there is none, if one precedes the one before it, or if the last is zero.
    pub fn new(times_ms: Vec<u32>) -> Result<Self, TraceError> {
        let pairs = times_ms.windows(2).enumerate();
        for (n, pair) in pairs {
            if pair[1] < pair[0] {
                let rule = format!(
                    "{} follows {}; expected non-decreasing times",
                    pair[1], pair[0]
                );
                return Err(TraceError::at(n + 1, rule));
            }
        }
        match times_ms.last() {
            None => Err(TraceError::whole("empty trace; expected at least one time")),
            Some(0) => Err(TraceError::at(
                times_ms.len() - 1,
                "the last time must be > 0",
            )),
            Some(_) => Ok(Self {
                times_ms: times_ms.into(),
            }),
        }
    }

    /// All times of one round, in milliseconds.
    pub fn times_ms(&self) -> &[u32] {
        &self.times_ms
    }

    fn period_ms(&self) -> u64 {
        self.times_ms.last().copied().unwrap_or(1).into()
    }

    /// When opportunity number `n` from 0 comes.
    pub fn at(&self, n: u64) -> Instant {
        let len = self.times_ms.len() as u64;
        let (round, place) = (n / len, n % len);
        let within = usize::try_from(place).map_or(0, |place| self.times_ms[place]);
        let ms = round * self.period_ms() + u64::from(within);
        Instant::from_nanos(ms * NANOS_PER_MS)
    }

    /// How many opportunities come up to and including `at`.
    pub fn up_to(&self, at: Instant) -> u64 {
        let ms = at.as_nanos() / NANOS_PER_MS;
        // The end of a round and the beginning of the next are one instant, so a time belongs to
        // the round before while that has any at its end.
        let (round, within) = (ms / self.period_ms(), ms % self.period_ms());
        let seen = self.times_ms.partition_point(|&t| u64::from(t) <= within);
        round * self.times_ms.len() as u64 + seen as u64
    }

    /// The mean rate, at least a bit per second.
    ///
    /// # Panics
    /// Never: the rate is at least 1 bit/s.
    pub fn mean_rate(&self) -> Rate {
        let bits = u128::from(Self::OPPORTUNITY.0) * 8 * self.times_ms.len() as u128 * 1_000;
        let bits = bits / u128::from(self.period_ms());
        let bits = u64::try_from(bits).unwrap_or(u64::MAX).max(1);
        Rate::from_bits_per_sec(bits).expect("one at least")
    }

    /// What may leave from `from`, exclusive, to `to`, inclusive.
    pub fn offered(&self, from: Instant, to: Instant) -> Bytes {
        let opportunities = self.up_to(to) - self.up_to(from);
        Bytes(opportunities * Self::OPPORTUNITY.0)
    }
}

/// How much of `whole` a part of a trace is.
pub(crate) fn share(part: Bytes, of: Bytes, whole: Duration) -> Duration {
    let nanos = u128::from(whole.as_nanos()) * u128::from(part.0);
    let nanos = nanos.checked_div(of.0.into()).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(times: &[u32]) -> Trace {
        Trace::new(times.to_vec()).expect("a trace")
    }

    #[test]
    fn a_trace_begins_anew_at_its_last_time() {
        let trace = trace(&[0, 2, 2, 5]);
        let ms: Vec<_> = (0..9).map(|n| trace.at(n).as_nanos() / 1_000_000).collect();
        assert_eq!(ms, [0, 2, 2, 5, 5, 7, 7, 10, 10]);
        for n in 0..9 {
            let seen = trace.up_to(trace.at(n));
            assert!(seen > n && trace.at(seen) > trace.at(n), "{n}: {seen}");
        }
        assert_eq!(
            trace.mean_rate(),
            Rate::from_bits_per_sec(1_504 * 8 * 4 * 200).expect("positive")
        );
        let ms = |n| Instant::ZERO + Duration::from_millis(n);
        assert_eq!(trace.offered(ms(2), ms(7)), Bytes(4 * 1_504));
    }

    #[test]
    fn a_trace_that_goes_back_or_stands_still_is_refused() {
        let refused = |times: &[u32]| Trace::new(times.to_vec()).expect_err("no trace");
        assert_eq!(refused(&[1, 3, 2]).at, Some(2));
        assert_eq!(refused(&[0, 0]).at, Some(1));
        assert_eq!(refused(&[]).at, None);
    }
}
