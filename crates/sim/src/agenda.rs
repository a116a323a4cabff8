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
use key::{
    AFTER_ARRIVALS, EVENT, FIRST_BUSY, Key, NOTHING, SENDER, TURN, index, kind, low, pack, time,
    unpack,
};
use timers::Timers;
use tournament::Tournament;

/// Events in time order; those at the same instant, in the order of [`Event`]'s kinds, then of their numbers.
///
/// So the order does not depend on when an event was scheduled (ADR 22).
///
/// A link, a wire or a paced sender has at most one pending event and schedules a new one for each packet; other flows
/// have a timer that seldom fires. So links, wires and paced senders compete in a [`Tournament`], where moving an event costs
/// three comparisons a level, and the timers wait in [`Timers`], of which only the first competes.
#[derive(Clone, Debug)]
pub struct Agenda {
    busy: Tournament,
    quiet: Timers,
    /// Where the slots of links begin, those of media, of wires and of lines.
    slots: [usize; BUSY_KINDS],
    /// The slot of each paced sender, by flow; [`QUIET`] for others.
    senders: Vec<u16>,
    /// What [`Agenda::next_until`] has just returned.
    first: Key,
    /// The turn of new keys: the opposite of that of `first`.
    turn: u64,
}

/// Links, media, wires and lines.
const BUSY_KINDS: usize = 4;
/// The slot of the first of the others.
const QUIET: usize = 0;
/// Senders get slots only up to this number, which needs three levels: a fourth would cost every event more than it
/// saves for senders.
const MOST_SLOTS: usize = 64;

impl Agenda {
    /// An empty agenda for a network with these numbers of links, wires, `uneven` wires and media. `paced`: for
    /// each flow, whether its sender has an event per packet.
    pub fn new(
        links: usize,
        wires: usize,
        uneven: usize,
        media: usize,
        paced: impl Iterator<Item = bool>,
    ) -> Self {
        let mut end = QUIET + 1;
        let slots = [links, media, wires, uneven].map(|n| {
            end += n;
            end - n
        });
        let senders = paced.map(|paced| {
            let slot = if paced && end < MOST_SLOTS {
                end += 1;
                end - 1
            } else {
                QUIET
            };
            u16::try_from(slot).unwrap_or_default()
        });
        let senders = senders.collect();
        Self {
            busy: Tournament::new(end),
            quiet: Timers::default(),
            slots,
            senders,
            first: NOTHING,
            turn: 0,
        }
    }

