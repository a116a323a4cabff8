//! The contract of a queue discipline: what it is called with and what it reports.

use std::fmt;

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate};

/// A queueing discipline: packets go in, packets come out, and time is an argument.
///
/// A `Qdisc` is *sans-IO*: it owns no clock, timer, socket or thread. The environment calls it
/// with a `now` that never decreases.
pub trait Qdisc<P: Packet> {
    /// Whether [`Qdisc::next_timer`] may ever return a time; what [`Qdisc::packets_affect_timer`] returns by default.
    const TIMED: bool = false;

    /// Offers a packet. Each discarded packet, this one or another, is passed to `obs`.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>);

    /// Takes the next packet to send, if there is one that may be sent now.
    ///
    /// A shaper may hold packets back: it returns `None` while some wait, and
    /// [`Qdisc::next_timer`] says when to ask again.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>;

    /// The packet that [`Qdisc::dequeue`] would return, if known without dequeuing; like `peek` in Linux.
    ///
    /// A token bucket that waits for tokens leaves such a packet in the queue.
    #[inline]
    fn peek(&self) -> Peek {
        Peek::Dequeues
    }

    /// Whether `pkt`, if it were enqueued now and dequeued at the same time, would come out as it went in, with nothing
    /// to observe and no change of the discipline. The environment may then do without both calls.
    #[inline]
    fn passes_unchanged(&self, _pkt: &P) -> bool {
        false
    }

    /// What is waiting now.
    fn backlog(&self) -> Backlog;

    /// When [`Qdisc::on_timer`] is next due; `None` if there is nothing to wait for.
    ///
    /// The environment asks again after each call of [`Qdisc::on_timer`] and [`Qdisc::on_link_rate`]. If
    /// [`Qdisc::packets_affect_timer`] returns `true`, it also asks after each call of [`Qdisc::dequeue`] and after one
    /// or more calls of [`Qdisc::enqueue`] at one instant. Asking changes nothing, however often it happens.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// Whether [`Qdisc::enqueue`] or [`Qdisc::dequeue`] may change the result of [`Qdisc::next_timer`], or `dequeue`
    /// may hold packets back. `false` is right if the timer only drives a periodic update; `true` is always right. The
    /// answer never changes. Queues outside this crate are not asked: packets may affect the timer of all of them.
    fn packets_affect_timer(&self) -> bool {
        Self::TIMED
    }

    /// The time returned by [`Qdisc::next_timer`] has come.
    fn on_timer(&mut self, _now: Instant) {}

    /// The link sends at `rate` from now on; the packet in transmission completes at the old rate.
    ///
    /// For disciplines that observe the link. Those whose parameters derive from the rate of the link keep
    /// them, as a queueing discipline of Linux keeps the parameters it was configured with.
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// The number of the inner queue that `pkt` would join if it were offered now; `None`: the discipline does not hash
    /// packets to queues. For captures, which ask before they offer a packet.
    fn queue_of(&self, _pkt: &P) -> Option<u32> {
        None
    }

    /// Counters and estimates of the discipline, with the names of `tc -j -s`.
    ///
    /// Packets, bytes, drops and backlog, which every queue has, are not included: the environment
    /// counts them.
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }

    /// What else a time series of the discipline shows at `now`: averages, probabilities and waiting times that
    /// [`Qdisc::statistics`], which has the names of `tc`, leaves out.
    ///
    /// A quantity that is not defined at `now` is not included. No name occurs in both lists.
    fn state(&self, _now: Instant) -> Vec<Statistic> {
        Vec::new()
    }

    /// The classes that [`Observer::on_class`] may name, so that one without packets is reported too.
    ///
    /// Classes that flows are hashed to can be many; a discipline need not list them.
    fn classes(&self) -> Vec<ClassId> {
        Vec::new()
    }
}

/// The next packet of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// Only [`Qdisc::dequeue`] can tell, as for disciplines with `qdisc_peek_dequeued` in Linux.
    Dequeues,
    /// The size of the packet.
    Head(Bytes),
    /// There is none.
    Empty,
}

impl From<Option<Bytes>> for Peek {
    fn from(head: Option<Bytes>) -> Self {
        head.map_or(Self::Empty, Self::Head)
    }
}

/// A statistic of a discipline.
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

    /// A time in µs.
    pub(crate) fn micros(name: &'static str, time: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        Self::real(name, time.as_nanos() as f64 / 1e3)
    }

    /// The time from `now` to `due` in µs, negative if it has passed.
    pub(crate) fn micros_until(name: &'static str, now: Instant, due: Instant) -> Self {
        let (ahead, late) = (due.saturating_since(now), now.saturating_since(due));
        Self::real(name, 1e3 * (ahead.as_millis_f64() - late.as_millis_f64()))
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
    /// A boolean state.
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

/// Receives the drops and marks of a discipline, and the class of each event.
pub trait Observer<P> {
    /// Sets the class of the next event in this call: a drop, a mark, or the packet that the call
    /// returns. Disciplines without classes do not call it. Among nested disciplines, only the
    /// outermost one with classes calls it.
    fn on_class(&mut self, _class: ClassId) {}

    /// `numbers` lists what the next drop or mark in this call depends on. A discipline whose [`Qdisc::state`] after the
    /// call has this need not call it.
    fn on_decision(&mut self, _numbers: &dyn Fn() -> Vec<Statistic>) {}

    /// The rate at which the sender of `pkt` paces now, for disciplines that pace by the sockets of their host; `None`: it
    /// has none, or the environment does not know it. A discipline that calls it says so in
    /// `Params::paces_sockets`.
    fn pacing_rate(&self, _pkt: &P) -> Option<Rate> {
        None
    }

    /// The number of the flow in the list of the environment ([`LinkFacts::flows`](crate::LinkFacts)) that `pkt` belongs
    /// to, for filters by traffic; `None`: the environment does not know it.
    fn flow_of(&mut self, _pkt: &P) -> Option<u32> {
        None
    }

    /// The number of the wireless station that receives `pkt`, for disciplines with queues per station; 0: none, or the
    /// environment does not know it.
    fn station_of(&self, _pkt: &P) -> u8 {
        0
    }

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
    /// A later acknowledgement in the queue says the same and more.
    AckFilter,
    /// The queue was replaced, or emptied by a change of its parameters.
    Replaced,
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

impl Backlog {
    /// A packet of `size` has come.
    #[inline]
    pub fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }

    /// A packet of `size` has gone.
    #[inline]
    pub fn remove(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes -= size;
    }
}
