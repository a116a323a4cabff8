//! Reads untrusted files: only regular files, and only up to a given size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file of at most `most` bytes; symbolic links are followed.
///
/// Pipes and devices are rejected before they are opened, because reading them may block or not end.
/// The messages of the following errors begin with a verb, because callers put the name of the file
/// before them.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file, [`io::ErrorKind::FileTooLarge`] if
/// it is too large, and the errors of opening and reading.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Checked before opening, because opening some devices has side effects.
    check(&fs::metadata(path)?, most)?;
    let file = open(path)?;
    // The path may refer to another file by now.
    let metadata = file.metadata()?;
    check(&metadata, most)?;
    let mut bytes = Vec::new();
    // A sparse file may have any length: a failed allocation must not abort the process.
    let reserved = bytes.try_reserve_exact(usize::try_from(metadata.len()).unwrap_or(usize::MAX));
    reserved.map_err(|_| {
        let rule = format!("{} bytes do not fit into memory", metadata.len());
        io::Error::new(io::ErrorKind::OutOfMemory, rule)
    })?;
    // The file may grow, and those of /proc state no length.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        Ok(bytes)
    } else {
        Err(too_large(most))
    }
}

fn check(metadata: &fs::Metadata, most: u64) -> io::Result<()> {
    if !metadata.is_file() {
        let rule = "is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
    }
    if metadata.len() > most {
        return Err(too_large(most));
    }
    Ok(())
}

fn too_large(most: u64) -> io::Error {
    let rule = format!("is too large; expected at most {most} bytes");
    io::Error::new(io::ErrorKind::FileTooLarge, rule)
}

/// Opens with `O_NONBLOCK`, in case the file has been replaced by a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}
