//! The event queue: pending events in time order.

mod calendar;
mod event;
mod heap;
mod key;
mod timers;
mod tournament;

use sojourn_net::Instant;

pub use event::Event;
pub(crate) use key::MAX_INDEX;
use key::{EVENT, EVENT_BITS, Key, NOTHING, ORDER_BITS, index, kind, low, pack, time, unpack};
use timers::Timers;
use tournament::Tournament;

/// Events in time order; those at the same instant, in the order they were scheduled.
///
/// A link or a wire has one event pending at most and a new one for each packet; a flow has a
/// timer that seldom fires. So links and wires compete in a [`Tournament`], where moving an event
/// costs three comparisons a level, and the timers wait in [`Timers`], of which only the first
/// competes.
#[derive(Clone, Debug)]
pub struct Agenda {
    busy: Tournament,
    quiet: Timers,
    scheduled: u64,
    /// Where the slots of links begin, those of wires, of lines and of media.
    slots: [usize; BUSY_KINDS],
    /// What [`Agenda::next_until`] has just returned.
    first: Key,
}

/// Links, wires, lines and media, which come first in [`Event`].
const BUSY_KINDS: usize = 4;
/// The slot of the first of the others.
const QUIET: usize = 0;

impl Agenda {
    /// An empty agenda for a network with these numbers of links, wires, `uneven` wires and media.
    pub fn new(links: usize, wires: usize, uneven: usize, media: usize) -> Self {
        let mut end = QUIET + 1;
        let slots = [links, wires, uneven, media].map(|n| {
            end += n;
            end - n
        });
        Self {
            busy: Tournament::new(end),
            quiet: Timers::default(),
            scheduled: 0,
            slots,
            first: NOTHING,
        }
    }

