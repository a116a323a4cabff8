//! The clock of a run, the only source of real time; and whether the datapath sleeps or spins until something is due.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real packets have real times"
)]

use std::{io, time};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use sojourn_net::{Duration, Instant};

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

/// Sleeps until one of `fds` is ready, for `time` at most.
///
/// # Errors
/// Those of the system call, except an interruption, which ends the sleep.
pub(crate) fn poll_for(fds: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: (time.as_nanos() / 1_000_000_000)
            .try_into()
            .unwrap_or(i64::MAX),
        tv_nsec: (time.as_nanos() % 1_000_000_000).try_into().unwrap_or(0),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A timer that is due this soon is not slept for: waking takes about as long.
const SPIN: Duration = Duration::from_micros(60);
/// The largest share of time that is spent spinning, in percent.
const SPIN_SHARE: u64 = 25;

/// What to do until something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Read the devices and the clock again at once.
    Spin,
    /// Sleep for this time, or until a packet arrives.
    Sleep(Duration),
}

/// Time spent spinning.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    spun: Duration,
    /// The last turn of the loop, if it did nothing but spin.
    spinning_since: Option<Instant>,
}

impl Waiting {
    /// A turn of the loop that began at `now` has something to do.
    pub(crate) fn on_work(&mut self, now: Instant) {
        if let Some(since) = self.spinning_since.take() {
            self.spun += now.saturating_since(since);
        }
    }

    /// A turn had nothing to do before `due`.
    pub(crate) fn until(&mut self, due: Instant, now: Instant) -> Wait {
        let left = due.saturating_since(now);
        let may_spin = self.spun.as_nanos() * 100 < now.as_nanos() * SPIN_SHARE;
        if left <= SPIN && may_spin {
            self.spun += now.saturating_since(self.spinning_since.unwrap_or(now));
            self.spinning_since = Some(now);
            return Wait::Spin;
        }
        self.on_work(now);
        // A sleep ends early enough to spin for the rest.
        let margin = if may_spin { SPIN } else { Duration::ZERO };
        Wait::Sleep(left.saturating_sub(margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a loop in which something is due `every` so often and a turn takes a microsecond; the time spent spinning.
    fn spun(every: Duration, turns: u32) -> (Duration, Instant) {
        let (mut waiting, mut spun) = (Waiting::default(), Duration::ZERO);
        let turn = Duration::from_micros(1);
        let (mut now, mut due) = (Instant::ZERO + turn, Instant::ZERO + every);
        for _ in 0..turns {
            if due <= now {
                waiting.on_work(now);
                due += every;
                continue;
            }
            now += match waiting.until(due, now) {
                Wait::Spin => {
                    spun += turn;
                    turn
                }
                Wait::Sleep(time) => time.max(turn),
            };
        }
        (spun, now)
    }

    #[test]
    fn what_is_due_soon_is_spun_for_and_what_is_due_later_slept_for_up_to_then() {
        let mut waiting = Waiting::default();
        let now = Instant::from_millis(10);
        let micros = |n| now + Duration::from_micros(n);
        assert_eq!(waiting.until(micros(60), now), Wait::Spin);
        let sleep = Wait::Sleep(Duration::from_micros(940));
        assert_eq!(waiting.until(micros(1_000), now), sleep);
    }

    #[test]
    fn spinning_takes_no_more_than_its_share_however_often_something_is_due() {
        for micros in [20, 50, 100, 1_000] {
            let (spun, now) = spun(Duration::from_micros(micros), 200_000);
            let share = spun.as_nanos() * 100 / now.as_nanos();
            assert!(share <= SPIN_SHARE, "every {micros} us: {share} %");
        }
    }
}
