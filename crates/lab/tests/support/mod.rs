//! Small results, and changes of their manifests that a digest does not betray.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sojourn_lab::{Outcome, RunOptions, Scenario, run};
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
