//! Replaces the files of a directory atomically: all of them or none.
//!
//! All operations are inside the directory, so that it may be a mount point, the working directory,
//! or a directory whose parent is not writable:
//!
//! 1. The new files are written to the subdirectory [`NEW`] and synchronised.
//! 2. [`NEW`] is renamed to [`COMMIT`]. This is the commit: before it the old files are the content
//!    of the directory, after it the new ones.
//! 3. Each file of [`COMMIT`] is moved to the directory, and [`COMMIT`] is removed.
//!
//! A process that dies in step 3 leaves [`COMMIT`]. Readers look there first ([`open_committed`]), and
//! the next [`Folder::claim`] repeats the step, which is idempotent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::{PATIENCE, wait_for};
use crate::derived;
use crate::files::{Access, Files, Lock, Output, named};
use crate::regular::{Links, open_regular, read_opened, read_regular};

/// Prefix of the names of all files of this protocol.
const HIDDEN: &str = ".sojourn";
/// Holds files that are not committed.
const NEW: &str = ".sojourn-new";
/// Holds files that are committed but not yet moved to their places.
const COMMIT: &str = ".sojourn-commit";
/// In [`COMMIT`]: names of files that the new ones make obsolete, one per line.
const REMOVALS: &str = ".sojourn-removals";
/// Maximum size of [`REMOVALS`] in bytes.
const MOST_REMOVALS: u64 = 1 << 20;
/// What [`Folder::probe`] renames [`NEW`] to.
const PROBE: &str = ".sojourn-probe";
/// What [`Folder::probe`] writes.
const PROBED: &str = ".sojourn-probed";
/// Extension of the files that are moved last: a manifest never describes files that have not been moved
/// yet.
const LAST: &str = "json";
/// How often to create and lock a directory that other processes remove at the same time.
const ATTEMPTS: u32 = 100;
/// The root of a file system may contain it; it does not count as content.
const LOST_AND_FOUND: &str = "lost+found";

/// The current path of a file of a directory: in [`COMMIT`] after an unfinished commit, else in the
/// directory.
///
/// A commit may take place between this call and the opening of the file.
fn find(directory: &Path, name: &str) -> PathBuf {
    let committed = directory.join(COMMIT);
    // A link could lead to files of another directory.
    let is_real = fs::symlink_metadata(&committed).is_ok_and(|found| found.is_dir());
    let committed = committed.join(name);
    if is_real && committed.exists() {
        committed
    } else {
        directory.join(name)
    }
}

/// Opens a file of a directory, even after an unfinished commit, and while a writer moves it.
///
/// # Errors
/// Those of [`open_regular`].
pub fn open_committed(directory: &Path, name: &str) -> io::Result<File> {
    open_found(directory, name, find)
}

fn open_found(
    directory: &Path,
    name: &str,
    mut find: impl FnMut(&Path, &str) -> PathBuf,
) -> io::Result<File> {
    match open_regular(&find(directory, name), Links::Follow) {
        // A commit may have moved it since it was found.
        Err(e) if e.kind() == ErrorKind::NotFound => {
            open_regular(&find(directory, name), Links::Follow)
        }
        other => other,
    }
}

/// Reads a file of at most `most` bytes as [`open_committed`] does.
///
/// # Errors
/// Those of [`open_committed`] and [`read_regular`].
pub fn read_committed(directory: &Path, name: &str, most: u64) -> io::Result<Vec<u8>> {
    read_opened(open_committed(directory, name)?, most)
}

/// A directory that no other process writes to until this value is dropped; on a file system without
/// locks, several processes can have it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files: Arc<dyn Files>,
    /// The directories that [`Folder::claim`] created, innermost first.
    created: Vec<PathBuf>,
    lock: Lock,
}

impl Folder {
    /// Creates a directory if needed, locks it, and completes or rolls back a commit that a dead
    /// process left.
    ///
    /// The directories created are removed when the value is dropped, unless something is in them.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] if another process has it, and the errors of the file system.
    pub fn claim(files: Arc<dyn Files>, path: &Path) -> io::Result<Self> {
        let mut attempt = 1;
        // Ends after ATTEMPTS.
        let (created, lock) = loop {
            match lock_directory(files.as_ref(), path) {
                // Another process has removed what it had created.
                Err(e) if was_removed(&e, path) && attempt < ATTEMPTS => attempt += 1,
                other => break other?,
            }
        };
        let rule = "another process is writing to it";
        let lock = lock.ok_or_else(|| io::Error::new(ErrorKind::ResourceBusy, rule))?;
        let folder = Self {
            path: path.to_owned(),
            files,
            created,
            lock,
        };
        folder.recover()?;
        Ok(folder)
    }

