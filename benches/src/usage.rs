//! What this process has used so far.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of the whole process, user and system, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Largest resident set so far, in bytes; `None` where `/proc` does not tell.
pub fn peak_rss() -> Option<u64> {
    status("VmHWM:")
}

/// Resident set now, in bytes; `None` where `/proc` does not tell.
pub fn rss() -> Option<u64> {
    status("VmRSS:")
}

fn status(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Keeps this process on the first CPU it may use, as the peers were measured; without that right
/// it runs where it is put.
pub fn pin() {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)) else {
        return;
    };
    let mut one = CpuSet::new();
    one.set(first);
    // Refusal costs precision, not truth.
    let _ = sched_setaffinity(None, &one);
}
