//! Disciplines from outside this crate, added at run time: classes of Python, and plug-ins.
//!
//! Such a discipline cannot be a variant of [`AnyQdisc`](crate::AnyQdisc), and it cannot know the packet type
//! of every environment. It works on [`Ticket`], a copy of what a queue may read of a packet. [`External`]
//! keeps the packets themselves and translates.
//!
//! A program calls [`register`] before it reads scenarios; from then on the name is accepted wherever a queue
//! is named. Parameters are declared at run time ([`QueueClass::parameters`]) and behave like those of this
//! crate; a class of Python has none.
//!
//! # Failure
//!
//! [`Qdisc`](crate::Qdisc) has no errors, and the disciplines of this crate need none. One from outside
//! may fail, for example with an exception. It then calls [`fail`], which unwinds to whoever started
//! the run with a [`QueueFailure`] as payload; the run ends at once and its records are discarded.

mod queue;
mod register;
mod spec;

use sojourn_net::{Packet, Rng};

use crate::parameters::{Entry, Kind, LinkFacts, Params};
pub use queue::{External, FailureCause, Leaving, QueueFailure, Ticket, TicketQueue, fail};
pub use register::{RegisterError, intern, is_external, origin_of, register};
pub use spec::{ExternalSpec, Origin, PLUGIN_PREFIX, PYTHON_PREFIX, QueueClass};

impl Params for ExternalSpec {
    type Queue<P: Packet> = External<P>;

    /// Those that are registered are known at run time only.
    const KINDS: &'static [Kind<Self>] = &[];

    fn at_defaults(name: &str) -> Option<(Entry, Self)> {
        let spec = register::at_defaults(name)?;
        Some((spec.entry, spec))
    }

    fn kind(&self) -> &'static str {
        self.entry.name
    }

    fn conflict(&self) -> Option<String> {
        self.class.as_ref()?.conflict(&self.values)
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> External<P> {
        let Some(class) = &self.class else {
            fail(format!("{} is not loaded", self.entry.name));
        };
        External::new(class.build(&self.values, link, rng))
    }
}

#[cfg(test)]
mod tests;
