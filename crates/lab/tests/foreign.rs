//! Result directories from elsewhere: damaged, hostile, or not results at all.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, StringArray, StructArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use sojourn_lab::{Outcome, Replace, TableKind, read_table};
use sojourn_net::Rng;
use sojourn_scenario::digest::sha256_hex;

mod support;

use support::{edit_manifest, outcome, put_manifest, put_table, refusal, sign_scenario};

/// The memory that a result with altered files may take.
const MAX_BYTES: u64 = 100_000_000;

/// What is said of a directory: one short line.
fn damage(folder: &Path) -> String {
    refusal(Outcome::load(folder)).unwrap()
}

fn saved(folder: &Path) {
    outcome(1, false).save(folder, Replace::Nothing).unwrap();
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn link(target: &str, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    for name in ["manifest.json", "pings.parquet"] {
        for replaced in ["pipe", "/dev/zero", "/dev/tty", "directory"] {
            let place = tempfile::tempdir().unwrap();
            saved(place.path());
            let path = place.path().join(name);
            fs::remove_file(&path).unwrap();
            match replaced {
                "pipe" => pipe(&path),
                "directory" => fs::create_dir(&path).unwrap(),
                device => link(device, &path),
            }
            let message = damage(place.path());
            let what = if replaced == "directory" {
                "a directory"
            } else {
                "not a regular file"
            };
            let expected = format!("{name}: is {what}");
            assert!(message.ends_with(&expected), "{replaced}: {message}");
        }
    }
}

#[test]
fn a_manifest_that_names_a_file_does_not_have_it_opened() {
    let secret = tempfile::tempdir().unwrap();
    let file = secret.path().join("secret");
    fs::write(&file, "1\n2\nroot:*:20228\n").unwrap();
    pipe(&secret.path().join("pipe"));
    for name in ["secret", "pipe"] {
        let place = tempfile::tempdir().unwrap();
        saved(place.path());
        let trace = secret.path().join(name);
        edit_manifest(place.path(), |manifest| {
            let up = &mut manifest["scenario"]["links"]["up"];
            up.as_object_mut().unwrap().remove("rate");
            up["trace"] = trace.to_str().unwrap().into();
            sign_scenario(manifest);
        });
        let message = damage(place.path());
        assert!(message.contains("manifest.json: contains an invalid scenario: links.up.trace: "));
        assert!(!message.contains("root"), "{message}");
    }
}

#[test]
fn the_content_of_a_foreign_file_is_not_shown() {
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    fs::write(&secret, "root:*:20228:0:99999:7:::\n").unwrap();
    let folder = place.path().join("result");
    fs::create_dir(&folder).unwrap();
    link(secret.to_str().unwrap(), &folder.join("manifest.json"));
    let message = damage(&folder);
    assert!(message.ends_with("manifest.json: is not the manifest of a Sojourn result"));

    fs::remove_file(folder.join("manifest.json")).unwrap();
    saved(&folder);
    let digest = sha256_hex(&fs::read(&secret).unwrap());
    fs::remove_file(folder.join("flows.parquet")).unwrap();
    link(secret.to_str().unwrap(), &folder.join("flows.parquet"));
    edit_manifest(&folder, |m| m["tables"]["flows"]["sha256"] = digest.into());
    let message = damage(&folder);
    assert!(
        message.contains("flows.parquet: cannot be read: "),
        "{message}"
    );
    assert!(!message.contains("root"), "{message}");
}

/// Replaces the pings of a result by equal rows, which take next to nothing in the file.
fn many_pings(folder: &Path, batches: usize, rows: usize) {
    let wanted = outcome(1, false).table(TableKind::Pings).schema();
    let columns = wanted.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
            "a", rows,
        ))) as Arc<dyn arrow_array::Array>,
        DataType::UInt32 => Arc::new(UInt32Array::from_value(0, rows)),
        DataType::UInt64 => Arc::new(UInt64Array::from_value(0, rows)),
        DataType::Float64 => Arc::new(Float64Array::from_value(0.0, rows)),
        other => panic!("{other}"),
    });
    let batch = RecordBatch::try_new(Arc::clone(&wanted), columns.collect()).unwrap();
    let path = folder.join("pings.parquet");
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, wanted, Some(properties)).unwrap();
    for _ in 0..batches {
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    let digest = sha256_hex(&fs::read(&path).unwrap());
    edit_manifest(folder, |manifest| {
        manifest["tables"]["pings"]["sha256"] = digest.into();
        manifest["tables"]["pings"]["rows"] = (batches * rows).into();
    });
}