    /// As [`Folder::claim`], but waits while another process has the directory, for ten seconds.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if another process keeps it, and the errors of the file system.
    pub fn claim_waiting(files: &Arc<dyn Files>, path: &Path) -> io::Result<Self> {
        wait_for(PATIENCE, || match Self::claim(Arc::clone(files), path) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy => Ok(None),
            other => other.map(Some),
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether other processes cannot write to the directory; false on a file system without locks.
    pub const fn is_exclusive(&self) -> bool {
        self.lock.is_held()
    }

    /// Whether nothing is in the directory but files of this protocol.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn is_vacant(&self) -> io::Result<bool> {
        let names = names(&self.path)?;
        let ours = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with(HIDDEN) || name == LOST_AND_FOUND
        };
        Ok(names.iter().all(ours))
    }

    /// Checks that a commit may replace a name: only regular files are replaced.
    ///
    /// Replacing a symbolic link would lose it. Following it is unsafe, because the directory may come
    /// from another user and the link may lead to any file.
    ///
    /// # Errors
    /// If the name is anything but a regular file, or cannot be examined.
    pub fn check_place(&self, name: &Path) -> io::Result<()> {
        let found = match fs::symlink_metadata(self.path.join(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?.file_type(),
        };
        let (kind, what) = if found.is_file() {
            return Ok(());
        } else if found.is_symlink() {
            (ErrorKind::InvalidInput, "a symbolic link")
        } else if found.is_dir() {
            (ErrorKind::IsADirectory, "a directory")
        } else {
            (ErrorKind::InvalidInput, "not a regular file")
        };
        let rule = format!(
            "{} is {what}; expected a regular file or none",
            name.display()
        );
        Err(io::Error::new(kind, rule))
    }

    /// Performs the operations of a commit with a temporary file, to check that a commit is possible.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn probe(&self) -> io::Result<()> {
        let probe = || {
            let new = self.path.join(NEW);
            let committed = self.path.join(PROBE);
            self.files.create_dir_all(&new)?;
            let mut output = self.files.create_new(&new.join(PROBED), Access::Usual)?;
            output.write_all(b"probe\n")?;
            output.sync()?;
            self.files.rename(&new, &committed)?;
            let place = self.path.join(PROBED);
            self.files.rename(&committed.join(PROBED), &place)?;
            self.files.remove_file(&place)?;
            self.files.remove_dir(&committed)?;
            self.files.sync_dir(&self.path)
        };
        probe().inspect_err(|_| {
            // The first error is the cause.
            let _ = self.clean();
        })
    }

    /// Writes files and puts them into the directory, all or none.
    ///
    /// # Errors
    /// Those of `write` and of the file system; unless the message says that the files are
    /// committed, the directory is as before.
    pub fn commit<T, E: From<io::Error>>(
        &self,
        write: impl FnOnce(&Staging<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.recover()?;
        let new = self.path.join(NEW);
        let stage = || -> Result<T, E> {
            self.files.create_dir_all(&new)?;
            let staging = Staging { folder: self };
            let value = write(&staging)?;
            self.files.sync_dir(&new)?;
            for name in names(&new)? {
                self.check_place(Path::new(&name))?;
            }
            self.files.rename(&new, &self.path.join(COMMIT))?;
            Ok(value)
        };
        let value = stage().inspect_err(|_| {
            let _ = self.clean();
        })?;
        // New directory entries must survive a power loss. This is best effort, because a directory may
        // be writable and not readable.
        for parent in self.created.iter().filter_map(|path| path.parent()) {
            let _ = self.files.sync_dir(named(parent));
        }
        self.finish().map_err(|e| {
            let waiting = names(&self.path.join(COMMIT)).is_ok_and(|names| !names.is_empty());
            let result = if waiting {
                format!("complete in {COMMIT}, the next save moves them")
            } else {
                "complete, but may not survive a power loss".to_owned()
            };
            io::Error::new(e.kind(), format!("{e}; the files are {result}"))
        })?;
        derived::tidy(self.files.as_ref(), &self.path);
        Ok(value)
    }

    /// Finishes a commit and removes what was not committed.
    fn recover(&self) -> io::Result<()> {
        self.clean()?;
        match fs::symlink_metadata(self.path.join(COMMIT)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
            Ok(found) if found.is_dir() => self.finish(),
            Ok(_) => Err(io::Error::new(
                ErrorKind::NotADirectory,
                format!("{COMMIT} is not a directory"),
            )),
        }
    }

    /// Removes the files of an aborted commit or a probe.
    fn clean(&self) -> io::Result<()> {
        for name in [NEW, PROBE, PROBED] {
            let path = self.path.join(name);
            match fs::symlink_metadata(&path) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
                Ok(found) if found.is_dir() => self.files.remove_dir_all(&path)?,
                Ok(_) => self.files.remove_file(&path)?,
            }
        }
        Ok(())
    }

    /// Moves the files of [`COMMIT`] to their places; it can be interrupted and repeated.
    ///
    /// The files are committed: an error that passes must not look like a failure. But a
    /// synchronisation that failed is not repeated, because a success after it proves nothing: the
    /// operating system may have dropped what it could not write.
    fn finish(&self) -> io::Result<()> {
        let committed = self.path.join(COMMIT);
        self.files.sync_dir(&self.path)?;
        if !committed.exists() {
            return Ok(());
        }
        let place = || self.place(&committed);
        place().or_else(|_| place())?;
        self.files.sync_dir(&self.path)?;
        let remove = || self.files.remove_dir(&committed);
        remove().or_else(|_| remove())?;
        self.files.sync_dir(&self.path)
    }

