//! The table `classes`.

use arrow_array::RecordBatch;
use sojourn_records::{ClassRecord, Column, Get};

use super::batch::batch;
use super::cell::{Cell, sojourn_times};

/// One row of `classes`.
pub(super) struct ClassRow<'a> {
    link: &'a str,
    name: String,
    record: &'a ClassRecord,
}

pub(super) fn columns<'a>() -> Vec<Column<ClassRow<'a>>> {
    let mut columns = vec![
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
    ];
    columns.extend(sojourn_times!(ClassRow<'_>));
    columns
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