    /// Adds `event` at `at`; of each link and each wire, one event is pending at most.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: Event) {
        let key = self.key(at, pack(event));
        match self.slot(key) {
            Some(slot) => self.busy.set(slot, key),
            None => self.insert_timer(key),
        }
    }

    /// The next event, or `None` if it is later than `end`; `end` is before [`Instant::MAX`]. It stays in the agenda
    /// until it is removed or moved; meanwhile others may be scheduled, the same link's or wire's
    /// next one too.
    #[inline]
    pub fn next_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let first = self.busy.least();
        let at = time(first);
        if at > end {
            return None;
        }
        self.first = first;
        Some((at, unpack(first)))
    }

    /// Removes the event that [`Agenda::next_until`] has just returned.
    #[inline]
    pub fn remove_next(&mut self) {
        // Its successor may have taken its place already.
        match self.slot(self.first) {
            Some(slot) if self.busy.at(slot) == self.first => self.busy.set(slot, NOTHING),
            Some(_) => {}
            None => self.remove_timer(),
        }
    }

    /// Moves the event that [`Agenda::next_until`] has just returned to `at`.
    #[inline]
    pub fn repeat_next(&mut self, at: Instant) {
        let key = self.key(at, low(self.first) & EVENT);
        match self.slot(key) {
            Some(slot) => self.busy.set(slot, key),
            None => self.insert_timer(key),
        }
    }

    /// A timer takes the place of the one that has just come, if that has not been removed yet.
    fn insert_timer(&mut self, key: Key) {
        let before = self.busy.at(QUIET);
        let least = if before == self.first && before != NOTHING {
            self.quiet.replace_least(key)
        } else {
            self.quiet.push(key)
        };
        if least != before {
            self.busy.set(QUIET, least);
        }
    }

    fn remove_timer(&mut self) {
        if self.busy.at(QUIET) == self.first {
            let least = self.quiet.remove_least();
            self.busy.set(QUIET, least);
        }
    }

    #[inline]
    fn key(&mut self, at: Instant, event: u64) -> Key {
        if self.scheduled == 1 << ORDER_BITS {
            self.renumber();
        }
        let order = self.scheduled;
        self.scheduled += 1;
        Key::from(at.as_nanos()) << 64 | Key::from(order << EVENT_BITS | event)
    }

    /// Renumbers pending events in the same order, so that numbers never run out.
    #[cold]
    fn renumber(&mut self) {
        let keys = || self.busy.keys().chain(self.quiet.keys());
        let mut pending: Vec<Key> = keys().copied().filter(|&key| key != NOTHING).collect();
        pending.sort_unstable();
        pending.dedup();
        // The order of any two keys stays, and with it the shape of tree, calendar and heap.
        let renumbered = |key: Key| match pending.binary_search(&key) {
            Ok(rank) => {
                let others = key & !(((1 << ORDER_BITS) - 1) << EVENT_BITS);
                others | (rank as Key) << EVENT_BITS
            }
            Err(_) => key,
        };
        for key in self.busy.keys_mut().chain(self.quiet.keys_mut()) {
            *key = renumbered(*key);
        }
        self.first = renumbered(self.first);
        self.scheduled = pending.len() as u64;
    }

    /// The slot in which an event competes itself.
    #[inline]
    fn slot(&self, key: Key) -> Option<usize> {
        let begin = self.slots.get(kind(key))?;
        Some(begin + index(key) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::{Duration, Rng};
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn events_come_in_the_order_of_time_then_of_scheduling() {
        const LINKS: u32 = 3;
        const WIRES: u32 = 6;
        const LINES: u32 = 2;
        let mut rng = Rng::new(1);
        let mut draw = |n| rng.below(n);
        let mut agenda = Agenda::new(LINKS as usize, WIRES as usize, LINES as usize, 1);
        // The numbers run out on the way.
        agenda.scheduled = (1 << ORDER_BITS) - 10_000;
        let mut want = BinaryHeap::new();
        let mut idle: Vec<Event> = (0..LINKS).map(Event::Link).collect();
        idle.extend((0..WIRES).map(Event::Wire));
        idle.extend((0..LINES).map(Event::Line));
        idle.push(Event::Medium(0));
        let (mut nth, mut flow) = (0_u32, 0);
        for _ in 0..50_000 {
            let at = Instant::from_nanos(draw(50) << 27);
            match draw(4) {
                0 => {
                    agenda.schedule(at, Event::Sender(flow));
                    want.push(Reverse((at, nth, pack(Event::Sender(flow)))));
                    (nth, flow) = (nth + 1, flow + 1);
                }
                1 if !idle.is_empty() => {
                    let pick = usize::try_from(draw(idle.len() as u64)).unwrap();
                    let event = idle.swap_remove(pick);
                    agenda.schedule(at, event);
                    want.push(Reverse((at, nth, pack(event))));
                    nth += 1;
                }
                _ => {
                    let end = Instant::from_nanos(draw(60) << 27);
                    let next = want.peek().filter(|Reverse((at, ..))| *at <= end);
                    let next = next.map(|&Reverse((at, _, e))| (at, unpack(Key::from(e))));
                    assert_eq!(agenda.next_until(end), next);
                    let Some((at, event)) = next else { continue };
                    want.pop();
                    if draw(3) == 0 && agenda.slot(Key::from(pack(event))).is_some() {
                        // Scheduled again while it is being handled, then removed.
                        let later = at + Duration::from_nanos(draw(9) << 27);
                        agenda.schedule(later, event);
                        want.push(Reverse((later, nth, pack(event))));
                        nth += 1;
                        agenda.remove_next();
                    } else if draw(2) == 0 {
                        let later = at + Duration::from_nanos(draw(9) << 27);
                        agenda.repeat_next(later);
                        want.push(Reverse((later, nth, pack(event))));
                        nth += 1;
                    } else {
                        agenda.remove_next();
                        if agenda.slot(Key::from(pack(event))).is_some() {
                            idle.push(event);
                        }
                    }
                }
            }
        }
        assert!(agenda.scheduled < 100_000, "they did not run out");
    }

    #[test]
    fn an_event_survives_packing() {
        for event in [
            Event::Link(1),
            Event::Wire(MAX_INDEX),
            Event::Queue(0),
            Event::Start(2),
            Event::Stop(3),
            Event::Sender(4),
            Event::Receiver(5),
            Event::Sample,
            Event::Measure,
            Event::Line(6),
            Event::Change(7),
            Event::Medium(8),
        ] {
            assert_eq!(unpack(Key::from(pack(event)) | 7 << 28), event);
        }
    }
}
