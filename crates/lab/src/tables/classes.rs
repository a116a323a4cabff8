//! The table `classes`.

use arrow_array::RecordBatch;
use sojourn_records::{ClassRecord, Column, Get};

use super::batch::batch;
use super::cell::{Cell, ms_of_nanos, ms_of_nanos_f64};

/// One row of `classes`.
pub(super) struct ClassRow<'a> {
    link: &'a str,
    name: String,
    record: &'a ClassRecord,
}

impl ClassRow<'_> {
    fn sojourn_ms(&self, q: f64) -> Option<f64> {
        self.record.sojourn.quantile(q).map(ms_of_nanos)
    }
}

pub(super) fn columns<'a>() -> Vec<Column<ClassRow<'a>>> {
    vec![
        Column::new(
            "link",
            "",
            "Name of the link.",
            Get::Text(|row: &ClassRow<'_>| row.link),
        ),
        Column::new(
            "class",
            "",
            "Class of the queue: L or C of dualpi2, tin of cake, band of prio and pfifo_fast, class of drr; numbered \
             as in `queue_statistics`. Of nested queues, the class of the outer one.",
            Get::Text(|row| &row.name),
        ),
        Column::new(
            "sent_packets",
            "",
            "Packets sent after the warm-up.",
            Get::Count(|row| row.record.totals.sent_packets),
        ),
        Column::new(
            "sent_bytes",
            "B",
            "Bytes sent after the warm-up, without link-layer overhead.",
            Get::Count(|row| row.record.totals.sent_bytes),
        ),
        Column::new(
            "drops_overlimit",
            "",
            "Packets dropped because the queue was full.",
            Get::Count(|row| row.record.totals.drops_overlimit),
        ),
        Column::new(
            "drops_aqm",
            "",
            "Packets dropped by the AQM.",
            Get::Count(|row| row.record.totals.drops_aqm),
        ),
        Column::new(
            "marks_aqm",
            "",
            "Packets CE-marked by the AQM.",
            Get::Count(|row| row.record.totals.marks_aqm),
        ),
        Column::new(
            "marks_ce_threshold",
            "",
            "Packets CE-marked because their sojourn time exceeded a threshold.",
            Get::Count(|row| row.record.totals.marks_ce_threshold),
        ),
        Column::new(
            "sojourn_ms_mean",
            "ms",
            "Mean sojourn time of the packets sent.",
            Get::OptionalReal(|row| row.record.sojourn.mean().map(ms_of_nanos_f64)),
        ),
        Column::new(
            "sojourn_ms_p50",
            "ms",
            "Median sojourn time of the packets sent.",
            Get::OptionalReal(|row| row.sojourn_ms(0.5)),
        ),
        Column::new(
            "sojourn_ms_p95",
            "ms",
            "95th percentile of the sojourn times of the packets sent.",
            Get::OptionalReal(|row| row.sojourn_ms(0.95)),
        ),
        Column::new(
            "sojourn_ms_p99",
            "ms",
            "99th percentile of the sojourn times of the packets sent.",
            Get::OptionalReal(|row| row.sojourn_ms(0.99)),
        ),
        Column::new(
            "sojourn_ms_max",
            "ms",
            "Longest sojourn time of a packet sent.",
            Get::OptionalReal(|row| row.record.sojourn.max().map(ms_of_nanos)),
        ),
    ]
}

pub(super) fn classes(cell: Cell<'_>) -> RecordBatch {
    let links = cell.records.links.iter();
    let rows: Vec<_> = links
        .flat_map(|link| {
            link.classes.iter().map(|record| ClassRow {
                link: &link.name,
                name: record.class.to_string(),
                record,
            })
        })
        .collect();
    batch(cell, &rows, &columns())
}
