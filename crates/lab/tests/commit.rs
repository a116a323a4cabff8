//! Failures of every operation that saving takes: no result is lost, and no half of one is loaded.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "real processes take real time")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sojourn_lab::{Outcome, Replace};
use sojourn_store::testing::{Fault, Faulty};

mod support;

use support::outcome;

const FAULTS: [Fault; 3] = [Fault::Once, Fault::Forever, Fault::Death];

/// A file of somebody else beside a result.
const NOTES: &str = "notes.md";

/// Every name below a directory, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn digest(folder: &Path) -> Option<String> {
    let loaded = Outcome::load(folder).ok()?;
    loaded.loaded_digest().map(str::to_owned)
}

/// Saves `new` with a fault at each operation, over `old` if there is one.
fn check_every_fault(old: Option<&Outcome>, new: &Outcome) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let expected = new.save(&whole, Replace::Nothing).unwrap();
    let mut complete = names(&whole);
    if old.is_some() {
        complete.push(NOTES.to_owned());
        complete.sort();
    }

    let prepare = |folder: &Path| {
        let before = old.map(|old| old.save(folder, Replace::Nothing).unwrap());
        if before.is_some() {
            fs::write(folder.join(NOTES), "mine").unwrap();
        }
        before
    };
    let counting = Faulty::counting();
    let folder = place.path().join("counting");
    prepare(&folder);
    new.save_through(Arc::new(counting.clone()), &folder, Replace::Result)
        .unwrap();
    let operations = counting.operations();
    assert!(operations > 30, "{operations}");

    for fault in FAULTS {
        for at in 0..operations {
            let folder = place.path().join(format!("{fault:?}-{at}"));
            let before = prepare(&folder);
            let files = Faulty::new(fault, at);
            let saved = new.save_through(Arc::new(files.clone()), &folder, Replace::Result);
            assert!(files.failed(), "{fault:?} {at}");
            let found = digest(&folder);
            let case = format!("{fault:?} at {at}: {saved:?}");
            match &saved {
                Ok(digest) => assert_eq!(found.as_ref(), Some(digest), "{case}"),
                Err(_) => assert!(
                    found == before || found.as_ref() == Some(&expected),
                    "{case}: {found:?}"
                ),
            }
            // The next one finds what is left, saves, and cleans up.
            let next = new.save(&folder, Replace::Result).unwrap();
            assert_eq!(next, expected, "{case}");
            assert_eq!(digest(&folder), Some(next), "{case}");
            assert_eq!(names(&folder), complete, "{case}");
            if old.is_some() {
                assert_eq!(fs::read(folder.join(NOTES)).unwrap(), b"mine", "{case}");
            }
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}

#[test]
fn a_fault_never_leaves_half_of_a_new_result() {
    check_every_fault(None, &outcome(1, false));
}

#[test]
fn a_fault_never_loses_the_result_that_is_replaced() {
    check_every_fault(Some(&outcome(1, false)), &outcome(2, false));
}

#[test]
fn a_result_is_whole_while_it_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let results = [outcome(1, false), outcome(2, false)];
    let digests = [1, 0].map(|n: usize| results[n].save(place.path(), Replace::Result).unwrap());
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for result in results.iter().cycle().take(50) {
                result.save(place.path(), Replace::Result).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let mut reads = 0;
        while !writer.is_finished() {
            let found = digest(place.path());
            assert!(found.is_some_and(|found| digests.contains(&found)));
            reads += 1;
        }
        assert!(reads > 10, "{reads}");
    });
}

#[test]
fn a_fault_while_reports_are_removed_is_repaired() {
    let (old, new) = (outcome(1, false), outcome(2, false));
    let place = tempfile::tempdir().unwrap();
    let mut removed = 0;
    for at in 0.. {
        let folder = place.path().join(at.to_string());
        let manifest = old.save(&folder, Replace::Nothing).unwrap();
        let report = folder.join("report.html");
        fs::write(&report, "report").unwrap();
        let sha256 = sojourn_scenario::digest::sha256_hex(b"report");
        let index = serde_json::json!({
            "report.html": { "manifest": manifest, "sha256": sha256 }
        });
        fs::write(folder.join(".sojourn-derived.json"), index.to_string()).unwrap();
        let files = Faulty::new(Fault::Death, at);
        let saved = new.save_through(Arc::new(files.clone()), &folder, Replace::Result);
        let is_old = digest(&folder) == Some(manifest);
        assert!(
            !is_old || report.exists(),
            "the report of the old result stays with it"
        );
        removed += usize::from(saved.is_err() && !report.exists());
        new.save(&folder, Replace::Result).unwrap();
        assert!(!report.exists());
        if !files.failed() {
            break;
        }
    }
    assert!(removed > 0, "no death after the removal was tried");
}
