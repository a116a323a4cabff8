//! Files from elsewhere: what is read, and what is refused without waiting.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use sojourn_store::read_regular;
#[cfg(unix)]
use sojourn_store::{Links, open_regular};

fn refused(path: &Path, most: u64) -> (ErrorKind, String) {
    let error = read_regular(path, most).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn regular_files_up_to_the_limit_are_read() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "12345").unwrap();
    assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
    let expected = "is too large; expected at most 4 bytes".to_owned();
    assert_eq!(refused(&file, 4), (ErrorKind::FileTooLarge, expected));
    assert_eq!(refused(&place.path().join("no"), 4).0, ErrorKind::NotFound);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_anything_but_a_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("file"), "12345").unwrap();
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    assert_eq!(read_regular(&at("link"), 5).unwrap(), b"12345");

    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
    for (name, rule) in [
        ("pipe", "is not a regular file"),
        ("zero", "is not a regular file"),
        (".", "is a directory"),
    ] {
        let expected = (ErrorKind::InvalidInput, rule.to_owned());
        assert_eq!(refused(&at(name), u64::MAX), expected, "{name}");
    }
    let error = open_regular(&at("link"), Links::Refuse).unwrap_err();
    assert_eq!(error.to_string(), "is a symbolic link");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(open_regular(&at("file"), Links::Refuse).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_states_no_length_is_limited_too() {
    let file = Path::new("/proc/self/mounts");
    assert_eq!(fs::metadata(file).unwrap().len(), 0);
    assert!(!read_regular(file, 1 << 20).unwrap().is_empty());
    assert_eq!(refused(file, 1).0, ErrorKind::FileTooLarge);
}
