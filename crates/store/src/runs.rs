//! A store of finished runs: a directory of append-only segments.
//!
//! Each writer has its own segment and holds a lock on it while it is alive, so that any number of
//! processes can store runs concurrently. The directory is locked only while segments are created,
//! listed or removed. Without this lock, a new segment could be mistaken for one of a dead process
//! before its writer has locked it.

mod format;
mod segment;
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Duration;

pub use self::format::{Key, Kind, MAX_PAYLOAD};
use self::segment::Scanned;
pub use self::segment::{Payload, Record, Segment};
pub use self::writer::{Appended, COMMIT_INTERVAL, Writer};
use crate::clock::{PATIENCE, age, now_ms, wait_for};
use crate::files::{Files, Lock};

/// Segments of dead processes are removed at this age.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

const EXTENSION: &str = "runs";

/// A store of finished runs.
#[derive(Clone, Debug)]
pub struct RunStore {
    folder: PathBuf,
    files: Arc<dyn Files>,
}

impl RunStore {
    /// Opens the store in `folder`, which is created if needed, and cleans up after dead processes:
    /// incomplete records are cut off, segments without a run or older than [`KEPT`] are removed.
    ///
    /// # Errors
    /// If the folder cannot be created or locked.
    pub fn open(folder: &Path, files: Arc<dyn Files>) -> io::Result<Self> {
        files.create_dir_all(folder)?;
        let store = Self {
            folder: folder.to_owned(),
            files,
        };
        store.select(|_| false)?;
        Ok(store)
    }

    /// The segments in `folder` as they are, oldest first: nothing is locked, cleaned up or removed.
    ///
    /// # Errors
    /// If the folder or a segment cannot be read.
    pub fn inspect(folder: &Path) -> io::Result<Vec<Segment>> {
        let scanned = segments_in(folder)?.into_iter().filter_map(|path| {
            let scanned = Segment::scan(&path, None);
            // A process that ended meanwhile has removed it.
            let is_gone = matches!(&scanned, Err(e) if e.kind() == io::ErrorKind::NotFound);
            (!is_gone).then_some(scanned)
        });
        let scanned: Vec<_> = scanned.collect::<io::Result<_>>()?;
        Ok(scanned.into_iter().filter_map(Scanned::segment).collect())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins a segment.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn writer(&self) -> io::Result<Writer> {
        let _lock = self.lock()?;
        let mut number = 0;
        // Terminates: the process has created only few segments in this millisecond.
        loop {
            let name = format!("{:014}-{}-{number}.{EXTENSION}", now_ms(), process::id());
            match Writer::create(self.folder.join(name), Arc::clone(&self.files)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                result => return result,
            }
        }
    }

    /// The segments that are `wanted`, oldest first. Those of dead processes are held by this
    /// process until they are dropped, so that no other one continues or removes them.
    ///
    /// # Errors
    /// If the folder cannot be locked or listed. A segment that cannot be read is left out.
    pub fn select(&self, wanted: impl Fn(&Segment) -> bool) -> io::Result<Vec<Segment>> {
        let _lock = self.lock()?;
        let paths = segments_in(&self.folder)?;
        let segments = paths.iter().filter_map(|path| self.recovered(path));
        Ok(segments.filter(wanted).collect())
    }

    /// Removes segments that this process holds.
    ///
    /// # Errors
    /// The first that cannot be removed.
    pub fn remove(&self, segments: Vec<Segment>) -> io::Result<()> {
        let _lock = self.lock()?;
        let all = segments.into_iter();
        all.map(|segment| segment.remove(&*self.files))
            .fold(Ok(()), io::Result::and)
    }

    /// Reads a segment and cleans it up if its writer is dead. What cannot be cleaned up now is
    /// ignored by all readers and cleaned up by a later start.
    fn recovered(&self, path: &Path) -> Option<Segment> {
        let lock = self.files.try_lock(path).ok()?;
        let dead = lock.is_some();
        let modified = fs::metadata(path).and_then(|data| data.modified());
        let old = modified.is_ok_and(|time| age(time) > KEPT);
        let scanned = Segment::scan(path, lock).ok()?;
        if !dead {
            return scanned.segment();
        }
        let keep = match &scanned {
            Scanned::Segment(segment) => segment.has_runs(),
            // A start of that version may need it.
            Scanned::OtherVersion => true,
            Scanned::Incomplete => false,
        };
        if old || !keep {
            let _ = self.files.remove_file(path);
            return None;
        }
        let segment = scanned.segment()?;
        let _ = segment.repair(&*self.files);
        Some(segment)
    }

    /// Waits for the lock on the directory.
    fn lock(&self) -> io::Result<Lock> {
        let path = self.folder.join("lock");
        wait_for(PATIENCE, || self.files.try_lock(&path))
    }
}

/// The files of segments, oldest first. Pipes and devices are none, whatever their names.
fn segments_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let is_segment = |path: &PathBuf| {
        let is_other = || fs::metadata(path).is_ok_and(|found| !found.is_file());
        path.extension().is_some_and(|end| end == EXTENSION) && !is_other()
    };
    paths.retain(is_segment);
    paths.sort();
    Ok(paths)
}
