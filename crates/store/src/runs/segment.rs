//! Reads segments: scans the headers of their records.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::format::{HEAD, HEADER, Header, Key, Kind, checksum, head, is_head};
use crate::files::{Files, Lock};

/// A record of a segment: everything but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    header: Header,
    /// Where the payload begins.
    offset: u64,
}

impl Record {
    /// What it holds.
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// The key of the record.
    pub fn key(&self) -> Key {
        self.header.key
    }
}

/// What a file of a store is.
#[derive(Debug)]
pub(crate) enum Scanned {
    Segment(Segment),
    /// A segment in a format that this version does not read.
    OtherVersion,
    /// The writer died before the head was written.
    Incomplete,
}

impl Scanned {
    pub(crate) fn segment(self) -> Option<Segment> {
        match self {
            Self::Segment(segment) => Some(segment),
            Self::OtherVersion | Self::Incomplete => None,
        }
    }
}

/// A segment of a store.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: Mutex<File>,
    records: Vec<Record>,
    /// Length up to the end of the last complete record.
    whole: u64,
    /// The lock, held by this process if the writer is dead; `None` if the writer is alive.
    lock: Option<Lock>,
}

impl Segment {
    /// Reads the headers up to the first that is damaged or whose payload is not there.
    pub(crate) fn scan(path: &Path, lock: Option<Lock>) -> io::Result<Scanned> {
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        let mut first = [0; HEAD];
        if end < HEAD as u64 || file.read_exact(&mut first).is_err() || !is_head(&first) {
            return Ok(Scanned::Incomplete);
        }
        if first != head() {
            return Ok(Scanned::OtherVersion);
        }
        let mut records = Vec::new();
        let mut whole = HEAD as u64;
        // Ends: `whole` grows in each turn, and the file is not longer than `end`.
        while whole + HEADER as u64 <= end {
            let mut bytes = [0; HEADER];
            file.seek(SeekFrom::Start(whole))?;
            if file.read_exact(&mut bytes).is_err() {
                break;
            }
            let offset = whole + HEADER as u64;
            match Header::read(&bytes) {
                Some(header) if offset + u64::from(header.length) <= end => {
                    whole = offset + u64::from(header.length);
                    records.push(Record { header, offset });
                }
                _ => break,
            }
        }
        Ok(Scanned::Segment(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            records,
            whole,
            lock,
        }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its writer is dead and this process holds the segment.
    pub fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// Gives up the hold, so that another process may continue or remove it. What this process has
    /// open stays readable.
    pub fn release(&mut self) {
        self.lock = None;
    }

    /// Its records, in the order in which they were written.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The payload of a record; `None`: it is damaged or cannot be read.
    pub fn read(&self, record: &Record) -> Option<Vec<u8>> {
        let mut payload = vec![0; usize::try_from(record.header.length).ok()?];
        {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(record.offset)).ok()?;
            file.read_exact(&mut payload).ok()?;
        }
        (checksum(&payload) == record.header.digest).then_some(payload)
    }

    /// Whether there is a finished run in it.
    pub(crate) fn has_runs(&self) -> bool {
        self.records.iter().any(|record| record.kind() == Kind::Run)
    }

    /// Truncates the incomplete record that a dead writer left.
    pub(crate) fn repair(&self, files: &dyn Files) -> io::Result<()> {
        let length = std::fs::metadata(&self.path)?.len();
        if self.is_held() && length > self.whole {
            files.truncate(&self.path, self.whole)?;
        }
        Ok(())
    }

    /// Removes the file. Only a segment that this process holds is removed.
    pub(crate) fn remove(self, files: &dyn Files) -> io::Result<()> {
        if self.is_held() {
            files.remove_file(&self.path)?;
        }
        Ok(())
    }
}
