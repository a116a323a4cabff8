//! An execution of a scenario that stores its finished runs and reuses those of interrupted executions.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};
use sojourn_backend::locked;
use sojourn_scenario::Scenario;
use sojourn_store::{Appended, Key, Kind, Record, RunStore, Segment, Writer};

use crate::gathered::InStore;
use crate::keys::Keys;
use crate::manifest::{Build, Provenance};
use crate::piece::Piece;
use crate::stored::table_sections;

/// The backend, build and program that determine the runs of a scenario.
#[derive(Clone, Debug)]
pub struct Engine {
    /// The backend.
    pub provenance: Provenance,
    /// The build of Sojourn.
    pub build: Build,
    /// Digest of the program, for builds without a clean commit.
    pub binary: Option<String>,
}

/// One execution of a scenario: stores each run when it finishes, and finds the finished runs of
/// interrupted executions of the same scenario.
#[derive(Debug)]
pub struct Invocation {
    store: RunStore,
    keys: Keys,
    /// Shared by all executions that continue the same one.
    id: String,
    /// `None` after it was closed.
    writer: Mutex<Option<Writer>>,
    /// Segments with runs that are already finished.
    segments: Mutex<Vec<Segment>>,
    /// Where the finished runs are, by number.
    finished: BTreeMap<usize, (usize, Record)>,
    unstored: Mutex<Option<String>>,
}

impl Invocation {
    /// Begins an execution; with `resume` it continues the last interrupted one, if there is any.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn begin(
        store: &RunStore,
        scenario: &Scenario,
        engine: &Engine,
        resume: bool,
    ) -> io::Result<Self> {
        let Engine {
            provenance,
            build,
            binary,
        } = engine;
        let keys = Keys::of(scenario, provenance, build, binary.as_deref());
        Self::with_keys(store, scenario, build, keys, resume)
    }

    /// Begins an execution whose runs have these keys.
    pub(crate) fn with_keys(
        store: &RunStore,
        scenario: &Scenario,
        build: &Build,
        keys: Keys,
        resume: bool,
    ) -> io::Result<Self> {
        let (id, segments, finished) = if resume {
            interrupted(store, &keys)?
        } else {
            (None, Vec::new(), BTreeMap::new())
        };
        let writer = store.writer()?;
        let id = id.unwrap_or_else(|| name_of(writer.path()));
        let note = json!({
            "id": id,
            "name": scenario.name(),
            "scenario_sha256": scenario.hash(),
            "commit": build.commit_text(),
        });
        writer.append(Kind::Note, keys.invocation, note.to_string().into_bytes());
        Ok(Self {
            store: store.clone(),
            keys,
            id,
            writer: Mutex::new(Some(writer)),
            segments: Mutex::new(segments),
            finished,
            unstored: Mutex::default(),
        })
    }

    /// The numbers of the runs that need not be repeated; runs are numbered arm by arm.
    pub fn finished(&self) -> impl Iterator<Item = usize> {
        self.finished.keys().copied()
    }

    /// The bytes of a finished run; `None` if there is none or it is damaged.
    pub fn read(&self, number: usize) -> Option<Vec<u8>> {
        let (segment, record) = self.finished.get(&number)?;
        locked(&self.segments).get(*segment)?.read(record)
    }

    /// Stores the bytes of a run that has just finished, as [`crate::run_one`] returned them.
    pub fn append(&self, number: usize, bytes: Vec<u8>) {
        self.appended(number, bytes);
    }

    fn appended(&self, number: usize, bytes: Vec<u8>) -> Option<Appended> {
        let key = self.keys.stored(number, &self.id);
        let writer = locked(&self.writer);
        writer.as_ref()?.append(Kind::Run, key, bytes)
    }

    /// A finished run that need not be repeated, and where it is.
    pub(crate) fn piece(&self, number: usize) -> Option<(Piece, InStore)> {
        let bytes = self.read(number)?;
        let piece = Piece::from_bytes(&bytes, &self.keys.runs[number]).ok()?;
        let (segment, record) = self.finished.get(&number)?;
        let payload = locked(&self.segments).get(*segment)?.payload(record);
        let sections = table_sections(&bytes)?;
        Some((piece, InStore { payload, sections }))
    }

    /// Stores a run that has just finished; returns where it will be after a commit, if it can be stored.
    pub(crate) fn keep(&self, number: usize, piece: &Piece) -> Option<(usize, InStore)> {
        match piece.to_bytes(&self.keys.runs[number]) {
            Ok((bytes, sections)) => {
                let Appended { place, payload } = self.appended(number, bytes)?;
                Some((place, InStore { payload, sections }))
            }
            Err(error) => {
                locked(&self.unstored).get_or_insert(error.to_string());
                None
            }
        }
    }

    /// Waits until all appended runs are synced to disk.
    pub fn flush(&self) {
        if let Some(writer) = &*locked(&self.writer) {
            writer.flush();
        }
    }

    /// Number of runs of this execution that are synced to disk; 0 after [`Invocation::close`].
    pub fn committed(&self) -> usize {
        // The first record is the note.
        self.committed_records().saturating_sub(1)
    }

    /// Number of records that are synced to disk, the note included.
    pub(crate) fn committed_records(&self) -> usize {
        locked(&self.writer).as_ref().map_or(0, Writer::committed)
    }

    /// The first error that prevented storing a run.
    pub fn failure(&self) -> Option<String> {
        let unstored = locked(&self.unstored).clone();
        unstored.or_else(|| locked(&self.writer).as_ref()?.failure())
    }

    /// Ends the execution; any process can resume its stored runs.
    pub fn close(&self) {
        self.flush();
        let failure = self.failure();
        *locked(&self.unstored) = failure;
        drop(locked(&self.writer).take());
        locked(&self.segments).clear();
    }

    /// Removes the stored runs of this execution and of all interrupted executions of the same
    /// scenario. Call it when the complete result has been saved.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn discard(&self) -> io::Result<()> {
        let writer = locked(&self.writer).take();
        let own = writer.map_or(Ok(()), |writer| writer.discard());
        let held = std::mem::take(&mut *locked(&self.segments));
        let continued = self.store.remove(held);
        let others = self
            .store
            .select(|s| s.is_held() && is_of(s, self.keys.invocation))
            .and_then(|others| self.store.remove(others));
        own.and(continued).and(others)
    }
}

