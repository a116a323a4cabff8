//! The clock of a run: the only source of real time.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real packets have real times"
)]

use std::time;

use sojourn_net::Instant;

/// Time since the start of the run: `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: time::Instant,
}

impl Clock {
    /// A clock that starts at zero now.
    pub(crate) fn start() -> Self {
        let start = time::Instant::now();
        Self { start }
    }

    /// The current time.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
