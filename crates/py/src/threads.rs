//! The threads of runs: how many there are, and what the interpreter knows of them.

use std::num::NonZeroUsize;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::Failure;

/// Interval between checks for Ctrl-C: imperceptible to users, at negligible cost.
pub(crate) const ATTENTION: Duration = Duration::from_millis(50);

/// Does `work` on a thread that the interpreter knows meanwhile, without holding its lock: a queue
/// written in Python attaches twice per packet, which costs microseconds on an unknown thread.
pub(crate) fn attached(work: &(dyn Fn() + Sync)) {
    Python::attach(|py| py.detach(work));
}

/// A number of threads from Python.
pub(crate) fn threads(jobs: i64) -> Result<NonZeroUsize, Failure> {
    let threads = usize::try_from(jobs).ok().and_then(NonZeroUsize::new);
    threads.ok_or_else(|| {
        let message = format!("jobs: {jobs} is out of range; expected at least 1");
        Failure::Scenario(message)
    })
}
