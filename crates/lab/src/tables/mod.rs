//! Records as tidy tables.
//!
//! Each row begins with the arm and the replication it belongs to; what was not measured is null, never 0.

mod applications;
mod changes;
mod flow;
mod kind;
mod links;
mod rows;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema, SchemaRef};
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

pub(crate) use kind::TABLES;
pub use kind::TableKind;

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

/// A table in pieces, in the order of arms and replications.
#[derive(Clone, Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of `batches`, each of which has `schema`.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// A table in one piece.
    pub fn of(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The pieces.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
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

/// The rows that a run adds to a table, after the arm and the replication.
fn batch<R>(cell: Cell<'_>, rows: &[R], columns: &[Column<R>]) -> RecordBatch {
    let arms = StringArray::from_iter_values(std::iter::repeat_n(cell.arm, rows.len()));
    let replications = UInt32Array::from_value(cell.replication, rows.len());
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(arms), Arc::new(replications)];
    let mut names = vec![("arm", false), ("replication", false)];
    for column in columns {
        arrays.push(array(rows, &column.get));
        names.push((column.info.name, column.info.nullable));
    }
    let fields: Vec<_> = names
        .iter()
        .zip(&arrays)
        .map(|(&(name, nullable), array)| Field::new(name, array.data_type().clone(), nullable))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .expect("all columns have a value for each row")
}

fn array<R>(rows: &[R], get: &Get<R>) -> ArrayRef {
    match get {
        Get::Text(get) => Arc::new(StringArray::from_iter_values(rows.iter().map(get))),
        Get::OptionalText(get) => Arc::new(rows.iter().map(get).collect::<StringArray>()),
        Get::Count(get) => Arc::new(UInt64Array::from_iter_values(rows.iter().map(get))),
        Get::OptionalCount(get) => Arc::new(rows.iter().map(get).collect::<UInt64Array>()),
        Get::Real(get) => Arc::new(Float64Array::from_iter_values(rows.iter().map(get))),
        Get::OptionalReal(get) => Arc::new(rows.iter().map(get).collect::<Float64Array>()),
        Get::OptionalFlag(get) => Arc::new(rows.iter().map(get).collect::<BooleanArray>()),
    }
}

/// The piece of each table that a run adds, in the order of [`TableKind::ALL`].
pub(crate) fn batches(cell: Cell<'_>) -> [RecordBatch; TABLES] {
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

/// What a run adds to the tables `flows`, `links` and `pings`, from which its metrics are computed.
pub(crate) fn metric_batches(cell: Cell<'_>) -> [RecordBatch; 3] {
    [flows(cell), links(cell), pings(cell)]
}

/// A piece of each table that has all its columns and no rows.
pub(crate) fn empty_batches() -> [RecordBatch; TABLES] {
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
    batches(Cell {
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
pub(crate) struct Cell<'a> {
    pub(crate) arm: &'a str,
    pub(crate) replication: u32,
    pub(crate) plan: &'a Plan,
    pub(crate) records: &'a Records,
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
