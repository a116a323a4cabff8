//! Fault injection: a file system whose operations fail on request.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::files::{Access, Disk, Files, Lock, Output};

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails, and the following ones work: an error such as a full disk for a moment.
    Once,
    /// This and all following operations fail: a full disk, or a disk that is gone.
    Forever,
    /// As [`Fault::Forever`], but a write leaves the first half of its bytes: the process died in
    /// the middle. The caller's own cleaning-up fails too, as it never takes place.
    Death,
}

/// The file system of the operating system with an injected fault.
#[derive(Clone, Debug)]
pub struct Faulty {
    fault: Fault,
    at: usize,
    done: Arc<AtomicUsize>,
}

impl Faulty {
    /// Fails at operation `at`, counted from 0. Each write counts, as does each call of [`Files`]
    /// and [`Output::sync`].
    pub fn new(fault: Fault, at: usize) -> Self {
        let done = Arc::default();
        Self { fault, at, done }
    }

    /// Never fails, and counts operations.
    pub fn counting() -> Self {
        Self::new(Fault::Once, usize::MAX)
    }

    /// Number of operations so far.
    pub fn operations(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Whether the fault has taken place.
    pub fn failed(&self) -> bool {
        self.operations() > self.at
    }

    fn step(&self) -> Result<(), Step> {
        let number = self.done.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            _ if number < self.at => Ok(()),
            Fault::Once if number > self.at => Ok(()),
            Fault::Death if number == self.at => Err(Step::Half),
            _ => Err(Step::Nothing),
        }
    }

    fn check(&self) -> io::Result<()> {
        self.step().map_err(|_| injected())
    }
}

/// How much of a failing write takes place.
enum Step {
    Nothing,
    Half,
}

fn injected() -> io::Error {
    io::Error::other("injected fault")
}

impl Files for Faulty {
    fn create_new(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>> {
        self.check()?;
        let output = Disk.create_new(path, access)?;
        let faulty = self.clone();
        Ok(Box::new(FaultyOutput { output, faulty }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check()?;
        Disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.remove_dir_all(path)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.check()?;
        Disk.truncate(path, length)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.sync_dir(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.check()?;
        Disk.try_lock(path)
    }

    fn try_lock_existing(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.check()?;
        Disk.try_lock_existing(path)
    }
}

#[derive(Debug)]
struct FaultyOutput {
    output: Box<dyn Output>,
    faulty: Faulty,
}

impl Write for FaultyOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.faulty.step() {
            Ok(()) => self.output.write(bytes),
            Err(Step::Nothing) => Err(injected()),
            Err(Step::Half) => {
                self.output.write_all(&bytes[..bytes.len() / 2])?;
                Err(injected())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output for FaultyOutput {
    fn sync(&mut self) -> io::Result<()> {
        self.faulty.check()?;
        self.output.sync()
    }
}
