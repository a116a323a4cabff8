//! File operations behind a trait, so that tests can inject faults.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The write operations that storage needs.
///
/// Read operations are not included, because a failed read loses no data.
pub trait Files: Debug + Send + Sync {
    /// Creates a file that does not exist; only its owner may open a private one.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    fn create_new(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>>;

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

    /// Locks a file, which is created if needed; `None` if another process holds the lock. It does not
    /// follow a symbolic link, nor wait for the reader of a pipe.
    ///
    /// The operating system releases the lock when the process ends for any reason.
    ///
    /// # Errors
    /// If the file cannot be opened, or the file system has no locks.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>>;

    /// Locks an existing file or directory; `None` if another process holds the lock.
    ///
    /// # Errors
    /// As [`Files::try_lock`], and [`ErrorKind::NotFound`] if another process has removed it.
    fn try_lock_existing(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// Who may open a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever the process lets open its files.
    Usual,
    /// Only the owner.
    Private,
}

/// A file being written.
pub trait Output: Write + Debug + Send + Sync {
    /// Syncs the content to disk, so that it survives a power loss.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    fn sync(&mut self) -> io::Result<()>;
}

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    /// Closing the file releases the lock; `None` on a file system without locks.
    file: Option<File>,
}

impl Lock {
    /// Whether it excludes other processes.
    pub(crate) const fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// Turns the error that the file system has no locks into a lock that excludes nobody.
    pub(crate) fn where_supported(locked: io::Result<Option<Self>>) -> io::Result<Option<Self>> {
        match locked {
            Err(e)
                if e.kind() == ErrorKind::Unsupported || e.raw_os_error() == Some(libc::ENOLCK) =>
            {
                Ok(Some(Self { file: None }))
            }
            other => other,
        }
    }
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn create_new(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if access == Access::Private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        // Elsewhere, files take the access rights of their directory.
        #[cfg(not(unix))]
        let _ = access;
        Ok(Box::new(options.open(path)?))
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

    #[cfg(windows)]
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        // Windows has no such call; NTFS logs the entries of directories.
        Ok(())
    }

    #[cfg(not(windows))]
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
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NOFOLLOW | libc::O_NONBLOCK,
        );
        loop {
            match lock_opened(options.open(path)?, path) {
                // The former holder has removed the file: create it again.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                other => return other,
            }
        }
    }

    fn try_lock_existing(&self, path: &Path) -> io::Result<Option<Lock>> {
        // Windows locks no directories.
        if cfg!(windows) && path.is_dir() {
            return Err(ErrorKind::Unsupported.into());
        }
        lock_opened(File::open(path)?, path)
    }
}

/// Locks an open file or directory; [`ErrorKind::NotFound`] if it is no longer at `path`. A lock on a
/// removed file excludes nobody, because other processes lock its successor.
fn lock_opened(file: File, path: &Path) -> io::Result<Option<Lock>> {
    match file.try_lock() {
        Ok(()) if is_at(&file, path)? => Ok(Some(Lock { file: Some(file) })),
        Ok(()) => Err(ErrorKind::NotFound.into()),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether `path` refers to the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (opened, present) = (file.metadata()?, fs::metadata(path)?);
    Ok((opened.dev(), opened.ino()) == (present.dev(), present.ino()))
}

/// Other systems do not remove open files.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The parent of a relative path of one name has no name.
pub(crate) fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// What locking says of a directory and a file that were opened before `replace`.
    fn locked_after(replace: impl Fn(&Path)) -> Vec<Result<bool, ErrorKind>> {
        let place = tempfile::tempdir().unwrap();
        let (directory, file) = (place.path().join("directory"), place.path().join("file"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "").unwrap();
        let opened = [directory, file].map(|path| (File::open(&path).unwrap(), path));
        replace(place.path());
        let locks = opened.map(|(file, path)| lock_opened(file, &path));
        let locks = locks.into_iter();
        locks
            .map(|lock| lock.map(|lock| lock.is_some()).map_err(|e| e.kind()))
            .collect()
    }

    #[test]
    fn what_was_removed_is_not_locked() {
        assert_eq!(locked_after(|_| ()), [Ok(true); 2]);
        let remove = |place: &Path| {
            fs::remove_dir(place.join("directory")).unwrap();
            fs::remove_file(place.join("file")).unwrap();
        };
        assert_eq!(locked_after(remove), [Err(ErrorKind::NotFound); 2]);
        let replace = |place: &Path| {
            // Kept, so that the number of its inode is not used again.
            fs::rename(place.join("directory"), place.join("old directory")).unwrap();
            fs::rename(place.join("file"), place.join("old file")).unwrap();
            fs::create_dir(place.join("directory")).unwrap();
            fs::write(place.join("file"), "").unwrap();
        };
        assert_eq!(locked_after(replace), [Err(ErrorKind::NotFound); 2]);
    }
}
