//! The store of finished runs: what is committed is found again, whatever happens.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sojourn_store::testing::{Fault, Faulty};
use sojourn_store::{Disk, Files, KEPT, Key, Kind, RunStore, Segment, Writer};

fn key(number: u8) -> Key {
    [number; 32]
}

fn payload(number: u8) -> Vec<u8> {
    vec![number; 1_000 + usize::from(number)]
}

fn append(writer: &Writer, number: u8) {
    writer.append(Kind::Run, key(number), payload(number));
}

fn open(folder: &Path) -> RunStore {
    RunStore::open(folder, Arc::new(Disk)).unwrap()
}

/// The numbers of the whole records; panics if a payload is not the one that was written.
fn found(segments: &[Segment]) -> Vec<u8> {
    let mut numbers = Vec::new();
    for segment in segments {
        for record in segment.records() {
            let number = record.key()[0];
            if let Some(read) = segment.read(record) {
                assert_eq!(read, payload(number), "record {number}");
                numbers.push(number);
            }
        }
    }
    numbers
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some()).collect()
}

#[test]
fn records_are_found_after_their_writer_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let writer = store.writer().unwrap();
    (1..=9).for_each(|number| append(&writer, number));
    drop(writer);
    let segments = store.select(|_| true).unwrap();
    assert_eq!(found(&segments), (1..=9).collect::<Vec<_>>());
    assert!(segments[0].is_held());
    assert_eq!(segments[0].records()[0].kind(), Kind::Run);
}

#[test]
fn records_of_a_living_writer_are_read_but_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let writer = store.writer().unwrap();
    append(&writer, 1);
    writer.flush();
    assert_eq!(writer.committed(), 1);
    let segments = open(folder.path()).select(|_| true).unwrap();
    assert_eq!(found(&segments), [1]);
    assert!(!segments[0].is_held());
    store.remove(segments).unwrap();
    assert_eq!(found(&store.select(|_| true).unwrap()), [1]);
}

#[test]
fn a_segment_that_is_held_is_not_held_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append(&store.writer().unwrap(), 1);
    let first = store.select(|_| true).unwrap();
    let second = open(folder.path()).select(Segment::is_held).unwrap();
    assert_eq!((first.len(), second.len()), (1, 0));
    drop(first);
    assert_eq!(store.select(Segment::is_held).unwrap().len(), 1);
}

#[test]
fn several_writers_have_a_segment_each() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 1..=8 {
            let folder = folder.path();
            scope.spawn(move || {
                let writer = open(folder).writer().unwrap();
                append(&writer, number);
                append(&writer, number + 100);
            });
        }
    });
    let mut numbers = found(&open(folder.path()).select(|_| true).unwrap());
    numbers.sort_unstable();
    let wanted: Vec<u8> = (1..=8).chain(101..=108).collect();
    assert_eq!(numbers, wanted);
}

#[test]
fn a_thousand_short_runs_take_few_commits() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path()).writer().unwrap();
    (0..1_000).for_each(|_| append(&writer, 7));
    writer.flush();
    assert_eq!(writer.committed(), 1_000);
    assert!(writer.syncs() < 100, "{} commits", writer.syncs());
}

#[test]
fn what_is_discarded_or_empty_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let writer = store.writer().unwrap();
    append(&writer, 1);
    writer.flush();
    writer.discard().unwrap();
    let writer = store.writer().unwrap();
    writer.append(Kind::Note, key(1), b"only a note".to_vec());
    drop(writer);
    assert_eq!(files(folder.path()), <[PathBuf; 0]>::default());
}

#[test]
fn a_torn_tail_is_ignored_and_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let writer = store.writer().unwrap();
    append(&writer, 1);
    append(&writer, 2);
    drop(writer);
    let [path] = &files(folder.path())[..] else {
        panic!("expected one segment");
    };
    let whole = fs::read(path).unwrap();
    let first = whole.len() - payload(2).len() - 64;
    for length in 0..whole.len() {
        fs::write(path, &whole[..length]).unwrap();
        let numbers = found(&store.select(|_| true).unwrap());
        let left = fs::metadata(path).map(|data| data.len());
        if length < first {
            assert_eq!(numbers, <[u8; 0]>::default(), "{length} bytes");
            assert!(
                left.is_err(),
                "{length} bytes: a segment without a run stays"
            );
        } else {
            assert_eq!(numbers, [1], "{length} bytes");
            assert_eq!(left.unwrap(), first as u64, "{length} bytes");
        }
    }
}

