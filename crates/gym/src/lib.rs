//! Many simulations that are steered step by step, for reinforcement learning.
//!
//! A [`Batch`] advances its simulations by one step at a time on its own threads. Each takes an action
//! before a step and returns what a link and the flows did in it, as numbers. What these numbers mean to a
//! learner is decided elsewhere.

mod batch;
mod environment;
mod probability;

pub use batch::Batch;
pub use environment::{Action, FLOW_COLUMNS, LINK_COLUMNS, Setup};
