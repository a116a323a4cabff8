//! Builds one batch of a table from its rows and its column declarations.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use sojourn_records::{Column, Get};

use super::cell::Cell;

/// The rows that a run adds to a table, after the arm and the replication.
pub(super) fn batch<R>(cell: Cell<'_>, rows: &[R], columns: &[Column<R>]) -> RecordBatch {
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