#[test]
fn tables_larger_than_the_limit_are_refused_before_they_are_read() {
    let place = tempfile::tempdir().unwrap();
    saved(place.path());
    many_pings(place.path(), 20, 100_000);
    assert!(
        fs::metadata(place.path().join("pings.parquet"))
            .unwrap()
            .len()
            < 1_000_000
    );
    let rows = Outcome::load(place.path())
        .unwrap()
        .table(TableKind::Pings)
        .rows();
    assert_eq!(rows, 2_000_000);
    let message = Outcome::load_within(place.path(), 10_000_000).unwrap_err();
    let expected = "has 2000000 rows; expected at most ";
    assert!(message.rule.starts_with(expected), "{message}");

    // Texts take more than their columns say.
    let schema = Schema::new(vec![Field::new("arm", DataType::Utf8, false)]);
    let arms = StringArray::from_iter_values(std::iter::repeat_n("a".repeat(1000), 20_000));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(arms)]).unwrap();
    let path = place.path().join("pings.parquet");
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let digest = sha256_hex(&fs::read(&path).unwrap());
    edit_manifest(place.path(), |manifest| {
        manifest["tables"]["pings"]["sha256"] = digest.into();
        manifest["tables"]["pings"]["rows"] = 20_000.into();
    });
    Outcome::load(place.path()).unwrap();
    let message = Outcome::load_within(place.path(), 10_000_000).unwrap_err();
    assert!(message.rule.starts_with("needs more memory"), "{message}");
}

/// A Parquet file with one column.
fn table_of(values: Arc<dyn arrow_array::Array>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("a", values)]).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

#[test]
fn a_table_of_any_columns_is_read_within_its_limit() {
    let equal = |rows| table_of(Arc::new(Float64Array::from_value(0.5, rows)));
    assert_eq!(read_table(equal(2), 1_000_000).unwrap().rows(), 2);
    let many = equal(2_000_000);
    assert!(many.len() < 100_000, "{}", many.len());
    let refused = read_table(many, 1_000_000).unwrap_err();
    assert!(
        refused.starts_with("has 2000000 rows; expected at most 125000, "),
        "{refused}"
    );
    let long = StringArray::from_iter_values(std::iter::repeat_n("a".repeat(1000), 20_000));
    let refused = read_table(table_of(Arc::new(long)), 10_000_000).unwrap_err();
    assert!(refused.starts_with("needs more memory"), "{refused}");

    let field = Arc::new(Field::new("b", DataType::UInt64, false));
    let values: Arc<dyn arrow_array::Array> = Arc::new(UInt64Array::from_value(0, 1));
    let nested = table_of(Arc::new(StructArray::from(vec![(field, values)])));
    let refused = read_table(nested, 1_000_000).unwrap_err();
    assert!(refused.ends_with("cannot read: a"), "{refused}");

    // Of a table whose digest was computed again; some make the Parquet reader panic.
    let few = equal(2);
    for bit in 0..8 * few.len() {
        let mut flipped = few.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Err(refused) = read_table(flipped, 1_000_000) {
            assert!(!refused.contains('\n'), "{refused:?}");
        }
    }
}

#[test]
fn a_number_of_rows_that_is_not_that_of_the_manifest_is_refused() {
    let place = tempfile::tempdir().unwrap();
    saved(place.path());
    edit_manifest(place.path(), |m| m["tables"]["flows"]["rows"] = 99.into());
    let expected = "flows.parquet: is altered: its number of rows does not match the manifest";
    assert!(damage(place.path()).ends_with(expected));
}

#[test]
fn a_manifest_of_very_many_values_is_refused() {
    let place = tempfile::tempdir().unwrap();
    saved(place.path());
    let path = place.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let more = format!("{{\"more\": [{}0],", "0,".repeat(5_000_000));
    fs::write(&path, text.replacen('{', &more, 1)).unwrap();
    let message = damage(place.path());
    assert!(message.contains("has too many values: "), "{message}");
}

/// One of the names in a result directory.
fn any_file(rng: &mut Rng) -> String {
    let kinds = TableKind::ALL;
    match usize::try_from(rng.below(2 * kinds.len() as u64)).unwrap() {
        n if n < kinds.len() => format!("{}.parquet", kinds[n]),
        _ => "manifest.json".to_owned(),
    }
}

