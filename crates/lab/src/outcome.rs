//! The outcome of a scenario: the tables of all runs, and the manifest; runs as bytes.
//!
//! Bytes are for the run store and for worker processes. The layout is that of one version of Sojourn: the key of the run,
//! then, compressed by zstd, the validity facts as JSON and each table as an Arrow IPC stream, each after its length. The
//! key covers the version, so that no other one reads it.

use std::io::Read as _;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use serde_json::Value;
use sojourn_scenario::Scenario;
use sojourn_store::{Key, MAX_PAYLOAD};

use crate::keys::Keys;
use crate::manifest::{Build, Manifest, Provenance, RunFact};
use crate::tables::{Cell, TABLES, Table, TableKind, batches, empty_batches};

/// The tables of a scenario's runs, and where they come from.
#[derive(Clone, Debug)]
pub struct Outcome {
    manifest: Manifest,
    /// In the order of [`TableKind::ALL`].
    tables: Vec<Table>,
    /// The digest of the manifest that it was loaded with.
    loaded: Option<String>,
}

/// What one run adds to an outcome.
#[derive(Debug)]
pub(crate) struct Piece {
    /// In the order of [`TableKind::ALL`].
    pub(crate) tables: [RecordBatch; TABLES],
    pub(crate) validity: Vec<RunFact>,
}

impl Piece {
    pub(crate) fn of(cell: Cell<'_>) -> Self {
        let facts = cell.records.validity.iter();
        Self {
            tables: batches(cell),
            validity: facts
                .map(|fact| RunFact {
                    arm: cell.arm.to_owned(),
                    replication: cell.replication,
                    name: fact.name.to_owned(),
                    value: fact.value.clone(),
                    passed: fact.passed,
                })
                .collect(),
        }
    }
}

impl Outcome {
    /// Of the pieces of the runs finished so far, in the order of the runs.
    pub(crate) fn of(
        scenario: Scenario,
        provenance: Provenance,
        finished: Vec<Piece>,
        total: usize,
    ) -> Self {
        let mut manifest = Manifest::of(scenario, provenance, finished.len(), total);
        let mut tables = empty_batches().map(|batch| (batch.schema(), Vec::new()));
        for piece in finished {
            manifest.validity.extend(piece.validity);
            for (batch, (_, batches)) in piece.tables.into_iter().zip(&mut tables) {
                batches.push(batch);
            }
        }
        let tables = tables.map(|(schema, batches)| Table::new(schema, batches));
        Self {
            manifest,
            tables: tables.into(),
            loaded: None,
        }
    }

    /// Of what was read: a table for each of [`TableKind::ALL`], and the digest of the manifest if
    /// it was loaded.
    pub(crate) fn from_parts(
        manifest: Manifest,
        loaded: Option<String>,
        tables: Vec<Table>,
    ) -> Self {
        Self {
            manifest,
            tables,
            loaded,
        }
    }

    /// The digest of the manifest that it was loaded with; `None`: it was not loaded.
    pub fn loaded_digest(&self) -> Option<&str> {
        self.loaded.as_deref()
    }

    /// Whether every run finished.
    pub fn is_complete(&self) -> bool {
        self.finished() == self.total()
    }

    /// How many runs finished.
    pub fn finished(&self) -> usize {
        self.manifest.finished
    }

    /// How many runs the scenario asks for.
    pub fn total(&self) -> usize {
        self.manifest.total
    }

    /// What was run.
    pub fn scenario(&self) -> &Scenario {
        &self.manifest.scenario
    }

    /// Version, commit, scenario, seed and hash.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// One of the tables.
    pub fn table(&self, kind: TableKind) -> &Table {
        &self.tables[kind as usize]
    }
}

/// A fast level: a run of a minute takes some 50 ms, and its tables have 1 MB.
const LEVEL: i32 = -5;

/// Maximum decompressed size of one run, in bytes.
const MAX_LENGTH: u64 = 4 * MAX_PAYLOAD as u64;

impl Piece {
    /// As bytes, for [`Piece::from_bytes`].
    pub(crate) fn to_bytes(&self, key: &Key) -> Result<Vec<u8>, ArrowError> {
        let mut content = Vec::new();
        let facts: Vec<_> = self.validity.iter().map(RunFact::to_value).collect();
        append(&mut content, Value::Array(facts).to_string().as_bytes());
        for batch in &self.tables {
            if batch.num_rows() == 0 {
                append(&mut content, &[]);
                continue;
            }
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(batch)?;
            append(&mut content, &writer.into_inner()?);
        }
        let mut bytes = key.to_vec();
        bytes.extend(zstd::bulk::compress(&content, LEVEL)?);
        Ok(bytes)
    }

    /// Reads what [`Piece::to_bytes`] wrote with the same key.
    pub(crate) fn from_bytes(bytes: &[u8], key: &Key) -> Result<Self, ArrowError> {
        let compressed = bytes.strip_prefix(key).ok_or_else(damaged)?;
        let mut content = Vec::new();
        let decoder = zstd::stream::Decoder::new(compressed)?;
        decoder.take(MAX_LENGTH).read_to_end(&mut content)?;
        let mut rest = &content[..];
        let facts: Value = serde_json::from_slice(split(&mut rest)?).map_err(|_| damaged())?;
        let facts = facts.as_array().ok_or_else(damaged)?.iter();
        let validity = facts.map(RunFact::read).collect::<Option<_>>();
        let mut tables: [RecordBatch; TABLES] = empty_batches();
        for batch in &mut tables {
            let stream = split(&mut rest)?;
            if stream.is_empty() {
                continue;
            }
            let read = StreamReader::try_new(stream, None)?
                .next()
                .ok_or_else(damaged)??;
            if read.schema() != batch.schema() {
                return Err(damaged());
            }
            *batch = read;
        }
        Ok(Self {
            tables,
            validity: validity.ok_or_else(damaged)?,
        })
    }
}

impl Outcome {
    /// Puts runs of `scenario` together: their numbers, counted arm by arm, and what
    /// [`crate::run_one`] returned; `provenance` is that of all of them.
    ///
    /// # Errors
    /// If a part is not that run of this scenario in the same build.
    pub fn assemble<'a>(
        scenario: &Scenario,
        provenance: Provenance,
        parts: impl Iterator<Item = (usize, &'a [u8])>,
    ) -> Result<Self, ArrowError> {
        let keys = Keys::of(scenario, &provenance, &Build::current(), None).runs;
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by_key(|&(number, _)| number);
        let pieces = parts.into_iter().map(|(number, bytes)| {
            let key = keys.get(number).ok_or_else(damaged)?;
            Piece::from_bytes(bytes, key)
        });
        let pieces = pieces.collect::<Result<_, _>>()?;
        Ok(Self::of(scenario.clone(), provenance, pieces, keys.len()))
    }
}

fn append(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

/// Takes the first part off `bytes`.
fn split<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], ArrowError> {
    let (length, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
    let (part, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(part)
}

fn damaged() -> ArrowError {
    ArrowError::IpcError(
        "invalid part: expected the bytes of this run of this scenario from this build".to_owned(),
    )
}
