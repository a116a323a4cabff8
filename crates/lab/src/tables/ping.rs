//! Statistics of echo requests: RTT quantiles and losses.

use sojourn_apps::PingSample;
use sojourn_net::{Duration, Instant};

use crate::stats::{mean, quantile_of_sorted};

/// The echo requests of one flow since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PingMetrics {
    pub(crate) mean: Option<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) p95: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) min: Option<f64>,
    /// Share of requests without reply. A request that the end overtook, since it was sent less
    /// than the longest RTT before, counts neither as lost nor as answered.
    pub(crate) loss: Option<f64>,
}

impl PingMetrics {
    /// Of the requests sent from `from` on, in a flow that ended at `end`; in milliseconds.
    pub(crate) fn of(pings: &[PingSample], from: Instant, end: Instant, base: Duration) -> Self {
        let sent = || pings.iter().filter(|p| p.sent >= from);
        let longest = sent().filter_map(|p| p.rtt).max().unwrap_or(base).max(base);
        let unanswered = sent().filter(|p| p.rtt.is_none() && p.sent + longest < end);
        let lost = unanswered.count();
        let mut rtts: Vec<f64> = sent()
            .filter_map(|p| p.rtt.map(Duration::as_millis_f64))
            .collect();
        rtts.sort_by(f64::total_cmp);
        let judged = lost + rtts.len();
        Self {
            mean: mean(&rtts),
            median: quantile_of_sorted(&rtts, 0.5),
            p95: quantile_of_sorted(&rtts, 0.95),
            p99: quantile_of_sorted(&rtts, 0.99),
            max: rtts.last().copied(),
            min: rtts.first().copied(),
            loss: (judged > 0).then(|| count(lost) / count(judged)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 requests")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(sent_ms: u64, rtt_ms: Option<u64>) -> PingSample {
        PingSample {
            sent: Instant::from_millis(sent_ms),
            rtt: rtt_ms.map(Duration::from_millis),
        }
    }

    #[test]
    fn requests_under_way_at_the_end_are_not_lost() {
        let pings = [
            ping(50, Some(900)),
            ping(100, Some(20)),
            ping(200, None),
            ping(300, Some(30)),
            ping(400, Some(40)),
            ping(990, None),
        ];
        let metrics = PingMetrics::of(
            &pings,
            Instant::from_millis(100),
            Instant::from_millis(1_000),
            Duration::from_millis(10),
        );
        assert_eq!(metrics.loss, Some(0.25));
        assert_eq!(metrics.mean, Some(30.0));
        assert_eq!(metrics.median, Some(30.0));
        assert_eq!((metrics.min, metrics.max), (Some(20.0), Some(40.0)));
    }

    #[test]
    fn no_request_says_nothing() {
        let none = PingMetrics::of(&[], Instant::ZERO, Instant::MAX, Duration::ZERO);
        assert_eq!(none, PingMetrics::default());
    }
}
