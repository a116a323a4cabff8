//! What the parameters of every discipline offer.

use sojourn_net::{Packet, Rng};

use super::field::Field;
use super::leaves::LeafList;
use crate::contract::Qdisc;
use crate::link::LinkFacts;

/// A word of `tc` and the parameters with their values that it stands for; without a value, a
/// parameter takes its default.
pub(crate) type Shorthand = (&'static str, &'static [(&'static str, &'static str)]);

/// The parameters of a discipline: they are set by key and make its queues.
pub(crate) trait Params {
    /// What they make.
    type Queue<P: Packet>: Qdisc<P>;

    /// The name in the catalogue that they go by.
    fn kind(&self) -> &'static str;

    /// The place of a parameter's value.
    fn field(&mut self, key: &str) -> Option<Field<'_>>;

    /// Words that are no parameters and set some.
    fn shorthands(&self) -> &'static [Shorthand] {
        &[]
    }

    /// What two parameters say against each other.
    fn conflict(&self) -> Option<String> {
        None
    }

    /// The queues inside it, as many as were given, and the number of classes that they are for.
    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        None
    }

    /// An empty queue on `link`, made at the origin of time; `rng` is its own.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Self::Queue<P>;
}
