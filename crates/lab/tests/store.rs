//! Result directories: what is replaced, what is refused, what damage is noticed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sojourn_lab::{Outcome, RunOptions, Scenario, TableKind, run};
use sojourn_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "1s"
    links = { up = { rate = "1mbit", qdisc = "codel" } }
    traffic = [{ type = "udp", direction = "up", rate = "1mbit" }]
"#;

/// A result without any run: what stands in the tables is not what is tested here.
fn outcome() -> Outcome {
    let options = RunOptions {
        jobs: None,
        cancel: &AtomicBool::new(true),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    run(
        &Simulator::default(),
        &Scenario::from_toml(SCENARIO).unwrap(),
        options,
    )
    .unwrap()
}

fn refusal(folder: &Path) -> String {
    let message = outcome().save(folder).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

fn damage(folder: &Path) -> String {
    let message = Outcome::load(folder).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn what_is_written_is_read_back() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("new/result");
    let written = outcome();
    written.save(&folder).unwrap();
    let read = Outcome::load(&folder).unwrap();
    assert_eq!(read.manifest(), written.manifest());
    assert_eq!(read.scenario(), written.scenario());
    for kind in TableKind::ALL {
        assert_eq!(read.table(kind).rows(), written.table(kind).rows());
    }
    let left: Vec<_> = fs::read_dir(place.path().join("new")).unwrap().collect();
    assert_eq!(left.len(), 1, "temporary directories are gone: {left:?}");
}

#[test]
fn only_a_result_or_an_empty_folder_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);

    fs::create_dir(at("empty")).unwrap();
    outcome().save(&at("empty")).unwrap();
    fs::write(at("empty").join("notes.md"), "mine").unwrap();
    outcome().save(&at("empty")).unwrap();
    let notes = fs::read_to_string(at("empty").join("notes.md")).unwrap();
    assert_eq!(notes, "mine", "notes beside a result survive");

    fs::create_dir(at("thesis")).unwrap();
    fs::write(
        at("thesis").join("manifest.json"),
        "{\"format\": \"other\"}",
    )
    .unwrap();
    assert!(refusal(&at("thesis")).ends_with("expected an empty or new directory"));
    assert_eq!(fs::read_dir(at("thesis")).unwrap().count(), 1);

    fs::write(at("file"), "text").unwrap();
    assert!(refusal(&at("file")).ends_with("expected an empty or new directory"));
    assert!(refusal(&at("file").join("below")).contains("cannot be written"));
    assert!(refusal(Path::new("/")).contains("is not a directory name"));
    assert!(refusal(Path::new("/proc/result")).contains("/proc/result: cannot be written"));
}

#[test]
fn damage_is_reported_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("result");
    let fresh = || outcome().save(&folder).unwrap();
    let flows = folder.join("flows.parquet");
    let manifest = folder.join("manifest.json");

    assert!(damage(&folder).ends_with("does not exist; expected a result directory"));
    assert!(damage(place.path()).contains("has no manifest.json"));

    fresh();
    let whole = fs::read(&flows).unwrap();
    fs::write(&flows, &whole[..whole.len() / 2]).unwrap();
    assert!(damage(&folder).contains("flows.parquet: is truncated or altered"));

    fresh();
    fs::remove_file(&flows).unwrap();
    assert!(damage(&folder).contains("flows.parquet: is missing"));

    fresh();
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert!(damage(&folder).contains("manifest.json: is not the manifest"));

    fs::write(&manifest, text.replace("1mbit", "2mbit")).unwrap();
    assert!(damage(&folder).contains("manifest.json: was altered"));

    fs::write(&manifest, text).unwrap();
    fs::write(&flows, "").unwrap();
    assert!(damage(&folder).contains("flows.parquet: is truncated or altered"));
    assert!(damage(&flows).contains("is a file"));
}

/// What is said of a result after its manifest was changed.
fn damage_of(change: impl Fn(&mut Value)) -> String {
    let place = tempfile::tempdir().unwrap();
    outcome().save(place.path()).unwrap();
    let path = place.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
    damage(place.path())
}

#[test]
fn formats_that_cannot_be_read_are_refused() {
    let newer = damage_of(|manifest| {
        manifest["format_version"] = 9.into();
        manifest["sojourn"]["version"] = "3.1.0".into();
        manifest["sojourn"]["commit"] = "abcdef".into();
    });
    let expected = "manifest.json: has format 9, which needs Sojourn 3.1.0 (commit abcdef) or \
                    later; this version reads formats 2 to 5";
    assert!(newer.ends_with(expected), "{newer}");

    let packaged = damage_of(|manifest| {
        manifest["format_version"] = 6.into();
        manifest["sojourn"]["version"] = "3.1.0".into();
        manifest["sojourn"]["commit"] = Value::Null;
    });
    assert!(
        packaged.contains("needs Sojourn 3.1.0 or later;"),
        "{packaged}"
    );

    let bare = damage_of(|manifest| {
        manifest["format_version"] = 6.into();
        manifest["sojourn"] = Value::Null;
    });
    assert!(bare.contains("needs a later version of Sojourn;"), "{bare}");

    let older = damage_of(|manifest| manifest["format_version"] = 1.into());
    assert!(older.contains("has format 1, which is too old;"), "{older}");

    let odd = damage_of(|manifest| manifest["format_version"] = "four".into());
    assert!(odd.contains("has no format_version;"), "{odd}");
}

#[test]
fn a_table_may_lack_only_where_the_format_lacked_it() {
    let without = |table: &str, format: u64| {
        let place = tempfile::tempdir().unwrap();
        outcome().save(place.path()).unwrap();
        let path = place.path().join("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest["format_version"] = format.into();
        manifest["tables"].as_object_mut().unwrap().remove(table);
        fs::write(&path, manifest.to_string()).unwrap();
        Outcome::load(place.path()).map_err(|e| e.to_string())
    };
    for (table, format) in [("flows", 2), ("transactions", 3), ("applications", 4)] {
        let message = without(table, format).unwrap_err();
        let expected = format!(
            "manifest.json: does not list the table {table}, which format {format} requires"
        );
        assert!(message.ends_with(&expected), "{message}");
    }
    let read = without("transactions", 2).unwrap();
    assert_eq!(read.table(TableKind::Transactions).rows(), 0);
}
