//! The specification of an external queue.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use sojourn_net::Rng;

use super::queue::TicketQueue;
use crate::parameters::{Entry, LinkFacts, Parameter, Parameters, Scalar, Value};

/// Kinds with this prefix name a class of Python.
pub const PYTHON_PREFIX: &str = "python:";

/// Kinds with this prefix name a plug-in.
pub const PLUGIN_PREFIX: &str = "plugin:";

/// The prefixes of all external queues. They are accepted without being registered, so that a saved result
/// loads where the queue does not exist, but such a queue cannot be built.
pub(super) const PREFIXES: [&str; 2] = [PYTHON_PREFIX, PLUGIN_PREFIX];

/// An external queue discipline: a class of Python, or a plug-in.
pub trait QueueClass: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// The name in a specification: a prefix, then letters, digits, `_` and `:`.
    fn name(&self) -> &str;

    /// Where it comes from, which results keep.
    fn origin(&self) -> Origin;

    /// What it does, in one line.
    fn summary(&self) -> &'static str {
        "A class"
    }

    /// Where it is specified.
    fn source(&self) -> &'static str {
        "external"
    }

    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    /// Their defaults, one each.
    fn defaults(&self) -> Vec<Scalar> {
        Vec::new()
    }

    /// What two parameters say against each other.
    fn conflict(&self, _values: &[Scalar]) -> Option<String> {
        None
    }

    /// An empty queue for `link`; `rng` is its own.
    fn build(&self, values: &[Scalar], link: &LinkFacts, rng: Rng) -> Box<dyn TicketQueue>;
}

/// Where the code of an external queue comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The program text; it is never executed.
    pub text: Option<String>,
    /// The version that its author gave it.
    pub version: Option<String>,
    /// The SHA-256 of its file; `None`: that of the text.
    pub sha256: Option<String>,
}

/// An external queue and its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSpec {
    pub(super) entry: Entry,
    pub(super) values: Vec<Scalar>,
    /// What makes the queues; `None`: it does not exist in this process.
    pub(super) class: Option<Arc<dyn QueueClass>>,
    /// The parameters of a plug-in that does not exist in this process, as they were written.
    pub(super) words: String,
}

impl PartialEq for ExternalSpec {
    /// Whether name and parameters are the same.
    fn eq(&self, other: &Self) -> bool {
        (self.entry.name, &self.values, &self.words)
            == (other.entry.name, &other.values, &other.words)
    }
}

impl ExternalSpec {
    /// Whether it can be built in this process.
    pub const fn is_available(&self) -> bool {
        self.class.is_some()
    }

    /// Keeps the parameters of a plug-in that does not exist in this process, whose names are unknown; returns
    /// whether it is one.
    pub(crate) fn keep_words(&mut self, words: impl FnOnce() -> String) -> bool {
        let kept = self.class.is_none() && self.entry.name.starts_with(PLUGIN_PREFIX);
        if kept {
            self.words = words();
        }
        kept
    }

    /// The parameters of a plug-in that does not exist in this process.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}

impl Parameters for ExternalSpec {
    fn table(&self) -> &'static [Parameter] {
        self.entry.parameters
    }

    fn value(&mut self, key: &str) -> Option<&mut dyn Value> {
        let parameters = self.entry.parameters;
        let place = parameters.iter().position(|known| known.key == key)?;
        Some(self.values.get_mut(place)?)
    }
}
