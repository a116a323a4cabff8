//! Stops runs before this process takes more memory than it may.
//!
//! The estimate is checked before the runs; this is for what it cannot include, such as data that a queue written in
//! Python keeps. A run asks every thousand events ([`Cancellation`]), so the event loop has no further cost. Where
//! the system does not state the memory of a process in `/proc` (macOS), no run is stopped.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sojourn_backend::{BackendError, Cancellation, Completion};
use sojourn_net::{Duration, Instant};

use crate::budget::{PROCESS, WORKERS};

/// Growth between two questions that is always expected: 1,024 events, most of which keep at most a packet of 130 B.
const GROWTH: u64 = 1 << 17;
/// Questions for which the memory is not read, at most: about 20 ms. Reading takes up to 40 us.
const MOST_SKIPPED: u64 = 512;
/// The same for runs with queues written in Python, whose events take longer and may keep any amount of memory.
const MOST_SKIPPED_PYTHON: u64 = 8;

static LIMIT: Limit = Limit::new();
/// Runs under way in this process, which share its memory, and the memory for their tables.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static TABLES: AtomicU64 = AtomicU64::new(0);

/// Limits the memory of this process from now on to `bytes`, with Python and its libraries, but without what it had in
/// memory besides when it had no limit, such as the data of a notebook; `None`: no limit. The last call applies to all
/// runs.
pub fn limit_memory(bytes: Option<u64>) {
    LIMIT.set(bytes, LIMIT.besides(), false);
}

/// Limits the memory of this process, a worker, without the pages that it shares with others.
pub fn limit_worker_memory(bytes: Option<u64>) {
    LIMIT.set(bytes, 0, true);
}

/// The share of each of `workers` processes in the memory that this process does not use and does not need for `kept`
/// bytes of finished runs; `None`: no limit.
pub fn worker_memory(workers: u64, kept: u64) -> Option<u64> {
    let own = LIMIT.used()?.max(PROCESS) + WORKERS;
    let left = LIMIT.bytes()?.saturating_sub(own).saturating_sub(kept);
    Some(left / workers.max(1))
}

/// A run to watch.
pub(crate) struct Watched<'a> {
    /// Its arm and replication, for the error.
    pub(crate) name: &'a str,
    pub(crate) duration: Duration,
    /// Memory for its tables.
    pub(crate) tables: u64,
    /// Whether it has queues written in Python.
    pub(crate) is_python: bool,
}

