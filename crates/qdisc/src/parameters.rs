//! The parameters of a discipline, its names, and the queues inside it.
//!
//! [`parameters!`] declares the parameters and [`Params`] builds a queue from them, also in the crate of a
//! plug-in. Text, tables and typed values all pass through the declarations.

use std::fmt;
use std::sync::Arc;

use sojourn_net::{Bytes, Comparison, Instant, Packet, Rate, Rng};
use sojourn_schema::Nested;

use crate::contract::{DropReason, MarkReason, Observer, Qdisc};

pub use sojourn_schema::{
    Flaw, Parameter, ParameterError, ParameterInfo, Parameters, Scalar, Unit, Value, choice,
    domain, parameters, time_text,
};

choice! {
    /// Which law a discipline follows, where the implementations differ.
    Profile {
        /// The RFC.
        Rfc = "rfc",
        /// The description of the authors, of a queue that has no RFC.
        Paper = "paper",
        /// Linux 6.1, with its fixed-point arithmetic.
        Linux = "linux",
        /// Linux 3.14, for studies of its time.
        Linux314 = "linux-3.14",
        /// Linux 6.12, for queues that changed after 6.1.
        Linux612 = "linux-6.12",
        /// The kernel modules of Sojourn, with their integer arithmetic.
        Kernel = "kernel",
    }
}

impl Profile {
    /// The comparison of a discipline in this profile, of which `linux` was compared with `kernel`.
    pub(crate) const fn compared_with(self, kernel: &'static str) -> Comparison {
        match self {
            Self::Linux => Comparison::With(kernel),
            other => Comparison::OtherProfile(other.word()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The profiles of a discipline that follows Linux 6.1 alone.
pub const LINUX: &[Profile] = &[Profile::Linux];
/// The profiles of a discipline that follows its RFC, Linux 6.1 and Linux 3.14.
pub const LINUX_AND_RFC: &[Profile] = &[Profile::Linux, Profile::Rfc, Profile::Linux314];

/// The profiles of a discipline that the kernel modules of Sojourn have too.
pub(crate) const PAPER_AND_KERNEL: &[Profile] = &[Profile::Paper, Profile::Kernel];

/// The statistic that `tc -s qdisc` prints as `overlimits`: what the kernel module of the queue
/// passes to `qdisc_qstats_overlimit`. Modules differ: RED counts its signals, CAKE the requests
/// that its shaper refuses, SFB drops at its limits, and most count nothing.
pub const OVERLIMITS: &str = "overlimits";

/// What `tc -s qdisc` prints for a discipline besides the statistics of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcStatistics {
    /// Its names of drops and marks that every link counts.
    pub counters: &'static [(&'static str, Counter)],
    /// The part of its statistics that has one entry per queue inside.
    pub leaves: Option<&'static str>,
    /// Whether its statistics have `overlimits`; other queues never count any, as their kernel modules.
    pub overlimits: bool,
}

/// What every link counts, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Packets that the queue dropped.
    Drops(DropReason),
    /// Packets that the queue marked.
    Marks(MarkReason),
}

impl TcStatistics {
    /// These names, and no queue inside.
    pub const fn of(counters: &'static [(&'static str, Counter)]) -> Self {
        Self {
            counters,
            leaves: None,
            overlimits: false,
        }
    }

    /// The same, with the queues inside under this part.
    #[must_use]
    pub const fn with_leaves(self, part: &'static str) -> Self {
        Self {
            leaves: Some(part),
            ..self
        }
    }

    /// Adds [`OVERLIMITS`] to the statistics.
    #[must_use]
    pub const fn with_overlimits(self) -> Self {
        Self {
            overlimits: true,
            ..self
        }
    }
}

impl Counter {
    /// The column of the result with this counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drops(DropReason::Overlimit) => "drops_overlimit",
            Self::Drops(DropReason::Aqm) => "drops_aqm",
            Self::Drops(DropReason::AckFilter) => "drops_ack_filter",
            Self::Drops(DropReason::Replaced) => "drops_replaced",
            Self::Marks(MarkReason::Aqm) => "marks_aqm",
            Self::Marks(MarkReason::CeThreshold) => "marks_ce_threshold",
        }
    }
}

