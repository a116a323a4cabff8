//! Result directories: what is replaced, what is refused, what damage is noticed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sojourn_lab::{Claim, Outcome, Replace, TableKind};
use sojourn_store::{Disk, Folder};

mod support;

use support::edit_manifest;

/// A result without any run: what the tables contain is not what is tested here.
fn outcome() -> Outcome {
    support::outcome(1, true)
}

fn refusal(folder: &Path) -> String {
    let message = outcome()
        .save(folder, Replace::Result)
        .unwrap_err()
        .to_string();
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
    written.save(&folder, Replace::Nothing).unwrap();
    let read = Outcome::load(&folder).unwrap();
    assert_eq!(read.manifest(), written.manifest());
    assert_eq!(read.scenario(), written.scenario());
    for kind in TableKind::ALL {
        assert_eq!(read.table(kind).rows(), written.table(kind).rows());
    }
    let left: Vec<_> = fs::read_dir(place.path().join("new")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is beside it: {left:?}");
    assert_eq!(hidden(&folder), none());
}

fn none() -> Vec<String> {
    Vec::new()
}

/// The hidden names in a directory.
fn hidden(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn only_a_result_or_an_empty_folder_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);

    fs::create_dir(at("empty")).unwrap();
    outcome().save(&at("empty"), Replace::Nothing).unwrap();
    fs::write(at("empty").join("notes.md"), "mine").unwrap();
    outcome().save(&at("empty"), Replace::Nothing).unwrap();
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
    assert!(refusal(Path::new("/")).ends_with("expected an empty or new directory"));
    assert!(refusal(Path::new("/proc/result")).contains("/proc/result: cannot be written"));
}

#[test]
fn damage_is_reported_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("result");
    let fresh = || outcome().save(&folder, Replace::Result).unwrap();
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

/// What is said of a result after its manifest was changed, with its digest.
fn damage_of(change: impl Fn(&mut Value)) -> String {
    let place = tempfile::tempdir().unwrap();
    outcome().save(place.path(), Replace::Nothing).unwrap();
    edit_manifest(place.path(), change);
    damage(place.path())
}

#[test]
fn every_key_of_the_manifest_is_digested() {
    let place = tempfile::tempdir().unwrap();
    support::outcome(1, false)
        .save(place.path(), Replace::Nothing)
        .unwrap();
    let path = place.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<_> = whole.as_object().unwrap().keys().cloned().collect();
    for expected in [
        "backend",
        "complete",
        "finished",
        "metric_definitions",
        "notices",
        "sojourn",
    ] {
        assert!(keys.iter().any(|key| key == expected), "{expected}");
    }
    for key in keys {
        let mut changed = whole.clone();
        changed[&key] = match &whole[&key] {
            Value::Bool(flag) => (!flag).into(),
            Value::Number(n) => (n.as_u64().unwrap() + 1).into(),
            Value::String(text) => format!("{text}0").into(),
            Value::Array(items) => {
                let mut items = items.clone();
                items.push("more".into());
                items.into()
            }
            Value::Object(fields) => {
                let mut fields = fields.clone();
                fields.insert("more".to_owned(), 1.into());
                fields.into()
            }
            Value::Null => 0.into(),
        };
        fs::write(&path, changed.to_string()).unwrap();
        damage(place.path());
        if !["format", "scenario", "format_version"].contains(&key.as_str()) {
            let expected = "manifest.json: was altered: the SHA-256 of its content does not match \
                            manifest_sha256";
            let message = damage(place.path());
            assert!(message.ends_with(expected), "{key}: {message}");
        }
    }
    // The order of keys and the spaces between them do not count.
    fs::write(&path, whole.to_string()).unwrap();
    Outcome::load(place.path()).unwrap();
}

