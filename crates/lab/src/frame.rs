//! The envelope of a manifest: format name, format version and digest; errors of result directories.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use sojourn_scenario::digest::hex;

/// The format name that marks a manifest.
pub(crate) const FORMAT: &str = "sojourn-result";

/// The name of the file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Maximum size of a manifest in bytes. A capacity trace in its scenario may have tens of MB.
pub(crate) const MOST_MANIFEST: u64 = 1 << 28;

/// Maximum memory of the JSON values of a manifest in bytes. It suffices for 500,000 objects, such as
/// the facts about single runs.
const MOST_MEMORY: usize = 512 << 20;

/// Memory of an object: a node of a tree with room for 11 entries, even if it has only one.
const OBJECT: usize = 640;

/// Memory of a value and its key in addition to their text.
const VALUE: usize = 160;

/// Incremented when older versions cannot read the new format.
pub(crate) const FORMAT_VERSION: u64 = 7;

/// The oldest format that can be read. Format 2 added statistics of queues, format 3 transactions
/// and applications, format 4 responsiveness, format 5 classes and the digest of the manifest,
/// format 6 series of the state of queues.
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
    /// The hash of the scenario that the manifest states.
    pub(crate) scenario: Option<String>,
}

impl Present {
    pub(crate) fn is_complete(&self) -> bool {
        self.finished == self.total
    }
}

/// Reads a manifest of any version; `None` if `text` is not a manifest.
pub(crate) fn present(text: &[u8]) -> Option<Present> {
    let fields = recognised(text).ok()?;
    let count = |key: &str| fields[key].as_u64().unwrap_or_default();
    Some(Present {
        finished: count("finished"),
        total: count("total"),
        digest: text_of(&fields[DIGEST]),
        scenario: text_of(&fields["scenario_sha256"]),
    })
}

/// Reads a manifest, whatever its version.
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with its name.
pub(crate) fn recognised(text: &[u8]) -> Result<Value, String> {
    if memory(text) > MOST_MEMORY {
        return Err(format!(
            "has too many values: they take more than {} MiB of memory",
            MOST_MEMORY >> 20
        ));
    }
    let value: Option<Value> = serde_json::from_slice(text).ok();
    let manifest = value.filter(|value| value["format"].as_str() == Some(FORMAT));
    manifest.ok_or_else(|| "is not the manifest of a Sojourn result".to_owned())
}

/// Upper bound on the memory of the values of a JSON text.
fn memory(text: &[u8]) -> usize {
    let (mut bytes, mut quoted, mut escaped) = (text.len(), false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => bytes = bytes.saturating_add(OBJECT + VALUE),
            b',' | b'[' if !quoted => bytes = bytes.saturating_add(VALUE),
            _ => {}
        }
    }
    bytes
}

/// Checks the digest of a manifest and returns it.
pub(crate) fn check_digest(fields: &Value) -> Result<String, String> {
    let digest = fields.as_object().map(digest_of);
    let stated = fields[DIGEST].as_str();
    digest
        .filter(|digest| stated == Some(digest))
        .ok_or_else(|| format!("was altered: the SHA-256 of its content does not match {DIGEST}"))
}

/// The digest of a manifest without the key [`DIGEST`].
pub(crate) fn digest_of(fields: &Map<String, Value>) -> String {
    // Numbers in a scenario have no unique text; all other numbers are integers.
    let covered = fields
        .iter()
        .filter(|(key, _)| !["scenario", DIGEST].contains(&key.as_str()));
    let mut digest = Digesting(Sha256::new());
    let write = || -> io::Result<()> {
        for (n, (key, value)) in covered.enumerate() {
            digest.write_all(if n == 0 { b"{" } else { b"," })?;
            serde_json::to_writer(&mut digest, key)?;
            digest.write_all(b":")?;
            serde_json::to_writer(&mut digest, value)?;
        }
        digest.write_all(b"}")
    };
    write().expect("digesting does not fail, and JSON values are JSON");
    hex(&digest.0.finalize())
}

/// A writer that digests its input without keeping it.
struct Digesting(Sha256);

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

/// The reason why a result could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub rule: String,
    /// Whether the result exists but is damaged or of an unsupported version.
    pub is_damage: bool,
    /// Whether the directory has another result, which may be replaced on request.
    pub is_occupied: bool,
}

impl ResultError {
    pub(crate) fn new(path: &Path, rule: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            rule: rule.into(),
            is_damage: false,
            is_occupied: false,
        }
    }

    pub(crate) fn damaged(path: &Path, rule: impl Into<String>) -> Self {
        Self {
            is_damage: true,
            ..Self::new(path, rule)
        }
    }
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.rule)
    }
}

impl std::error::Error for ResultError {}