/// One name of a discipline with parameters `T`, and the defaults it stands for.
#[derive(Debug)]
pub struct Kind<T> {
    /// The name in a specification.
    pub name: &'static str,
    /// The generated Python class; `None` for a second name of the same defaults and for a plug-in.
    pub class: Option<&'static str>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What no source gives and this implementation supplies; `None`: nothing.
    pub reconstruction: Option<&'static str>,
    /// What it can follow; the first is the default.
    pub profiles: &'static [Profile],
    /// The parameters at the defaults of this name.
    pub start: fn() -> T,
    /// The parameters that this name accepts.
    pub parameters: &'static [Parameter],
}

/// A [`Kind`] of any discipline.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(crate) name: &'static str,
    /// The first name of the discipline, under which it is documented; `None` for one from outside.
    pub(crate) page: Option<&'static str>,
    pub(crate) class: Option<&'static str>,
    pub(crate) summary: &'static str,
    pub(crate) source: &'static str,
    pub(crate) reconstruction: Option<&'static str>,
    pub(crate) profiles: &'static [Profile],
    pub(crate) parameters: &'static [Parameter],
    pub(crate) tc_statistics: TcStatistics,
}

impl Entry {
    /// The words that `parameter` accepts; none if its values are no words.
    pub(crate) fn choices(&self, parameter: &Parameter) -> Vec<&'static str> {
        match parameter.unit {
            Unit::Profile => self.profiles.iter().map(|profile| profile.word()).collect(),
            _ => parameter.choices().to_vec(),
        }
    }

    /// The allowed values of `parameter`, as `tc` writes them.
    pub(crate) fn range(&self, parameter: &Parameter) -> String {
        match parameter.unit {
            Unit::Flag => format!("{0} or no{0}", parameter.key),
            Unit::Profile => self.choices(parameter).join(", "),
            _ => parameter.range(),
        }
    }

    /// The allowed values of `parameter`, as the end of an error message.
    pub(crate) fn expected(&self, parameter: &Parameter) -> String {
        let range = self.range(parameter);
        match parameter.unit {
            Unit::Choice(_) | Unit::Profile if range.contains(", ") => format!("one of {range}"),
            _ => range,
        }
    }
}

impl<T> Kind<T> {
    /// This name, documented on `page`.
    pub(crate) const fn entry(
        &self,
        page: Option<&'static str>,
        tc_statistics: TcStatistics,
    ) -> Entry {
        Entry {
            name: self.name,
            page,
            class: self.class,
            summary: self.summary,
            source: self.source,
            reconstruction: self.reconstruction,
            profiles: self.profiles,
            parameters: self.parameters,
            tc_statistics,
        }
    }
}

/// A word of `tc` and the parameters with their values that it stands for; without a value, a
/// parameter takes its default, and `+18` adds to the value so far.
pub type Shorthand = (&'static str, &'static [(&'static str, &'static str)]);

/// A word of `tc` or of its output that is neither a parameter nor a [`Shorthand`] here.
#[derive(Clone, Copy, Debug)]
pub enum TcWord {
    /// Another spelling of this word.
    Means(&'static str),
    /// It changes nothing in the model, for this reason; this number of words after it are its values.
    WithoutEffect(usize, &'static str),
    /// It changes something that is not modelled.
    NotModelled(&'static str),
}

/// The values of a word that are all numbers that follow.
pub const ALL_NUMBERS: usize = usize::MAX;

/// The parameters of a discipline: they are set by key and make its queues.
pub trait Params: Parameters + Sized + 'static {
    /// What they make.
    type Queue<P: Packet>: Qdisc<P>;

    /// The names of the discipline; the first is that of its documentation.
    const KINDS: &'static [Kind<Self>];

    /// What `tc -s qdisc` prints for it besides the statistics of its own.
    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]);

    /// The implementation that its behaviour was compared with, if that does not depend on the parameters.
    const COMPARISON: Comparison = Comparison::None;

