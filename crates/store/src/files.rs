//! File operations behind a trait, so that tests can inject faults.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The write operations that storage needs.
///
/// Read operations are not included, because a failed read loses no data.
pub trait Files: Debug + Send + Sync {
    /// Creates a file that does not exist.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn Output>>;

    /// Creates a directory and its parents; it may exist.
    ///
    /// # Errors
    /// If a directory cannot be created.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Renames a file or a directory; a file that exists under the new name is replaced.
    ///
    /// # Errors
    /// As [`fs::rename`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As [`fs::remove_file`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As [`fs::remove_dir`].
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and everything in it.
    ///
    /// # Errors
    /// As [`fs::remove_dir_all`].
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Truncates a file to `length` bytes, to remove an incomplete record.
    ///
    /// # Errors
    /// If the file cannot be opened for writing or shortened.
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()>;

    /// Syncs the entries of a directory to disk, so that created, renamed and removed files survive a
    /// power loss.
    ///
    /// # Errors
    /// If the directory cannot be opened or synchronised.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Locks a directory, or a file, which is created if needed; `None` if another process holds the
    /// lock.
    ///
    /// The operating system releases the lock when the process ends for any reason.
    ///
    /// # Errors
    /// If the file cannot be opened, or the file system has no locks.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// A file being written.
pub trait Output: Write + Debug + Send {
    /// Syncs the content to disk, so that it survives a power loss.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    fn sync(&mut self) -> io::Result<()>;
}

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    /// Closing the file releases the lock.
    _file: File,
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // Some network and shared file systems cannot synchronise a directory.
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                Ok(())
            }
            other => other,
        }
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let file = if path.is_dir() {
            File::open(path)?
        } else {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true);
            options.open(path)?
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
