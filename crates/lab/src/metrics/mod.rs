//! Metrics: declared and computed, one row per metric, from the tables of a result or from the
//! records of a run as soon as it ends.

mod applications;
mod cells;
mod classes;
mod declaration;
mod groups;
mod latency;
mod links;
mod measurements;
mod meter;
mod rows;
mod runs;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

pub use declaration::{Declaration, Role, Scope, metric_catalogue_json};
pub use latency::averaged_pings;
pub use measurements::{Measurements, OnThread, Row};
pub use meter::Meter;
pub use rows::read_stream;

use crate::outcome::Outcome;
use crate::tables::{Table, TableKind};
use rows::Window;

impl Outcome {
    /// The metrics of every finished run: `arm`, `replication`, `group` unless by run, the metrics.
    ///
    /// # Errors
    /// If a loaded table lacks a column.
    pub fn metrics(&self, by: Scope) -> Result<Table, ArrowError> {
        let scenario = self.scenario();
        let window = Window::of(scenario.warmup(), scenario.duration());
        of_tables(by, &|kind| self.table(kind).batches(), window)
    }
}

/// The metrics of every run of some tables; times are in seconds.
///
/// # Errors
/// If a table lacks a column, or a column has another type.
pub fn metrics<'a>(
    by: Scope,
    tables: &dyn Fn(TableKind) -> &'a [RecordBatch],
    warmup_s: f64,
    measured_s: f64,
) -> Result<Table, ArrowError> {
    let window = Window {
        warmup: warmup_s,
        length: measured_s,
    };
    of_tables(by, tables, window)
}

fn of_tables<'a>(
    by: Scope,
    tables: &dyn Fn(TableKind) -> &'a [RecordBatch],
    window: Window,
) -> Result<Table, ArrowError> {
    match by {
        Scope::Run => runs::metrics(tables, window),
        Scope::Group => groups::metrics(tables, window),
        Scope::Class => classes::metrics(tables, window),
        Scope::Application => applications::metrics(tables, window),
        Scope::Link => links::metrics(tables, window),
    }
}
