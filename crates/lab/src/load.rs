//! Loads saved results, which are untrusted: checks every file, and opens only the manifest and the
//! tables.

use std::fmt;
use std::io::{self, ErrorKind};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::Value;
use sojourn_scenario::digest::sha256_hex;
use sojourn_store::read_committed;

use crate::frame::{MANIFEST, MOST_MANIFEST, ResultError};
use crate::manifest::Manifest;
use crate::outcome::Outcome;
use crate::tables::{Table, TableKind, empty_batches};

/// Default limit on the memory of the tables of a result, in bytes.
pub const MOST_BYTES: u64 = 2 << 30;

/// Maximum size of a Parquet file in addition to its rows, in bytes.
const OVERHEAD: u64 = 1 << 20;

/// Attempts to read a result that is being replaced.
const ATTEMPTS: usize = 10;

impl Outcome {
    /// Reads what [`Outcome::save`] wrote, in this version or an earlier one. Columns that an
    /// earlier version did not have are null, tables that it did not have are empty.
    ///
    /// # Errors
    /// If it is not a result, is damaged or of an unsupported version, or if its tables need more
    /// memory than [`MOST_BYTES`].
    pub fn load(directory: &Path) -> Result<Self, ResultError> {
        Self::load_within(directory, MOST_BYTES)
    }

    /// As [`Outcome::load`], with a limit of `most_bytes` on the memory of the tables.
    ///
    /// # Errors
    /// As [`Outcome::load`].
    pub fn load_within(directory: &Path, most_bytes: u64) -> Result<Self, ResultError> {
        let mut manifest = read_manifest(directory)?;
        for _ in 1..ATTEMPTS {
            let outcome = load_as(directory, &manifest, most_bytes);
            if outcome.is_ok() {
                return outcome;
            }
            // Another process may have replaced the result since the manifest was read.
            let present = read_manifest(directory)?;
            if present == manifest {
                return outcome;
            }
            manifest = present;
        }
        load_as(directory, &manifest, most_bytes)
    }
}

fn load_as(directory: &Path, manifest: &[u8], most_bytes: u64) -> Result<Outcome, ResultError> {
    let path = directory.join(MANIFEST);
    let saved = Manifest::read(manifest).map_err(|rule| ResultError::damaged(&path, rule))?;
    let (mut tables, mut left) = (Vec::new(), most_bytes);
    for (kind, empty) in TableKind::ALL.into_iter().zip(empty_batches()) {
        let table = match saved.tables.get(kind.name()) {
            Some(entry) => load_table(directory, kind, entry, &empty.schema(), &mut left)?,
            None if saved.format < kind.first_format() => Table::new(empty.schema(), Vec::new()),
            None => {
                let format = saved.format;
                let rule =
                    format!("does not list the table {kind}, which format {format} requires");
                return Err(ResultError::damaged(&path, rule));
            }
        };
        tables.push(table);
    }
    Ok(Outcome::from_parts(
        saved.manifest,
        Some(saved.digest),
        tables,
    ))
}

fn read_manifest(directory: &Path) -> Result<Vec<u8>, ResultError> {
    let found = read_committed(directory, MANIFEST, MOST_MANIFEST);
    found.map_err(|e| match e.kind() {
        ErrorKind::NotFound if directory.is_dir() => ResultError::new(
            directory,
            "is not a Sojourn result: it has no manifest.json",
        ),
        ErrorKind::NotFound => {
            ResultError::new(directory, "does not exist; expected a result directory")
        }
        ErrorKind::NotADirectory => {
            ResultError::new(directory, "is a file; expected a result directory")
        }
        _ => unreadable(&directory.join(MANIFEST), &e),
    })
}

fn unreadable(path: &Path, error: &io::Error) -> ResultError {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
            ResultError::damaged(path, error.to_string())
        }
        _ => ResultError::new(path, format!("cannot be read: {error}")),
    }
}

/// Reads the table that `entry` of the manifest describes, and subtracts its memory from `left`.
fn load_table(
    directory: &Path,
    kind: TableKind,
    entry: &Value,
    wanted: &SchemaRef,
    left: &mut u64,
) -> Result<Table, ResultError> {
    let name = kind.file_name();
    let path = directory.join(&name);
    let bytes = read_committed(directory, &name, left.saturating_add(OVERHEAD));
    let bytes = bytes.map_err(|e| match e.kind() {
        ErrorKind::NotFound => ResultError::damaged(&path, "is missing from the result"),
        _ => unreadable(&path, &e),
    })?;
    if entry["sha256"].as_str() != Some(&sha256_hex(&bytes)) {
        let rule = "is truncated or altered: its SHA-256 does not match the manifest";
        return Err(ResultError::damaged(&path, rule));
    }
    let table = decode(bytes.into(), Some(wanted), left);
    let table = table.map_err(|rule| ResultError::damaged(&path, rule))?;
    if entry["rows"].as_u64() != u64::try_from(table.rows()).ok() {
        let rule = "is altered: its number of rows does not match the manifest";
        return Err(ResultError::damaged(&path, rule));
    }
    Ok(table)
}

