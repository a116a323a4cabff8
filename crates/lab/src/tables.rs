//! Tables as Arrow record batches.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use sojourn_records::{Column, Get};
use sojourn_tables::Frame;

use crate::stored::StoredRows;

pub(crate) use sojourn_tables::{Cell, TABLES};
pub use sojourn_tables::{TableKind, column_catalogue_json};

/// A table in pieces, in the order of arms and replications. Long pieces of stored runs stay in the store until they
/// are asked for.
#[derive(Clone, Debug)]
pub struct Table {
    schema: SchemaRef,
    pieces: Vec<Rows>,
    /// Whether the rows of each run are known to follow each other.
    is_in_order: bool,
}

/// A piece of a table.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    Held(RecordBatch),
    /// Those of one run.
    Stored(StoredRows),
}

impl Rows {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Held(batch) => batch.num_rows(),
            Self::Stored(rows) => rows.count,
        }
    }
}

impl Table {
    /// A table of `batches`, each of which has `schema`.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self {
            schema,
            pieces: batches.into_iter().map(Rows::Held).collect(),
            is_in_order: false,
        }
    }

    /// A table of pieces with the rows of one run after another.
    pub(crate) fn of_runs(schema: SchemaRef, pieces: Vec<Rows>) -> Self {
        Self {
            schema,
            pieces,
            is_in_order: true,
        }
    }

    /// A table in one piece.
    pub fn of(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether the rows of each run are known to follow each other.
    pub(crate) const fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// How many pieces there are.
    pub const fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// A piece, read if it is stored; `None`: there are fewer.
    pub fn piece(&self, number: usize) -> Option<Result<RecordBatch, ArrowError>> {
        Some(match self.pieces.get(number)? {
            Rows::Held(batch) => Ok(batch.clone()),
            Rows::Stored(rows) => rows.read(&self.schema),
        })
    }

    /// Each piece, read if it is stored.
    pub fn each(&self) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
        (0..self.pieces()).filter_map(|number| self.piece(number))
    }

    /// All pieces in memory.
    ///
    /// # Errors
    /// If a stored one cannot be read.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.each().collect()
    }

    /// The pieces in memory, and what of the others is stored.
    pub(crate) fn split(&self) -> (Vec<RecordBatch>, Vec<&StoredRows>) {
        let (mut held, mut stored) = (Vec::new(), Vec::new());
        for rows in &self.pieces {
            match rows {
                Rows::Held(batch) => held.push(batch.clone()),
                Rows::Stored(rows) => stored.push(rows),
            }
        }
        (held, stored)
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.pieces.iter().map(Rows::count).sum()
    }
}

/// The rows that a run adds to a table.
struct Piece(RecordBatch);

impl Frame for Piece {
    fn of<R>(cell: Cell<'_>, rows: &[R], columns: &[Column<R>]) -> Self {
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
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Self(batch.expect("all columns have a value for each row"))
    }
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

fn unwrapped<const N: usize>(pieces: [Piece; N]) -> [RecordBatch; N] {
    pieces.map(|Piece(batch)| batch)
}

/// The piece of each table that a run adds, in the order of [`TableKind::ALL`].
pub(crate) fn batches(cell: Cell<'_>) -> [RecordBatch; TABLES] {
    unwrapped(sojourn_tables::tables(cell))
}

/// What a run adds to the tables `flows`, `links` and `pings`, from which its metrics are computed.
pub(crate) fn metric_batches(cell: Cell<'_>) -> [RecordBatch; 3] {
    unwrapped(sojourn_tables::metric_tables(cell))
}

/// A piece of each table that has all its columns and no rows.
pub(crate) fn empty_batches() -> [RecordBatch; TABLES] {
    unwrapped(sojourn_tables::empty())
}
