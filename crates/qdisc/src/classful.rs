//! Disciplines that schedule classes, each with a queue of its own.

pub(crate) mod drr;
pub(crate) mod prio;