/// A segment with these records whose writer has closed it.
fn segment_of(folder: &Path, numbers: impl IntoIterator<Item = u8>) -> PathBuf {
    let writer = open(folder).writer().unwrap();
    numbers.into_iter().for_each(|n| append(&writer, n));
    drop(writer);
    files(folder).remove(0)
}

#[test]
fn damage_costs_the_record_in_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment_of(folder.path(), 1..=3);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (1..=3)
        .scan(16, |end, number| {
            *end += 64 + payload(number).len();
            Some(*end)
        })
        .collect();
    // `found` compares the payloads.
    for at in (0..12).chain((16..whole.len()).step_by(7)) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&path, &damaged).unwrap();
        let numbers = found(&open(folder.path()).select(|_| true).unwrap());
        let hit = (1..).zip(&ends).find(|(_, end)| at < **end && at >= 16);
        let hit = hit.map(|(number, _)| number);
        let wanted: Vec<u8> = (1..=3).filter(|n| Some(*n) != hit).collect();
        assert_eq!(numbers, wanted, "byte {at}");
        // Behind the last record that is found there is nothing to keep.
        let in_last_header = (ends[1]..ends[1] + 64).contains(&at);
        let kept = if in_last_header {
            &damaged[..ends[1]]
        } else {
            &damaged[..]
        };
        assert!(fs::read(&path).unwrap() == kept, "byte {at}");
    }
}

#[test]
fn an_inspection_counts_the_damage_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment_of(folder.path(), 1..=3);
    let whole = fs::read(&path).unwrap();
    let damaged = |content: &[u8]| -> usize {
        fs::write(&path, content).unwrap();
        let segments = RunStore::inspect(folder.path()).unwrap();
        assert!(segments.iter().all(|segment| !segment.is_held()));
        assert!(fs::read(&path).unwrap() == content);
        segments.iter().map(Segment::damaged).sum()
    };
    assert_eq!(damaged(&whole), 0);
    for at in (0..8).chain((16..whole.len()).step_by(7)) {
        let mut content = whole.clone();
        content[at] ^= 0x55;
        assert_eq!(damaged(&content), 1, "byte {at}");
    }
    // A killed writer leaves an incomplete record, which is no damage.
    for length in 16..whole.len() {
        assert_eq!(damaged(&whole[..length]), 0, "{length} bytes");
    }
    assert!(RunStore::inspect(&folder.path().join("none")).is_err());
}

#[test]
fn a_damaged_header_does_not_have_the_following_runs_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment_of(folder.path(), 1..=25);
    let mut damaged = fs::read(&path).unwrap();
    let third = 16 + 2 * 64 + payload(1).len() + payload(2).len();
    damaged[third + 5] ^= 1;
    fs::write(&path, &damaged).unwrap();
    // Another command starts.
    drop(open(folder.path()));
    assert!(fs::read(&path).unwrap() == damaged);
    let wanted: Vec<u8> = (1..=25).filter(|n| *n != 3).collect();
    assert_eq!(
        found(&open(folder.path()).select(|_| true).unwrap()),
        wanted
    );
}

#[test]
fn a_header_is_found_wherever_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment_of(folder.path(), [1, 2]);
    let whole = fs::read(&path).unwrap();
    let (first, second) = whole.split_at(16 + 64 + payload(1).len());
    // The search reads 64 KiB at a time; marks that begin no header are passed over.
    for gap in (65_400..65_600).chain([4, 131_072, 200_000]) {
        let mut damaged = [&first[..40], b"run\n", &vec![0; gap - 4]].concat();
        damaged.extend(second);
        fs::write(&path, &damaged).unwrap();
        let numbers = found(&open(folder.path()).select(|_| true).unwrap());
        assert_eq!(numbers, [2], "{gap} bytes");
    }
}

