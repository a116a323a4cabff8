//! Building a piece of a table column by column; the schema follows from the columns.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};

/// Columns of equal length.
#[derive(Debug)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// The columns that every table begins with.
    pub(crate) fn of(arm: &str, replication: u32, rows: usize) -> Self {
        let arms = StringArray::from_iter_values(std::iter::repeat_n(arm, rows));
        let replications = UInt32Array::from_value(replication, rows);
        Self {
            fields: Vec::new(),
            arrays: Vec::new(),
        }
        .with("arm", Arc::new(arms), false)
        .with("replication", Arc::new(replications), false)
    }

    fn with(mut self, name: &str, array: ArrayRef, nullable: bool) -> Self {
        let kind: DataType = array.data_type().clone();
        self.fields.push(Field::new(name, kind, nullable));
        self.arrays.push(array);
        self
    }

    pub(crate) fn text<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        let array = StringArray::from_iter_values(values);
        self.with(name, Arc::new(array), false)
    }

    pub(crate) fn optional_text<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        let array: StringArray = values.collect();
        self.with(name, Arc::new(array), true)
    }

    pub(crate) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let array = UInt64Array::from_iter_values(values);
        self.with(name, Arc::new(array), false)
    }

    pub(crate) fn optional_count(
        self,
        name: &str,
        values: impl Iterator<Item = Option<u64>>,
    ) -> Self {
        let array: UInt64Array = values.collect();
        self.with(name, Arc::new(array), true)
    }

    pub(crate) fn optional_flag(
        self,
        name: &str,
        values: impl Iterator<Item = Option<bool>>,
    ) -> Self {
        let array: BooleanArray = values.collect();
        self.with(name, Arc::new(array), true)
    }

    pub(crate) fn real(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        let array = Float64Array::from_iter_values(values);
        self.with(name, Arc::new(array), false)
    }

    pub(crate) fn optional_real(
        self,
        name: &str,
        values: impl Iterator<Item = Option<f64>>,
    ) -> Self {
        let array: Float64Array = values.collect();
        self.with(name, Arc::new(array), true)
    }

    /// The piece.
    pub(crate) fn finish(self) -> RecordBatch {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).expect("all columns have a value for each row")
    }
}