/// The last interrupted execution, the segments with its runs, and where each run is.
type Interrupted = (
    Option<String>,
    Vec<Segment>,
    BTreeMap<usize, (usize, Record)>,
);

fn interrupted(store: &RunStore, keys: &Keys) -> io::Result<Interrupted> {
    let wanted: BTreeSet<Key> = keys.runs.iter().copied().collect();
    let reused = |s: &Segment| {
        keys.reusable
            && s.records()
                .iter()
                .any(|record| wanted.contains(&record.key()))
    };
    let mut segments = store.select(|s| s.is_held() && is_of(s, keys.invocation) || reused(s))?;
    let held = segments.iter().filter(|s| s.is_held());
    let id = held.filter_map(|s| id_of(s, keys.invocation)).next_back();
    if !keys.reusable {
        segments.retain(|s| id_of(s, keys.invocation) == id);
    }
    let others = segments.iter_mut().filter(|s| !is_of(s, keys.invocation));
    others.for_each(Segment::release);
    let found: BTreeMap<Key, (usize, Record)> = segments
        .iter()
        .enumerate()
        .flat_map(|(n, segment)| segment.records().iter().map(move |record| (n, *record)))
        .filter(|(_, record)| record.kind() == Kind::Run)
        .map(|(n, record)| (record.key(), (n, record)))
        .collect();
    let stored = |number| keys.stored(number, id.as_deref().unwrap_or_default());
    let finished = (0..keys.runs.len())
        .filter_map(|number| Some((number, *found.get(&stored(number))?)))
        .collect();
    Ok((id, segments, finished))
}

fn is_of(segment: &Segment, invocation: Key) -> bool {
    let mut records = segment.records().iter();
    records.any(|record| record.kind() == Kind::Note && record.key() == invocation)
}

/// The execution that a segment belongs to.
fn id_of(segment: &Segment, invocation: Key) -> Option<String> {
    let mut records = segment.records().iter();
    let note = records.find(|r| r.kind() == Kind::Note && r.key() == invocation)?;
    let note: Value = serde_json::from_slice(&segment.read(note)?).ok()?;
    Some(note["id"].as_str()?.to_owned())
}

/// Unique, as the names of segments are.
fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
