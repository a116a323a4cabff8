//! Directories that are claimed before the runs: what may be replaced in them, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use sojourn_lab::{Claim, Outcome, Replace};

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
