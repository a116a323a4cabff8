//! The trait that the parameters of every discipline implement.

use sojourn_net::{Bytes, Comparison, Packet, Rate, Rng};

use super::declare::Fields;
use super::kind::{Entry, Kind, TcStatistics};
use super::leaves::LeafList;
use crate::contract::Qdisc;
use crate::link::LinkFacts;

/// A word of `tc` and the parameters with their values that it stands for; without a value, a
/// parameter takes its default.
pub type Shorthand = (&'static str, &'static [(&'static str, &'static str)]);

/// The parameters of a discipline: they are set by key and make its queues.
pub trait Params: Fields + Sized + 'static {
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
}

fn entry<T: Params>(kind: &Kind<T>) -> Entry {
    kind.entry(Some(T::page()), T::TC_STATISTICS)
}
