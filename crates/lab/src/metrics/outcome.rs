//! The metrics of the runs of an outcome.

use arrow_schema::ArrowError;

use super::tables::of_result;
use crate::outcome::Outcome;
use crate::tables::{Table, TableKind};

impl Outcome {
    /// The metrics of every finished run: `arm`, `replication` and the metrics.
    ///
    /// # Errors
    /// If a loaded table lacks a column.
    pub fn per_run(&self) -> Result<Table, ArrowError> {
        let kinds = [TableKind::Flows, TableKind::Links, TableKind::Pings];
        of_result(
            kinds.map(|kind| self.table(kind).batches()),
            self.scenario(),
        )
    }
}
