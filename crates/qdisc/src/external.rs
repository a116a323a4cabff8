//! Disciplines from outside this crate, added at run time.
//!
//! A discipline of another crate, or one written in Python, cannot be a variant of
//! [`AnyQdisc`](crate::AnyQdisc), and it cannot know the packet type of every environment. It works
//! on [`Ticket`], a copy of what a queue may read of a packet. [`External`] keeps the packets
//! themselves and translates.
//!
//! A program calls [`register`] before it reads scenarios; from then on the name is accepted
//! wherever a queue is named. The parameters are declared as those of this crate are, with
//! [`parameters!`](crate::parameters!) and [`Params`], and behave alike. A class of Python has none; its
//! name is known at run time only ([`register_class`]).
//!
//! # Failure
//!
//! [`Qdisc`](crate::Qdisc) has no errors, and the disciplines of this crate need none. One from outside
//! may fail, for example with an exception. It then calls [`fail`], which unwinds to whoever started
//! the run with a [`QueueFailure`] as payload; the run ends at once and its records are discarded.

mod declared;
mod failure;
mod queue;
mod register;
mod ticket;

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use sojourn_net::{Packet, Rng};

use crate::link::LinkFacts;
use crate::parameters::{Entry, Field, Fields, Kind, LeafList, Params, Shorthand};
use declared::Declared;
pub use failure::{FailureCause, QueueFailure, fail};
pub use queue::{BoxedQueue, External};
pub use register::{RegisterError, is_external, register, register_class, source_of};
pub use ticket::Ticket;

/// Kinds with this prefix name a class of Python; they are accepted without being registered, so
/// that a saved result loads where the class does not exist, but they cannot be built there.
pub const PYTHON_PREFIX: &str = "python:";

/// A discipline without parameters whose name is known at run time only, such as a class of Python.
pub trait QueueClass: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// The name in a specification: letters, digits, `_`, `:` and `.`.
    fn name(&self) -> &str;

    /// The program text of the discipline, which results keep; it is never executed.
    fn source(&self) -> &str;

    /// An empty queue for `link`; `rng` is its own.
    fn build(&self, link: &LinkFacts, rng: Rng) -> BoxedQueue;
}

/// A discipline from outside and its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSpec {
    entry: Entry,
    maker: Maker,
}

/// What makes the queues.
#[derive(Clone, Debug)]
enum Maker {
    /// Parameters that another crate declares.
    Declared(Box<dyn Declared>),
    /// A class.
    Class(Arc<dyn QueueClass>),
    /// Nothing: the class of Python does not exist in this process.
    NotLoaded,
}

impl PartialEq for ExternalSpec {
    /// Whether name and parameters, as text, are the same.
    fn eq(&self, other: &Self) -> bool {
        Params::kind(self) == Params::kind(other) && self.values() == other.values()
    }
}

impl ExternalSpec {
    /// Whether it can be built in this process.
    pub const fn is_available(&self) -> bool {
        !matches!(self.maker, Maker::NotLoaded)
    }

    fn declared(&self) -> Option<&dyn Declared> {
        match &self.maker {
            Maker::Declared(params) => Some(&**params),
            Maker::Class(_) | Maker::NotLoaded => None,
        }
    }

    /// The parameters as text.
    fn values(&self) -> Vec<Option<String>> {
        let mut spec = self.clone();
        let parameters = self.entry.parameters.iter();
        parameters
            .map(|parameter| spec.field(parameter.key)?.text())
            .collect()
    }
}

impl Fields for ExternalSpec {
    fn field(&mut self, key: &str) -> Option<Field<'_>> {
        match &mut self.maker {
            Maker::Declared(params) => params.field(key),
            Maker::Class(_) | Maker::NotLoaded => None,
        }
    }
}

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

    fn conflict(&self) -> Option<String> {
        self.declared()?.conflict()
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        self.declared()?.leaves()
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