/// Reads the Parquet file of a table, which is untrusted: of any columns of numbers, text or bytes, and
/// of at most `most_bytes` of memory.
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with its name.
pub fn read_table(bytes: Vec<u8>, mut most_bytes: u64) -> Result<Table, String> {
    decode(bytes.into(), None, &mut most_bytes)
}

/// As [`decode_unguarded`]. The Parquet reader panics at some files that contradict themselves.
fn decode(bytes: Bytes, wanted: Option<&SchemaRef>, left: &mut u64) -> Result<Table, String> {
    let decode = AssertUnwindSafe(|| decode_unguarded(bytes, wanted, left));
    let rule = "cannot be read: its content contradicts itself";
    panic::catch_unwind(decode).unwrap_or_else(|_| Err(rule.to_owned()))
}

/// Reads a table as one of the columns of `wanted`, where those that the file lacks are null; if none are
/// wanted, as one of the columns that the file has.
fn decode_unguarded(
    bytes: Bytes,
    wanted: Option<&SchemaRef>,
    left: &mut u64,
) -> Result<Table, String> {
    let damaged = |e: &dyn fmt::Display| format!("cannot be read: {e}");
    // The schema that its writer adds to the file is not needed, and could ask for views and dictionaries.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(wanted.is_none());
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options);
    let builder = builder.map_err(|e| damaged(&e))?;
    let foreign = match wanted {
        Some(wanted) => foreign_column(builder.schema(), wanted),
        None => nested_column(builder.schema()),
    };
    if let Some(column) = foreign {
        return Err(format!(
            "has a column that this version of Sojourn cannot read: {column}"
        ));
    }
    let wanted = wanted.unwrap_or(builder.schema());
    let rows = builder.metadata().file_metadata().num_rows();
    let most = *left / bytes_per_row(wanted);
    if u64::try_from(rows).map_or(true, |rows| rows > most) {
        return Err(format!(
            "has {rows} rows; expected at most {most}, for which {left} bytes of memory are left"
        ));
    }
    let schema = with_nulls(wanted, builder.schema());
    let reader = builder.build().map_err(|e| damaged(&e))?;
    let mut batches = Vec::new();
    for batch in reader {
        let batch = batch.and_then(|batch| complete(&batch, &schema));
        let batch = batch.map_err(|e| damaged(&e))?;
        let size = u64::try_from(batch.get_array_memory_size()).unwrap_or(u64::MAX);
        *left = left.checked_sub(size).ok_or(
            "needs more memory than a result may have; Result.load takes max_bytes in Python",
        )?;
        batches.push(batch);
    }
    Ok(Table::new(schema, batches))
}

/// Minimum memory per row, in bytes.
fn bytes_per_row(schema: &Schema) -> u64 {
    let of = |field: &Arc<Field>| match field.data_type() {
        DataType::Boolean | DataType::Null => 0,
        // The end offset in the buffer.
        DataType::Utf8 | DataType::Binary | DataType::UInt32 => 4,
        _ => 8,
    };
    schema.fields().iter().map(of).sum::<u64>().max(1)
}

/// A column that `wanted` does not have, or has of another type.
fn foreign_column<'a>(written: &'a Schema, wanted: &Schema) -> Option<&'a str> {
    let is_wanted = |field: &Field| {
        let known = wanted.field_with_name(field.name());
        known.is_ok_and(|known| known.data_type() == field.data_type())
    };
    let foreign = written.fields().iter().find(|field| !is_wanted(field));
    foreign.map(|field| field.name().as_str())
}

/// A column with other values than numbers, text or bytes.
fn nested_column(written: &Schema) -> Option<&str> {
    let mut columns = written.fields().iter();
    let is_plain = |kind: &DataType| {
        let others = [
            DataType::Boolean,
            DataType::Null,
            DataType::Utf8,
            DataType::Binary,
        ];
        kind.is_integer() || kind.is_floating() || others.contains(kind)
    };
    let nested = columns.find(|field| !is_plain(field.data_type()));
    nested.map(|field| field.name().as_str())
}

/// `wanted`, with nulls allowed in the columns that `written` lacks or allows them in.
fn with_nulls(wanted: &SchemaRef, written: &Schema) -> SchemaRef {
    let fields = wanted.fields().iter().map(|field| {
        let before = written.field_with_name(field.name());
        let nullable = field.is_nullable() || before.map_or(true, Field::is_nullable);
        field.as_ref().clone().with_nullable(nullable)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of `schema`, null where `batch` lacks one.
fn complete(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().map(|field| {
        let written = batch.column_by_name(field.name()).cloned();
        written.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect())
}