/// Executes a run, which ends with an error if this process and the tables exceed the limit.
pub(crate) fn watched<T>(
    of: &Watched<'_>,
    cancellation: &Cancellation<'_>,
    run: impl FnOnce(&Cancellation<'_>) -> Result<(Completion, T), BackendError>,
) -> Result<(Completion, T), BackendError> {
    let _running = Running::begin(of.tables);
    let (excess, reached) = (OnceLock::new(), AtomicU64::new(0));
    let ended = || {
        let tables = TABLES.load(Ordering::Relaxed);
        if let Some(text) = LIMIT.excess(tables, of.is_python) {
            excess.get_or_init(|| text);
        }
        excess.get().is_some() || cancellation.is_requested()
    };
    let report = |time: Instant| {
        reached.store(time.as_nanos(), Ordering::Relaxed);
        cancellation.report(time);
    };
    let done = run(&Cancellation::new(&ended).reporting(&report))?;
    match excess.get() {
        Some(excess) if done.0 == Completion::Cancelled => {
            let reached = Duration::from_nanos(reached.into_inner()).as_secs_f64();
            let (name, whole) = (of.name, of.duration.as_secs_f64());
            Err(BackendError::Memory(format!(
                "{name}, stopped at {reached:.3} s of {whole} s: {excess}"
            )))
        }
        _ => Ok(done),
    }
}

/// A run that is counted in [`RUNNING`], and its tables in [`TABLES`].
struct Running(u64);

impl Running {
    fn begin(tables: u64) -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        TABLES.fetch_add(tables, Ordering::Relaxed);
        LIMIT.left.store(0, Ordering::Relaxed);
        Self(tables)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        TABLES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The limit, and when the memory is read again.
struct Limit {
    /// `u64::MAX`: none.
    bytes: AtomicU64,
    /// What the process had in memory before, which does not count.
    besides: AtomicU64,
    is_worker: AtomicBool,
    /// Memory when it was last read, and the questions since then and until the next time. If two runs ask at the same
    /// time, one question may not count.
    last: AtomicU64,
    skipped: AtomicU64,
    left: AtomicU64,
}

impl Limit {
    const fn new() -> Self {
        Self {
            bytes: AtomicU64::new(u64::MAX),
            besides: AtomicU64::new(0),
            is_worker: AtomicBool::new(false),
            last: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            left: AtomicU64::new(0),
        }
    }

    fn set(&self, bytes: Option<u64>, besides: u64, is_worker: bool) {
        self.besides.store(besides, Ordering::Relaxed);
        self.is_worker.store(is_worker, Ordering::Relaxed);
        self.last.store(self.used().unwrap_or(0), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
        self.bytes
            .store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What the process has in memory besides Python and its libraries; while it has a limit, what it had before.
    fn besides(&self) -> u64 {
        if self.bytes().is_some() {
            return self.besides.load(Ordering::Relaxed);
        }
        memory("VmRSS:").unwrap_or(0).saturating_sub(PROCESS)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed)).filter(|&bytes| bytes != u64::MAX)
    }

    /// Memory of this process that counts; `None`: the system does not state it.
    fn used(&self) -> Option<u64> {
        let is_worker = self.is_worker.load(Ordering::Relaxed);
        let used = memory(if is_worker { "RssAnon:" } else { "VmRSS:" })?;
        Some(used.saturating_sub(self.besides.load(Ordering::Relaxed)))
    }

    /// Which process needs too much memory, if this one does with tables of `tables` bytes.
    fn excess(&self, tables: u64, is_python: bool) -> Option<String> {
        let limit = self.bytes()?;
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let used = self.used()?;
        let needed = used.saturating_add(tables);
        let most = if is_python {
            MOST_SKIPPED_PYTHON
        } else {
            MOST_SKIPPED
        };
        self.wait(used, limit.saturating_sub(needed), most);
        let runs = RUNNING.load(Ordering::Relaxed);
        (needed > limit).then(|| self.text(needed, limit, runs))
    }

    /// Skips the questions in which the memory grows by half of `free` bytes, as fast as before; at most `most`.
    fn wait(&self, used: u64, free: u64, most: u64) {
        let questions = self.skipped.load(Ordering::Relaxed) + 1;
        let growth = used.saturating_sub(self.last.swap(used, Ordering::Relaxed)) / questions;
        let skipped = (free / growth.max(GROWTH) / 2).min(most);
        self.skipped.store(skipped, Ordering::Relaxed);
        self.left.store(skipped, Ordering::Relaxed);
    }

    /// Python writes the numbers of bytes in larger units.
    fn text(&self, needed: u64, limit: u64, runs: u64) -> String {
        if self.is_worker.load(Ordering::Relaxed) {
            return format!(
                "a worker process needs {needed} bytes, more than its share of {limit} bytes"
            );
        }
        let together = match runs {
            0 | 1 => String::new(),
            runs => format!(" for {runs} runs at once"),
        };
        format!("the process needs {needed} bytes{together}")
    }
}

/// A line of `/proc/self/status` and what has been swapped out, in bytes.
fn memory(key: &str) -> Option<u64> {
    with_swap(&fs::read_to_string("/proc/self/status").ok()?, key)
}

/// The sum of a line of a text and the one on swapped memory, in bytes.
fn with_swap(status: &str, key: &str) -> Option<u64> {
    value(status, key)?.checked_add(value(status, "VmSwap:").unwrap_or(0))
}

/// The number of kilobytes in a line of a text, in bytes.
fn value(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_read() {
        let status = "Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t  800 kB\nRssAnon:\t  700 kB\n";
        assert_eq!(value(status, "VmRSS:"), Some(819_200));
        assert_eq!(value(status, "RssAnon:"), Some(716_800));
        assert_eq!(value("Name:\tx\n", "VmRSS:"), None);
        assert_eq!(with_swap(status, "VmRSS:"), Some(819_200));
        let swapped = format!("{status}VmSwap:\t  10 kB\n");
        assert_eq!(with_swap(&swapped, "RssAnon:"), Some(716_800 + 10_240));
    }

    #[test]
    fn the_tables_of_concurrent_runs_count_together() {
        let before = TABLES.load(Ordering::Relaxed);
        let first = Running::begin(5);
        let second = Running::begin(7);
        assert_eq!(TABLES.load(Ordering::Relaxed), before + 12);
        drop(first);
        assert_eq!(TABLES.load(Ordering::Relaxed), before + 7);
        drop(second);
        assert_eq!(TABLES.load(Ordering::Relaxed), before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_runs_use_is_not_what_was_there_before() {
        let limit = Limit::new();
        assert!(limit.besides() <= memory("VmRSS:").unwrap());
        limit.set(Some(1 << 30), 7, false);
        assert_eq!(limit.besides(), 7, "another thread has begun");
    }

    #[test]
    fn the_text_names_what_shares_the_memory() {
        let limit = Limit::new();
        let text = "the process needs 95 bytes";
        assert_eq!(limit.text(95, 94, 1), text);
        let text = "the process needs 21 bytes for 3 runs at once";
        assert_eq!(limit.text(21, 20, 3), text);
        limit.set(None, 0, true);
        let text = "a worker process needs 2 bytes, more than its share of 1 bytes";
        assert_eq!(limit.text(2, 1, 1), text);
    }

    #[test]
    fn the_memory_is_read_more_often_near_the_limit_and_while_it_grows() {
        let limit = Limit::new();
        let skipped = |used, free| {
            limit.wait(used, free, 100);
            limit.left.load(Ordering::Relaxed)
        };
        let start = 1 << 40;
        limit.last.store(start, Ordering::Relaxed);
        assert_eq!(skipped(start, 1_000 * GROWTH), 100);
        assert_eq!(skipped(start, 10 * GROWTH), 5);
        // 60 in 6 questions.
        assert_eq!(skipped(start + 60 * GROWTH, 60 * GROWTH), 3);
        assert_eq!(skipped(start + 60 * GROWTH, GROWTH), 0);
        assert_eq!(skipped(start + 80 * GROWTH, 40 * GROWTH), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_counts_from_the_limit_and_with_the_tables() {
        let limit = Limit::new();
        let excess = |tables| limit.excess(tables, false);
        assert_eq!(excess(u64::MAX), None);
        let used = limit.used().unwrap();
        limit.set(Some(used + (1 << 30)), 0, false);
        assert_eq!(excess(0), None);
        assert!(limit.left.load(Ordering::Relaxed) > 0);
        limit.set(Some(used + (1 << 30)), 0, false);
        assert!(excess(2 << 30).is_some());
        limit.set(Some(1 << 10), u64::MAX, false);
        assert_eq!(excess(0), None);
        limit.set(Some(1 << 10), 0, false);
        assert!(excess(0).is_some());
    }
}
