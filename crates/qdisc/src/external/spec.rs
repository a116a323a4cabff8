//! The specification of an external queue.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use sojourn_net::Rng;

use super::declared::Declared;
use super::queue::BoxedQueue;
use crate::link::LinkFacts;
use crate::parameters::{Entry, Parameter, Parameters, Params, Value};

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
