//! The clock of a run, the only source of real time; and how often the datapath wakes up.

use std::io;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, clock_gettime};
use sojourn_net::{Duration, Instant};

/// A wait that is longer than this spins at its end: a processor that has been idle for long wakes up late.
const LONG: Duration = Duration::from_millis(1);
/// For how long it spins.
const SPIN: Duration = Duration::from_micros(60);

/// Time since the start of the run: `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that starts at zero now.
    pub(crate) fn start() -> Self {
        let start = time_of(ClockId::Monotonic);
        Self { start }
    }

    /// The current time.
    #[inline]
    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + time_of(ClockId::Monotonic).saturating_sub(self.start)
    }

    /// Sleeps until `time`, or a signal.
    pub(crate) fn sleep_until(self, time: Instant) {
        let until = timespec(self.start + time.since(Instant::ZERO));
        // An interruption ends the sleep; the other errors are those of invalid arguments.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    }

    /// Waits until one of `fds` is ready or until `due`, but not much longer than `most`.
    ///
    /// # Errors
    /// Those of the system call, except an interruption, which ends the wait.
    pub(crate) fn wait(
        self,
        fds: &mut [PollFd<'_>],
        due: Instant,
        most: Duration,
    ) -> io::Result<()> {
        let left = due.saturating_since(self.now());
        if left == Duration::ZERO {
            return Ok(());
        }
        let spin = if left > LONG { SPIN } else { Duration::ZERO };
        poll_for(fds, left.saturating_sub(spin).min(most))?;
        // Ends: time passes.
        while (Duration::from_nanos(1)..=spin).contains(&due.saturating_since(self.now())) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// The time of a clock of the system.
#[inline]
pub(crate) fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_nanos(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn timespec(time: Duration) -> Timespec {
    let nanos = time.as_nanos();
    Timespec {
        tv_sec: (nanos / 1_000_000_000).try_into().unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000).try_into().unwrap_or(0),
    }
}

/// Sleeps until one of `fds` is ready, for `time` at most.
///
/// # Errors
/// Those of the system call, except an interruption, which ends the sleep.
pub(crate) fn poll_for(fds: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    match poll(fds, Some(&timespec(time))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Shortest mean time between two turns of the datapath.
const TURN: Duration = Duration::from_micros(40);
/// Turns that may follow the first one after a pause at once.
const BURST: u64 = 4;

/// Limits the rate of turns: to wake up costs more than to read and write a packet, so at high rates of packets each turn
/// moves several.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// When the next turn would begin if all turns were [`TURN`] apart.
    next: Instant,
}

impl Turns {
    /// A turn that began at `began` ends. Returns when the next one may begin, if it must not begin at once: packets that
    /// arrive until then are read together.
    pub(crate) fn after(&mut self, began: Instant) -> Option<Instant> {
        self.next = self.next.max(began) + TURN;
        let earliest = self.next.saturating_sub(TURN.times(BURST));
        (earliest > began).then_some(earliest)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::PollFlags;

    use super::*;

    /// The times of turns of which each begins `every` after the one before it, if that is permitted.
    fn turns(every: Duration, number: usize) -> Vec<Instant> {
        let (mut turns, mut now) = (Turns::default(), Instant::from_millis(1));
        let times = std::iter::repeat_with(|| {
            let began = now;
            now += every;
            if let Some(at) = turns.after(began) {
                now = now.max(at);
            }
            began
        });
        times.take(number).collect()
    }

    #[test]
    fn turns_are_limited_in_their_rate_but_not_the_first_ones_after_a_pause() {
        let times = turns(Duration::from_micros(1), 1_005);
        let first: Vec<_> = times[..7].iter().map(|at| at.as_micros() - 1_000).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 40, 80]);
        assert_eq!(times[1_004].since(times[0]), TURN.times(1_000));
    }

    #[test]
    fn turns_that_are_far_enough_apart_are_not_limited() {
        let times = turns(TURN, 1_000);
        assert_eq!(times[999].since(times[0]), TURN.times(999));
    }

    #[test]
    fn a_wait_ends_when_it_is_due_or_a_descriptor_is_ready() {
        let clock = Clock::start();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let wait = |after: Duration, most: Duration| {
            let due = clock.now() + after;
            let mut fds = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
            clock.wait(&mut fds, due, most).unwrap();
            clock.now() >= due
        };
        let (soon, later, hour) = (
            Duration::from_micros(200),
            Duration::from_millis(3),
            Duration::from_secs(3_600),
        );
        assert!(wait(soon, hour) && wait(later, hour));
        assert!(!wait(hour, later), "no wait is much longer than the most");
        rustix::io::write(&writer, b"x").unwrap();
        assert!(!wait(hour, hour));
    }

    #[test]
    fn a_sleep_ends_at_its_time() {
        let clock = Clock::start();
        let until = clock.now() + Duration::from_millis(2);
        clock.sleep_until(until);
        assert!(clock.now() >= until);
        clock.sleep_until(Instant::ZERO);
    }
}
