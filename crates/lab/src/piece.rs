//! What one run adds to an outcome, also as bytes for the run store and for worker processes.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use serde_json::Value;
use sojourn_store::Key;

use crate::manifest::RunFact;
use crate::stored::{LEVEL, Sections, damaged, decoded, decompressed, length, sections};
use crate::tables::{Cell, TABLES, batches, empty_batches};

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

    /// As bytes, for [`Piece::from_bytes`], and where the tables are in them.
    pub(crate) fn to_bytes(&self, key: &Key) -> Result<(Vec<u8>, Sections), ArrowError> {
        let facts: Vec<_> = self.validity.iter().map(RunFact::to_value).collect();
        let facts = Value::Array(facts).to_string();
        let mut lengths = key.to_vec();
        let mut content = zstd::bulk::compress(facts.as_bytes(), LEVEL)?;
        lengths.extend(length(content.len())?.to_le_bytes());
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        // Of what is read later, nothing else is checked.
        compressor.include_checksum(true)?;
        let mut ends = [0; TABLES];
        for (batch, end) in self.tables.iter().zip(&mut ends) {
            let before = content.len();
            if batch.num_rows() > 0 {
                let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
                writer.write(batch)?;
                content.extend(compressor.compress(&writer.into_inner()?)?);
            }
            lengths.extend(length(content.len() - before)?.to_le_bytes());
            *end = content.len();
        }
        let mut bytes = lengths;
        bytes.append(&mut content);
        length(bytes.len())?;
        let sections = sections(&bytes).ok_or_else(damaged)?;
        let [_, tables @ ..] = sections;
        Ok((bytes, tables))
    }

    /// Reads what [`Piece::to_bytes`] wrote with the same key.
    pub(crate) fn from_bytes(bytes: &[u8], key: &Key) -> Result<Self, ArrowError> {
        if !bytes.starts_with(key) {
            return Err(damaged());
        }
        let [facts, tables @ ..] = sections(bytes).ok_or_else(damaged)?;
        let section = |range: &Range<u32>| &bytes[range.start as usize..range.end as usize];
        let facts: Value =
            serde_json::from_slice(&decompressed(section(&facts))?).map_err(|_| damaged())?;
        let facts = facts.as_array().ok_or_else(damaged)?.iter();
        let validity = facts.map(RunFact::read).collect::<Option<_>>();
        let mut batches: [RecordBatch; TABLES] = empty_batches();
        for (batch, range) in batches.iter_mut().zip(&tables) {
            if !range.is_empty() {
                *batch = decoded(section(range), &batch.schema())?;
            }
        }
        Ok(Self {
            tables: batches,
            validity: validity.ok_or_else(damaged)?,
        })
    }
}
