//! The contract of a queue discipline: what it is called with and what it reports.

use std::fmt;

use sojourn_net::{Bytes, Instant, Packet};

/// A queueing discipline: packets go in, packets come out, and time is an argument.
///
/// A `Qdisc` is *sans-IO*: it owns no clock, timer, socket or thread. The environment calls it
/// with a `now` that never decreases.
pub trait Qdisc<P: Packet> {
    /// Whether [`Qdisc::next_timer`] may ever be due. The environment need not ask after each call
    /// a discipline for which nothing is.
    const TIMED: bool = false;

    /// Offers a packet. Whatever is discarded, this packet or another, goes to `obs`.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>);

    /// Takes the next packet to send, if there is one that may be sent now.
    ///
    /// A shaper may hold packets back: it returns `None` while some wait, and
    /// [`Qdisc::next_timer`] says when to ask again.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>;

    /// What is waiting now.
    fn backlog(&self) -> Backlog;

    /// When [`Qdisc::on_timer`] is next due; `None` if there is nothing to wait for.
    ///
    /// It may change with any call; the environment asks again after each, if the discipline is
    /// [timed](Qdisc::TIMED).
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The time returned by [`Qdisc::next_timer`] has come.
    fn on_timer(&mut self, _now: Instant) {}

    /// What the discipline counts and estimates, under the names of `tc -j -s`.
    ///
    /// What every queue has (packets, bytes, drops, backlog) is not among it: its environment
    /// counts that.
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }

    /// The classes that [`Observer::on_class`] may name, so that one without packets is reported too.
    ///
    /// Classes that flows are hashed to can be many; a discipline need not list them.
    fn classes(&self) -> Vec<ClassId> {
        Vec::new()
    }
}

/// A number that a discipline keeps about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// The part of the discipline it belongs to, as list and place: `("tins", 0)`; `None`: the
    /// whole.
    pub part: Option<(&'static str, usize)>,
    /// Its name in `tc -j -s`.
    pub name: &'static str,
    /// Its value.
    pub value: Number,
}

impl Statistic {
    /// A count of the whole discipline.
    pub const fn count(name: &'static str, count: u64) -> Self {
        Self::of(name, Number::Count(count))
    }

    /// A quantity of the whole discipline that is not a count.
    pub const fn real(name: &'static str, value: f64) -> Self {
        Self::of(name, Number::Real(value))
    }

    /// A state of the whole discipline.
    pub const fn flag(name: &'static str, value: bool) -> Self {
        Self::of(name, Number::Flag(value))
    }

    const fn of(name: &'static str, value: Number) -> Self {
        Self {
            part: None,
            name,
            value,
        }
    }

    /// The same number of one part of the discipline.
    #[must_use]
    pub const fn within(self, list: &'static str, place: usize) -> Self {
        Self {
            part: Some((list, place)),
            ..self
        }
    }
}

/// The value of a [`Statistic`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Packets, bytes, microseconds: what is counted.
    Count(u64),
    /// Probabilities and averages.
    Real(f64),
    /// Whether something is so.
    Flag(bool),
}

/// A class of a discipline that consists of several queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassId {
    /// Its name, or what the discipline calls its classes, such as `tin`.
    pub name: &'static str,
    /// Its place among the classes of the discipline.
    pub place: usize,
    /// Whether the place is part of its name.
    pub numbered: bool,
}

impl ClassId {
    /// The only class of this name.
    pub const fn named(name: &'static str, place: usize) -> Self {
        Self {
            name,
            place,
            numbered: false,
        }
    }

    /// The class at `place` among those of this name.
    pub const fn numbered(name: &'static str, place: usize) -> Self {
        Self {
            name,
            place,
            numbered: true,
        }
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.numbered {
            write!(f, "{} {}", self.name, self.place)
        } else {
            f.write_str(self.name)
        }
    }
}

/// Where a discipline reports what it did to packets it did not simply forward.
pub trait Observer<P> {
    /// Sets the class of the next event in this call: a drop, a mark, or the packet that the call
    /// returns. Disciplines without classes do not call it. Among nested disciplines, only the
    /// outermost one with classes calls it.
    fn on_class(&mut self, _class: ClassId) {}

    /// `pkt` was discarded; its buffer is now the observer's to reuse.
    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason);

    /// `pkt` was CE-marked and kept.
    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason);
}

/// Why a packet was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The buffer was full.
    Overlimit,
    /// The AQM chose to signal congestion.
    Aqm,
}

/// Why a packet was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkReason {
    /// The AQM chose to signal congestion.
    Aqm,
    /// The packet waited longer than the shallow CE threshold.
    CeThreshold,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: usize,
    /// Sum of their sizes.
    pub bytes: Bytes,
}
