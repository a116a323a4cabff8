//! Results that earlier versions of Sojourn saved load.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sojourn_lab::{Outcome, Replace, RunOptions, Scenario, TableKind, run};
use sojourn_scenario::digest::hex;
use sojourn_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "1s"
    links = { up = { rate = "2mbit", qdisc = "codel" }, down = { rate = "2mbit", qdisc = "codel" } }
    traffic = [
        { type = "tcp", direction = "up" },
        { type = "request", direction = "down", bytes = "10kb", think = "100ms" },
        { type = "ping", direction = "up" },
    ]
"#;

/// A table and columns of it.
type Lacked<'a> = (&'a str, &'a [&'a str]);

/// The columns that the first version of format 2 lacked.
const LACKED_BY_2: [Lacked<'static>; 3] = [
    (
        "flows",
        &["aborted", "bytes", "handshake_losses", "initial_losses"],
    ),
    (
        "links",
        &[
            "lost_packets",
            "duplicated_packets",
            "driver_ms_mean",
            "driver_ms_p95",
        ],
    ),
    ("link_series", &["lost_packets", "duplicated_packets"]),
];

/// Some of the columns that the first version of format 3 lacked.
const LACKED_BY_3: [Lacked<'static>; 3] = [
    ("flows", &["aborted"]),
    (
        "links",
        &["driver_ms_mean", "driver_ms_p95", "drops_ack_filter"],
    ),
    ("applications", &["stalls", "mos", "rpm", "rpm_confidence"]),
];

