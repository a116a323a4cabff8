//! Directories that are claimed before the runs: what may be replaced in them, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use sojourn_lab::{Claim, Outcome, Replace, TableKind};

mod support;

use support::outcome;

/// Leaves in a directory what a process leaves that dies behind the commit.
fn commit_and_die(result: &Outcome, folder: &Path) {
    result
        .save(&folder.join(".sojourn-commit"), Replace::Nothing)
        .unwrap();
    assert!(!folder.join("manifest.json").exists());
}

#[test]
fn a_result_of_the_continued_scenario_may_be_replaced() {
    let (one, other) = (outcome(1, false), outcome(2, false));
    let hash = |result: &Outcome| result.scenario().hash().to_owned();
    let interrupted: fn(&Outcome, &Path) = commit_and_die;
    let whole: fn(&Outcome, &Path) = |result, folder| {
        result.save(folder, Replace::Nothing).unwrap();
    };
    for prepare in [interrupted, whole] {
        let place = tempfile::tempdir().unwrap();
        prepare(&one, place.path());
        for continued in [None, Some(hash(&other))] {
            let claim = Claim::new(place.path(), Replace::Nothing, continued.as_deref());
            let rule = claim.unwrap_err().rule;
            let expected = "contains a result (2 of 2 runs); ";
            assert!(rule.starts_with(expected), "{rule}");
        }

        let place = tempfile::tempdir().unwrap();
        prepare(&one, place.path());
        let claim = Claim::new(place.path(), Replace::Nothing, Some(&hash(&one))).unwrap();
        let incomplete = outcome(1, true).save_to(&claim).unwrap_err().rule;
        assert!(incomplete.contains("complete result"), "{incomplete}");
        let digest = one.save_to(&claim).unwrap();
        let loaded = Outcome::load(place.path()).unwrap();
        assert_eq!(loaded.loaded_digest(), Some(digest.as_str()));
    }
}

#[test]
fn a_link_in_a_directory_is_neither_replaced_nor_followed() {
    let (one, other) = (outcome(1, false), outcome(2, false));
    let tables = TableKind::ALL.map(|kind| format!("{kind}.parquet"));
    for name in tables.iter().map(String::as_str).chain(["manifest.json"]) {
        let place = tempfile::tempdir().unwrap();
        let (folder, target) = (place.path().join("result"), place.path().join("mine"));
        one.save(&folder, Replace::Nothing).unwrap();
        let link = folder.join(name);
        fs::rename(&link, &target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let before = fs::read(&target).unwrap();

        let expected = format!(
            "cannot be written: {name} is a symbolic link; expected a regular file or none"
        );
        let claimed = Claim::new(&folder, Replace::Result, None);
        assert_eq!(claimed.unwrap_err().rule, expected);
        let saved = other.save(&folder, Replace::Result);
        assert_eq!(saved.unwrap_err().rule, expected);
        assert!(link.is_symlink(), "{name}");
        assert!(fs::read(&target).unwrap() == before, "{name}");
        // The result is as it was.
        assert!(Outcome::load(&folder).unwrap().is_complete());

        fs::remove_file(&link).unwrap();
        fs::create_dir(&link).unwrap();
        let saved = other.save(&folder, Replace::Result);
        let rule = saved.unwrap_err().rule;
        if name != "manifest.json" {
            let expected = format!(
                "cannot be written: {name} is a directory; expected a regular file or none"
            );
            assert_eq!(rule, expected);
        }
    }
}
