//! What a run store contains: executions that were interrupted or are running.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sojourn_store::{Key, Kind, RunStore, Segment};

/// The stored runs of one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredScenario {
    /// Its name; empty if the store does not know it.
    pub name: String,
    /// Its digest.
    pub scenario_sha256: String,
    /// The version of Sojourn that has run it.
    pub commit: String,
    /// Stored runs, without repetitions.
    pub runs: usize,
    /// Size of the segments.
    pub bytes: u64,
    /// How long ago a run was last stored.
    pub age: Duration,
    /// Whether a process is writing it now.
    pub is_active: bool,
}

/// Result of a check of all records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Records that were found.
    pub records: usize,
    /// Files with damaged records, and the number of these.
    pub damaged: Vec<(String, usize)>,
}

/// Lists the scenarios that have runs in the store, oldest first.
///
/// # Errors
/// If the store cannot be read.
pub fn stored_scenarios(store: &RunStore) -> io::Result<Vec<StoredScenario>> {
    let mut found: BTreeMap<(String, String), (StoredScenario, Vec<Key>)> = BTreeMap::new();
    for segment in store.select(|_| true)? {
        let note = note_of(&segment).unwrap_or_default();
        let text = |name: &str| note[name].as_str().unwrap_or_default().to_owned();
        let (hash, commit) = (text("scenario_sha256"), text("commit"));
        let blank = StoredScenario {
            name: text("name"),
            scenario_sha256: hash.clone(),
            commit: commit.clone(),
            runs: 0,
            bytes: 0,
            age: Duration::MAX,
            is_active: false,
        };
        let entry = found.entry((hash, commit));
        let (scenario, keys) = entry.or_insert((blank, Vec::new()));
        scenario.bytes += segment.size();
        scenario.age = scenario.age.min(segment.age());
        scenario.is_active |= !segment.is_held();
        let runs = segment.records().iter().filter(|r| r.kind() == Kind::Run);
        keys.extend(runs.map(sojourn_store::Record::key));
    }
    let mut scenarios: Vec<_> = found
        .into_values()
        .map(|(mut scenario, mut keys)| {
            keys.sort_unstable();
            keys.dedup();
            scenario.runs = keys.len();
            scenario
        })
        .collect();
    scenarios.sort_by(|a, b| (b.age, &a.name).cmp(&(a.age, &b.name)));
    Ok(scenarios)
}

/// Reads every record in the directory of a store and compares its checksum. Repairs nothing.
///
/// # Errors
/// If the store cannot be read.
pub fn verify_store(folder: &Path) -> io::Result<Verified> {
    let mut verified = Verified::default();
    for segment in RunStore::inspect(folder)? {
        let damaged = segment.damaged();
        verified.records += segment.records().len() + segment.gaps();
        if damaged > 0 {
            let name = segment.path().display().to_string();
            verified.damaged.push((name, damaged));
        }
    }
    Ok(verified)
}

/// Removes the segments that no process writes and that were written no later than `age` ago; returns how many bytes
/// that were.
///
/// # Errors
/// If the store cannot be read, or a file cannot be removed.
pub fn collect_garbage(store: &RunStore, age: Duration) -> io::Result<u64> {
    let old = store.select(|segment| segment.is_held() && segment.age() >= age)?;
    let bytes = old.iter().map(Segment::size).sum();
    store.remove(old)?;
    Ok(bytes)
}

fn note_of(segment: &Segment) -> Option<Value> {
    let note = segment.records().iter().find(|r| r.kind() == Kind::Note)?;
    serde_json::from_slice(&segment.read(note)?).ok()
}
