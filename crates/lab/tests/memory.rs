//! Results from elsewhere that would take more memory than there is: refused, never aborted.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sojourn_lab::{Outcome, Replace};

mod support;

use support::outcome;

/// Names the directory that [`loads_a_result`] loads.
const DIRECTORY: &str = "SOJOURN_TEST_LOADS";

/// The address space of the process that loads, in kB: a failed allocation ends it.
const ADDRESS_SPACE: u32 = 1_000_000;

#[test]
#[ignore = "the process with little memory that the other tests start"]
fn loads_a_result() {
    let folder = PathBuf::from(env::var_os(DIRECTORY).unwrap());
    println!("{}", Outcome::load(&folder).unwrap_err());
}

/// What loading a directory with little memory says.
fn refusal(folder: &Path) -> String {
    let limited = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
    let done = Command::new("sh")
        .args(["-c", &limited])
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "loads_a_result", "--nocapture"])
        .env(DIRECTORY, folder)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{done:?}");
    let path = folder.to_str().unwrap();
    let message = output.lines().find(|line| line.contains(path)).unwrap();
    message.to_owned()
}

/// A result whose manifest has `count` more objects, of one entry each.
fn with_objects(folder: &Path, count: usize) {
    outcome(1, false).save(folder, Replace::Nothing).unwrap();
    let path = folder.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let more = format!("{{\"more\": [{}0],", "{\"a\":1},".repeat(count));
    fs::write(&path, text.replacen('{', &more, 1)).unwrap();
}

#[test]
fn a_short_manifest_of_very_many_objects_is_refused() {
    let place = tempfile::tempdir().unwrap();
    with_objects(place.path(), 1_990_000);
    let length = fs::metadata(place.path().join("manifest.json"))
        .unwrap()
        .len();
    assert!(length < 17_000_000, "{length}");
    let expected = "manifest.json: has too many values: they take more than 512 MiB of memory";
    let message = refusal(place.path());
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn the_largest_manifest_is_digested_within_twice_the_memory_of_its_values() {
    let place = tempfile::tempdir().unwrap();
    with_objects(place.path(), 500_000);
    let message = refusal(place.path());
    let expected = "manifest.json: was altered: the SHA-256 of its content does not match \
                    manifest_sha256";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn a_table_that_states_a_length_beyond_the_memory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    outcome(1, false)
        .save(place.path(), Replace::Nothing)
        .unwrap();
    let path = place.path().join("pings.parquet");
    // A hole: it takes nothing on the disk.
    let hole = File::options().write(true).open(&path).unwrap();
    hole.set_len(2 << 30).unwrap();
    let message = refusal(place.path());
    let expected = "pings.parquet: cannot be read: 2147483648 bytes do not fit into memory";
    assert!(message.ends_with(expected), "{message}");
}
