//! One run of an arm, and unit conversions for its numbers.

use sojourn_net::Duration;
use sojourn_records::Records;
use sojourn_scenario::{Config, Plan};

/// One run of an arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) arm: &'a str,
    pub(crate) replication: u32,
    pub(crate) plan: &'a Plan,
    pub(crate) records: &'a Records,
}

impl Cell<'_> {
    pub(super) fn config(&self) -> &Config {
        &self.plan.config
    }
}

pub(super) fn mbit_per_s(bytes: u64, time: Duration) -> f64 {
    8.0 * real(bytes) / time.as_secs_f64() / 1e6
}

pub(super) fn ms_of_nanos(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_millis_f64()
}

pub(super) fn ms_of_nanos_f64(nanos: f64) -> f64 {
    nanos / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

/// The columns of the sojourn times in the `record` of a row of type `$row`.
macro_rules! sojourn_times {
    ($row:ty) => {
        [
            Column::new(
                "sojourn_ms_mean",
                "ms",
                "Mean sojourn time of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record.sojourn.mean().map(super::cell::ms_of_nanos_f64)
                }),
            ),
            Column::new(
                "sojourn_ms_p50",
                "ms",
                "Median sojourn time of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record
                        .sojourn
                        .quantile(0.5)
                        .map(super::cell::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_p95",
                "ms",
                "95th percentile of the sojourn times of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record
                        .sojourn
                        .quantile(0.95)
                        .map(super::cell::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_p99",
                "ms",
                "99th percentile of the sojourn times of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record
                        .sojourn
                        .quantile(0.99)
                        .map(super::cell::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_max",
                "ms",
                "Longest sojourn time of a packet sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record.sojourn.max().map(super::cell::ms_of_nanos)
                }),
            ),
        ]
    };
}
pub(super) use sojourn_times;
