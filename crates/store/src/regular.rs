//! Reads files from elsewhere: regular files only, and no more than a given size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file of at most `most` bytes; symbolic links are followed.
///
/// A pipe or a device is refused before it is opened, so that reading neither blocks nor never
/// ends. The messages of the following kinds of errors begin with a verb: they are the end of a
/// sentence that begins with the name of the file.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file, [`io::ErrorKind::FileTooLarge`] if
/// it is too large, and the errors of opening and reading.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening some devices has effects, so that they are not even opened.
    check(&fs::metadata(path)?, most)?;
    let file = open(path)?;
    // Another file may stand there by now.
    let metadata = file.metadata()?;
    check(&metadata, most)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
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

/// Opens without waiting for a writer, if the file has become a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}