#[test]
fn old_segments_are_removed_and_those_of_other_versions_kept() {
    let folder = tempfile::tempdir().unwrap();
    append(&open(folder.path()).writer().unwrap(), 1);
    let path = files(folder.path()).remove(0);
    let mut other = fs::read(&path).unwrap();
    other[12] += 1;
    let other_path = folder.path().join("0-other.runs");
    fs::write(&other_path, other).unwrap();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    let set = |age: Duration| {
        let time = written - age;
        File::open(&path).unwrap().set_modified(time).unwrap();
    };
    set(KEPT.checked_sub(Duration::from_mins(1)).unwrap());
    assert_eq!(found(&open(folder.path()).select(|_| true).unwrap()), [1]);
    set(KEPT + Duration::from_mins(1));
    open(folder.path());
    assert_eq!(files(folder.path()), [other_path]);
}

/// What a writer reports when every operation goes through `files`: the records that it said are
/// committed, and whether it said that it failed.
fn story(folder: &Path, files: Arc<dyn Files>) -> (Vec<u8>, bool) {
    let Ok(store) = RunStore::open(folder, files) else {
        return (Vec::new(), true);
    };
    let Ok(writer) = store.writer() else {
        return (Vec::new(), true);
    };
    let mut committed = Vec::new();
    for number in 1..=6 {
        append(&writer, number);
        writer.flush();
        if writer.committed() == usize::from(number) {
            committed.push(number);
        }
    }
    let failed = writer.failure().is_some();
    (committed, failed)
}

#[test]
fn no_fault_loses_what_was_committed() {
    let counting = Faulty::counting();
    let folder = tempfile::tempdir().unwrap();
    let (all, failed) = story(folder.path(), Arc::new(counting.clone()));
    assert_eq!((all, failed), ((1..=6).collect(), false));
    let operations = counting.operations();
    assert!(operations > 15, "{operations}");
    for fault in [Fault::Once, Fault::Forever, Fault::Death] {
        for at in 0..operations {
            let folder = tempfile::tempdir().unwrap();
            let faulty = Faulty::new(fault, at);
            let (committed, failed) = story(folder.path(), Arc::new(faulty.clone()));
            let what = format!("{fault:?} at operation {at}");
            assert!(faulty.failed(), "{what} did not take place");
            assert!(failed || committed.len() == 6, "{what}: not reported");
            let segments = open(folder.path()).select(|_| true).unwrap();
            let numbers = found(&segments);
            assert!(
                numbers.starts_with(&committed) && numbers.len() <= committed.len() + 1,
                "{what}: {committed:?} committed, {numbers:?} found"
            );
            drop(segments);
            // Nothing is left that the start above did not clean up.
            let left = files(folder.path());
            assert_eq!(
                left.len(),
                usize::from(!numbers.is_empty()),
                "{what}: {left:?}"
            );
        }
    }
}

#[test]
fn a_full_disk_ends_the_storing_and_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Faulty::counting();
    drop(
        RunStore::open(folder.path(), Arc::new(counting.clone()))
            .unwrap()
            .writer(),
    );
    let first_write = counting.operations() - 1;
    let full = Faulty::new(Fault::Once, first_write);
    let writer = RunStore::open(folder.path(), Arc::new(full))
        .unwrap()
        .writer()
        .unwrap();
    for number in 1..=5 {
        append(&writer, number);
        writer.flush();
    }
    assert_eq!(writer.failure().as_deref(), Some("injected fault"));
    assert_eq!(writer.committed(), 0);
}

#[test]
fn a_pipe_among_the_segments_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let writer = store.writer().unwrap();
    append(&writer, 1);
    writer.flush();
    drop(writer);
    let pipe = folder.path().join("x.runs");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let path = folder.path().to_owned();
    let (sender, receiver) = std::sync::mpsc::channel();
    // Reading a pipe would not end.
    std::thread::spawn(move || {
        let found = RunStore::inspect(&path).unwrap().len();
        let selected = open(&path).select(|_| true).unwrap().len();
        let _ = sender.send((found, selected));
    });
    let counts = receiver.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(counts, Ok((1, 1)));
    assert!(pipe.exists());
}
