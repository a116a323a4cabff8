//! What is to happen, and when.

use sojourn_net::Instant;

/// Everything that can happen. Small, `Copy`, printable: a trace is a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link may send its next packet.
    Link(u32),
    /// The oldest packet on a wire reaches its end.
    Wire(u32),
    /// The next packet on a wire that is not perfect reaches its end.
    Line(u32),
    /// Something happens on a medium.
    Medium(u32),
    /// A link changes its rate or delay.
    Change(u32),
    /// A queue's own timer may be due.
    Queue(u32),
    /// A flow begins.
    Start(u32),
    /// A flow is aborted.
    Stop(u32),
    /// A flow's sender may have a timer due, or its next packet.
    Sender(u32),
    /// A flow's receiver may have a timer due.
    Receiver(u32),
    /// An interval of the series ends.
    Sample,
    /// The warm-up ends.
    Measure,
}

/// Events in time order; those at the same instant, in the order they were scheduled.
///
/// A link or a wire has one event pending at most and a new one for each packet; a flow has a
/// timer that seldom fires. So links and wires compete in a [`Tournament`], where moving an event
/// costs one comparison a level, and the timers wait in a [`Heap`] that is not touched meanwhile.
#[derive(Clone, Debug)]
pub struct Agenda {
    busy: Tournament,
    quiet: Heap,
    scheduled: u64,
    /// Slots of links; those of wires follow, then those of lines and of media.
    links: usize,
    wires: usize,
    uneven: usize,
    /// What [`Agenda::next_until`] has just returned.
    first: Key,
}

/// Time in the high half; below it the order of scheduling, then the event: an event is compared
/// as one number.
type Key = u128;

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;
const ORDER_BITS: u32 = u64::BITS - INDEX_BITS - KIND_BITS;

/// Most links, wires or flows that an event can name.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

impl Agenda {
    /// An empty agenda for a network of so many links, wires, `uneven` wires and media.
    pub fn new(links: usize, wires: usize, uneven: usize, media: usize) -> Self {
        Self {
            busy: Tournament::new(links + wires + uneven + media),
            quiet: Heap::default(),
            scheduled: 0,
            links,
            wires,
            uneven,
            first: NOTHING,
        }
    }

    /// Adds `event` at `at`; of each link and each wire, one event is pending at most.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: Event) {
        let key = self.key(at, event);
        match self.slot(event) {
            Some(slot) => self.busy.set(slot, key),
            None => self.quiet.push(key),
        }
    }

    /// The next event, unless it lies beyond `end`. It stays in the agenda until it is removed
    /// or moved; meanwhile others may be scheduled, the same link's or wire's next one too.
    #[inline]
    pub fn next_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let first = self.busy.least().min(self.quiet.least());
        self.first = first;
        let at = time(first);
        (at <= end && first != NOTHING).then(|| (at, unpack(first)))
    }

    /// Removes `event`, which [`Agenda::next_until`] has just returned.
    #[inline]
    pub fn remove_next(&mut self, event: Event) {
        match self.slot(event) {
            // Its successor may have taken its place already.
            Some(slot) if self.busy.at(slot) == self.first => self.busy.set(slot, NOTHING),
            Some(_) => {}
            None => self.quiet.remove_least(),
        }
    }

    /// Moves `event`, which [`Agenda::next_until`] has just returned, to `at`.
    #[inline]
    pub fn repeat_next(&mut self, at: Instant, event: Event) {
        let key = self.key(at, event);
        match self.slot(event) {
            Some(slot) => self.busy.set(slot, key),
            None => self.quiet.replace_least(key),
        }
    }

    #[inline]
    fn key(&mut self, at: Instant, event: Event) -> Key {
        if self.scheduled == 1 << ORDER_BITS {
            self.renumber();
        }
        let order = self.scheduled;
        self.scheduled += 1;
        let low = order << (INDEX_BITS + KIND_BITS) | pack(event);
        u128::from(at.as_nanos()) << 64 | u128::from(low)
    }

    /// Numbers what is pending anew, in the same order, so that numbers never run out.
    #[cold]
    fn renumber(&mut self) {
        let keys = || self.busy.nodes.iter().chain(&self.quiet.keys);
        let mut pending: Vec<Key> = keys().copied().filter(|&key| key != NOTHING).collect();
        pending.sort_unstable();
        pending.dedup();
        // The order of any two keys stays, and with it the shape of tree and heap.
        let renumbered = |key: Key| match pending.binary_search(&key) {
            Ok(rank) => {
                let others = key & !(((1 << ORDER_BITS) - 1) << (INDEX_BITS + KIND_BITS));
                others | (rank as Key) << (INDEX_BITS + KIND_BITS)
            }
            Err(_) => key,
        };
        for key in self.busy.nodes.iter_mut().chain(&mut self.quiet.keys) {
            *key = renumbered(*key);
        }
        self.first = renumbered(self.first);
        self.scheduled = pending.len() as u64;
    }

    #[inline]
    fn slot(&self, event: Event) -> Option<usize> {
        match event {
            Event::Link(n) => Some(n as usize),
            Event::Wire(n) => Some(self.links + n as usize),
            Event::Line(n) => Some(self.links + self.wires + n as usize),
            Event::Medium(n) => Some(self.links + self.wires + self.uneven + n as usize),
            _ => None,
        }
    }
}

