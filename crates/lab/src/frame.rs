//! The envelope of a manifest: format name, format version and digest.

use serde_json::{Map, Value};

use sojourn_scenario::digest::sha256_hex;

/// The format name that marks a manifest.
pub(crate) const FORMAT: &str = "sojourn-result";

/// The name of the file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Maximum size of a manifest in bytes. A capacity trace in its scenario may have tens of MB.
pub(crate) const MOST_MANIFEST: u64 = 1 << 28;

/// Maximum number of JSON values; a trace is one. A parsed value needs far more memory than its text.
const MOST_VALUES: usize = 4_000_000;

/// Incremented when older versions cannot read the new format.
pub(crate) const FORMAT_VERSION: u64 = 5;

/// The oldest format that can be read. Format 2 added statistics of queues, format 3 transactions
/// and applications, format 4 responsiveness, format 5 classes and the digest of the manifest.
const OLDEST_FORMAT: u64 = 2;

/// The first format whose manifests have [`DIGEST`].
pub(crate) const FIRST_DIGESTED: u64 = 5;

/// The first format whose scenarios name the directions without a link.
pub(crate) const FIRST_UNLIMITED: u64 = 5;

/// The key of the SHA-256 of the manifest, which covers all other keys: the scenario by its own
/// SHA-256, the others as JSON without spaces whose keys are sorted.
pub(crate) const DIGEST: &str = "manifest_sha256";

/// The existing result in a directory, as needed to decide whether it may be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) finished: u64,
    pub(crate) total: u64,
    /// The digest in the manifest.
    pub(crate) digest: Option<String>,
}

impl Present {
    pub(crate) fn is_complete(&self) -> bool {
        self.finished == self.total
    }
}

/// Reads a manifest of any version; `None` if `text` is not a manifest.
pub(crate) fn present(text: &[u8]) -> Option<Present> {
    let fields = recognised(text)?;
    let count = |key: &str| fields[key].as_u64().unwrap_or_default();
    Some(Present {
        finished: count("finished"),
        total: count("total"),
        digest: text_of(&fields[DIGEST]),
    })
}

pub(crate) fn recognised(text: &[u8]) -> Option<Value> {
    if values(text) > MOST_VALUES {
        return None;
    }
    let value: Value = serde_json::from_slice(text).ok()?;
    (value["format"].as_str() == Some(FORMAT)).then_some(value)
}

/// Upper bound on the number of values in a JSON text.
fn values(text: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// Checks the digest of a manifest and returns it.
pub(crate) fn check_digest(fields: &Value) -> Result<String, String> {
    let mut others = fields.as_object().cloned().unwrap_or_default();
    let stated = others.remove(DIGEST).as_ref().and_then(text_of);
    let digest = digest_of(&others);
    if stated.as_ref() != Some(&digest) {
        return Err(format!(
            "was altered: the SHA-256 of its content does not match {DIGEST}"
        ));
    }
    Ok(digest)
}

/// The digest of a manifest without the key [`DIGEST`].
pub(crate) fn digest_of(fields: &Map<String, Value>) -> String {
    // Numbers in a scenario have no unique text; all other numbers are integers.
    let covered = fields.iter().filter(|(key, _)| *key != "scenario");
    let covered: Map<_, _> = covered.map(|(k, v)| (k.clone(), v.clone())).collect();
    sha256_hex(Value::Object(covered).to_string().as_bytes())
}

/// The version of the format, if this version of Sojourn reads it.
pub(crate) fn format_of(fields: &Value) -> Result<u64, String> {
    let readable = format!("this version reads formats {OLDEST_FORMAT} to {FORMAT_VERSION}");
    let Some(format) = fields["format_version"].as_u64() else {
        return Err(format!("has no format_version; {readable}"));
    };
    if format < OLDEST_FORMAT {
        return Err(format!("has format {format}, which is too old; {readable}"));
    }
    if format > FORMAT_VERSION {
        let build = &fields["sojourn"];
        let needed = match (text_of(&build["version"]), text_of(&build["commit"])) {
            (Some(version), Some(commit)) => {
                format!("Sojourn {version} (commit {commit}) or later")
            }
            (Some(version), None) => format!("Sojourn {version} or later"),
            (None, _) => "a later version of Sojourn".to_owned(),
        };
        return Err(format!(
            "has format {format}, which needs {needed}; {readable}"
        ));
    }
    Ok(format)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
