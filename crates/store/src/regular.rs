//! Reads untrusted files: only regular files, and only up to a given size.

#[cfg(unix)]
use std::fs::OpenOptions;
use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// What happens if a path is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file that it refers to is opened.
    Follow,
    /// It is refused.
    Refuse,
}

/// Opens a regular file to read it.
///
/// Pipes and devices are rejected before they are opened, because opening or reading them may block,
/// have side effects or not end. The messages of the errors of this module begin with a verb,
/// because callers put the name of the file before them.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if it is not a regular file, and the errors of opening.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let found = match links {
        Links::Follow => fs::metadata(path)?,
        Links::Refuse => fs::symlink_metadata(path)?,
    };
    check_regular(found.file_type())?;
    let file = open(path, links)?;
    // The path may refer to another file by now.
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes; symbolic links are followed.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] if it is too large, and those of [`open_regular`] and of reading.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(open_regular(path, Links::Follow)?, most)
}

/// As [`read_regular`], of a file that is open.
pub(crate) fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    // A sparse file may have any length: a failed allocation must not abort the process.
    let reserved = bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX));
    reserved.map_err(|_| {
        let rule = format!("{length} bytes do not fit into memory");
        io::Error::new(ErrorKind::OutOfMemory, rule)
    })?;
    // The file may grow, and those of /proc state no length.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        Ok(bytes)
    } else {
        Err(too_large(most))
    }
}

pub(crate) fn check_regular(found: FileType) -> io::Result<()> {
    let rule = if found.is_file() {
        return Ok(());
    } else if found.is_dir() {
        "is a directory"
    } else if found.is_symlink() {
        "is a symbolic link"
    } else {
        "is not a regular file"
    };
    Err(io::Error::new(ErrorKind::InvalidInput, rule))
}

fn too_large(most: u64) -> io::Error {
    let rule = format!("is too large; expected at most {most} bytes");
    io::Error::new(ErrorKind::FileTooLarge, rule)
}

/// Opens with `O_NONBLOCK`, in case the file has been replaced by a pipe.
#[cfg(unix)]
fn open(path: &Path, links: Links) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let refused = (links == Links::Refuse).then_some(libc::O_NOFOLLOW);
    let flags = libc::O_NONBLOCK | refused.unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path)
}

/// Other systems have no pipes among the files.
#[cfg(not(unix))]
fn open(path: &Path, _links: Links) -> io::Result<File> {
    File::open(path)
}
