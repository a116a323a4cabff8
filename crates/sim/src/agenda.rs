//! The event queue: pending events in time order, as numbers that sort by time.

mod timers;
mod tournament;

use sojourn_net::Instant;

use timers::Timers;
use tournament::{Place, Tournament};

/// Events in time order; those at the same instant, in the order of [`Event`]'s kinds, then of their numbers.
///
/// So the order does not depend on when an event was scheduled (ADR 22).
///
/// A link, a wire or a paced sender has at most one pending event and schedules a new one for each packet; other flows
/// have a timer that seldom fires. So links, wires and paced senders have slots in a `Tournament`, where moving an
/// event costs three comparisons a level, and the timers wait in `Timers`.
#[derive(Clone, Debug)]
pub struct Agenda {
    busy: Tournament,
    quiet: Timers,
    /// The first of the timers; [`NOTHING`]: there is none.
    timer: Key,
    /// The event of each slot: of links, media, wires, lines and paced senders, in this order, which is that of the
    /// kinds.
    events: Vec<Event>,
    /// The first slots of media, of wires, of lines and of senders.
    media: usize,
    wires: usize,
    lines: usize,
    senders: usize,
    /// The slot of each paced sender, by flow; [`QUIET`] for others.
    paced: Vec<u16>,
    /// What [`Agenda::next_until`] has just returned. The turn of new events is the opposite of its turn.
    first: First,
}

/// The place of an event.
#[derive(Clone, Copy, Debug)]
enum First {
    Busy(Place),
    Quiet(Key),
}

/// No slot: the sender has a timer.
const QUIET: u16 = u16::MAX;
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
        let kinds = [
            (links, Event::Link as fn(u32) -> Event),
            (media, Event::Medium),
            (wires, Event::Wire),
            (uneven, Event::Line),
        ];
        let mut events = Vec::new();
        let [_, first_medium, first_wire, first_line] = kinds.map(|(number, event)| {
            let begin = events.len();
            events.extend((0..).map(event).take(number));
            begin
        });
        let senders = events.len();
        let slot = |(flow, paced): (u32, bool)| match u16::try_from(events.len()) {
            Ok(slot) if paced && events.len() < MOST_SLOTS => {
                events.push(Event::Sender(flow));
                slot
            }
            _ => QUIET,
        };
        let paced = (0..).zip(paced).map(slot).collect();
        Self {
            busy: Tournament::new(events.len()),
            quiet: Timers::default(),
            timer: NOTHING,
            events,
            media: first_medium,
            wires: first_wire,
            lines: first_line,
            senders,
            paced,
            first: First::Quiet(NOTHING),
        }
    }

    /// The number of links, media, delays and paced senders with a slot.
    pub const fn slots(&self) -> usize {
        self.events.len()
    }

    /// The latest time of an event of a link, a wire or a paced sender. Later ones are discarded, so a run must not end
    /// later.
    pub const fn latest(&self) -> Instant {
        self.busy.latest()
    }

    /// Adds `event` at `at`. Of each link and each wire, one event is pending at most; of a paced sender, a new event
    /// replaces the one that is pending.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: Event) {
        match self.slot(event) {
            Some(slot) => self.busy.set(Place::new(slot, self.turn()), at),
            None => self.insert_timer(at, pack(event)),
        }
    }

    /// The next event, or `None` if it is later than `end`, which is no later than [`Agenda::latest`]. It stays in the
    /// agenda until it is removed or moved; meanwhile others may be scheduled, the same link's or wire's
    /// next one too.
    #[inline]
    pub fn next_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let at = self.busy.time();
        let timer = time(self.timer);
        if at < timer || at == timer && self.is_before_timer() {
            if at > end {
                return None;
            }
            let place = self.busy.first();
            self.first = First::Busy(place);
            return Some((at, self.events[place.slot()]));
        }
        if timer > end {
            return None;
        }
        self.first = First::Quiet(self.timer);
        Some((timer, unpack(self.timer)))
    }

    /// Whether the first event with a slot precedes the first timer, which is due at the same instant.
    #[inline(never)]
    fn is_before_timer(&self) -> bool {
        let event = self.events.get(self.busy.first().slot());
        event.is_some_and(|&event| pack(event) < low(self.timer))
    }

    /// Whether no departure from a link or arrival is left at this instant.
    #[inline]
    pub fn is_past_arrivals(&self, now: Instant) -> bool {
        self.busy.is_past(now, self.senders)
            && self.timer >= Key::from(now.as_nanos()) << 64 | Key::from(AFTER_ARRIVALS)
    }

    /// Removes the event that [`Agenda::next_until`] has just returned.
    #[inline]
    pub fn remove_next(&mut self) {
        match self.first {
            // Its successor may have taken its place already.
            First::Busy(place) if self.busy.holds(place) => self.busy.clear(place.slot()),
            First::Quiet(key) if self.timer == key => self.timer = self.quiet.remove_least(),
            _ => {}
        }
    }

    /// Moves the event that [`Agenda::next_until`] has just returned to `at`.
    #[inline]
    pub fn repeat_next(&mut self, at: Instant) {
        match self.first {
            First::Busy(place) => self.busy.set(place.next(), at),
            First::Quiet(key) => self.insert_timer(at, low(key) & EVENT),
        }
    }

    /// A timer takes the place of the one that has just come, if that has not been removed yet. If an equal key is the
    /// least, which a stale timer of the same flow can be, that is replaced: its owner ignores one of the two anyway.
    fn insert_timer(&mut self, at: Instant, event: u64) {
        let key = Key::from(at.as_nanos()) << 64 | Key::from(event | self.turn());
        self.timer = match self.first {
            First::Quiet(first) if first == self.timer && first != NOTHING => {
                self.quiet.replace_least(key)
            }
            _ => self.quiet.push(key),
        };
    }

    /// The turn of new events.
    #[inline]
    const fn turn(&self) -> u64 {
        match self.first {
            First::Busy(place) => place.next().turn(),
            First::Quiet(key) => !low(key) & TURN,
        }
    }

    /// The slot of an event that has one.
    #[inline]
    fn slot(&self, event: Event) -> Option<usize> {
        match event {
            Event::Link(n) => Some(n as usize),
            Event::Medium(n) => Some(self.media + n as usize),
            Event::Wire(n) => Some(self.wires + n as usize),
            Event::Line(n) => Some(self.lines + n as usize),
            Event::Sender(flow) => {
                let slot = *self.paced.get(flow as usize)?;
                (slot != QUIET).then_some(usize::from(slot))
            }
            Event::Sample
            | Event::Measure
            | Event::Change(_)
            | Event::Control
            | Event::Start(_)
            | Event::Stop(_)
            | Event::Queue(_)
            | Event::Receiver(_)
            | Event::Write(_) => None,
        }
    }
}

