//! Replaces a file atomically.
//!
//! The new content is written to a temporary file in the same directory, which is then renamed. Its
//! writer holds a lock on it, so that temporary files of dead writers are known: the next writer in
//! the directory removes them.

use std::fs::{self, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{Access, Files, Lock, Output, named};
use crate::regular::check_regular;

/// Prefix of the names of temporary files.
const TEMPORARY: &str = ".sojourn-tmp-";

/// The new content of a file while it is written; removed when it is dropped without a commit.
#[derive(Debug)]
pub struct Replacement {
    files: Arc<dyn Files>,
    target: PathBuf,
    temporary: PathBuf,
    output: Box<dyn Output>,
    committed: bool,
    /// Those of the file that is replaced.
    permissions: Option<Permissions>,
    /// `None` if the file cannot be locked.
    _lock: Option<Lock>,
}

impl Replacement {
    /// Creates the temporary file. Nobody may open it who may not open the file that it will replace.
    ///
    /// # Errors
    /// If something other than a regular file has the name `target`, and those of the file system.
    pub fn begin(files: Arc<dyn Files>, target: &Path) -> io::Result<Self> {
        let (access, permissions) = match fs::symlink_metadata(target) {
            Ok(found) => {
                check_regular(found.file_type())?;
                (Access::Private, Some(found.permissions()))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => (Access::Usual, None),
            Err(e) => return Err(e),
        };
        remove_stale(&*files, directory_of(target));
        loop {
            // Seeded by the operating system; a counter would repeat after a restart.
            let name = format!("{TEMPORARY}{:016x}", RandomState::new().hash_one(target));
            let temporary = target.with_file_name(name);
            let output = files.create_new(&temporary, access)?;
            let lock = match files.try_lock_existing(&temporary) {
                // Before it was locked, it looked like the file of a dead writer.
                Ok(None) => continue,
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other.ok().flatten(),
            };
            return Ok(Self {
                files,
                target: target.to_owned(),
                temporary,
                output,
                committed: false,
                permissions,
                _lock: lock,
            });
        }
    }

    /// The temporary file, which may be opened and written by its name.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the new content to disk, and puts it in the place of the old one.
    ///
    /// # Errors
    /// Those of the file system; the file is as before then.
    pub fn commit(&mut self) -> io::Result<()> {
        if let Some(permissions) = self.permissions.take() {
            // Those that let a file run as its owner are not kept.
            #[cfg(unix)]
            let permissions = {
                use std::os::unix::fs::PermissionsExt as _;
                fs::Permissions::from_mode(permissions.mode() & 0o777)
            };
            // Some file systems have no permissions.
            let _ = fs::set_permissions(&self.temporary, permissions);
        }
        self.output.sync()?;
        self.files.rename(&self.temporary, &self.target)?;
        self.committed = true;
        // The directory may be writable and not readable.
        let _ = self.files.sync_dir(directory_of(&self.target));
        Ok(())
    }

    /// Gives what has been written another name, unless it is empty; the target is as before.
    pub fn keep_as(mut self, rest: &Path) {
        let is_empty = fs::metadata(&self.temporary).is_ok_and(|found| found.len() == 0);
        self.committed = !is_empty && self.files.rename(&self.temporary, rest).is_ok();
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.committed {
            let _ = self.files.remove_file(&self.temporary);
        }
    }
}

/// Writes a file atomically; an existing file keeps its permissions.
pub(crate) fn replace(files: Arc<dyn Files>, target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut replacement = Replacement::begin(files, target)?;
    replacement.output.write_all(bytes)?;
    replacement.commit()
}

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    named(path.parent().unwrap_or(path))
}

/// Removes the temporary files of dead writers, as far as this is possible.
fn remove_stale(files: &dyn Files, directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|found| found.is_file());
        if is_file && entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            let path = entry.path();
            // The lock is taken if the writer is alive.
            if let Ok(Some(_lock)) = files.try_lock_existing(&path) {
                let _ = files.remove_file(&path);
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::files::Disk;
    use crate::testing::{Fault, Faulty};

    fn disk() -> Arc<dyn Files> {
        Arc::new(Disk)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_fault_leaves_the_old_file_or_the_new_one() {
        let counting = Faulty::counting();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page");
        replace(Arc::new(counting.clone()), &path, b"old").unwrap();
        let operations = counting.operations();
        assert!(operations >= 5, "{operations}");
        for fault in [Fault::Once, Fault::Forever, Fault::Death] {
            for at in 0..operations {
                replace(disk(), &path, b"old").unwrap();
                let files = Faulty::new(fault, at);
                let replaced = replace(Arc::new(files.clone()), &path, b"new");
                assert!(files.failed());
                let found = fs::read(&path).unwrap();
                let case = format!("{fault:?} at {at}: {replaced:?}");
                match replaced {
                    Ok(()) => assert_eq!(found, b"new", "{case}"),
                    Err(_) => assert_eq!(found, b"old", "{case}"),
                }
                // The next writer removes what is left.
                replace(disk(), &path, b"next").unwrap();
                assert_eq!(names(place.path()), ["page"], "{case}");
            }
        }
    }

    #[test]
    fn temporary_files_of_living_writers_stay() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page");
        let mut alive = Replacement::begin(disk(), &path).unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, place.path().join(".sojourn-tmp-link")).unwrap();
        fs::write(place.path().join(".sojourn-tmp-dead"), "half").unwrap();
        fs::write(alive.temporary(), "late").unwrap();
        replace(disk(), &path, b"soon").unwrap();
        assert!(!place.path().join(".sojourn-tmp-dead").exists());
        assert_eq!(fs::read(&path).unwrap(), b"soon");
        alive.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"late");
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
    }

    #[test]
    fn what_was_written_can_be_kept_under_another_name() {
        let place = tempfile::tempdir().unwrap();
        let (path, rest) = (place.path().join("page"), place.path().join("rest"));
        Replacement::begin(disk(), &path).unwrap().keep_as(&rest);
        assert!(names(place.path()).is_empty(), "it was empty");
        let begun = Replacement::begin(disk(), &path).unwrap();
        fs::write(begun.temporary(), "part").unwrap();
        begun.keep_as(&rest);
        assert_eq!(names(place.path()), ["rest"]);
        assert_eq!(fs::read(rest).unwrap(), b"part");
    }

    #[test]
    fn permissions_are_kept_and_only_files_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(disk(), &path, b"new").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        symlink(&path, place.path().join("link")).unwrap();
        for name in ["link", "."] {
            let error = replace(disk(), &place.path().join(name), b"new").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(names(place.path()), ["link", "page"]);
    }
}
