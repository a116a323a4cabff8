//! Disciplines from outside this crate, added at run time.
//!
//! A discipline of another crate, or one written in Python, cannot be a variant of
//! [`AnyQdisc`](crate::AnyQdisc), and it cannot know the packet type of every environment. It works
//! on [`Ticket`], a copy of what a queue may read of a packet. [`External`] keeps the packets
//! themselves and translates.
//!
//! A program calls [`register`](crate::register) before it reads scenarios; from then on the name is accepted
//! wherever a queue is named. The parameters are declared as those of this crate are, with
//! [`parameters!`](crate::parameters!) and [`Params`], and behave alike. A class of Python has none; its
//! name is known at run time only ([`register_class`](crate::register_class)).
//!
//! # Failure
//!
//! [`Qdisc`](crate::Qdisc) has no errors, and the disciplines of this crate need none. One from outside
//! may fail, for example with an exception. It then calls [`fail`], which unwinds to whoever started
//! the run with a [`QueueFailure`] as payload; the run ends at once and its records are discarded.

mod queue;
mod register;
mod spec;

use sojourn_net::{Comparison, Packet, Rng};

use crate::parameters::{Entry, Kind, LeafList, LinkFacts, Params, Shorthand, TcWord};
pub use queue::Ticket;
pub use queue::{BoxedQueue, External};
pub use queue::{FailureCause, QueueFailure, fail};
pub use register::{RegisterError, is_external, source_of};
pub(crate) use register::{register, register_class};
use spec::Declared;
use spec::Maker;
pub use spec::{ExternalSpec, PYTHON_PREFIX, QueueClass};

impl Params for ExternalSpec {
    type Queue<P: Packet> = External<P>;

    /// Those that are registered are known at run time only.
    const KINDS: &'static [Kind<Self>] = &[];

    fn entries() -> Vec<Entry> {
        register::entries()
    }

    fn at_defaults(name: &str) -> Option<(Entry, Self)> {
        let spec = register::at_defaults(name)?;
        Some((spec.entry, spec))
    }

    fn kind(&self) -> &'static str {
        self.declared()
            .map_or(self.entry.name, |params| params.kind())
    }

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        self.declared().map_or(&[], |params| params.shorthands())
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        self.declared().map_or(&[], |params| params.tc_words())
    }

    fn settle(&mut self, shorthands: &[&str]) -> Result<Vec<String>, String> {
        match &mut self.maker {
            Maker::Declared(params) => params.settle(shorthands),
            Maker::Class(_) | Maker::NotLoaded => Ok(Vec::new()),
        }
    }

    fn conflict(&self) -> Option<String> {
        self.declared()?.conflict()
    }

    fn comparison(&self) -> Comparison {
        self.declared()
            .map_or(Comparison::None, Declared::comparison)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        self.declared()?.leaves()
    }

    fn resolve(&mut self, link: &LinkFacts) {
        if let Maker::Declared(params) = &mut self.maker {
            params.resolve(link);
        }
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> External<P> {
        let queue = match &self.maker {
            Maker::Declared(params) => params.build(link, rng),
            Maker::Class(class) => class.build(link, rng),
            Maker::NotLoaded => fail(format!("{} is not loaded", self.entry.name)),
        };
        queue.into_external()
    }
}

#[cfg(test)]
mod tests;