/// Changes one value of a tree, and may remove or add some.
fn mutate(value: &mut Value, rng: &mut Rng) {
    let odd: [Value; 9] = [
        Value::Null,
        true.into(),
        (-1).into(),
        u64::MAX.into(),
        1e300.into(),
        "".into(),
        "\u{1b}[2J/dev/zero".into(),
        Value::Array(Vec::new()),
        serde_json::json!({ "trace": "/dev/zero" }),
    ];
    let pick = |rng: &mut Rng| odd[usize::try_from(rng.below(odd.len() as u64)).unwrap()].clone();
    match value {
        Value::Object(fields) if !fields.is_empty() && rng.below(8) > 0 => {
            let n = usize::try_from(rng.below(fields.len() as u64)).unwrap();
            let key = fields.keys().nth(n).unwrap().clone();
            match rng.below(6) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert("odd".to_owned(), pick(rng))),
                _ => mutate(&mut fields[&key], rng),
            }
        }
        Value::Array(items) if !items.is_empty() && rng.below(4) > 0 => {
            let n = usize::try_from(rng.below(items.len() as u64)).unwrap();
            mutate(&mut items[n], rng);
        }
        other => *other = pick(rng),
    }
}

/// Changes something in a result directory; what can be signed again is, most of the time.
fn mutate_folder(folder: &Path, rng: &mut Rng) {
    let name = any_file(rng);
    let path = folder.join(&name);
    let mut bytes = fs::read(&path).unwrap();
    match rng.below(10) {
        0 => {
            fs::remove_file(&path).unwrap();
            pipe(&path);
            return;
        }
        1 => {
            fs::remove_file(&path).unwrap();
            link("/dev/zero", &path);
            return;
        }
        2 => fs::remove_file(&path).unwrap(),
        3 => {
            let other = fs::read(folder.join(any_file(rng))).unwrap();
            fs::write(&path, other).unwrap();
        }
        4 => {
            bytes.truncate(usize::try_from(rng.below(bytes.len() as u64)).unwrap());
            fs::write(&path, &bytes).unwrap();
        }
        5 | 6 if name == "manifest.json" => {
            edit_manifest(folder, |manifest| {
                mutate(manifest, rng);
                sign_scenario(manifest);
            });
        }
        _ => {
            // The end of a Parquet file describes the rest.
            let length = bytes.len() as u64;
            let last = if rng.below(2) == 0 {
                length
            } else {
                400.min(length)
            };
            for _ in 0..=rng.below(4) {
                let at = usize::try_from(length - 1 - rng.below(last)).unwrap();
                bytes[at] = u8::try_from(rng.below(256)).unwrap();
            }
            fs::write(&path, &bytes).unwrap();
        }
    }
    if name != "manifest.json" && path.is_file() && rng.below(8) > 0 {
        let digest = sha256_hex(&fs::read(&path).unwrap());
        let table = name.trim_end_matches(".parquet").to_owned();
        edit_manifest(folder, |m| m["tables"][&table]["sha256"] = digest.into());
    }
}

fn check_mutations(seed: u64, folders: u32) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    saved(&whole);
    let mut rng = Rng::new(seed);
    let (mut loaded, mut refused) = (0, 0);
    for n in 0..folders {
        let folder = place.path().join(n.to_string());
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(&whole).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        mutate_folder(&folder, &mut rng);
        match refusal(Outcome::load_within(&folder, MAX_BYTES)) {
            None => loaded += 1,
            Some(_) => refused += 1,
        }
        fs::remove_dir_all(&folder).unwrap();
    }
    println!("{folders} folders: {loaded} loaded, {refused} refused");
    assert!(refused > folders / 2 && loaded > 0);
}

#[test]
fn two_thousand_mutated_results_are_loaded_or_refused() {
    check_mutations(1, 2000);
}

/// What the fuzz targets do, with a few bytes.
#[test]
fn any_bytes_for_a_manifest_or_a_table_are_loaded_or_refused() {
    let place = tempfile::tempdir().unwrap();
    saved(place.path());
    let path = place.path().join("manifest.json");
    let manifest = fs::read(&path).unwrap();
    put_manifest(place.path(), &manifest);
    assert_eq!(refusal(Outcome::load(place.path())), None);
    for bytes in [&b""[..], b"{}", b"[]", b"{\"scenario\": 1}", b"\xff"] {
        put_manifest(place.path(), bytes);
        assert!(damage(place.path()).contains("manifest.json: "));
    }
    put_manifest(place.path(), &manifest);
    for kind in TableKind::ALL {
        let name = format!("{kind}.parquet");
        let table = fs::read(place.path().join(&name)).unwrap();
        put_table(place.path(), kind, &table);
        assert_eq!(refusal(Outcome::load(place.path())), None);
        put_table(place.path(), kind, b"PAR1PAR1");
        let expected = format!("{name}: cannot be read: ");
        assert!(damage(place.path()).contains(&expected));
        put_table(place.path(), kind, &table);
    }
}
