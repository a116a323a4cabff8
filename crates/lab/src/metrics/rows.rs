//! The rows of tables, independent of the types of their columns, and tables of metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array as _, ArrayRef, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, StringViewArray, UInt32Array, UInt64Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use sojourn_net::Duration;

use super::Metric;
use crate::tables::{Table, TableKind};

/// An arm and a replication.
pub(super) type RunKey<'a> = (&'a str, u32);

/// The tables of a result, by kind.
pub(super) type Tables<'t, 'a> = &'t dyn Fn(TableKind) -> &'a [RecordBatch];

/// The measured time of a run, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// End of the warm-up.
    pub(super) warmup: f64,
    /// From there to the end.
    pub(super) length: f64,
}

impl Window {
    /// From the end of the warm-up to the end of the run.
    pub(super) fn of(warmup: Duration, end: Duration) -> Self {
        Self {
            warmup: warmup.as_secs_f64(),
            length: end.saturating_sub(warmup).as_secs_f64(),
        }
    }
}

/// A column of texts.
pub(super) enum Texts<'a> {
    Short(&'a StringArray),
    Long(&'a LargeStringArray),
    View(&'a StringViewArray),
    /// Every text is null.
    Null,
}

impl<'a> Texts<'a> {
    /// The column called `name`.
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, ArrowError> {
        let column = batch.column(batch.schema_ref().index_of(name)?);
        match column.data_type() {
            DataType::Utf8 => Ok(Self::Short(column.as_string())),
            DataType::LargeUtf8 => Ok(Self::Long(column.as_string())),
            DataType::Utf8View => Ok(Self::View(column.as_string_view())),
            DataType::Null => Ok(Self::Null),
            other => Err(unexpected(name, other, "text")),
        }
    }

    /// The text of a row; `None` if it is null.
    pub(super) fn get(&self, row: usize) -> Option<&'a str> {
        match *self {
            Self::Short(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Long(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Null => None,
        }
    }
}

/// A column of numbers.
pub(super) enum Numbers<'a> {
    Real(&'a Float64Array),
    Signed(&'a Int64Array),
    Short(&'a Int32Array),
    Count(&'a UInt64Array),
    Small(&'a UInt32Array),
    /// Every number is null.
    Null,
}

impl<'a> Numbers<'a> {
    /// The column called `name`.
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, ArrowError> {
        let column = batch.column(batch.schema_ref().index_of(name)?);
        match column.data_type() {
            DataType::Float64 => Ok(Self::Real(column.as_primitive::<Float64Type>())),
            DataType::Int32 => Ok(Self::Short(column.as_primitive::<Int32Type>())),
            DataType::Int64 => Ok(Self::Signed(column.as_primitive::<Int64Type>())),
            DataType::UInt64 => Ok(Self::Count(column.as_primitive::<UInt64Type>())),
            DataType::UInt32 => Ok(Self::Small(column.as_primitive::<UInt32Type>())),
            DataType::Null => Ok(Self::Null),
            other => Err(unexpected(name, other, "a number")),
        }
    }

    /// The number of a row; `None` if it is null.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub(super) fn get(&self, row: usize) -> Option<f64> {
        match *self {
            Self::Real(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Signed(array) => array.is_valid(row).then(|| array.value(row) as f64),
            Self::Short(array) => array.is_valid(row).then(|| array.value(row).into()),
            Self::Count(array) => array.is_valid(row).then(|| array.value(row) as f64),
            Self::Small(array) => array.is_valid(row).then(|| array.value(row).into()),
            Self::Null => None,
        }
    }

    /// The whole number of a row; `None` if it is null or negative.
    pub(super) fn count(&self, row: usize) -> Option<u32> {
        match *self {
            Self::Real(_) | Self::Null => None,
            Self::Signed(array) => array
                .is_valid(row)
                .then(|| array.value(row).try_into().ok())?,
            Self::Short(array) => array
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

/// The arms and replications of the rows of a batch.
pub(super) struct Keys<'a> {
    arms: Texts<'a>,
    replications: Numbers<'a>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        Ok(Self {
            arms: Texts::of(batch, "arm")?,
            replications: Numbers::of(batch, "replication")?,
        })
    }

    pub(super) fn get(&self, row: usize) -> Result<RunKey<'a>, ArrowError> {
        let replication = self.replications.count(row);
        let key = self.arms.get(row).zip(replication);
        key.ok_or_else(|| ArrowError::SchemaError(format!("row {row} belongs to no run")))
    }
}

/// Declares the columns of a table that metrics need, once: a field per column, with its name, and
/// the reader of the table.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { texts: $($text:ident)+; numbers: $($number:ident)+; }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $text: Option<&'a str>,)+
            $(pub(super) $number: Option<f64>,)+
        }

        impl<'a> $name<'a> {
            /// Calls `add` with each row of a table and the run to which it belongs.
            pub(super) fn read(
                batches: &'a [arrow_array::RecordBatch],
                mut add: impl FnMut($crate::metrics::rows::RunKey<'a>, Self),
            ) -> Result<(), arrow_schema::ArrowError> {
                for batch in batches {
                    let keys = $crate::metrics::rows::Keys::of(batch)?;
                    $(let $text = $crate::metrics::rows::Texts::of(batch, stringify!($text))?;)+
                    $(let $number = $crate::metrics::rows::Numbers::of(batch, stringify!($number))?;)+
                    for row in 0..batch.num_rows() {
                        add(
                            keys.get(row)?,
                            Self {
                                $($text: $text.get(row),)+
                                $($number: $number.get(row),)+
                            },
                        );
                    }
                }
                Ok(())
            }
        }
    };
}
pub(super) use columns;

/// Values by key, in the order in which the keys appeared first.
#[derive(Debug)]
pub(super) struct Ordered<K, V> {
    places: BTreeMap<K, usize>,
    pub(super) items: Vec<(K, V)>,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            items: Vec::new(),
        }
    }
}

impl<K: Copy + Ord, V: Default> Ordered<K, V> {
    /// The value of a key, at first the default.
    pub(super) fn of(&mut self, key: K) -> &mut V {
        // The rows of a run, and of a group, follow each other.
        let is_last = self.items.last().is_some_and(|(last, _)| *last == key);
        let place = if is_last {
            self.items.len() - 1
        } else {
            *self.places.entry(key).or_insert_with(|| {
                self.items.push((key, V::default()));
                self.items.len() - 1
            })
        };
        &mut self.items[place].1
    }

    /// Where in `items` a key is.
    pub(super) fn place(&self, key: K) -> Option<usize> {
        self.places.get(&key).copied()
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.place(key).map(|place| &self.items[place].1)
    }
}

/// The fields and columns of the runs to which rows belong.
pub(super) fn key_columns<'a>(
    runs: impl Iterator<Item = RunKey<'a>> + Clone,
) -> (Vec<Field>, Vec<ArrayRef>) {
    let arms = StringArray::from_iter_values(runs.clone().map(|(arm, _)| arm));
    let replications = UInt32Array::from_iter_values(runs.map(|(_, replication)| replication));
    let fields = vec![
        Field::new("arm", DataType::Utf8, false),
        Field::new("replication", DataType::UInt32, false),
    ];
    (fields, vec![Arc::new(arms), Arc::new(replications)])
}

