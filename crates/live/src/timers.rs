//! The timers of a network: when each is due, and which is due first.

use sojourn_net::Instant;

/// Timers that every network has once.
const SINGLE: usize = 3;

/// The event of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The warm-up ends.
    Measure,
    /// An interval of the series ends.
    Sample,
    /// The watchers are shown the run.
    View,
    /// A link may send.
    Link(u32),
    /// The timer of a queue.
    Queue(u32),
    /// The next change of a link.
    Change(u32),
    /// A packet reaches the end of a wire.
    Wire(u32),
    /// A packet reaches the end of an imperfect wire.
    Line(u32),
}

/// When each timer is due; [`Instant::MAX`]: not set.
///
/// A binary tree over the timers: a leaf holds the time of its timer, and every other node the smaller time of its two
/// children. The first timer is at the end of the path of smallest times from the root, so that it is found, and a timer
/// is set, in a number of steps that is the logarithm of the number of timers: each RTT of a scenario has its own wires.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Node 1 is the root; the children of node `n` are `2 n` and `2 n + 1`.
    due: Vec<Instant>,
    /// Number of leaves, a power of two.
    leaves: usize,
    links: usize,
    wires: usize,
}

impl Timers {
    /// Timers of this many links, wires and imperfect wires.
    pub(crate) fn new(links: usize, wires: usize, uneven: usize) -> Self {
        let leaves = (SINGLE + 3 * links + wires + uneven).next_power_of_two();
        Self {
            due: vec![Instant::MAX; 2 * leaves],
            leaves,
            links,
            wires,
        }
    }

    const fn place(&self, timer: Timer) -> usize {
        let links = SINGLE + 3 * self.links;
        match timer {
            Timer::Measure => 0,
            Timer::Sample => 1,
            Timer::View => 2,
            Timer::Link(n) => SINGLE + n as usize,
            Timer::Queue(n) => SINGLE + self.links + n as usize,
            Timer::Change(n) => SINGLE + 2 * self.links + n as usize,
            Timer::Wire(n) => links + n as usize,
            Timer::Line(n) => links + self.wires + n as usize,
        }
    }

    fn timer(&self, place: usize) -> Timer {
        let number = |from: usize| u32::try_from(place - from).unwrap_or(u32::MAX);
        let links = SINGLE + 3 * self.links;
        match place {
            0 => Timer::Measure,
            1 => Timer::Sample,
            2 => Timer::View,
            _ if place < SINGLE + self.links => Timer::Link(number(SINGLE)),
            _ if place < SINGLE + 2 * self.links => Timer::Queue(number(SINGLE + self.links)),
            _ if place < links => Timer::Change(number(SINGLE + 2 * self.links)),
            _ if place < links + self.wires => Timer::Wire(number(links)),
            _ => Timer::Line(number(links + self.wires)),
        }
    }

    /// Sets when a timer is due; `None`: never.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Instant>) {
        let mut node = self.leaves + self.place(timer);
        self.due[node] = at.unwrap_or(Instant::MAX);
        // Ends: each node is half of the one before it. Nodes above one that stays the same stay the same, too.
        while node > 1 {
            node /= 2;
            let first = self.due[2 * node].min(self.due[2 * node + 1]);
            if self.due[node] == first {
                break;
            }
            self.due[node] = first;
        }
    }

    /// The timers that are set, and when each is due.
    pub(crate) fn set_timers(&self) -> impl Iterator<Item = (Instant, Timer)> {
        let all = self.due[self.leaves..].iter().enumerate();
        let set = all.filter(|(_, due)| **due != Instant::MAX);
        set.map(|(place, &due)| (due, self.timer(place)))
    }

    /// When the first timer is due; [`Instant::MAX`]: no timer is set.
    pub(crate) fn next(&self) -> Instant {
        self.due[1]
    }

    /// The first timer that is due, and when; if several are due at the same time, the first in the order of [`Timer`]
    /// and of their numbers.
    pub(crate) fn first(&self) -> (Instant, Timer) {
        let due = self.next();
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.due[node] != due);
        }
        (due, self.timer(node - self.leaves))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const LINKS: usize = 3;
    const WIRES: usize = 5;
    const UNEVEN: usize = 2;
    const ALL: usize = SINGLE + 3 * LINKS + WIRES + UNEVEN;

    #[test]
    fn every_timer_has_a_place_of_its_own() {
        let timers = Timers::new(LINKS, WIRES, UNEVEN);
        let places: BTreeSet<_> = (0..ALL)
            .map(|place| timers.place(timers.timer(place)))
            .collect();
        assert!(places.into_iter().eq(0..ALL));
    }

    proptest! {
        #[test]
        fn the_first_timer_is_the_one_that_a_search_finds(
            changes in prop::collection::vec((0..ALL, prop::option::of(0_u64..20)), 1..200),
        ) {
            let mut timers = Timers::new(LINKS, WIRES, UNEVEN);
            let mut plain = [Instant::MAX; ALL];
            for (place, at) in changes {
                let at = at.map(Instant::from_nanos);
                timers.set(timers.timer(place), at);
                plain[place] = at.unwrap_or(Instant::MAX);
                let (due, place) = plain.iter().copied().zip(0..).min().unwrap();
                prop_assert_eq!(timers.next(), due);
                prop_assert_eq!(timers.first(), (due, timers.timer(place)));
            }
        }
    }
}
