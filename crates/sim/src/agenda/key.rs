//! Pending events as numbers that sort by time.

use sojourn_net::Instant;

use super::event::Event;

/// Time in the high half; below it the order of scheduling, then the event: an event is compared
/// as one number.
pub(super) type Key = u128;

/// Later than any event.
pub(super) const NOTHING: Key = Key::MAX;

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;
pub(super) const EVENT_BITS: u32 = INDEX_BITS + KIND_BITS;
pub(super) const ORDER_BITS: u32 = u64::BITS - EVENT_BITS;

/// Most links, wires or flows that an event can name.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// The bits of a key that hold the event.
pub(super) const EVENT: u64 = (1 << EVENT_BITS) - 1;

pub(super) const fn time(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(super) const fn low(key: Key) -> u64 {
    key as u64
}

pub(super) const fn kind(key: Key) -> usize {
    (low(key) & EVENT) as usize >> INDEX_BITS
}

#[expect(clippy::cast_possible_truncation, reason = "masked first")]
pub(super) const fn index(key: Key) -> u32 {
    (low(key) & MAX_INDEX as u64) as u32
}

/// Kinds are numbered in the order of [`Event`].
#[inline]
pub(super) const fn pack(event: Event) -> u64 {
    let (kind, index) = match event {
        Event::Link(n) => (0, n),
        Event::Wire(n) => (1, n),
        Event::Line(n) => (2, n),
        Event::Medium(n) => (3, n),
        Event::Change(n) => (4, n),
        Event::Queue(n) => (5, n),
        Event::Start(n) => (6, n),
        Event::Stop(n) => (7, n),
        Event::Sender(n) => (8, n),
        Event::Receiver(n) => (9, n),
        Event::Sample => (10, 0),
        Event::Measure => (11, 0),
    };
    (kind << INDEX_BITS) | index as u64
}

#[inline]
pub(super) const fn unpack(key: Key) -> Event {
    let index = index(key);
    match kind(key) {
        0 => Event::Link(index),
        1 => Event::Wire(index),
        2 => Event::Line(index),
        3 => Event::Medium(index),
        4 => Event::Change(index),
        5 => Event::Queue(index),
        6 => Event::Start(index),
        7 => Event::Stop(index),
        8 => Event::Sender(index),
        9 => Event::Receiver(index),
        10 => Event::Sample,
        _ => Event::Measure,
    }
}
