//! Small results, and changes of their manifests that a digest does not betray.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sojourn_lab::{Outcome, ResultError, RunOptions, Scenario, TableKind, run};
use sojourn_scenario::digest::sha256_hex;
use sojourn_sim::Simulator;

/// Two short runs of a scenario with this seed; without any run if `cancelled`.
pub(crate) fn outcome(seed: u32, cancelled: bool) -> Outcome {
    let scenario = format!(
        r#"
        duration = "1s"
        replications = 2
        seed = {seed}
        links = {{ up = {{ rate = "1mbit", qdisc = "codel" }}, down = "unlimited" }}
        traffic = [
            {{ type = "udp", direction = "up", rate = "1mbit" }},
            {{ type = "ping", direction = "up" }},
        ]
        "#
    );
    let options = RunOptions {
        cancel: &AtomicBool::new(cancelled),
        ..RunOptions::default()
    };
    let scenario = Scenario::from_toml(&scenario).unwrap();
    run(&Simulator::default(), &scenario, options).unwrap()
}

/// Changes the manifest in a directory, and its digest with it.
pub(crate) fn edit_manifest(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut manifest);
    sign(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}

/// Replaces the manifest in a directory by any bytes; if they are an object, gives it the digests that belong
/// to it, so that its content is read.
pub(crate) fn put_manifest(folder: &Path, bytes: &[u8]) {
    let signed = match serde_json::from_slice::<Value>(bytes) {
        Ok(mut manifest) if manifest.is_object() => {
            sign_scenario(&mut manifest);
            sign(&mut manifest);
            manifest.to_string().into_bytes()
        }
        _ => bytes.to_vec(),
    };
    fs::write(folder.join("manifest.json"), signed).unwrap();
}

/// Replaces a table in a directory by any bytes, and its digest in the manifest with it.
pub(crate) fn put_table(folder: &Path, kind: TableKind, bytes: &[u8]) {
    fs::write(folder.join(format!("{kind}.parquet")), bytes).unwrap();
    let digest = sha256_hex(bytes);
    edit_manifest(folder, |m| {
        m["tables"][kind.name()]["sha256"] = digest.into();
    });
}

/// Why a result was refused, in one line; nothing if it was loaded.
pub(crate) fn refusal(loaded: Result<Outcome, ResultError>) -> Option<String> {
    let message = loaded.err()?.to_string();
    assert!(!message.contains('\n'), "{message:?}");
    Some(message)
}

/// Writes the digest that belongs to the scenario in a manifest.
pub(crate) fn sign_scenario(manifest: &mut Value) {
    if let Some(scenario) = manifest.get("scenario")
        && let Ok(hash) = Scenario::hash_as_written(&scenario.to_string())
    {
        manifest["scenario_sha256"] = hash.into();
    }
}

/// Writes the digest that belongs to a manifest.
fn sign(manifest: &mut Value) {
    let Value::Object(fields) = manifest else {
        return;
    };
    fields.remove("manifest_sha256");
    let scenario = fields.remove("scenario");
    let digest = sha256_hex(Value::Object(fields.clone()).to_string().as_bytes());
    if let Some(scenario) = scenario {
        fields.insert("scenario".to_owned(), scenario);
    }
    fields.insert("manifest_sha256".to_owned(), digest.into());
}
