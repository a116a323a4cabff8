//! The index of the reports and figures in a directory, which were made from a result or a sweep.
//!
//! For each name it has the digest of the manifest that the file shows and that of the file itself,
//! so that a new result removes the files of the old one, unless they were modified since.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::clock::{PATIENCE, wait_for};
use crate::files::{Files, Lock};
use crate::regular::{Links, open_regular, read_opened, read_regular};
use crate::replace::{directory_of, replace};

const INDEX: &str = ".sojourn-derived.json";

/// Maximum size of the index, in bytes: thousands of names.
const MOST_INDEX: u64 = 1 << 20;

/// Maximum size of a report or figure, in bytes.
const MOST: u64 = 1 << 30;

type Index = BTreeMap<String, Value>;

/// Adds a file with the digest `sha256`, made from `manifest`, to the index of its directory.
///
/// # Errors
/// If the index cannot be locked or written.
pub fn add_derived(
    files: Arc<dyn Files>,
    file: &Path,
    manifest: &str,
    sha256: &str,
) -> io::Result<()> {
    let directory = directory_of(file);
    let path = directory.join(INDEX);
    let _lock = lock(&*files, &path)?;
    let mut index = read(directory);
    index.retain(|name, _| directory.join(name).is_file());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let entry = json!({ "manifest": manifest, "sha256": sha256 });
    index.insert(name.into_owned(), entry);
    let text = serde_json::to_string_pretty(&index)?;
    replace(files, &path, format!("{text}\n").as_bytes())
}

/// The files in `directory` made from a manifest with another digest than `manifest`.
///
/// Files that were modified since Sojourn wrote them, and files that are not in the index, are not
/// listed.
pub(crate) fn obsolete(directory: &Path, manifest: &str) -> Vec<String> {
    let index = read(directory).into_iter();
    let obsolete = index.filter(|(name, entry)| {
        entry["manifest"].as_str() != Some(manifest) && is_unchanged(&directory.join(name), entry)
    });
    obsolete.map(|(name, _)| name).collect()
}

/// Removes the index of a directory if none of its files is left, as far as this is possible.
pub(crate) fn tidy(files: &dyn Files, directory: &Path) {
    let path = directory.join(INDEX);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    if !is_file {
        return;
    }
    if let Ok(_lock) = lock(files, &path) {
        let is_left = |(name, entry): (&String, &Value)| is_unchanged(&directory.join(name), entry);
        if !read(directory).iter().any(is_left) {
            let _ = files.remove_file(&path);
        }
    }
}

/// Locks the index, which is created if needed; the lock of the directory belongs to the process that
/// saves the result.
fn lock(files: &dyn Files, path: &Path) -> io::Result<Lock> {
    wait_for(PATIENCE, || {
        // A link could lead to any file of the user.
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            files.remove_file(path)?;
        }
        Lock::where_supported(files.try_lock(path))
    })
}

/// The entries of the index; one that is missing or damaged has none.
fn read(directory: &Path) -> Index {
    let file = open_regular(&directory.join(INDEX), Links::Refuse);
    let bytes = file.and_then(|file| read_opened(file, MOST_INDEX));
    let index: Option<Index> = bytes.ok().and_then(|b| serde_json::from_slice(&b).ok());
    let mut index = index.unwrap_or_default();
    // Another name could lead out of the directory, or be two names in a list of names.
    index.retain(|name, _| {
        Path::new(name).file_name() == Some(OsStr::new(name)) && !name.contains('\n')
    });
    index
}

/// Whether a file is as it was written.
fn is_unchanged(file: &Path, entry: &Value) -> bool {
    let bytes = read_regular(file, MOST);
    bytes.is_ok_and(|bytes| entry["sha256"].as_str() == Some(&sha256_hex(&bytes)))
}

fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::files::Disk;

    /// The digest of "abc", of FIPS 180-4.
    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn disk() -> Arc<dyn Files> {
        Arc::new(Disk)
    }

    #[test]
    fn files_of_another_manifest_are_obsolete_unless_they_were_modified() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["old.html", "edited.html", "new.html"] {
            fs::write(at(name), "abc").unwrap();
            let manifest = if name == "new.html" { "2" } else { "1" };
            add_derived(disk(), &at(name), manifest, DIGEST).unwrap();
        }
        fs::write(at("edited.html"), "mine").unwrap();
        assert_eq!(obsolete(place.path(), "2"), ["old.html"]);
        assert!(obsolete(place.path(), "1").contains(&"new.html".to_owned()));
        let index = fs::read(at(INDEX)).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        assert_eq!(
            index["old.html"],
            json!({ "manifest": "1", "sha256": DIGEST })
        );
        fs::remove_file(at("old.html")).unwrap();
        tidy(&Disk, place.path());
        assert!(at(INDEX).exists());
        fs::remove_file(at("new.html")).unwrap();
        tidy(&Disk, place.path());
        assert!(!at(INDEX).exists() && at("edited.html").exists());
    }

    #[test]
    fn names_in_the_index_do_not_lead_out_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(place.path().join("victim"), "abc").unwrap();
        let entry = json!({ "manifest": "1", "sha256": DIGEST });
        let index = json!({ "../victim": entry, "..": entry, "": entry, "a\nb": entry });
        fs::write(inner.join(INDEX), index.to_string()).unwrap();
        assert!(obsolete(&inner, "2").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn an_index_that_is_a_pipe_or_a_link_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at(INDEX)).status();
        assert!(made.unwrap().success());
        assert!(obsolete(place.path(), "2").is_empty());
        assert!(add_derived(disk(), &at("page"), "1", DIGEST).is_err());
        fs::remove_file(at(INDEX)).unwrap();
        fs::write(at("mine"), "{}").unwrap();
        std::os::unix::fs::symlink(at("mine"), at(INDEX)).unwrap();
        add_derived(disk(), &at("page"), "1", DIGEST).unwrap();
        assert_eq!(fs::read(at("mine")).unwrap(), b"{}");
    }

    #[test]
    fn concurrent_writers_of_the_index_lose_no_entry() {
        let place = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for writer in 0..4 {
                let folder = place.path();
                scope.spawn(move || {
                    for turn in 0..20 {
                        let file = folder.join(format!("{writer}-{turn}"));
                        fs::write(&file, "abc").unwrap();
                        add_derived(disk(), &file, "1", "none").unwrap();
                    }
                });
            }
        });
        let index = fs::read(place.path().join(INDEX)).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        assert_eq!(index.as_object().unwrap().len(), 80);
    }
}
