//! Reads files that a scenario names.
//!
//! A path may refer to a FIFO without a writer, an endless device, or a file of any size.
//! Only regular files are read, and at most a given number of bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a trace in bytes: ten million times of ten digits.
pub(crate) const MAX_TRACE: u64 = 120_000_000;

/// Reads a regular file of at most `cap` bytes as text.
pub(crate) fn read_text(path: &Path, cap: u64) -> Result<String, String> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(_) => error.to_string(),
        None => "not valid UTF-8".to_owned(),
    };
    let file = open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut text = String::new();
    // The size of the metadata may be 0, as under /proc, or grow.
    let read = file.take(cap + 1).read_to_string(&mut text);
    match read.map_err(failed)? as u64 {
        size if size > cap => Err(format!("too large; expected at most {cap} bytes")),
        _ => Ok(text),
    }
}

/// Opens a file with `O_NONBLOCK`; opening a FIFO would otherwise wait for a writer.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_the_cap_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).as_deref(), Ok("12345"));
        let refused = read_text(&file, 4).unwrap_err();
        assert_eq!(refused, "too large; expected at most 4 bytes");
        std::fs::write(&file, [0xFF]).unwrap();
        assert_eq!(read_text(&file, 4).unwrap_err(), "not valid UTF-8");
        let refused = read_text(folder.path(), 4).unwrap_err();
        assert_eq!(refused, "not a regular file");
    }

    #[test]
    #[cfg(unix)]
    fn a_device_or_a_fifo_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for path in [fifo.as_path(), Path::new("/dev/zero")] {
            assert_eq!(read_text(path, 4).unwrap_err(), "not a regular file");
        }
    }
}
