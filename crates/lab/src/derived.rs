//! Finds the reports and figures in a result directory that a new result makes obsolete.

use std::path::Path;

use serde_json::Value;
use sojourn_scenario::digest::sha256_hex;
use sojourn_store::read_regular;

/// Lists the reports and figures that Sojourn wrote into the directory: for each name, the digest of
/// the manifest that it shows and its own.
const INDEX: &str = ".sojourn-derived.json";

/// Maximum size of the index, in bytes: thousands of names.
const MOST_INDEX: u64 = 1 << 20;

/// Maximum size of a report or figure, in bytes.
const MOST: u64 = 1 << 30;

/// The reports and figures in `directory` made from a manifest with another digest than `manifest`.
///
/// Files that were modified since Sojourn wrote them, and files that are not in the index, are not
/// listed.
pub(crate) fn obsolete(directory: &Path, manifest: &str) -> Vec<String> {
    let index = read_regular(&directory.join(INDEX), MOST_INDEX).ok();
    let index = index.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(Value::Object(index)) = index else {
        return Vec::new();
    };
    let is_obsolete = |name: &str, entry: &Value| {
        let same = |bytes: Vec<u8>| entry["sha256"].as_str() == Some(&sha256_hex(&bytes));
        entry["manifest"].as_str() != Some(manifest)
            && !name.contains(['/', '\n'])
            && read_regular(&directory.join(name), MOST).is_ok_and(same)
    };
    let obsolete = index
        .iter()
        .filter(|(name, entry)| is_obsolete(name, entry));
    obsolete.map(|(name, _)| name.clone()).collect()
}
