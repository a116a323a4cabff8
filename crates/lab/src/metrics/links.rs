//! Metrics of links.

use arrow_schema::ArrowError;

use super::formulas::percent;
use super::rows::{Tables, Window, columns, table_of_groups};
use super::{Metric, Role};
use crate::tables::{Table, TableKind};

/// Bytes per packet that a link counts before the IP header.
const ETHERNET_HEADER: f64 = 14.0;

type LinkMetric = Metric<fn(&Link<'_>) -> Option<f64>>;

/// Metrics of links.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the lifetime of a method of `Link` is not that of each call"
)]
pub(super) const METRICS: &[LinkMetric] = &[
    LinkMetric::new(
        "throughput_mbit_per_s",
        "throughput",
        (2, "Mbit/s"),
        "8 · IP bytes that the link sent after *W* / (*D* − *W*). The IP bytes are \
         `sent_bytes` minus 14 B per packet.",
        |link| {
            let bytes = link.row.sent_bytes? - ETHERNET_HEADER * link.row.sent_packets?;
            Some(bytes * 8.0 / link.window.length / 1e6)
        },
    )
    .role(Role::Compared),
    LinkMetric::new(
        "utilisation",
        "utilisation",
        (3, ""),
        "Share of the time during which the link was transmitting.",
        |link| link.row.utilisation,
    ),
    LinkMetric::new(
        "sojourn_ms_mean",
        "sojourn mean",
        (2, "ms"),
        "Mean sojourn time of the packets that left the queue of the link after *W*.",
        |link| link.row.sojourn_ms_mean,
    )
    .role(Role::Compared),
    LinkMetric::new(
        "sojourn_ms_p50",
        "sojourn p50",
        (2, "ms"),
        "Median of these sojourn times.",
        |link| link.row.sojourn_ms_p50,
    ),
    LinkMetric::new(
        "sojourn_ms_p95",
        "sojourn p95",
        (2, "ms"),
        "95th percentile of these sojourn times.",
        |link| link.row.sojourn_ms_p95,
    ),
    LinkMetric::new(
        "sojourn_ms_p99",
        "sojourn p99",
        (2, "ms"),
        "99th percentile of these sojourn times.",
        |link| link.row.sojourn_ms_p99,
    ),
    LinkMetric::new(
        "sojourn_ms_max",
        "sojourn max",
        (2, "ms"),
        "Longest of these sojourn times.",
        |link| link.row.sojourn_ms_max,
    ),
    LinkMetric::new(
        "driver_ms_p95",
        "driver p95",
        (1, "ms"),
        "Wireless links and those with `tx_ring`: 95th percentile of the time in the driver and in transmission, over the \
         packets that left the queue after *W*.",
        |link| link.row.driver_ms_p95,
    ),
    LinkMetric::new(
        "drops",
        "drops",
        (0, ""),
        "Packets dropped at the link after *W*, by the AQM, an ACK filter, at a full buffer or with a replaced queue.",
        |link| link.drops(),
    ),
    LinkMetric::new(
        "marks",
        "marks",
        (0, ""),
        "Packets CE-marked at the link after *W*.",
        |link| Some(link.row.marks_aqm? + link.row.marks_ce_threshold?),
    ),
    LinkMetric::new(
        "loss_percent",
        "loss",
        (2, "%"),
        "Share of the packets that arrived at the queue of the link after *W* and were \
         dropped there: drops / (drops + `sent_packets`).",
        |link| {
            let drops = link.drops()?;
            percent(drops, drops + link.row.sent_packets?)
        },
    ),
];

columns! {
    /// A row of `links`.
    LinkRow {
        texts: link;
        numbers: sent_packets sent_bytes utilisation sojourn_ms_mean sojourn_ms_p50 sojourn_ms_p95 sojourn_ms_p99
            sojourn_ms_max driver_ms_p95 drops_overlimit drops_aqm drops_ack_filter drops_replaced marks_aqm
            marks_ce_threshold;
    }
}

/// A link of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    row: LinkRow<'a>,
    window: Window,
}

impl Link<'_> {
    fn drops(&self) -> Option<f64> {
        // Earlier results count the drops of an ACK filter as drops of the AQM.
        let filtered = self.row.drops_ack_filter.unwrap_or_default();
        let replaced = self.row.drops_replaced.unwrap_or_default();
        Some(self.row.drops_overlimit? + self.row.drops_aqm? + filtered + replaced)
    }
}

/// One row per run and link.
pub(super) fn metrics(tables: Tables<'_, '_>, window: Window) -> Result<Table, ArrowError> {
    let mut rows = Vec::new();
    LinkRow::read(tables(TableKind::Links), |run, row| {
        let name = row.link.unwrap_or_default().to_owned();
        rows.push((run, vec![name], Link { row, window }));
    })?;
    table_of_groups(&["group"], &rows, METRICS)
}