    /// Removes what the files of [`COMMIT`] make obsolete, and moves them to their places.
    fn place(&self, committed: &Path) -> io::Result<()> {
        let mut names = names(committed)?;
        if names.remove(&OsString::from(REMOVALS)) {
            let list = committed.join(REMOVALS);
            let obsolete = read_regular(&list, MOST_REMOVALS)?;
            for name in String::from_utf8_lossy(&obsolete)
                .lines()
                .filter(|name| is_plain(name))
            {
                match self.files.remove_file(&self.path.join(name)) {
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
            self.files.remove_file(&list)?;
        }
        let (last, first): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| Path::new(name).extension().is_some_and(|end| end == LAST));
        for name in first.into_iter().chain(last) {
            let place = self.path.join(&name);
            self.files.rename(&committed.join(&name), &place)?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let files = self.files.as_ref();
        if let Some((innermost, parents)) = self.created.split_first()
            && is_gone(files.remove_dir(innermost))
        {
            remove_unused(files, parents);
        }
    }
}

/// The files of a commit while they are written.
#[derive(Debug)]
pub struct Staging<'a> {
    folder: &'a Folder,
}

impl Staging<'_> {
    /// Creates a file; the caller synchronises it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(&self, name: &str) -> io::Result<Box<dyn Output>> {
        let path = self.folder.path.join(NEW).join(name);
        self.folder.files.create_new(&path, Access::Usual)
    }

    /// Writes a file and synchronises it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut output = self.create(name)?;
        output.write_all(bytes)?;
        output.sync()
    }

    /// Files that the commit removes: `names`, and the reports and figures of another manifest than
    /// that with the digest `manifest`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self, mut names: Vec<String>, manifest: &str) -> io::Result<()> {
        names.extend(derived::obsolete(&self.folder.path, manifest));
        if names.is_empty() {
            return Ok(());
        }
        self.write(REMOVALS, names.join("\n").as_bytes())
    }
}

/// Whether creating and locking a directory failed because another process has removed it meanwhile.
fn was_removed(error: &io::Error, path: &Path) -> bool {
    match error.kind() {
        ErrorKind::NotFound => true,
        ErrorKind::AlreadyExists => !exists(path),
        _ => false,
    }
}

/// Creates a directory if needed and locks it. Also returns the created directories, innermost first.
fn lock_directory(files: &dyn Files, path: &Path) -> io::Result<(Vec<PathBuf>, Option<Lock>)> {
    let missing = path.ancestors().take_while(|p| !exists(p));
    let created: Vec<_> = missing.map(Path::to_owned).collect();
    let lock = files
        .create_dir_all(path)
        .and_then(|()| Lock::where_supported(files.try_lock_existing(path)))
        .inspect_err(|_| remove_unused(files, &created))?;
    Ok((created, lock))
}

/// Whether a path exists; dangling symbolic links count.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(named(path)).is_ok()
}

/// Whether a name has no directory part.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(std::path::Component::Normal(part)) if part == name);
    plain && parts.next().is_none()
}

fn names(directory: &Path) -> io::Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

/// Removes directories, innermost first, and stops at the first that is not empty or that another
/// process has locked.
///
/// The lock is needed: a directory that another process has claimed is empty until its first commit.
fn remove_unused(files: &dyn Files, directories: &[PathBuf]) {
    for directory in directories {
        let removed = match files.try_lock_existing(directory) {
            Ok(Some(_lock)) => files.remove_dir(directory),
            Ok(None) => return,
            Err(e) => Err(e),
        };
        if !is_gone(removed) {
            return;
        }
    }
}

/// Whether a directory does not exist after an attempt to remove or lock it.
fn is_gone(attempt: io::Result<()>) -> bool {
    attempt.map_or_else(|e| e.kind() == ErrorKind::NotFound, |()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn a_file_is_read_while_a_writer_moves_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        fs::create_dir(path.join(COMMIT)).unwrap();
        fs::write(path.join(COMMIT).join("table"), "new").unwrap();
        let mut finds = 0;
        let opened = open_found(path, "table", |directory, name| {
            let found = find(directory, name);
            finds += 1;
            // Finishes the commit, as the writer does.
            drop(Folder::claim(Arc::new(Disk), directory).unwrap());
            found
        });
        assert_eq!(read_opened(opened.unwrap(), 3).unwrap(), b"new");
        assert_eq!(finds, 2);
        let missing = open_committed(path, "other").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_a_commit_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let (victim, path) = (place.path().join("victim"), place.path().join("result"));
        fs::create_dir_all(&path).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("table"), "mine").unwrap();
        std::os::unix::fs::symlink(&victim, path.join(COMMIT)).unwrap();
        assert_eq!(find(&path, "table"), path.join("table"));
    }
}
