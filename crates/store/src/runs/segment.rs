//! Reads segments: scans the headers of their records.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::format::{HEAD, HEADER, Header, Key, Kind, RECORD, checksum, head, is_head};
use crate::clock::age;
use crate::files::{Files, Lock};
use crate::regular::{Links, open_regular};

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

/// The payload of a record, parts of which are read when they are needed, also after the segment was removed.
#[derive(Clone, Debug)]
pub struct Payload {
    file: Arc<Mutex<File>>,
    offset: u64,
    length: u32,
}

impl Payload {
    /// The payload at `offset` of a segment.
    pub(crate) const fn new(file: Arc<Mutex<File>>, offset: u64, length: u32) -> Self {
        Self {
            file,
            offset,
            length,
        }
    }

    /// The bytes of `part`.
    ///
    /// # Errors
    /// If they cannot be read, or the payload is shorter.
    pub fn read(&self, part: Range<u32>) -> io::Result<Vec<u8>> {
        let length = part.end.checked_sub(part.start);
        let length = length.filter(|_| part.end <= self.length);
        let length = length.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; length as usize];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.offset + u64::from(part.start)))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
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
    file: Arc<Mutex<File>>,
    records: Vec<Record>,
    /// Length up to the end of the last complete record.
    whole: u64,
    /// Places where a header is damaged.
    gaps: usize,
    /// The lock, held by this process if the writer is dead; `None` if the writer is alive.
    lock: Option<Lock>,
}

impl Segment {
    /// Reads the headers. After a damaged one, it continues at the next valid header, so that damage
    /// loses only the record that contains it.
    ///
    /// Read errors are returned, so that records that may be valid are not treated as damaged.
    pub(crate) fn scan(path: &Path, lock: Option<Lock>) -> io::Result<Scanned> {
        let mut file = open_regular(path, Links::Follow)?;
        let end = file.metadata()?.len();
        let first: Option<[u8; HEAD]> = read_at(&mut file, 0)?;
        let is_ours = first.is_some_and(|first| is_head(&first));
        if is_ours && first != Some(head()) {
            return Ok(Scanned::OtherVersion);
        }
        let mut records = Vec::new();
        let mut whole = HEAD as u64;
        let mut gaps = usize::from(!is_ours);
        // Ends: each header is behind the one before.
        while let Some((at, header)) = next_header(&mut file, whole, end)? {
            gaps += usize::from(at != whole);
            let offset = at + HEADER as u64;
            whole = offset + u64::from(header.length);
            records.push(Record { header, offset });
        }
        if !is_ours && records.is_empty() {
            return Ok(Scanned::Incomplete);
        }
        // The last record of a killed writer is incomplete, but what there is of it is as written.
        let rest: Option<[u8; HEADER]> = read_at(&mut file, whole)?;
        gaps += usize::from(rest.is_some_and(|rest| Header::read(&rest).is_none()));
        Ok(Scanned::Segment(Self {
            path: path.to_owned(),
            file: Arc::new(Mutex::new(file)),
            records,
            whole,
            gaps,
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

    /// Size of the file.
    pub fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |data| data.len())
    }

    /// How long ago it was last written; zero if that is not known.
    pub fn age(&self) -> Duration {
        let modified = std::fs::metadata(&self.path).and_then(|data| data.modified());
        modified.map_or(Duration::ZERO, age)
    }

    /// Its records, in the order in which they were written.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The payload of a record; `None`: it is damaged or cannot be read.
    pub fn read(&self, record: &Record) -> Option<Vec<u8>> {
        let payload = self.payload(record).read(0..record.header.length).ok()?;
        (checksum(&payload) == record.header.digest).then_some(payload)
    }

    /// The payload of a record, for later.
    pub fn payload(&self, record: &Record) -> Payload {
        Payload::new(Arc::clone(&self.file), record.offset, record.header.length)
    }

    /// Number of places where the headers of one or more records are damaged.
    pub fn gaps(&self) -> usize {
        self.gaps
    }

    /// Number of damaged records: of those that are listed, and of those whose headers are damaged.
    pub fn damaged(&self) -> usize {
        let is_damaged = |record: &&Record| self.read(record).is_none();
        self.gaps + self.records.iter().filter(is_damaged).count()
    }

    /// Whether there is a finished run in it.
    pub(crate) fn has_runs(&self) -> bool {
        self.records.iter().any(|record| record.kind() == Kind::Run)
    }

    /// Truncates the incomplete record that a dead writer left. No complete record follows it.
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

/// How much is read at once to find a header.
const STEP: u64 = 1 << 16;

/// The first header at or behind `from` whose payload ends within the file, and where it begins.
fn next_header(file: &mut File, from: u64, end: u64) -> io::Result<Option<(u64, Header)>> {
    let header_at = |file: &mut File, at: u64| -> io::Result<Option<Header>> {
        let header = read_at(file, at)?.and_then(|bytes| Header::read(&bytes));
        let ends = |header: &Header| at + HEADER as u64 + u64::from(header.length);
        Ok(header.filter(|header| ends(header) <= end))
    };
    if let Some(header) = header_at(file, from)? {
        return Ok(Some((from, header)));
    }
    let mut begin = from + 1;
    // Ends: `begin` grows.
    while begin + HEADER as u64 <= end {
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        // A mark may begin in this step and end in the next.
        let length = STEP + RECORD.len() as u64 - 1;
        file.by_ref().take(length).read_to_end(&mut bytes)?;
        let marks = bytes.windows(RECORD.len()).zip(begin..);
        for (_, at) in marks.filter(|(mark, _)| mark == RECORD) {
            if let Some(header) = header_at(file, at)? {
                return Ok(Some((at, header)));
            }
        }
        begin += STEP;
    }
    Ok(None)
}

/// The bytes at `offset`; `None`: the file ends before.
fn read_at<const N: usize>(file: &mut File, offset: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(offset))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}
