//! The specification of an external queue.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use sojourn_net::{Comparison, Rng};

use super::queue::{BoxedQueue, Ticket};
use crate::parameters::{
    Entry, LeafList, LinkFacts, Parameter, Parameters, Params, Shorthand, TcWord, Value,
};

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

/// An external queue and its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSpec {
    pub(super) entry: Entry,
    pub(super) maker: Maker,
}

/// What makes the queues.
#[derive(Clone, Debug)]
pub(super) enum Maker {
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

    pub(super) fn declared(&self) -> Option<&dyn Declared> {
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
            .map(|parameter| parameter.text(spec.value(parameter.key)?))
            .collect()
    }
}

impl Parameters for ExternalSpec {
    fn table(&self) -> &'static [Parameter] {
        self.entry.parameters
    }

    fn value(&mut self, key: &str) -> Option<&mut dyn Value> {
        match &mut self.maker {
            Maker::Declared(params) => params.value(key),
            Maker::Class(_) | Maker::NotLoaded => None,
        }
    }
}

/// What [`Params`], which has constants and type parameters, cannot be: a trait object.
pub(super) trait Declared:
    Parameters + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe
{
    fn kind(&self) -> &'static str;
    fn shorthands(&self) -> &'static [&'static [Shorthand]];
    fn tc_words(&self) -> &'static [(&'static str, TcWord)];
    fn settle(&mut self, shorthands: &[&str]) -> Result<Vec<String>, String>;
    fn conflict(&self) -> Option<String>;
    fn comparison(&self) -> Comparison;
    fn leaves(&self) -> Option<(&dyn LeafList, u32)>;
    fn resolve(&mut self, link: &LinkFacts);
    fn build(&self, link: &LinkFacts, rng: Rng) -> BoxedQueue;
    fn boxed_clone(&self) -> Box<dyn Declared>;
}

impl<T> Declared for T
where
    T: Params + Clone + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe,
    T::Queue<Ticket>: Clone + fmt::Debug + 'static,
{
    fn kind(&self) -> &'static str {
        Params::kind(self)
    }

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        Params::shorthands(self)
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        Params::tc_words(self)
    }

    fn settle(&mut self, shorthands: &[&str]) -> Result<Vec<String>, String> {
        Params::settle(self, shorthands)
    }

    fn conflict(&self) -> Option<String> {
        Params::conflict(self)
    }

    fn comparison(&self) -> Comparison {
        Params::comparison(self)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        Params::leaves(self)
    }

    fn resolve(&mut self, link: &LinkFacts) {
        Params::resolve(self, link);
    }

    fn build(&self, link: &LinkFacts, rng: Rng) -> BoxedQueue {
        BoxedQueue::new(Params::build::<Ticket>(self, link, rng))
    }

    fn boxed_clone(&self) -> Box<dyn Declared> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Declared> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}
