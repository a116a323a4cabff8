//! Waiting and wall-clock time, which only storage needs.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "when a record is committed changes no record"
)]

use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait for another process to release a lock that it holds for a moment: listing 100,000
/// runs takes a fraction of a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A time that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause(Option<Instant>);

impl Pause {
    pub(crate) fn over() -> Self {
        Self(None)
    }

    pub(crate) fn of(length: Duration) -> Self {
        Self(Some(Instant::now() + length))
    }

    /// How much of it is left.
    pub(crate) fn left(self) -> Duration {
        let left = self
            .0
            .map(|end| end.saturating_duration_since(Instant::now()));
        left.unwrap_or_default()
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

/// Repeats an attempt until it returns something, for `patience`.
pub(crate) fn wait_for<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<T> {
    let patience = Pause::of(patience);
    // Ends when the patience does.
    loop {
        match attempt()? {
            Some(value) => return Ok(value),
            None if patience.is_over() => {
                let rule = "is locked by another process";
                return Err(io::Error::new(io::ErrorKind::TimedOut, rule));
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Milliseconds since 1970; only order and age of files derive from it.
pub(crate) fn now_ms() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis()
}

/// How long ago that was; zero if it is in the future.
pub(crate) fn age(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_default()
}