    /// The first name, that of the documentation.
    fn page() -> &'static str {
        Self::KINDS.first().map_or("", |kind| kind.name)
    }

    /// The names of the discipline, apart from the type of its parameters.
    fn entries() -> Vec<Entry> {
        Self::KINDS.iter().map(entry).collect()
    }

    /// The parameters at the defaults of `name`; `None` if it is not a name of the discipline.
    fn at_defaults(name: &str) -> Option<(Entry, Self)> {
        let kind = Self::KINDS.iter().find(|kind| kind.name == name)?;
        Some((entry(kind), (kind.start)()))
    }

    /// The name in the canonical text.
    fn kind(&self) -> &'static str {
        Self::page()
    }

    /// Words that are no parameters and set some.
    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        &[]
    }

    /// Words of `tc` that are neither parameters nor shorthands.
    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        &[]
    }

    /// Completes what a text or a table said, in which these shorthands stood; returns what `tc` or the kernel changes
    /// of it, which is an error in a table.
    ///
    /// # Errors
    /// What is wrong with the combination.
    fn settle(&mut self, _shorthands: &[&str]) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// What two parameters say against each other.
    fn conflict(&self) -> Option<String> {
        None
    }

    /// The rate of its own shaper, if it has one.
    fn shaper_rate(&self) -> Option<Rate> {
        None
    }

    /// The implementation that the behaviour with these parameters was compared with.
    fn comparison(&self) -> Comparison {
        Self::COMPARISON
    }

    /// Whether it paces by the rates of the sockets that send, for which it asks
    /// [`Observer::pacing_rate`].
    fn paces_sockets(&self) -> bool {
        false
    }

    /// The size of its buffer with packets of `frame` bytes, if it signals congestion only when that is full.
    ///
    /// `None` for classful disciplines, whatever their leaves, and where each flow has a buffer.
    fn unmanaged_buffer(&self, _frame: Bytes) -> Option<Bytes> {
        None
    }

    /// The queues inside it, as many as were given, and the number of classes that they are for.
    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        None
    }

    /// Sets parameters that are not given and derive from the link to their values on `link`.
    fn resolve(&mut self, _link: &LinkFacts) {}

    /// The rate that it assumes for a link whose rate is unknown, if its results depend on that.
    fn assumed_rate(&self) -> Option<Rate> {
        None
    }

    /// An empty queue on `link`, made at the origin of time; `rng` is its own.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Self::Queue<P>;

    /// What a queue does with its packets if these parameters change to `next` during a run, as by `tc qdisc change`.
    ///
    /// # Errors
    /// The parameter that cannot change; without an implementation, none can.
    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Err("the parameters of this queue cannot change during a run; expected another kind of queue".into())
    }

    /// Gives these parameters, to which they [may change](Params::change_to), to a `queue` on `link`.
    fn change<P: Packet>(
        &self,
        _queue: &mut Self::Queue<P>,
        _now: Instant,
        _link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
    }
}

/// What a queue of Linux does with its packets when its parameters change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// It keeps them, but for those above a lower limit.
    Keeps,
    /// It drops all of them, and restarts.
    Drops,
}

/// Refuses a change of the first parameter that is not the same before and after it.
pub(crate) fn fixed(parameters: &[(&str, bool)]) -> Result<Retention, String> {
    match parameters.iter().find(|(_, is_same)| !is_same) {
        Some((key, _)) => Err(format!("{key} cannot change during a run")),
        None => Ok(Retention::Keeps),
    }
}

/// Dequeues and drops what may leave of a queue until no more than `limit` packets wait.
pub(crate) fn shrink<P: Packet>(
    queue: &mut impl Qdisc<P>,
    limit: usize,
    now: Instant,
    obs: &mut dyn Observer<P>,
) {
    while queue.backlog().packets > limit
        && let Some(pkt) = queue.dequeue(now, obs)
    {
        obs.on_drop(now, pkt, DropReason::Overlimit);
    }
}

fn entry<T: Params>(kind: &Kind<T>) -> Entry {
    kind.entry(Some(T::page()), T::TC_STATISTICS)
}

/// A queue that can stand inside another one, with its parameters.
pub trait Leaf: Nested + Clone + PartialEq + 'static {
    /// The queue that it builds.
    type Queue<P: Packet>: Qdisc<P>;

    /// The queue of a class without a leaf of its own.
    fn plain_fifo() -> Self;

    /// An empty queue on `link`.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Self::Queue<P>;

    /// The queues inside this one and the number of its classes.
    fn leaves(&self) -> Option<(&dyn LeafList, u32)>;

    /// Its footprint, including the inner queues.
    fn footprint(&self) -> Footprint;

    /// Whether this queue or one inside it paces by the rates of sockets.
    fn paces_sockets(&self) -> bool;

    /// This queue and those inside it.
    fn provenance(&self) -> Vec<Provenance>;

    /// What its filters and those inside it ask of the flow of a packet; empty: nothing.
    fn flow_filters(&self) -> Vec<FlowCondition>;
}

/// The leaves of one queue, whatever type stands for them.
pub trait LeafList: fmt::Debug {
    /// How many levels of queues the leaves add.
    fn depth(&self) -> usize;

    /// How many queues `classes` classes need, those inside them included.
    fn queues(&self, classes: u32) -> u64;

    /// The footprint of the queues of `classes` classes.
    fn footprint(&self, classes: u32) -> Footprint;

