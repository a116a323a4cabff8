//! One table of a result.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

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
