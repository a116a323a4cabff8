//! Boots a kernel for one run and waits for its end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, id};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, thread};

use sojourn_backend::Cancellation;
use sojourn_net::Instant;

use crate::folder::Kernel;

/// Memory of the guest; the host gives it the pages that it uses.
const MEMORY: &str = "mem=1024M";
/// The guest's clock starts at this number of nanoseconds since 1970.
const START: &str = "time-travel-start=1000000000000000000";
/// Why a machine does not come up that has no right to trace its processes.
pub(crate) const NO_PTRACE: &str =
    "User-Mode Linux needs ptrace, which this machine or container denies";
/// How often the run is looked at.
const TURN: std::time::Duration = std::time::Duration::from_millis(10);

/// The directory of a run, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    /// A new directory.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("sojourn-kernel-{}-{number}", id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What is left does not change a later run.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The run is over.
    Finished,
    /// On request.
    Cancelled,
    /// The machine did not come up, or stopped.
    Failed(String),
}

/// Boots `kernel` with the files of a run and waits for its end.
///
/// # Errors
/// If the kernel cannot be started.
pub(crate) fn run(
    kernel: &Kernel,
    folder: &Path,
    seed: u64,
    cancellation: &Cancellation<'_>,
) -> io::Result<End> {
    if folder.to_string_lossy().contains(',') {
        let reason = format!("{}: the path must not contain a comma", folder.display());
        return Err(io::Error::other(reason));
    }
    let console = fs::File::create(folder.join("console"))?;
    let mut command = Command::new(kernel.launcher());
    command
        .arg(kernel.program())
        .args([
            MEMORY,
            "time-travel=inf-cpu",
            START,
            "random.trust_cpu=1",
            "con=null",
            "con0=null,fd:1",
            "quiet",
        ])
        .arg(format!("random_seed={seed}"))
        .arg(format!("initrd={}", kernel.file_system().display()))
        .arg(format!("hostfs={}", folder.display()))
        .arg(format!("uml_dir={}", folder.display()))
        .arg("umid=run")
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(console.try_clone()?)
        .stderr(console);
    // The memory of the guest is a file, which must be in memory and executable.
    if Path::new("/dev/shm").is_dir() {
        command.env("TMPDIR", "/dev/shm");
    }
    let mut machine = command.spawn()?;
    let ended = follow(&mut machine, folder, cancellation);
    // Ends the machine if it still runs.
    drop(machine.stdin.take());
    machine.wait()?;
    if !ended? {
        return Ok(End::Cancelled);
    }
    if folder.join("done").exists() {
        return Ok(End::Finished);
    }
    Ok(End::Failed(reason(folder)))
}

/// Waits until the machine ends; false: the run is to be cancelled.
#[expect(clippy::disallowed_methods, reason = "a machine runs in real time")]
fn follow(machine: &mut Child, folder: &Path, cancellation: &Cancellation<'_>) -> io::Result<bool> {
    let progress = folder.join("progress");
    loop {
        if machine.try_wait()?.is_some() {
            return Ok(true);
        }
        let reached = fs::read_to_string(&progress).unwrap_or_default();
        let reached = reached.trim().parse().unwrap_or(0);
        if cancellation.is_requested_at(Instant::from_nanos(reached)) {
            return Ok(false);
        }
        thread::sleep(TURN);
    }
}

/// Why a machine stopped, in one line.
fn reason(folder: &Path) -> String {
    let text = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let lines = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    if let Some(failure) = lines(&text("failure")).pop() {
        // What the command said that failed.
        return format!("{failure}: {}", lines(&text("log")).join("; "));
    }
    let console = lines(&text("console"));
    // The checks at the start end with OK.
    if (console.iter()).any(|line| line.contains("ptrace") && !line.ends_with("OK")) {
        return NO_PTRACE.to_owned();
    }
    let last = console.last().map_or("no message", String::as_str);
    format!("the guest stopped: {last}")
}