    /// Whether one of the leaves paces by the rates of sockets.
    fn paces_sockets(&self) -> bool;

    /// As [`Leaf::provenance`], of all leaves.
    fn provenance(&self) -> Vec<Provenance>;

    /// As [`Leaf::flow_filters`], of all leaves.
    fn flow_filters(&self) -> Vec<FlowCondition>;
}

impl<L: Leaf> LeafList for Vec<L> {
    fn paces_sockets(&self) -> bool {
        self.iter().any(Leaf::paces_sockets)
    }

    fn depth(&self) -> usize {
        let below = |leaf: &L| leaf.leaves().map_or(0, |(leaves, _)| leaves.depth());
        self.iter().map(|leaf| 1 + below(leaf)).max().unwrap_or(0)
    }

    fn queues(&self, classes: u32) -> u64 {
        let inside = |leaf: &L| {
            let below = leaf.leaves().map_or(0, |(leaves, n)| leaves.queues(n));
            below.saturating_add(1)
        };
        match &**self {
            [] => classes.into(),
            [all] => u64::from(classes).saturating_mul(inside(all)),
            each => {
                let plain = u64::from(classes).saturating_sub(each.len() as u64);
                each.iter().map(inside).fold(plain, u64::saturating_add)
            }
        }
    }

    fn footprint(&self, classes: u32) -> Footprint {
        let plain = || L::plain_fifo().footprint();
        match &**self {
            [] => plain().times(classes.into()),
            [all] => all.footprint().times(classes.into()),
            each => {
                let rest = u64::from(classes).saturating_sub(each.len() as u64);
                let given = each.iter().map(L::footprint);
                given.fold(plain().times(rest), Footprint::and)
            }
        }
    }

    fn provenance(&self) -> Vec<Provenance> {
        self.iter().flat_map(Leaf::provenance).collect()
    }

    fn flow_filters(&self) -> Vec<FlowCondition> {
        self.iter().flat_map(Leaf::flow_filters).collect()
    }
}

/// The provenance of a discipline, as reported with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Its name.
    pub name: &'static str,
    /// As [`Kind::reconstruction`](Kind::reconstruction).
    pub reconstruction: Option<&'static str>,
    /// The implementation that it was compared with.
    pub comparison: Comparison,
}

/// Upper bounds on the memory and the timers of a queue, in units that do not depend on the type of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Entries of its tables: flows, bins, connections; at least 1 for the queue itself.
    pub slots: u64,
    /// Packets that may wait.
    pub packets: u64,
    /// Bytes that may wait.
    pub bytes: u64,
    /// How often its periodic timers expire per second, rounded up.
    pub timers_per_s: u64,
    /// Statistics and quantities of its state.
    pub statistics: u64,
}

impl Footprint {
    /// No memory.
    pub const NONE: Self = Self {
        slots: 0,
        packets: 0,
        bytes: 0,
        timers_per_s: 0,
        statistics: 0,
    };

    /// The footprint of `times` such queues.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self {
            slots: self.slots.saturating_mul(times),
            packets: self.packets.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
            timers_per_s: self.timers_per_s.saturating_mul(times),
            statistics: self.statistics.saturating_mul(times),
        }
    }

    /// The sum of two footprints.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(other.slots),
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
            timers_per_s: self.timers_per_s.saturating_add(other.timers_per_s),
            statistics: self.statistics.saturating_add(other.statistics),
        }
    }
}

/// Properties of the link that a discipline serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Rate of the link, if it is constant.
    pub rate: Option<Rate>,
    /// The largest packet, link header included: 1514 bytes on Ethernet.
    pub mtu: Bytes,
    /// Name of the link, if it has one.
    pub name: Option<Arc<str>>,
    /// The flows of the run by number, if the queue [filters by them](crate::QdiscSpec::flow_filters) and the
    /// environment knows them.
    pub flows: Option<Arc<[FlowFacts]>>,
}

/// What a filter asks of the flow of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowCondition {
    /// It belongs to the block of traffic of this name.
    Traffic(String),
    /// Its client has this number.
    Host(u16),
}

/// What filters of a queue may know of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFacts {
    /// The block of traffic it belongs to.
    pub traffic: Arc<str>,
    /// The number of its client, if it has one.
    pub host: Option<u32>,
}

impl Default for LinkFacts {
    fn default() -> Self {
        Self {
            rate: None,
            mtu: Bytes(1_514),
            name: None,
            flows: None,
        }
    }
}
