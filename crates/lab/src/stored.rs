//! The bytes of a run, and the rows that are read from them when they are needed.
//!
//! The layout is that of one version of Sojourn: the key of the run, the lengths of the sections that follow, and the
//! sections, each compressed by zstd: the validity facts as JSON, and each table as an Arrow IPC stream, or nothing if it
//! has no rows. The key covers the version, so that no other one reads it.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use sojourn_store::{Key, MAX_PAYLOAD, Payload};
use sojourn_tables::TABLES;
use zstd::zstd_safe::get_frame_content_size;

/// A fast level: a run of a minute takes some 50 ms, and its tables have 1 MB.
pub(crate) const LEVEL: i32 = -5;

/// Maximum decompressed size of a section, in bytes.
const MAX_LENGTH: u64 = 4 * MAX_PAYLOAD as u64;

/// The validity facts, and the tables.
const SECTIONS: usize = 1 + TABLES;

/// The length of a section.
const LENGTH: usize = size_of::<u32>();

/// Where each table is in the bytes of a run.
pub(crate) type Sections = [Range<u32>; TABLES];

/// The rows that one run adds to a table, in the run store.
#[derive(Clone, Debug)]
pub(crate) struct StoredRows {
    payload: Payload,
    section: Range<u32>,
    pub(crate) count: usize,
}

impl StoredRows {
    /// The `count` rows in a section of the bytes of a run.
    pub(crate) const fn new(payload: Payload, section: Range<u32>, count: usize) -> Self {
        Self {
            payload,
            section,
            count,
        }
    }

    /// Reads them; they have `schema`.
    pub(crate) fn read(&self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let bytes = self.payload.read(self.section.clone())?;
        let batch = decoded(&bytes, schema)?;
        if batch.num_rows() == self.count {
            Ok(batch)
        } else {
            Err(damaged())
        }
    }
}

/// Where the tables are in the bytes of a run; `None`: they are damaged.
pub(crate) fn table_sections(bytes: &[u8]) -> Option<Sections> {
    let [_, tables @ ..] = sections(bytes)?;
    Some(tables)
}

pub(crate) fn sections(bytes: &[u8]) -> Option<[Range<u32>; SECTIONS]> {
    const HEAD: usize = size_of::<Key>() + SECTIONS * LENGTH;
    let lengths = bytes.get(size_of::<Key>()..HEAD)?;
    let mut start = u32::try_from(HEAD).ok()?;
    let mut all = [const { 0..0 }; SECTIONS];
    for (section, length) in all.iter_mut().zip(lengths.as_chunks::<LENGTH>().0) {
        let end = start.checked_add(u32::from_le_bytes(*length))?;
        *section = start..end;
        start = end;
    }
    (start as usize == bytes.len()).then_some(all)
}

/// The table in a section.
pub(crate) fn decoded(section: &[u8], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let stream = decompressed(section)?;
    let read = StreamReader::try_new(&stream[..], None)?
        .next()
        .ok_or_else(damaged)??;
    if read.schema_ref() != schema {
        return Err(damaged());
    }
    // Equal, but not one more copy per run.
    read.with_schema(SchemaRef::clone(schema))
}

pub(crate) fn decompressed(section: &[u8]) -> Result<Vec<u8>, ArrowError> {
    let length = get_frame_content_size(section).ok().flatten();
    let length = length
        .filter(|&length| length <= MAX_LENGTH)
        .ok_or_else(damaged)?;
    let length = usize::try_from(length).map_err(|_| damaged())?;
    // In one piece: vectors that grow leave holes between those that stay.
    Ok(zstd::bulk::decompress(section, length)?)
}

pub(crate) fn length(of: usize) -> Result<u32, ArrowError> {
    u32::try_from(of).map_err(|_| {
        ArrowError::IpcError(format!(
            "a run has {of} bytes; expected at most {MAX_PAYLOAD}"
        ))
    })
}

pub(crate) fn damaged() -> ArrowError {
    ArrowError::IpcError(
        "invalid part: expected the bytes of this run of this scenario from this build".to_owned(),
    )
}
