//! Receivers that are ahead of the network (ADR 23).
//!
//! Behind a fixed delay, a packet needs no event for its arrival: the receiver takes it when it leaves the last link,
//! with a clock that is ahead by that delay, and its ACKs take longer by the same delay. Its clock passes an instant before
//! the network does, so values recorded at that instant are saved then.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

/// Values of a receiver that is ahead, saved as its clock passes the instants at which the flow is recorded. All
/// instants are on that clock.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// How far its clock is ahead of the network.
    pub(crate) lead: Duration,
    interval: Duration,
    /// End of the run. Events at this instant count to the last interval.
    end: Instant,
    /// The next end of an interval; [`Instant::MAX`]: there is none before `end`.
    sample: Instant,
    /// The end of the warm-up, until the clock passes it; then [`Instant::MAX`].
    measure: Instant,
    /// From here on it ignores what arrives.
    close: Instant,
    /// Bytes delivered at the ends of intervals that its clock has passed and the network has not.
    samples: VecDeque<u64>,
    /// What it had received at the end of the warm-up.
    at_measure: Option<Received>,
}

/// What a receiver has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    /// Packets with a CE mark.
    pub(crate) marked: u64,
}

/// When a run records its flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) interval: Duration,
    pub(crate) measure_from: Instant,
    pub(crate) end: Instant,
}

impl Ahead {
    /// For a flow that starts at `start` and is stopped at `stop`, if it is, whose receiver is ahead by `lead`.
    pub(crate) fn new(
        lead: Duration,
        start: Instant,
        stop: Option<Instant>,
        recorded: Recorded,
    ) -> Self {
        let Recorded {
            interval,
            measure_from,
            end,
        } = recorded;
        let before = start.as_nanos() / interval.as_nanos();
        let after_end = end + Duration::from_nanos(1);
        let mut ahead = Self {
            lead,
            interval,
            end,
            sample: Instant::from_nanos(before * interval.as_nanos()),
            measure: measure_from,
            close: stop.map_or(after_end, |stop| stop.min(after_end)),
            samples: VecDeque::new(),
            at_measure: None,
        };
        ahead.pass_sample();
        // At the same instant, the warm-up ends before a flow starts (ADR 22).
        if measure_from <= start {
            ahead.measure = Instant::MAX;
        }
        ahead
    }

    /// The network time from which on [`Ahead::pass`] must be called.
    pub(crate) fn next(&self) -> Instant {
        let next = self.sample.min(self.measure).min(self.close);
        next.saturating_sub(self.lead)
    }

    /// The clock of the receiver reaches `at`; returns whether it takes what arrives then.
    pub(crate) fn pass(&mut self, at: Instant, received: Received) -> bool {
        while self.sample <= at {
            self.samples.push_back(received.bytes);
            self.pass_sample();
        }
        if self.measure <= at {
            self.measure = Instant::MAX;
            self.at_measure = Some(received);
        }
        at < self.close
    }

    /// The network reaches the end of an interval; returns the bytes delivered at that instant of the receiver.
    pub(crate) fn sample(&mut self, received: Received) -> u64 {
        self.samples.pop_front().unwrap_or_else(|| {
            self.pass_sample();
            received.bytes
        })
    }

    /// The network reaches the end of the warm-up; returns what was received at that instant of the receiver.
    pub(crate) fn begin_measuring(&mut self, received: Received) -> Received {
        self.measure = Instant::MAX;
        self.at_measure.take().unwrap_or(received)
    }

    fn pass_sample(&mut self) {
        // The last interval ends with the run, which needs no saved value.
        if self.sample < self.end {
            self.sample += self.interval;
        }
        if self.sample >= self.end {
            self.sample = Instant::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    const fn received(n: u64) -> Received {
        Received {
            bytes: 10 * n,
            packets: n,
            marked: n / 2,
        }
    }

    /// A clock that is 250 ms ahead, in a run of 1000 ms with intervals of 100 ms and this warm-up.
    fn ahead(start: u64, stop: Option<u64>, warm_up: u64) -> Ahead {
        let recorded = Recorded {
            interval: Duration::from_millis(100),
            measure_from: at(warm_up),
            end: at(1_000),
        };
        Ahead::new(
            Duration::from_millis(250),
            at(start),
            stop.map(at),
            recorded,
        )
    }

    #[test]
    fn what_arrives_at_the_end_of_an_interval_is_of_the_next_one() {
        let mut ahead = ahead(100, None, 0);
        // The interval that ends at 100 ms has ended before the flow starts.
        assert_eq!(ahead.next(), Instant::ZERO);
        assert!(ahead.pass(at(350), received(0)));
        assert_eq!(ahead.next(), at(150));
        assert!(ahead.pass(at(400), received(7)));
        // The network reaches 200, 300 and 400 ms.
        assert_eq!(ahead.sample(received(9)), 0);
        assert_eq!(ahead.sample(received(9)), 0);
        assert_eq!(ahead.sample(received(9)), 70);
        // Nothing has arrived since: the clock of the receiver has not passed 500 ms.
        assert_eq!(ahead.sample(received(9)), 90);
        assert_eq!(ahead.next(), at(350));
    }

    #[test]
    fn the_warm_up_ends_once_and_before_what_arrives_then() {
        let mut early = ahead(0, None, 500);
        assert!(early.pass(at(499), received(3)));
        assert!(early.pass(at(500), received(4)));
        assert!(early.pass(at(501), received(5)));
        assert_eq!(early.begin_measuring(received(6)), received(4));
        let mut late = ahead(0, None, 500);
        assert!(late.pass(at(499), received(3)));
        assert_eq!(late.begin_measuring(received(6)), received(6));
        assert!(late.pass(at(600), received(8)));
        // It had ended when the flow started.
        assert!(ahead(500, None, 500).pass(at(750), received(1)));
    }

    #[test]
    fn the_run_includes_its_end_and_a_flow_not_its_stop() {
        let mut run = ahead(0, None, 0);
        assert!(run.pass(at(1_000), received(1)));
        assert!(!run.pass(at(1_000) + Duration::from_nanos(1), received(1)));
        // The last interval ends with the run: its value is that at the end.
        assert_eq!(run.samples.len(), 9);
        let mut stopped = ahead(0, Some(300), 0);
        assert!(stopped.pass(at(299), received(1)));
        assert!(!stopped.pass(at(300), received(1)));
        assert!(!ahead(0, Some(2_000), 0).pass(at(1_001), received(1)));
    }
}
