//! Events, and pending ones as numbers that sort by time.

use sojourn_net::Instant;

/// Time in the high half; in the low half the event, then one bit, the turn: an event is compared as one number.
///
/// An event can schedule itself at the same instant. Its successor has the opposite turn, by which the agenda tells the
/// two apart. The turn is the lowest bit, so it does not affect the order of different events.
pub(super) type Key = u128;

/// Later than any event.
pub(super) const NOTHING: Key = Key::MAX;

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;
const EVENT_BITS: u32 = INDEX_BITS + KIND_BITS;

/// Most links, wires or flows that an event can name.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// The bit of a key that is the turn.
pub(super) const TURN: u64 = 1;
const TURN_BITS: u32 = 1;

/// The bits of a key that hold the event.
pub(super) const EVENT: u64 = ((1 << EVENT_BITS) - 1) << TURN_BITS;

pub(super) const fn time(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(super) const fn low(key: Key) -> u64 {
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
pub(super) const AFTER_ARRIVALS: u64 = pack(Event::Queue(0));

/// Kinds are numbered in the order in which events of the same instant come.
#[inline]
pub(super) const fn pack(event: Event) -> u64 {
    let (kind, index) = match event {
        Event::Sample => (0, 0),
        Event::Measure => (1, 0),
        Event::Change(n) => (2, n),
        Event::Start(n) => (3, n),
        Event::Stop(n) => (4, n),
        Event::Link(n) => (5, n),
        Event::Medium(n) => (6, n),
        Event::Wire(n) => (7, n),
        Event::Line(n) => (8, n),
        Event::Queue(n) => (9, n),
        Event::Sender(n) => (10, n),
        Event::Receiver(n) => (11, n),
    };
    ((kind << INDEX_BITS) | index as u64) << TURN_BITS
}

#[inline]
pub(super) const fn unpack(key: Key) -> Event {
    let index = index(key);
    match kind(key) {
        0 => Event::Sample,
        1 => Event::Measure,
        2 => Event::Change(index),
        3 => Event::Start(index),
        4 => Event::Stop(index),
        5 => Event::Link(index),
        6 => Event::Medium(index),
        7 => Event::Wire(index),
        8 => Event::Line(index),
        9 => Event::Queue(index),
        10 => Event::Sender(index),
        _ => Event::Receiver(index),
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
}