/// What computes a metric of a group; `None` if it does not exist there.
pub(super) type Formula<T> = fn(&T) -> Option<f64>;

/// A table with one row per run and group, in the order of `rows`.
pub(super) fn table_of_groups<T>(
    texts: &[&str],
    rows: &[(RunKey<'_>, Vec<String>, T)],
    metrics: &[Metric<Formula<T>>],
) -> Result<Table, ArrowError> {
    let (mut fields, mut columns) = key_columns(rows.iter().map(|(run, ..)| *run));
    for (n, name) in texts.iter().enumerate() {
        fields.push(Field::new(*name, DataType::Utf8, false));
        let values = rows.iter().map(|(_, texts, _)| &texts[n]);
        columns.push(Arc::new(StringArray::from_iter_values(values)));
    }
    for metric in metrics {
        let values = rows.iter().map(|(.., of)| (metric.value)(of));
        let (kind, column): (_, ArrayRef) = if metric.declared.whole {
            let whole = values.map(|value| value.map(whole));
            (DataType::UInt64, Arc::new(whole.collect::<UInt64Array>()))
        } else {
            (
                DataType::Float64,
                Arc::new(values.collect::<Float64Array>()),
            )
        };
        fields.push(Field::new(metric.declared.name, kind, true));
        columns.push(column);
    }
    table(fields, columns)
}

pub(super) fn table(fields: Vec<Field>, columns: Vec<ArrayRef>) -> Result<Table, ArrowError> {
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(Table::new(schema, vec![batch]))
}

/// Reads a table that another library wrote as an Arrow IPC stream.
///
/// # Errors
/// If it is not one.
pub fn read_stream(bytes: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(bytes, None)?.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count far below 2^53"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}
