//! The parameters of an external queue, behind a pointer.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use sojourn_net::{Comparison, Rng};

use super::queue::BoxedQueue;
use super::ticket::Ticket;
use crate::link::LinkFacts;
use crate::parameters::{LeafList, Parameters, Params, Shorthand};

/// What [`Params`], which has constants and type parameters, cannot be: a trait object.
pub(super) trait Declared:
    Parameters + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe
{
    fn kind(&self) -> &'static str;
    fn shorthands(&self) -> &'static [&'static [Shorthand]];
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
