//! Serialised outcomes, which worker processes return.
//!
//! The layout is that of one version of Sojourn and is never stored: the length of the manifest
//! and its JSON, then for each table the length of an Arrow IPC stream and the stream.

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use sojourn_scenario::Scenario;

use crate::manifest::{Manifest, Provenance};
use crate::outcome::Outcome;
use crate::tables::{Table, TableKind, empty_batches};

impl Outcome {
    /// Writes the outcome as bytes for [`Outcome::assemble`].
    ///
    /// # Errors
    /// If a table cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ArrowError> {
        let mut bytes = Vec::new();
        append(&mut bytes, self.manifest().to_json().as_bytes());
        for kind in TableKind::ALL {
            let table = self.table(kind);
            let mut writer = StreamWriter::try_new(Vec::new(), &table.schema())?;
            for batch in table.batches() {
                writer.write(batch)?;
            }
            append(&mut bytes, &writer.into_inner()?);
        }
        Ok(bytes)
    }

    /// Puts outcomes together that hold different runs of `scenario`, in the order of the runs;
    /// `provenance` is that of all of them.
    ///
    /// # Errors
    /// If a part is not what [`Outcome::to_bytes`] wrote for this scenario in the same build.
    pub fn assemble<'a>(
        scenario: &Scenario,
        provenance: Provenance,
        parts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, ArrowError> {
        let total = scenario.arms().len() * scenario.replications() as usize;
        let mut whole = Manifest::of(scenario.clone(), provenance, 0, total);
        let shared = whole.clone();
        let mut tables = empty_batches().map(|batch| (batch.schema(), Vec::new()));
        for mut part in parts {
            let text = std::str::from_utf8(split(&mut part)?).map_err(|_| damaged())?;
            let mut manifest = Manifest::read(text).map_err(|_| damaged())?.manifest;
            whole.finished += std::mem::take(&mut manifest.finished);
            whole.validity.append(&mut manifest.validity);
            if manifest != shared {
                return Err(damaged());
            }
            for (_, batches) in &mut tables {
                for batch in StreamReader::try_new(split(&mut part)?, None)? {
                    batches.push(batch?);
                }
            }
        }
        let tables = tables.map(|(schema, batches)| Table::new(schema, batches));
        Ok(Self::from_parts(whole, tables.into()))
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
        "invalid part: expected the output of to_bytes for this scenario and this build".to_owned(),
    )
}