/// Later than any event.
const NOTHING: Key = Key::MAX;

/// The least of a fixed number of keys: a complete binary tree in which each node holds the lesser
/// of its two children.
#[derive(Clone, Debug)]
struct Tournament {
    /// The root is node 1, the leaves begin at half the length.
    nodes: Vec<Key>,
}

impl Tournament {
    fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        Self {
            nodes: vec![NOTHING; 2 * leaves],
        }
    }

    #[inline]
    fn least(&self) -> Key {
        self.nodes[1]
    }

    #[inline]
    fn at(&self, slot: usize) -> Key {
        self.nodes[self.nodes.len() / 2 + slot]
    }

    #[inline]
    fn set(&mut self, slot: usize, key: Key) {
        let mut node = self.nodes.len() / 2 + slot;
        self.nodes[node] = key;
        while node > 1 {
            let lesser = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = lesser;
        }
    }
}

/// A 4-ary heap: four children share a cache line.
#[derive(Clone, Debug, Default)]
struct Heap {
    keys: Vec<Key>,
}

const ARITY: usize = 4;

impl Heap {
    #[inline]
    fn least(&self) -> Key {
        self.keys.first().copied().unwrap_or(NOTHING)
    }

    fn push(&mut self, key: Key) {
        let mut hole = self.keys.len();
        self.keys.push(key);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    fn remove_least(&mut self) {
        if let Some(last) = self.keys.pop()
            && !self.keys.is_empty()
        {
            self.replace_least(last);
        }
    }

    fn replace_least(&mut self, key: Key) {
        let len = self.keys.len();
        let mut hole = 0;
        loop {
            let first = ARITY * hole + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.keys[child] < self.keys[least] {
                    least = child;
                }
            }
            if key <= self.keys[least] {
                break;
            }
            self.keys[hole] = self.keys[least];
            hole = least;
        }
        self.keys[hole] = key;
    }
}

const fn time(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

#[inline]
const fn pack(event: Event) -> u64 {
    let (kind, index) = match event {
        Event::Link(n) => (0, n),
        Event::Wire(n) => (1, n),
        Event::Queue(n) => (2, n),
        Event::Start(n) => (3, n),
        Event::Stop(n) => (4, n),
        Event::Sender(n) => (5, n),
        Event::Receiver(n) => (6, n),
        Event::Sample => (7, 0),
        Event::Measure => (8, 0),
        Event::Line(n) => (9, n),
        Event::Change(n) => (10, n),
        Event::Medium(n) => (11, n),
    };
    (kind << INDEX_BITS) | index as u64
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked first")]
const fn unpack(key: Key) -> Event {
    let index = key as u32 & MAX_INDEX;
    match (key >> INDEX_BITS) as u32 & ((1 << KIND_BITS) - 1) {
        0 => Event::Link(index),
        1 => Event::Wire(index),
        2 => Event::Queue(index),
        3 => Event::Start(index),
        4 => Event::Stop(index),
        5 => Event::Sender(index),
        6 => Event::Receiver(index),
        7 => Event::Sample,
        8 => Event::Measure,
        9 => Event::Line(index),
        10 => Event::Change(index),
        _ => Event::Medium(index),
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
            let at = Instant::from_nanos(draw(50));
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
                    let end = Instant::from_nanos(draw(60));
                    let next = want.peek().filter(|Reverse((at, ..))| *at <= end);
                    let next = next.map(|&Reverse((at, _, e))| (at, unpack(Key::from(e))));
                    assert_eq!(agenda.next_until(end), next);
                    let Some((at, event)) = next else { continue };
                    want.pop();
                    if draw(3) == 0 && agenda.slot(event).is_some() {
                        // Scheduled again while it is being handled, then removed.
                        let later = at + Duration::from_nanos(draw(9));
                        agenda.schedule(later, event);
                        want.push(Reverse((later, nth, pack(event))));
                        nth += 1;
                        agenda.remove_next(event);
                    } else if draw(2) == 0 {
                        let later = at + Duration::from_nanos(draw(9));
                        agenda.repeat_next(later, event);
                        want.push(Reverse((later, nth, pack(event))));
                        nth += 1;
                    } else {
                        agenda.remove_next(event);
                        if agenda.slot(event).is_some() {
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