/// Time in the high half; in the low half the event, then one bit, the turn: an event is compared as one number.
///
/// An event can schedule itself at the same instant. Its successor has the opposite turn, by which the agenda tells the
/// two apart. The turn is the lowest bit, so it does not affect the order of different events.
type Key = u128;

/// Later than any event.
const NOTHING: Key = Key::MAX;

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;
const EVENT_BITS: u32 = INDEX_BITS + KIND_BITS;

/// Most links, wires or flows that an event can name.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// The bit of a key that is the turn.
const TURN: u64 = 1;
const TURN_BITS: u32 = 1;

/// The bits of a key that hold the event.
const EVENT: u64 = ((1 << EVENT_BITS) - 1) << TURN_BITS;

const fn time(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low(key: Key) -> u64 {
    key as u64
}

const fn kind(key: Key) -> usize {
    (low(key) & EVENT) as usize >> (INDEX_BITS + TURN_BITS)
}

#[expect(clippy::cast_possible_truncation, reason = "masked first")]
const fn index(key: Key) -> u32 {
    (low(key) >> TURN_BITS & MAX_INDEX as u64) as u32
}

/// All departures and arrivals sort before this event.
const AFTER_ARRIVALS: u64 = pack(Event::Queue(0));

/// Kinds are numbered in the order in which events of the same instant come.
#[inline]
const fn pack(event: Event) -> u64 {
    let (kind, index) = match event {
        Event::Sample => (0, 0),
        Event::Measure => (1, 0),
        Event::Change(n) => (2, n),
        Event::Control => (3, 0),
        Event::Start(n) => (4, n),
        Event::Stop(n) => (5, n),
        Event::Link(n) => (6, n),
        Event::Medium(n) => (7, n),
        Event::Wire(n) => (8, n),
        Event::Line(n) => (9, n),
        Event::Queue(n) => (10, n),
        Event::Sender(n) => (11, n),
        Event::Receiver(n) => (12, n),
        Event::Write(n) => (13, n),
    };
    ((kind << INDEX_BITS) | index as u64) << TURN_BITS
}

#[inline]
const fn unpack(key: Key) -> Event {
    let index = index(key);
    match kind(key) {
        0 => Event::Sample,
        1 => Event::Measure,
        2 => Event::Change(index),
        3 => Event::Control,
        4 => Event::Start(index),
        5 => Event::Stop(index),
        6 => Event::Link(index),
        7 => Event::Medium(index),
        8 => Event::Wire(index),
        9 => Event::Line(index),
        10 => Event::Queue(index),
        11 => Event::Sender(index),
        12 => Event::Receiver(index),
        _ => Event::Write(index),
    }
}

/// Every kind of event, in the order in which events at the same instant are processed: an interval ends before anything
/// else at that instant, and departures from links come before arrivals.
///
/// Small, `Copy`, printable: a trace is a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interval of the series ends.
    Sample,
    /// The warm-up ends.
    Measure,
    /// A link changes its rate or delay.
    Change(u32),
    /// An interval of the controller ends.
    Control,
    /// A flow begins.
    Start(u32),
    /// A flow is aborted.
    Stop(u32),
    /// A link may send its next packet.
    Link(u32),
    /// Something happens on a medium.
    Medium(u32),
    /// The oldest packet on a wire reaches its end.
    Wire(u32),
    /// The next packet on a wire that is not perfect reaches its end.
    Line(u32),
    /// A queue's own timer may be due.
    Queue(u32),
    /// A flow's sender may have a timer due, or its next packet.
    Sender(u32),
    /// A flow's receiver may have a timer due.
    Receiver(u32),
    /// The client of a bulk transfer may write a block.
    Write(u32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::{Duration, Rng};
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Trees of one, two and three levels.
    #[test]
    fn events_come_in_the_order_of_time_then_of_kind_and_number() {
        order_is_kept([1, 1, 0]);
        order_is_kept([3, 6, 2]);
        order_is_kept([4, 20, 10]);
    }

    fn order_is_kept([links, wires, uneven]: [u32; 3]) {
        let mut rng = Rng::new(1);
        let mut draw = |n| rng.below(n);
        let paced = [false, true, uneven > 0].into_iter();
        let media = usize::from(uneven > 0);
        let mut agenda = Agenda::new(
            links as usize,
            wires as usize,
            uneven as usize,
            media,
            paced,
        );
        let mut want = BinaryHeap::new();
        let mut idle: Vec<Event> = (0..links).map(Event::Link).collect();
        idle.extend((0..wires).map(Event::Wire));
        idle.extend((0..uneven).map(Event::Line));
        idle.push(Event::Sender(1));
        if uneven > 0 {
            idle.extend([Event::Medium(0), Event::Sender(2)]);
        }
        let (mut flow, mut same_instant) = (3, 0);
        for _ in 0..50_000 {
            let at = Instant::from_nanos(draw(50) << 27);
            match draw(4) {
                0 => {
                    let kinds = [
                        Event::Change,
                        Event::Start,
                        Event::Queue,
                        Event::Sender,
                        Event::Receiver,
                    ];
                    let event = kinds[usize::try_from(draw(5)).unwrap()](flow);
                    agenda.schedule(at, event);
                    want.push(Reverse((at, pack(event))));
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
                            if agenda.slot(event).is_some() {
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
    fn events_later_than_a_key_can_hold_are_forgotten() {
        let mut agenda = Agenda::new(2, 2, 0, 0, std::iter::empty());
        let latest = agenda.latest();
        assert!(latest > Instant::from_nanos(1 << 58));
        agenda.schedule(latest + Duration::from_nanos(1), Event::Link(0));
        agenda.schedule(Instant::MAX, Event::Wire(1));
        assert_eq!(agenda.next_until(latest), None);
        agenda.schedule(latest, Event::Wire(1));
        assert_eq!(agenda.next_until(latest), Some((latest, Event::Wire(1))));
    }

    #[test]
    fn arrivals_are_past_when_only_timers_are_left() {
        let at = Instant::from_millis;
        let mut agenda = Agenda::new(1, 1, 0, 0, [true, false].into_iter());
        assert!(agenda.is_past_arrivals(at(5)));
        agenda.schedule(at(5), Event::Sender(0));
        agenda.schedule(at(5), Event::Sender(1));
        agenda.schedule(at(5), Event::Queue(0));
        agenda.schedule(at(6), Event::Link(0));
        assert!(agenda.is_past_arrivals(at(5)));
        agenda.schedule(at(5), Event::Wire(0));
        assert!(!agenda.is_past_arrivals(at(5)));
        agenda.schedule(at(5), Event::Start(1));
        for event in [Event::Start(1), Event::Wire(0)] {
            assert!(!agenda.is_past_arrivals(at(5)));
            assert_eq!(agenda.next_until(at(9)), Some((at(5), event)));
            agenda.remove_next();
        }
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
