//! Directories that several writers claim.

#![expect(clippy::disallowed_methods, reason = "real threads take real time")]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sojourn_store::testing::{Fault, Faulty};
use sojourn_store::{Access, Disk, Files, Folder, Lock, Output, Staging, read_committed};

#[test]
fn whoever_has_a_directory_has_the_one_at_its_path_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let (holders, claims) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let claim_often = || {
        for _ in 0..3_000 {
            match Folder::claim(Arc::new(Disk), &path) {
                Ok(folder) => {
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    assert!(path.is_dir(), "it is locked and removed");
                    claims.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1, "two holders");
                    // Removes the directory, as nothing is in it.
                    drop(folder);
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::ResourceBusy, "{e}"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(claim_often);
        }
    });
    assert!(claims.into_inner() > 100);
}

/// A disk where others are active before a directory is locked, or where something does not work.
#[derive(Debug)]
enum Special {
    /// The file system has no locks: the number of the error.
    NoLocks(i32),
    /// The first call of `sync_dir` that fails, and the number of calls.
    FailedSync(usize, AtomicUsize),
    /// Another process removes the directory this many times.
    Removed(AtomicUsize),
    /// Another process removes the directory of this one, and claims its own.
    Claimed(Mutex<Option<Folder>>),
}

impl Files for Special {
    fn create_new(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>> {
        Disk.create_new(path, access)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        Disk.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Disk.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        Disk.remove_dir_all(path)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        Disk.truncate(path, length)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if let Self::FailedSync(at, calls) = self
            && calls.fetch_add(1, Ordering::SeqCst) == *at
        {
            return Err(io::Error::other("write error"));
        }
        Disk.sync_dir(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        Disk.try_lock(path)
    }

    fn try_lock_existing(&self, path: &Path) -> io::Result<Option<Lock>> {
        match self {
            Self::NoLocks(number) => return Err(io::Error::from_raw_os_error(*number)),
            Self::FailedSync(..) => {}
            Self::Removed(times) => {
                let less = |left: usize| left.checked_sub(1);
                let left = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
                if left.is_ok() {
                    fs::remove_dir(path)?;
                }
            }
            Self::Claimed(holder) => {
                let mut holder = holder.lock().expect("no claim panics");
                if holder.is_none() {
                    fs::remove_dir(path)?;
                    *holder = Some(Folder::claim(Arc::new(Disk), path)?);
                    return Err(ErrorKind::NotFound.into());
                }
            }
        }
        Disk.try_lock_existing(path)
    }
}

#[test]
fn a_synchronisation_that_failed_is_reported_and_not_repeated() {
    let states = [
        None,
        Some("write error; the files are complete in .sojourn-commit, the next save moves them"),
        Some("write error; the files are complete, but may not survive a power loss"),
        Some("write error; the files are complete, but may not survive a power loss"),
    ];
    for (at, state) in states.into_iter().enumerate() {
        let place = tempfile::tempdir().unwrap();
        let files = Arc::new(Special::FailedSync(at, AtomicUsize::new(0)));
        let folder = Folder::claim(files.clone(), place.path()).unwrap();
        let write = |staging: &Staging<'_>| staging.write("table", b"new");
        let error = folder.commit::<_, io::Error>(write).unwrap_err();
        assert_eq!(error.to_string(), state.unwrap_or("write error"), "{at}");
        let Special::FailedSync(_, calls) = &*files else {
            unreachable!()
        };
        assert_eq!(calls.load(Ordering::SeqCst), at + 1);
        let found = read_committed(place.path(), "table", 3).ok();
        assert_eq!(found.is_some(), state.is_some(), "{at}");
        drop(folder);
        let folder = Folder::claim(Arc::new(Disk), place.path()).unwrap();
        folder.commit::<_, io::Error>(write).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "{at}");
    }
}

#[test]
fn a_file_system_without_locks_lets_files_be_written_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    for number in [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS] {
        let folder = Folder::claim(Arc::new(Special::NoLocks(number)), place.path()).unwrap();
        assert!(!folder.is_exclusive(), "{number}");
        folder.probe().unwrap();
        folder
            .commit::<_, io::Error>(|staging| staging.write("table", b"new"))
            .unwrap();
    }
    let folder = Folder::claim(Arc::new(Disk), place.path()).unwrap();
    assert!(folder.is_exclusive());
    // Other errors are errors.
    let full = Folder::claim(Arc::new(Special::NoLocks(libc::EIO)), place.path());
    assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_directory_that_others_remove_before_it_is_locked_is_created_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let files = Arc::new(Special::Removed(AtomicUsize::new(3)));
    let folder = Folder::claim(files, &path).unwrap();
    assert!(path.is_dir());
    let busy = Folder::claim(Arc::new(Disk), &path).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    drop(folder);
    assert!(!place.path().join("a").exists(), "it created both");

    // Somebody who never stops.
    let files = Special::Removed(AtomicUsize::new(usize::MAX));
    let error = Folder::claim(Arc::new(files), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!path.exists(), "nor is a file left in its place");
}

#[test]
fn a_directory_that_another_process_has_claimed_is_not_removed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let files = Arc::new(Special::Claimed(Mutex::new(None)));
    let error = Folder::claim(files.clone(), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    assert!(path.is_dir(), "the other process has claimed it");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_created_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    let claim = |path: &Path| Folder::claim(Arc::new(Disk), path).unwrap_err().kind();
    assert_eq!(
        claim(&place.path().join("file/a")),
        ErrorKind::NotADirectory
    );
    assert_eq!(claim(&place.path().join("file")), ErrorKind::AlreadyExists);
    std::os::unix::fs::symlink("nowhere", place.path().join("link")).unwrap();
    assert_eq!(claim(&place.path().join("link")), ErrorKind::AlreadyExists);
}

#[test]
fn a_claim_can_wait_for_the_directory() {
    let place = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Files> = Arc::new(Disk);
    let held = Folder::claim(Arc::clone(&disk), place.path()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| Folder::claim_waiting(&disk, place.path()).map(drop));
        thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        drop(held);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn manifests_are_moved_last() {
    let place = tempfile::tempdir().unwrap();
    let commit = place.path().join(".sojourn-commit");
    fs::create_dir(&commit).unwrap();
    for name in ["a.json", "b.parquet", "c.toml"] {
        fs::write(commit.join(name), "new").unwrap();
    }
    // A commit that another process has left, and which ends again after a file.
    for at in 0..20 {
        let files = Arc::new(Faulty::new(Fault::Forever, at));
        let _ = Folder::claim(files, place.path());
        let moved = |name: &str| place.path().join(name).exists();
        if moved("a.json") {
            assert!(moved("b.parquet") && moved("c.toml"), "{at}");
        }
    }
    drop(Folder::claim(Arc::new(Disk), place.path()).unwrap());
    assert!(!commit.exists() && place.path().join("a.json").exists());
}