#[test]
fn counts_that_contradict_the_scenario_are_refused() {
    let changes: [&dyn Fn(&mut Value); 4] = [
        &|m| m["finished"] = 3.into(),
        &|m| m["finished"] = 2.into(),
        &|m| m["total"] = 0.into(),
        &|m| m["complete"] = true.into(),
    ];
    for change in changes {
        let message = damage_of(change);
        assert!(
            message.contains("manifest.json: contradicts itself"),
            "{message}"
        );
    }
}

#[test]
fn a_result_is_replaced_on_request_only() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let complete = |seed| support::outcome(seed, false);
    let (first, second) = (complete(1), complete(2));
    let digest = first.save(folder, Replace::Nothing).unwrap();
    let same = first.save(folder, Replace::Nothing).unwrap();
    assert_eq!(same, digest, "the same result may be saved again");

    let message = second.save(folder, Replace::Nothing).unwrap_err().rule;
    let expected = "contains a result (2 of 2 runs); expected an empty or new directory";
    assert_eq!(message, expected);
    assert_eq!(
        Claim::new(folder, Replace::Nothing, None).unwrap_err().rule,
        expected
    );
    assert_eq!(
        Outcome::load(folder).unwrap().loaded_digest(),
        Some(digest.as_str())
    );

    let message = outcome().save(folder, Replace::Result).unwrap_err().rule;
    let expected = "contains a complete result (2 runs), which an incomplete one (0 of 2 runs) \
                    does not replace";
    assert_eq!(message, expected);
    let claim = Claim::new(folder, Replace::Result, None).unwrap();
    assert_eq!(outcome().save_to(&claim).unwrap_err().rule, expected);
    assert_eq!(
        Outcome::load(folder).unwrap().loaded_digest(),
        Some(digest.as_str())
    );

    let replaced = second.save_to(&claim).unwrap();
    assert_eq!(
        Outcome::load(folder).unwrap().loaded_digest(),
        Some(replaced.as_str())
    );
    assert_eq!(hidden(folder), none());
}

#[test]
fn a_claim_excludes_others_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a/b");
    let claim = Claim::new(&folder, Replace::Nothing, None).unwrap();
    let busy = outcome().save(&folder, Replace::Nothing).unwrap_err();
    assert_eq!(busy.rule, "another process is writing to it");
    drop(claim);
    assert!(!place.path().join("a").exists());

    let claim = Claim::new(&folder, Replace::Nothing, None).unwrap();
    outcome().save_to(&claim).unwrap();
    drop(claim);
    Outcome::load(&folder).unwrap();
}

#[test]
fn a_result_is_saved_to_links_and_to_the_root_of_a_file_system() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("target")).unwrap();
    fs::create_dir(at("target/lost+found")).unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    outcome().save(&at("link"), Replace::Nothing).unwrap();
    assert!(
        at("link").is_symlink(),
        "the link is followed, not replaced"
    );
    Outcome::load(&at("target")).unwrap();
}

#[test]
fn reports_of_another_manifest_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let digest = support::outcome(1, false)
        .save(place.path(), Replace::Nothing)
        .unwrap();
    let sha256 = |text: &str| sojourn_scenario::digest::sha256_hex(text.as_bytes());
    let index = serde_json::json!({
        "report.html": { "manifest": digest, "sha256": sha256("report") },
        "edited.html": { "manifest": digest, "sha256": sha256("report") },
        "gone.png": { "manifest": digest, "sha256": sha256("gone") },
        "../outside.html": { "manifest": digest, "sha256": sha256("report") },
    });
    let outside = place.path().join("../outside.html");
    fs::write(&outside, "report").unwrap();
    for (name, text) in [
        (".sojourn-derived.json", index.to_string()),
        ("report.html", "report".to_owned()),
        ("edited.html", "my report".to_owned()),
        ("foreign.html", "report".to_owned()),
    ] {
        fs::write(at(name), text).unwrap();
    }
    support::outcome(1, false)
        .save(place.path(), Replace::Nothing)
        .unwrap();
    assert!(at("report.html").exists(), "the same manifest");
    support::outcome(2, false)
        .save(place.path(), Replace::Result)
        .unwrap();
    assert!(!at("report.html").exists());
    for name in ["edited.html", "foreign.html"] {
        assert!(at(name).exists(), "{name}");
    }
    assert!(outside.exists());
    fs::remove_file(outside).unwrap();
}

