//! What is to happen, and when.

use sojourn_net::Instant;

/// Everything that can happen. Small, `Copy`, printable: a trace is a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link may send its next packet.
    Link(u32),
    /// The oldest packet on a wire reaches its end.
    Wire(u32),
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
/// A 4-ary heap of 16-byte entries: four children share a cache line, and an entry is compared as
/// one 128-bit number.
#[derive(Clone, Debug, Default)]
pub struct Agenda {
    /// Time in the high half; below it the order of scheduling, then the event.
    heap: Vec<u128>,
    scheduled: u64,
}

const ARITY: usize = 4;
const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;
const ORDER_BITS: u32 = u64::BITS - INDEX_BITS - KIND_BITS;

/// Most links, wires or flows that an event can name.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

impl Agenda {
    /// Adds `event` at `at`.
    ///
    /// # Panics
    /// After 2^36 events: at ten million a second, two hours of work.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: Event) {
        let order = self.scheduled;
        self.scheduled += 1;
        assert!(
            order < 1 << ORDER_BITS,
            "an agenda holds 2^36 events in all"
        );
        let low = order << (INDEX_BITS + KIND_BITS) | pack(event);
        let key = u128::from(at.as_nanos()) << 64 | u128::from(low);
        self.heap.push(key);
        self.sift_up(self.heap.len() - 1, key);
    }

    /// When the next event is.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|&key| time(key))
    }

    /// Removes the next event, unless it lies beyond `end`.
    #[inline]
    pub fn next_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let first = *self.heap.first()?;
        if time(first) > end {
            return None;
        }
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some((time(first), unpack(first)))
    }

    /// How many events were ever scheduled.
    pub const fn scheduled(&self) -> u64 {
        self.scheduled
    }

    #[inline]
    fn sift_up(&mut self, mut hole: usize, key: u128) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = key;
    }

    #[inline]
    fn sift_down(&mut self, key: u128) {
        let len = self.heap.len();
        let mut hole = 0;
        loop {
            let first = ARITY * hole + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if key <= self.heap[least] {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = key;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the high half")]
const fn time(key: u128) -> Instant {
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
    };
    (kind << INDEX_BITS) | index as u64
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked first")]
const fn unpack(key: u128) -> Event {
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
        _ => Event::Measure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Rng;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn events_come_in_the_order_of_time_then_of_scheduling() {
        let mut rng = Rng::new(1);
        let (mut agenda, mut want) = (Agenda::default(), BinaryHeap::new());
        let mut nth = 0_u32;
        for _ in 0..20_000 {
            if rng.below(2) == 0 {
                let at = Instant::from_nanos(rng.below(50));
                agenda.schedule(at, Event::Sender(nth));
                want.push(Reverse((at, nth)));
                nth += 1;
            } else {
                let end = Instant::from_nanos(rng.below(60));
                let next = want.peek().filter(|Reverse((at, _))| *at <= end);
                let next = next.map(|&Reverse((at, n))| (at, Event::Sender(n)));
                assert_eq!(agenda.next_until(end), next);
                if next.is_some() {
                    want.pop();
                }
            }
        }
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
        ] {
            assert_eq!(unpack(u128::from(pack(event)) | 7 << 28), event);
        }
    }
}