fn outcome() -> Outcome {
    let options = RunOptions {
        jobs: None,
        cancel: &AtomicBool::new(false),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    run(&Simulator::default(), &scenario, options).unwrap()
}

/// Saves `outcome` as an earlier format: without these tables, columns and a key of the scenario.
fn save_as(folder: &Path, outcome: &Outcome, format: u64, tables: &[&str], columns: &[Lacked<'_>]) {
    outcome.save(folder, Replace::Nothing).unwrap();
    let path = folder.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["format_version"] = format.into();
    let scenario = manifest["scenario"].as_object_mut().unwrap();
    scenario.remove("keep_events").unwrap();
    let hash = Scenario::hash_as_written(&manifest["scenario"].to_string()).unwrap();
    assert_ne!(hash, outcome.scenario().hash());
    manifest["scenario_sha256"] = hash.into();
    for table in tables {
        fs::remove_file(folder.join(format!("{table}.parquet"))).unwrap();
        manifest["tables"].as_object_mut().unwrap().remove(*table);
    }
    for (table, columns) in columns {
        let file = folder.join(format!("{table}.parquet"));
        write_without(&file, outcome, TableKind::named(table).unwrap(), columns);
        let sha256 = hex(&Sha256::digest(fs::read(&file).unwrap()));
        manifest["tables"][table]["sha256"] = sha256.into();
    }
    manifest.as_object_mut().unwrap().remove("manifest_sha256");
    fs::write(&path, manifest.to_string()).unwrap();
}

fn write_without(file: &Path, outcome: &Outcome, kind: TableKind, columns: &[&str]) {
    let table = outcome.table(kind);
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let kept: Vec<_> = names
        .enumerate()
        .filter(|(_, name)| !columns.contains(name))
        .map(|(column, _)| column)
        .collect();
    assert_eq!(kept.len() + columns.len(), schema.fields().len());
    let schema = Arc::new(schema.project(&kept).unwrap());
    let mut writer = ArrowWriter::try_new(File::create(file).unwrap(), schema, None).unwrap();
    for batch in table.batches().unwrap() {
        writer.write(&batch.project(&kept).unwrap()).unwrap();
    }
    writer.close().unwrap();
}

/// Checks that `older` is `outcome`, but empty or null where it lacks something.
fn check(older: &Outcome, outcome: &Outcome, tables: &[&str], columns: &[Lacked<'_>]) {
    assert_eq!(older.scenario(), outcome.scenario());
    for kind in TableKind::ALL {
        let (then, now) = (older.table(kind), outcome.table(kind));
        let names = |schema: &arrow_schema::Schema| -> Vec<_> {
            schema.fields().iter().map(|f| f.name().clone()).collect()
        };
        assert_eq!(names(&then.schema()), names(&now.schema()), "{kind}");
        if tables.contains(&kind.name()) {
            assert_eq!(then.rows(), 0, "{kind}");
            continue;
        }
        assert_eq!(then.rows(), now.rows(), "{kind}");
        let lacked = columns.iter().find(|(table, _)| *table == kind.name());
        let lacked = lacked.map_or(&[][..], |(_, columns)| columns);
        let (then, now) = (then.batches().unwrap(), now.batches().unwrap());
        let pairs = then.iter().zip(&now);
        pairs.for_each(|(then, now)| check_batch(then, now, lacked));
    }
}

fn check_batch(then: &RecordBatch, now: &RecordBatch, lacked: &[&str]) {
    for (column, field) in now.schema().fields().iter().enumerate() {
        let found = then.column(column);
        if lacked.contains(&field.name().as_str()) {
            assert_eq!(found.null_count(), now.num_rows(), "{field}");
        } else {
            assert_eq!(found.to_data(), now.column(column).to_data(), "{field}");
        }
    }
}

#[test]
fn formats_2_to_4_load_and_are_saved_in_the_present_one() {
    let outcome = outcome();
    assert_ne!(outcome.table(TableKind::Applications).rows(), 0);
    let newer = ["classes", "queue_series", "link_changes"];
    let lacked = [
        "transactions",
        "applications",
        "classes",
        "queue_series",
        "link_changes",
    ];
    let formats: [(u64, &[&str], &[Lacked<'_>]); 3] = [
        (2, &lacked, &LACKED_BY_2),
        (3, &newer, &LACKED_BY_3),
        (4, &newer, &[("flows", &["aborted"])]),
    ];
    for (format, tables, columns) in formats {
        let place = tempfile::tempdir().unwrap();
        save_as(place.path(), &outcome, format, tables, columns);
        let older = Outcome::load(place.path()).unwrap();
        check(&older, &outcome, tables, columns);
        older.save(place.path(), Replace::Result).unwrap();
        let text = fs::read_to_string(place.path().join("manifest.json")).unwrap();
        assert!(text.contains("\"format_version\": 7"), "{text}");
        check(
            &Outcome::load(place.path()).unwrap(),
            &outcome,
            tables,
            columns,
        );
    }
}

#[test]
fn older_metric_definitions_are_noticed_and_newer_ones_refused() {
    let place = tempfile::tempdir().unwrap();
    save_as(place.path(), &outcome(), 4, &[], &[]);
    let path = place.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let load_as = |definitions: u64| {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest["metric_definitions"] = definitions.into();
        fs::write(&path, manifest.to_string()).unwrap();
        Outcome::load(place.path())
    };
    let older = load_as(1).unwrap();
    let notice = "metric definitions 1: do not compare these numbers with those of results with \
                  definitions 3, which this version writes";
    assert_eq!(older.manifest().notices, [notice]);
    older.save(place.path(), Replace::Result).unwrap();
    let again = Outcome::load(place.path()).unwrap();
    assert_eq!(
        again.manifest().notices,
        [notice],
        "the notice is kept and not repeated"
    );
    assert_eq!(again.manifest().metric_definitions, 1);

    assert!(load_as(3).unwrap().manifest().notices.is_empty());
    for definitions in [0, 4, 999] {
        let message = load_as(definitions).unwrap_err().to_string();
        let expected = format!(
            "manifest.json: has metric definitions {definitions}; this version reads 1 to 3"
        );
        assert!(message.ends_with(&expected), "{message}");
    }
}

#[test]
fn a_column_that_is_unknown_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let outcome = outcome();
    // The file of the links stands where that of the flows belongs.
    save_as(place.path(), &outcome, 4, &[], &[("links", &[])]);
    let path = place.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["tables"]["flows"] = manifest["tables"]["links"].clone();
    fs::write(&path, manifest.to_string()).unwrap();
    fs::copy(
        place.path().join("links.parquet"),
        place.path().join("flows.parquet"),
    )
    .unwrap();
    let message = Outcome::load(place.path()).unwrap_err().to_string();
    let expected = "flows.parquet: has a column that this version of Sojourn cannot read: link";
    assert!(message.ends_with(expected), "{message}");
}
