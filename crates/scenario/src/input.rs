//! Reads files that a scenario names.
//!
//! A path may refer to a FIFO without a writer, an endless device, or a file of any size.
//! Only regular files are read, and at most a given number of bytes.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use lzma_rs::xz_decompress;

/// Maximum size of a trace in bytes: ten million times of ten digits.
pub(crate) const MAX_TRACE: u64 = 120_000_000;

/// Reads a regular file of at most `cap` bytes as text; one that ends in `.gz` or `.xz` is decompressed first.
pub(crate) fn read_text(path: &Path, cap: u64) -> Result<String, String> {
    let failed = |error: io::Error| error.to_string();
    let file = open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Capped {
        bytes: Vec::new(),
        cap,
    };
    // The size of the metadata may be 0, as under /proc, or grow.
    let mut file = file.take(cap + 1);
    let read = match path.extension().and_then(OsStr::to_str) {
        Some("gz") => io::copy(&mut MultiGzDecoder::new(file), &mut bytes).map(drop),
        Some("xz") => {
            xz_decompress(&mut BufReader::new(file), &mut bytes).map_err(|error| match error {
                lzma_rs::error::Error::IoError(error) => error,
                _ => io::Error::new(io::ErrorKind::InvalidData, "not a valid xz file"),
            })
        }
        _ => io::copy(&mut file, &mut bytes).map(drop),
    };
    read.map_err(failed)?;
    String::from_utf8(bytes.bytes).map_err(|_| "not valid UTF-8".to_owned())
}

/// Takes at most `cap` bytes.
struct Capped {
    bytes: Vec<u8>,
    cap: u64,
}

impl Write for Capped {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + more.len()) as u64 > self.cap {
            let message = format!("too large; expected at most {} bytes", self.cap);
            return Err(io::Error::other(message));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    fn a_compressed_file_is_decompressed_up_to_the_cap() {
        let folder = tempfile::tempdir().unwrap();
        let text = "1\n".repeat(500);
        let gz = folder.path().join("trace.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        std::fs::write(&gz, encoder.finish().unwrap()).unwrap();
        let xz = folder.path().join("trace.xz");
        let mut compressed = Vec::new();
        lzma_rs::xz_compress(&mut text.as_bytes(), &mut compressed).unwrap();
        std::fs::write(&xz, compressed).unwrap();
        for path in [&gz, &xz] {
            assert_eq!(
                read_text(path, 5_000).as_ref(),
                Ok(&text),
                "{}",
                path.display()
            );
        }
        let bomb = read_text(&gz, 999).unwrap_err();
        assert_eq!(bomb, "too large; expected at most 999 bytes");
        std::fs::write(&xz, "text").unwrap();
        assert!(read_text(&xz, 999).is_err());
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
