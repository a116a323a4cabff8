//! Boots a kernel for one run and waits for its end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, io, thread};

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
/// What a file system must have free to hold the memory of a guest. Most runs take 70 MB, and several run at once.
const ENOUGH: u64 = 256 * MB;
const MB: u64 = 1 << 20;
/// How often the run is looked at.
const TURN: std::time::Duration = std::time::Duration::from_millis(10);

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
    let memory = place_of_memory(&[Path::new(IN_MEMORY), folder], room)?;
    command.env("TMPDIR", &memory);
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
    Ok(End::Failed(reason(folder, &memory)))
}

/// Where files are in memory.
const IN_MEMORY: &str = "/dev/shm";

/// The first of some directories that can hold the memory of a guest: a file that is mapped as executable. A guest for
/// which there is no room left while it runs is killed.
///
/// # Errors
/// If there is none, in one line.
fn place_of_memory(
    places: &[&Path],
    room: impl Fn(&Path) -> Result<u64, &'static str>,
) -> io::Result<PathBuf> {
    let mut found = Vec::new();
    for place in places {
        let has = match room(place) {
            Ok(free) if free >= ENOUGH => return Ok(place.to_path_buf()),
            Ok(free) => format!("has {} MB", free / MB),
            Err(why) => why.to_owned(),
        };
        found.push(format!("{} {has}", place.display()));
    }
    let (needed, found) = (ENOUGH / MB, found.join(", "));
    Err(io::Error::other(format!(
        "the memory of the guest needs {needed} MB: {found}; enlarge {IN_MEMORY} or set TMPDIR"
    )))
}

/// Free bytes of the file system of a directory, or why programs cannot have their memory there.
#[cfg(target_os = "linux")]
fn room(place: &Path) -> Result<u64, &'static str> {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    let system = statvfs(place).map_err(|_| "is missing")?;
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("is mounted with noexec");
    }
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(target_os = "linux"))]
fn room(_: &Path) -> Result<u64, &'static str> {
    Err("cannot hold it")
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

/// Why a machine stopped whose memory was in a directory, in one line.
fn reason(folder: &Path, memory: &Path) -> String {
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
    // SIGBUS: a page of the file could not be written.
    if console.iter().any(|line| line.ends_with("signal 7")) {
        let place = memory.display();
        return format!("{place} is full, which holds the memory of the guest: enlarge it");
    }
    let last = console.last().map_or("no message", String::as_str);
    format!("the guest stopped: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_folder::RunFolder;

    #[test]
    fn the_memory_of_a_guest_is_where_there_is_room_for_it() {
        let places = [Path::new(IN_MEMORY), Path::new("/tmp")];
        let place =
            |shm, tmp| place_of_memory(&places, |place| if place == places[0] { shm } else { tmp });
        assert_eq!(place(Ok(ENOUGH), Ok(ENOUGH)).expect("room"), places[0]);
        assert_eq!(place(Ok(64 * MB), Ok(ENOUGH)).expect("room"), places[1]);
        let noexec = Err("is mounted with noexec");
        assert_eq!(place(noexec, Ok(ENOUGH)).expect("room"), places[1]);
        let refused = place(Ok(64 * MB), noexec).expect_err("no room").to_string();
        assert_eq!(
            refused,
            "the memory of the guest needs 256 MB: /dev/shm has 64 MB, /tmp is mounted with noexec; \
             enlarge /dev/shm or set TMPDIR"
        );
    }

    #[test]
    fn a_guest_without_memory_names_the_place() {
        let folder = RunFolder::create().expect("a folder");
        let panic = "<0>Kernel panic - not syncing: Kernel mode signal 7\n";
        fs::write(folder.path().join("console"), panic).expect("a file");
        assert_eq!(
            reason(folder.path(), Path::new(IN_MEMORY)),
            "/dev/shm is full, which holds the memory of the guest: enlarge it"
        );
    }
}
