//! Queue disciplines as pure state machines: no clock, no IO, one file per algorithm.
//!
//! [`Qdisc`] is the whole contract between an algorithm and its world.

mod codel;
mod contract;
mod fifo;

pub use codel::{Codel, CodelParams, Control as CodelControl};
pub use contract::{Backlog, DropReason, MarkReason, Observer, Qdisc};
pub use fifo::Fifo;
pub use sojourn_net::{Bytes, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng};
