//! A result whose files are altered one at a time.

#![allow(dead_code, reason = "no target needs all of it")]

#[path = "../../tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use sojourn_lab::{Outcome, Replace, TableKind};
use tempfile::TempDir;

/// The memory that a result with altered files may take.
const MAX_BYTES: u64 = 100_000_000;

/// Checks that the result with these bytes for a manifest is loaded or refused in one line.
pub fn check_manifest(bytes: &[u8]) {
    check(
        |folder| support::put_manifest(folder, bytes),
        "manifest.json",
    );
}

/// Checks that the result with these bytes for a table is loaded or refused in one line.
pub fn check_table(kind: TableKind, bytes: &[u8]) {
    let name = format!("{kind}.parquet");
    check(|folder| support::put_table(folder, kind, bytes), &name);
}

fn check(alter: impl FnOnce(&Path), name: &str) {
    static SAVED: OnceLock<TempDir> = OnceLock::new();
    let place = SAVED.get_or_init(|| {
        let place = tempfile::tempdir().expect("a directory");
        let outcome = support::outcome(1, false);
        outcome
            .save(place.path(), Replace::Nothing)
            .expect("room for a result");
        place
    });
    let paths = ["manifest.json", name].map(|name| place.path().join(name));
    let originals = paths
        .each_ref()
        .map(|path| fs::read(path).expect("a saved file"));
    alter(place.path());
    support::refusal(Outcome::load_within(place.path(), MAX_BYTES));
    for (path, original) in paths.iter().zip(originals) {
        fs::write(path, original).expect("a writable file");
    }
}
