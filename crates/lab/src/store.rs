//! Results as directories: `manifest.json` and a Parquet file for each table.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader, new_null_array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};

use crate::manifest::{Manifest, is_manifest};
use crate::outcome::Outcome;
use crate::tables::{Table, TableKind, empty_batches};
use sojourn_scenario::digest::hex;

const MANIFEST: &str = "manifest.json";

/// Why a result was not written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub rule: String,
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.rule)
    }
}

impl std::error::Error for ResultError {}

fn fail(path: &Path, rule: impl Into<String>) -> ResultError {
    ResultError {
        path: path.to_owned(),
        rule: rule.into(),
    }
}

impl Outcome {
    /// Writes the result to `directory`, whole or not at all.
    ///
    /// What stands there is replaced only if it is a result, or empty; files that do not belong
    /// to the result it replaces stay.
    ///
    /// # Errors
    /// If something else stands there, or it cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), ResultError> {
        let name = directory.file_name().ok_or_else(|| {
            fail(
                directory,
                "is not a directory name; expected a path that ends in a name",
            )
        })?;
        let parent = match directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let occupied = check_replaceable(directory)?;
        let sibling = |what: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{what}-{}", std::process::id()));
            parent.join(hidden)
        };
        let (partial, former) = (sibling("partial"), sibling("former"));
        let write = || {
            fs::create_dir_all(parent)?;
            remove(&partial)?;
            fs::create_dir(&partial)?;
            self.write_files(&partial)?;
            if occupied {
                remove(&former)?;
                fs::rename(directory, &former)?;
            }
            fs::rename(&partial, directory)?;
            if occupied {
                keep_others(&former, directory)?;
            }
            Ok(())
        };
        write().map_err(|e: io::Error| {
            // What could not be written could perhaps not be removed either; the first error
            // is the one that helps.
            let _ = remove(&partial);
            fail(directory, format!("cannot be written: {e}"))
        })
    }

    fn write_files(&self, directory: &Path) -> io::Result<()> {
        let mut digests = Map::new();
        for kind in TableKind::ALL {
            let table = self.table(kind);
            let sha256 = write_table(table, &directory.join(file_name(kind)))?;
            let entry = json!({ "rows": table.rows(), "sha256": sha256 });
            digests.insert(kind.name().to_owned(), entry);
        }
        fs::write(
            directory.join(MANIFEST),
            self.manifest().to_json_with(digests),
        )
    }

    /// Reads what [`Outcome::save`] wrote, in this version or an earlier one. Columns that an
    /// earlier version did not have are null, tables that it did not have are empty.
    ///
    /// # Errors
    /// If it is no result, or one that is damaged or of another version.
    pub fn load(directory: &Path) -> Result<Self, ResultError> {
        let path = directory.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound if directory.is_dir() => fail(
                directory,
                "is not a Sojourn result: it has no manifest.json",
            ),
            io::ErrorKind::NotFound => {
                fail(directory, "does not exist; expected a result directory")
            }
            io::ErrorKind::NotADirectory => {
                fail(directory, "is a file; expected a result directory")
            }
            _ => fail(&path, format!("cannot be read: {e}")),
        })?;
        let saved = Manifest::read(&text).map_err(|rule| fail(&path, rule))?;
        let mut tables = Vec::new();
        for (kind, empty) in TableKind::ALL.into_iter().zip(empty_batches()) {
            let file = directory.join(file_name(kind));
            let table = match saved.tables.get(kind.name()) {
                Some(entry) => {
                    verify(&file, entry["sha256"].as_str())?;
                    read_table(&file, &empty.schema())?
                }
                None if saved.format < kind.first_format() => {
                    Table::new(empty.schema(), Vec::new())
                }
                None => {
                    let format = saved.format;
                    let rule =
                        format!("does not list the table {kind}, which format {format} requires");
                    return Err(fail(&path, rule));
                }
            };
            tables.push(table);
        }
        Ok(Self::from_parts(saved.manifest, tables))
    }
}

fn file_name(kind: TableKind) -> String {
    format!("{kind}.parquet")
}

/// Whether something stands there that may be replaced.
fn check_replaceable(directory: &Path) -> Result<bool, ResultError> {
    let unwritable = |e: io::Error| fail(directory, format!("cannot be written: {e}"));
    match fs::symlink_metadata(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(unwritable(e)),
        Ok(_) => {}
    }
    let is_result =
        fs::read_to_string(directory.join(MANIFEST)).is_ok_and(|text| is_manifest(&text));
    let is_empty = || fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if is_result || is_empty() {
        Ok(true)
    } else {
        let rule = "exists and is not a Sojourn result; expected an empty or new directory";
        Err(fail(directory, rule))
    }
}

/// Removes a directory if it is there.
fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Moves what is not part of a result from `former` to `directory`, then removes `former`.
fn keep_others(former: &Path, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(former)? {
        let entry = entry?;
        let place = directory.join(entry.file_name());
        if !place.exists() {
            fs::rename(entry.path(), place)?;
        }
    }
    remove(former)
}

/// What is digested as it is written.
#[derive(Debug)]
struct Digested<W> {
    sink: W,
    digest: Sha256,
}

impl<W> Digested<W> {
    fn new(sink: W) -> Self {
        Self {
            sink,
            digest: Sha256::new(),
        }
    }

    fn sha256(self) -> String {
        hex(&self.digest.finalize())
    }
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Writes a table; returns the SHA-256 of the file.
fn write_table(table: &Table, path: &Path) -> io::Result<String> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let file = Digested::new(File::create(path)?);
    let write = || {
        let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties))?;
        for batch in table.batches() {
            writer.write(batch)?;
        }
        writer.into_inner()
    };
    write().map(Digested::sha256).map_err(io_error)
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

/// Checks that the file is the one that was written.
fn verify(path: &Path, sha256: Option<&str>) -> Result<(), ResultError> {
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => fail(path, "is missing from the result"),
        _ => fail(path, format!("cannot be read: {e}")),
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut digested = Digested::new(io::sink());
    io::copy(&mut file, &mut digested).map_err(unreadable)?;
    if sha256 == Some(&digested.sha256()) {
        Ok(())
    } else {
        Err(fail(
            path,
            "is truncated or altered: its SHA-256 does not match the manifest",
        ))
    }
}

/// Reads a table as one of the columns of `wanted`: those that the file lacks are null.
fn read_table(path: &Path, wanted: &SchemaRef) -> Result<Table, ResultError> {
    let damaged = |e: &dyn fmt::Display| fail(path, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(|e| damaged(&e))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|e| damaged(&e))?;
    let written = reader.schema();
    if let Some(column) = foreign_column(&written, wanted) {
        let rule = format!("has a column that this version of Sojourn cannot read: {column}");
        return Err(fail(path, rule));
    }
    let schema = with_nulls(wanted, &written);
    let batches = reader.map(|batch| complete(&batch?, &schema));
    let batches = batches.collect::<Result<_, _>>().map_err(|e| damaged(&e))?;
    Ok(Table::new(schema, batches))
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
