//! Values of a column of an Arrow table, independent of its type.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array as _, Float64Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType};

/// A column of texts.
pub(super) enum Texts<'a> {
    Short(&'a StringArray),
    Long(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    /// The column called `name`.
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, ArrowError> {
        let column = batch.column(batch.schema_ref().index_of(name)?);
        match column.data_type() {
            DataType::Utf8 => Ok(Self::Short(column.as_string())),
            DataType::LargeUtf8 => Ok(Self::Long(column.as_string())),
            DataType::Utf8View => Ok(Self::View(column.as_string_view())),
            other => Err(unexpected(name, other, "text")),
        }
    }

    /// The text of a row; `None` if it is null.
    pub(super) fn get(&self, row: usize) -> Option<&'a str> {
        match *self {
            Self::Short(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Long(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// A column of numbers.
pub(super) enum Numbers<'a> {
    Real(&'a Float64Array),
    Signed(&'a Int64Array),
    Count(&'a UInt64Array),
    Small(&'a UInt32Array),
}

impl<'a> Numbers<'a> {
    /// The column called `name`.
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, ArrowError> {
        let column = batch.column(batch.schema_ref().index_of(name)?);
        match column.data_type() {
            DataType::Float64 => Ok(Self::Real(column.as_primitive::<Float64Type>())),
            DataType::Int64 => Ok(Self::Signed(column.as_primitive::<Int64Type>())),
            DataType::UInt64 => Ok(Self::Count(column.as_primitive::<UInt64Type>())),
            DataType::UInt32 => Ok(Self::Small(column.as_primitive::<UInt32Type>())),
            other => Err(unexpected(name, other, "a number")),
        }
    }

    /// The number of a row; `None` if it is null.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub(super) fn get(&self, row: usize) -> Option<f64> {
        match *self {
            Self::Real(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Signed(array) => array.is_valid(row).then(|| array.value(row) as f64),
            Self::Count(array) => array.is_valid(row).then(|| array.value(row) as f64),
            Self::Small(array) => array.is_valid(row).then(|| array.value(row).into()),
        }
    }

    /// The whole number of a row; `None` if it is null or negative.
    pub(super) fn count(&self, row: usize) -> Option<u32> {
        match *self {
            Self::Real(_) => None,
            Self::Signed(array) => array
                .is_valid(row)
                .then(|| array.value(row).try_into().ok())?,
            Self::Count(array) => array
                .is_valid(row)
                .then(|| array.value(row).try_into().ok())?,
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

fn unexpected(name: &str, found: &DataType, expected: &str) -> ArrowError {
    ArrowError::SchemaError(format!("column {name}: {found}; expected {expected}"))
}