    /// Adds `event` at `at`. Of each link and each wire, one event is pending at most; of a paced sender, a new event
    /// replaces the one that is pending.
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
        self.turn = !low(first) & TURN;
        Some((at, unpack(first)))
    }

    /// Whether no departure from a link or arrival is left at this instant.
    #[inline]
    pub fn is_past_arrivals(&self, now: Instant) -> bool {
        self.busy.least() >= Key::from(now.as_nanos()) << 64 | Key::from(AFTER_ARRIVALS)
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

    /// A timer takes the place of the one that has just come, if that has not been removed yet. If an equal key is the
    /// least, which a stale timer of the same flow can be, that is replaced: its owner ignores one of the two anyway.
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
    fn key(&self, at: Instant, event: u64) -> Key {
        Key::from(at.as_nanos()) << 64 | Key::from(event | self.turn)
    }

    /// The slot in which an event competes itself.
    #[inline]
    fn slot(&self, key: Key) -> Option<usize> {
        match self.slots.get(kind(key).wrapping_sub(FIRST_BUSY)) {
            Some(begin) => Some(begin + index(key) as usize),
            None => self.sender_slot(key),
        }
    }

    /// The slot of a paced sender.
    #[inline]
    fn sender_slot(&self, key: Key) -> Option<usize> {
        if kind(key) != SENDER {
            return None;
        }
        let slot = usize::from(*self.senders.get(index(key) as usize)?);
        (slot != QUIET).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::{Duration, Rng};
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn events_come_in_the_order_of_time_then_of_kind_and_number() {
        const LINKS: u32 = 3;
        const WIRES: u32 = 6;
        const LINES: u32 = 2;
        let mut rng = Rng::new(1);
        let mut draw = |n| rng.below(n);
        let paced = [false, true, true].into_iter();
        let mut agenda = Agenda::new(LINKS as usize, WIRES as usize, LINES as usize, 1, paced);
        let mut want = BinaryHeap::new();
        let mut idle: Vec<Event> = (0..LINKS).map(Event::Link).collect();
        idle.extend((0..WIRES).map(Event::Wire));
        idle.extend((0..LINES).map(Event::Line));
        idle.extend([Event::Medium(0), Event::Sender(1), Event::Sender(2)]);
        let (mut flow, mut same_instant) = (3, 0);
        for _ in 0..50_000 {
            let at = Instant::from_nanos(draw(50) << 27);
            match draw(4) {
                0 => {
                    agenda.schedule(at, Event::Sender(flow));
                    want.push(Reverse((at, pack(Event::Sender(flow)))));
                    flow += 1;
                }
                1 if !idle.is_empty() => {
                    let pick = usize::try_from(draw(idle.len() as u64)).unwrap();
                    let event = idle.swap_remove(pick);
                    agenda.schedule(at, event);
                    want.push(Reverse((at, pack(event))));
                }
                _ => {
                    let end = Instant::from_nanos(draw(60) << 27);
                    let next = want.peek().filter(|Reverse((at, _))| *at <= end);
                    let next = next.map(|&Reverse((at, event))| (at, unpack(Key::from(event))));
                    assert_eq!(agenda.next_until(end), next);
                    let Some((at, event)) = next else { continue };
                    want.pop();
                    let later = at + Duration::from_nanos(draw(9) << 27);
                    match draw(3) {
                        // Scheduled again while it is being handled, then removed.
                        0 => {
                            agenda.schedule(later, event);
                            agenda.remove_next();
                        }
                        1 => agenda.repeat_next(later),
                        _ => {
                            agenda.remove_next();
                            if agenda.slot(Key::from(pack(event))).is_some() {
                                idle.push(event);
                            }
                            continue;
                        }
                    }
                    want.push(Reverse((later, pack(event))));
                    same_instant += u32::from(later == at);
                }
            }
        }
        assert!(same_instant > 1_000, "{same_instant}");
    }

    #[test]
    fn a_new_event_of_a_paced_sender_replaces_the_pending_one() {
        let at = Instant::from_millis;
        let mut agenda = Agenda::new(1, 0, 0, 0, [true, false].into_iter());
        for flow in [0, 1] {
            agenda.schedule(at(9), Event::Sender(flow));
            agenda.schedule(at(5), Event::Sender(flow));
        }
        let mut come = Vec::new();
        while let Some((at, event)) = agenda.next_until(at(100)) {
            come.push((at, event));
            agenda.remove_next();
        }
        let stale = (at(9), Event::Sender(1));
        let first = [(at(5), Event::Sender(0)), (at(5), Event::Sender(1))];
        assert_eq!(come, [first[0], first[1], stale]);
    }

    #[test]
    fn arrivals_are_past_when_only_timers_are_left() {
        let at = Instant::from_millis;
        let mut agenda = Agenda::new(1, 1, 0, 0, std::iter::empty());
        assert!(agenda.is_past_arrivals(at(5)));
        agenda.schedule(at(5), Event::Sender(0));
        agenda.schedule(at(6), Event::Link(0));
        assert!(agenda.is_past_arrivals(at(5)));
        agenda.schedule(at(5), Event::Wire(0));
        assert!(!agenda.is_past_arrivals(at(5)));
        assert_eq!(agenda.next_until(at(9)), Some((at(5), Event::Wire(0))));
        agenda.remove_next();
        assert!(agenda.is_past_arrivals(at(5)));
        assert!(!agenda.is_past_arrivals(at(6)));
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
            for turn in [0, TURN] {
                assert_eq!(unpack(Key::from(pack(event) | turn) | 7 << 64), event);
            }
        }
    }
}