#[test]
fn what_an_interrupted_commit_left_is_finished_or_removed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let first = support::outcome(1, false)
        .save(place.path(), Replace::Nothing)
        .unwrap();
    let other = tempfile::tempdir().unwrap();
    let second = support::outcome(2, false)
        .save(other.path(), Replace::Nothing)
        .unwrap();
    let digest = || {
        Outcome::load(place.path())
            .unwrap()
            .loaded_digest()
            .map(str::to_owned)
    };

    // Files that were not committed.
    fs::create_dir(at(".sojourn-new")).unwrap();
    fs::copy(
        other.path().join("manifest.json"),
        at(".sojourn-new/manifest.json"),
    )
    .unwrap();
    assert_eq!(digest(), Some(first));
    // Files that were committed; some are in their places.
    fs::rename(at(".sojourn-new"), at(".sojourn-commit")).unwrap();
    for kind in TableKind::ALL {
        let name = format!("{kind}.parquet");
        let staged = format!(".sojourn-commit/{name}");
        let place = if kind == TableKind::Flows {
            &name
        } else {
            &staged
        };
        fs::copy(other.path().join(&name), at(place)).unwrap();
    }
    assert_eq!(digest(), Some(second.clone()));
    drop(Folder::claim(Arc::new(Disk), place.path()).unwrap());
    assert_eq!(digest(), Some(second));
    assert_eq!(hidden(place.path()), none());
}

#[test]
fn the_directory_of_a_commit_is_no_link() {
    let place = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("manifest.json"), "mine").unwrap();
    let link = place.path().join(".sojourn-commit");
    std::os::unix::fs::symlink(target.path(), &link).unwrap();
    assert!(refusal(place.path()).contains(".sojourn-commit is not a directory"));
    assert!(damage(place.path()).contains("has no manifest.json"));
    assert!(target.path().join("manifest.json").exists());
}

#[test]
fn formats_that_cannot_be_read_are_refused() {
    let newer = damage_of(|manifest| {
        manifest["format_version"] = 9.into();
        manifest["sojourn"]["version"] = "3.1.0".into();
        manifest["sojourn"]["commit"] = "abcdef".into();
    });
    let expected = "manifest.json: has format 9, which needs Sojourn 3.1.0 (commit abcdef) or \
                    later; this version reads formats 2 to 7";
    assert!(newer.ends_with(expected), "{newer}");

    let packaged = damage_of(|manifest| {
        manifest["format_version"] = 8.into();
        manifest["sojourn"]["version"] = "3.1.0".into();
        manifest["sojourn"]["commit"] = Value::Null;
    });
    assert!(
        packaged.contains("needs Sojourn 3.1.0 or later;"),
        "{packaged}"
    );

    let bare = damage_of(|manifest| {
        manifest["format_version"] = 8.into();
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
        outcome().save(place.path(), Replace::Nothing).unwrap();
        edit_manifest(place.path(), |manifest| {
            manifest["format_version"] = format.into();
            manifest["tables"].as_object_mut().unwrap().remove(table);
        });
        Outcome::load(place.path()).map_err(|e| e.to_string())
    };
    for (table, format) in [("flows", 2), ("transactions", 3), ("applications", 5)] {
        let message = without(table, format).unwrap_err();
        let expected = format!(
            "manifest.json: does not list the table {table}, which format {format} requires"
        );
        assert!(message.ends_with(&expected), "{message}");
    }
    let read = without("transactions", 2).unwrap();
    assert_eq!(read.table(TableKind::Transactions).rows(), 0);
}
