//! The directory of a run, with its instructions and results.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io};

/// Names of the directories begin like this; the process and a number follow.
const PREFIX: &str = "sojourn-kernel-";

/// A new directory that only this user can enter, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// The directory itself, locked: one without a lock is what a run left behind that was killed.
    _lock: fs::File,
}

impl RunFolder {
    /// Creates the directory, and removes those that runs of this user have left behind.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create() -> io::Result<Self> {
        static LEFT: Once = Once::new();
        let place = env::temp_dir();
        let folder = Self::create_in(&place)?;
        LEFT.call_once(|| remove_left(&place, &folder));
        Ok(folder)
    }

    /// Other users may write to `place`: a name that exists, whatever it is, is not used.
    fn create_in(place: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Ends: each turn takes another name.
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = place.join(format!("{PREFIX}{}-{number}", id()));
            match builder.create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            // Another run may take it for left before it is locked.
            let lock = match fs::File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) => {}
            }
            let locked = identity(&lock.metadata()?);
            if fs::symlink_metadata(&path).is_ok_and(|now| identity(&now) == locked) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What is left does not change a later run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories in `place` that no run of the owner of `own` has locked.
fn remove_left(place: &Path, own: &RunFolder) {
    let Ok((owner, _)) = fs::symlink_metadata(own.path()).map(|own| identity(&own)) else {
        return;
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = |about: fs::Metadata| about.is_dir() && identity(&about).0 == owner;
        let is_run = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_run
            && fs::symlink_metadata(entry.path()).is_ok_and(is_ours)
            && let Ok(lock) = fs::File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The owner of a file and its number.
#[cfg(unix)]
fn identity(of: &fs::Metadata) -> (u32, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (of.uid(), of.ino())
}

#[cfg(not(unix))]
const fn identity(_: &fs::Metadata) -> (u32, u64) {
    (0, 0)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_directory_that_exists_is_not_used() {
        let place = RunFolder::create().expect("a folder");
        let planted = place.path().join("planted");
        fs::create_dir(&planted).expect("a folder");
        // As many names as the other tests of this program can use meanwhile, and more.
        for number in 0..200 {
            let name = place.path().join(format!("{PREFIX}{}-{number}", id()));
            symlink(&planted, name).expect("a link");
        }
        let run = RunFolder::create_in(place.path()).expect("a folder");
        let about = fs::symlink_metadata(run.path()).expect("a folder");
        assert!(about.is_dir());
        assert_eq!(about.permissions().mode() & 0o777, 0o700);
        fs::write(run.path().join("instructions"), "").expect("a file");
        assert_eq!(fs::read_dir(planted).expect("a folder").count(), 0);
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed() {
        let place = RunFolder::create().expect("a folder");
        let running = RunFolder::create_in(place.path()).expect("a folder");
        let left = place.path().join(format!("{PREFIX}1-0"));
        fs::create_dir_all(left.join("run")).expect("a folder");
        let other = place.path().join("other");
        fs::create_dir(&other).expect("a folder");
        remove_left(place.path(), &running);
        assert!(!left.exists());
        assert!(running.path().is_dir() && other.is_dir());
        let path = running.path().to_owned();
        drop(running);
        assert!(!path.exists());
    }
}
