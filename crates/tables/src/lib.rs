//! Records as tidy tables: which tables and columns a result has, and how they are computed.
//!
//! Each row begins with the arm and the replication it belongs to; what was not measured is null, never 0. A [`Frame`]
//! determines what a table is in memory: Arrow in the laboratory, plain bytes in a browser.

mod applications;
mod changes;
mod flow;
mod kind;
mod links;
mod quantiles;
mod rows;

use serde_json::{Value, json};
use sojourn_net::Duration;
use sojourn_records::{Column, ColumnInfo, Get, Records};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::Config;

use applications::{applications, transactions};
use changes::link_changes;
use flow::flows;
use links::{classes, link_series, links, queue_series, queue_statistics, sojourn};
use rows::{events, flow_series, pings};

pub use kind::{TABLES, TableKind};
pub use quantiles::{mean, quantile_of_sorted};
pub use rows::{signal_names, state_json};

/// Every table of a result with its columns.
///
/// ```text
/// [{name, description, columns: [{name, type, nullable, unit, description}]}]
/// ```
pub fn column_catalogue_json() -> String {
    let tables = TableKind::ALL.map(|table| {
        let columns: Vec<_> = table.columns().iter().map(column).collect();
        json!({ "name": table.name(), "description": table.description(), "columns": columns })
    });
    Value::Array(tables.into()).to_string()
}

fn column(info: &ColumnInfo) -> Value {
    json!({
        "name": info.name,
        "type": info.kind.name(),
        "nullable": info.nullable,
        "unit": info.unit,
        "description": info.description,
    })
}

/// A table in memory.
pub trait Frame: Sized {
    /// The rows that a run adds to a table. The arm and the replication of `cell` precede the columns.
    fn of<R>(cell: Cell<'_>, rows: &[R], columns: &[Column<R>]) -> Self;
}

/// The columns that name the flow of a row and its group.
fn flow_columns<R>(
    flow: for<'r> fn(&'r R) -> &'r str,
    group: for<'r> fn(&'r R) -> &'r str,
) -> Vec<Column<R>> {
    vec![
        Column::new("flow", "", "Name of the flow.", Get::Text(flow)),
        Column::new(
            "group",
            "",
            "Name of the group: the traffic block of the flow.",
            Get::Text(group),
        ),
    ]
}

/// The rows that a run adds to each table, in the order of [`TableKind::ALL`].
pub fn tables<F: Frame>(cell: Cell<'_>) -> [F; TABLES] {
    [
        flows(cell),
        links(cell),
        flow_series(cell),
        link_series(cell),
        pings(cell),
        sojourn(cell),
        queue_statistics(cell),
        queue_series(cell),
        events(cell),
        transactions(cell),
        applications(cell),
        classes(cell),
        link_changes(cell),
    ]
}

/// The rows that a run adds to the tables `flows`, `links` and `pings`, from which its metrics are computed.
pub fn metric_tables<F: Frame>(cell: Cell<'_>) -> [F; 3] {
    [flows(cell), links(cell), pings(cell)]
}

/// Each table with all its columns and no rows, in the order of [`TableKind::ALL`].
pub fn empty<F: Frame>() -> [F; TABLES] {
    let config = Config {
        seed: 0,
        duration: Duration::ZERO,
        measure_from: Duration::ZERO,
        sample: Duration::ZERO,
        links: Vec::new(),
        flows: Vec::new(),
        keep_events: false,
        sample_state: false,
    };
    tables(Cell {
        arm: "",
        replication: 0,
        plan: &Plan {
            config,
            flows: Vec::new(),
            controller: None,
        },
        records: &Records::default(),
    })
}

/// One run of an arm.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The name of the arm.
    pub arm: &'a str,
    /// The number of the replication, from 0.
    pub replication: u32,
    /// What was run.
    pub plan: &'a Plan,
    /// What it measured.
    pub records: &'a Records,
}

impl Cell<'_> {
    fn config(&self) -> &Config {
        &self.plan.config
    }
}

fn mbit_per_s(bytes: u64, time: Duration) -> f64 {
    8.0 * real(bytes) / time.as_secs_f64() / 1e6
}

fn ms_of_nanos(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_millis_f64()
}

fn ms_of_nanos_f64(nanos: f64) -> f64 {
    nanos / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
fn real(n: u64) -> f64 {
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
                    row.record.sojourn.mean().map(super::ms_of_nanos_f64)
                }),
            ),
            Column::new(
                "sojourn_ms_p50",
                "ms",
                "Median sojourn time of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record.sojourn.quantile(0.5).map(super::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_p95",
                "ms",
                "95th percentile of the sojourn times of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record.sojourn.quantile(0.95).map(super::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_p99",
                "ms",
                "99th percentile of the sojourn times of the packets sent.",
                Get::OptionalReal(|row: &$row| {
                    row.record.sojourn.quantile(0.99).map(super::ms_of_nanos)
                }),
            ),
            Column::new(
                "sojourn_ms_max",
                "ms",
                "Longest sojourn time of a packet sent.",
                Get::OptionalReal(|row: &$row| row.record.sojourn.max().map(super::ms_of_nanos)),
            ),
        ]
    };
}
use sojourn_times;
