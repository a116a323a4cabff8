//! The table `link_changes`.

use sojourn_net::{Duration, Rate};
use sojourn_records::{ChangeRecord, Column, Get};

use super::{Cell, Frame, real};

/// One row of `link_changes`.
pub(super) struct ChangeRow<'a> {
    record: &'a ChangeRecord,
    link: &'a str,
}

pub(super) fn columns<'a>() -> Vec<Column<ChangeRow<'a>>> {
    vec![
        Column::new(
            "t_s",
            "s",
            "Time of the change.",
            Get::Real(|row: &ChangeRow<'_>| row.record.at.as_secs_f64()),
        ),
        Column::new("link", "", "Name of the link.", Get::Text(|row| row.link)),
        Column::new(
            "rate_mbit_per_s",
            "Mbit/s",
            "New rate of the link; null if it did not change.",
            Get::OptionalReal(|row| row.record.rate.map(mbit_per_s)),
        ),
        Column::new(
            "delay_ms",
            "ms",
            "New delay of the link; null if it did not change.",
            Get::OptionalReal(|row| row.record.delay.map(Duration::as_millis_f64)),
        ),
        Column::new(
            "change",
            "",
            "All keys of the change, as a line of TOML.",
            Get::Text(|row| &row.record.text),
        ),
    ]
}

pub(super) fn link_changes<F: Frame>(cell: Cell<'_>) -> F {
    let links = &cell.config().links;
    let rows = cell.records.changes.iter().map(|record| ChangeRow {
        record,
        link: &links[record.link].name,
    });
    F::of(cell, &rows.collect::<Vec<_>>(), &columns())
}

fn mbit_per_s(rate: Rate) -> f64 {
    real(rate.bits_per_sec()) / 1e6
}
