//! The shaper: length on the wire and transmission time, in the arithmetic of Linux.

use sojourn_net::{Bytes, Duration, Instant};

use super::options::CakeParams;
use crate::parts::framing::Framing;

/// A rate as the time of a byte, in fixed point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    nanos: u64,
    shift: u32,
}

impl Pace {
    /// The pace of a rate in bytes per second; below 64 it is that of 64.
    pub(super) const fn of(bytes_per_sec: u64) -> Self {
        let rate = if bytes_per_sec < 64 {
            64
        } else {
            bytes_per_sec
        };
        let mut nanos = (1_000_000_000 << 34) / rate;
        let mut shift = 34;
        while nanos >> 34 != 0 {
            nanos >>= 1;
            shift -= 1;
        }
        Self { nanos, shift }
    }

    /// The time of `counted` bytes.
    #[inline]
    pub(super) const fn time(self, counted: u64) -> Duration {
        Duration::from_nanos((counted * self.nanos) >> self.shift)
    }
}

/// The largest packet that is counted in full: twice what IP allows.
const LARGEST: u64 = 1 << 17;
/// The Ethernet header, which packets are counted with unless an overhead is given.
const LINK_HEADER: u64 = 14;

/// How the link counts a packet.
#[derive(Clone, Debug)]
pub(super) struct Count {
    framing: Framing,
    overhead: Option<i16>,
    mpu: u64,
}

impl Count {
    pub(super) const fn new(params: &CakeParams) -> Self {
        Self {
            framing: params.framing,
            overhead: params.overhead,
            mpu: params.mpu.0,
        }
    }

    /// The bytes that `size` is on the wire, the link's own header left out.
    pub(super) fn network(&self, size: Bytes) -> u64 {
        let size = size.0.min(LARGEST);
        match self.overhead {
            Some(_) => size.saturating_sub(LINK_HEADER),
            None => size,
        }
    }

    /// What the link needs for them.
    #[inline]
    pub(super) fn adjusted(&self, size: Bytes) -> u64 {
        let overhead = self.overhead.unwrap_or_default();
        let bytes = self.network(size).saturating_add_signed(overhead.into());
        self.framing.wire(bytes.max(self.mpu))
    }
}

/// The shaper of all tins: no bucket, only the time at which the next packet may leave.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    pace: Option<Pace>,
    time_next: Instant,
    /// A slower clock that drops do not advance, so that they cannot stop the link for long.
    failsafe_next: Instant,
}

impl Shaper {
    pub(super) const fn new(pace: Option<Pace>) -> Self {
        Self {
            pace,
            time_next: Instant::ZERO,
            failsafe_next: Instant::ZERO,
        }
    }

    /// Shapes at another pace from the next packet on.
    pub(super) const fn set_pace(&mut self, pace: Option<Pace>) {
        self.pace = pace;
    }

    pub(super) const fn is_unlimited(&self) -> bool {
        self.pace.is_none()
    }

    /// When the next packet may leave, if not now.
    #[inline]
    pub(super) fn closed_until(&self, now: Instant) -> Option<Instant> {
        let next = self.time_next.min(self.failsafe_next);
        (next > now).then_some(next)
    }

    /// A packet arrives and none waits: time that was not used is lost.
    pub(super) fn forget(&mut self, now: Instant) {
        if self.time_next < now {
            self.time_next = now;
            self.failsafe_next = now;
        }
    }

    /// A packet was sent, or dropped in the place of one.
    #[inline]
    pub(super) fn charge(&mut self, counted: u64, sent: bool) {
        if let Some(pace) = self.pace {
            let time = pace.time(counted);
            self.time_next = later(self.time_next, time);
            if sent {
                let half = Duration::from_nanos(time.as_nanos() / 2);
                self.failsafe_next = later(later(self.failsafe_next, time), half);
            }
        }
    }
}

/// Drops alone, at the lowest rate, could carry a sum beyond the end of time.
const fn later(at: Instant, time: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add(time.as_nanos()))
}

/// Flows of a tin, a power of two.
pub(super) const FLOWS: usize = 1_024;

/// The lists that a flow may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Flows that came since they were last found empty.
    New,
    /// Flows that used up a turn.
    Old,
    /// Empty flows whose law remembers congestion.
    Decaying,
}

impl Round {
    /// The place of its head in the table of links, behind those of the flows.
    #[expect(clippy::cast_possible_truncation, reason = "1024 fits")]
    const fn head(self) -> u16 {
        FLOWS as u16 + self as u16
    }
}

/// Places of the table of links.
const PLACES: usize = 2 * FLOWS;

/// Three rings through one table: a flow is in one of them or alone.
#[derive(Clone, Debug)]
pub(super) struct DrrSchedule {
    /// Next and previous; who is alone points to itself. Longer than needed, so that a remainder
    /// keeps every index within it.
    links: Box<[(u16, u16); PLACES]>,
}

impl DrrSchedule {
    pub(super) fn new() -> Self {
        let links: Vec<_> = (0..).take(PLACES).map(|at| (at, at)).collect();
        Self {
            links: links.try_into().expect("of this length"),
        }
    }

    /// The flow whose turn is next.
    #[inline]
    pub(super) fn first(&self, round: Round) -> Option<usize> {
        let head = round.head();
        let (next, _) = *self.at(head);
        (next != head).then_some(usize::from(next))
    }

    /// Takes `flow` from where it is to the end of `round`.
    #[inline]
    pub(super) fn append(&mut self, round: Round, flow: usize) {
        let at = link(flow);
        self.detach(at);
        let head = round.head();
        let last = std::mem::replace(&mut self.at_mut(head).1, at);
        self.at_mut(last).0 = at;
        *self.at_mut(at) = (head, last);
    }

    /// Takes `flow` from where it is.
    #[inline]
    pub(super) fn remove(&mut self, flow: usize) {
        let at = link(flow);
        self.detach(at);
        *self.at_mut(at) = (at, at);
    }

    /// Closes the gap that `at` leaves; its own links stay.
    #[inline]
    fn detach(&mut self, at: u16) {
        let (next, prev) = *self.at(at);
        self.at_mut(prev).0 = next;
        self.at_mut(next).1 = prev;
    }

    #[inline]
    fn at(&self, place: u16) -> &(u16, u16) {
        &self.links[usize::from(place) % PLACES]
    }

    #[inline]
    fn at_mut(&mut self, place: u16) -> &mut (u16, u16) {
        &mut self.links[usize::from(place) % PLACES]
    }
}

/// What points to `flow`.
#[expect(clippy::cast_possible_truncation, reason = "below 1024 flows")]
const fn link(flow: usize) -> u16 {
    flow as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_64_bytes_a_second_the_pace_is_that_of_64() {
        for slow in [1, 10, 63] {
            assert_eq!(Pace::of(slow).time(128), Duration::from_secs(2));
        }
        assert_eq!(Pace::of(128).time(128), Duration::from_secs(1));
    }
}
