//! Links: a queue, the transmitter that drains it, the wire behind it, and a probe that records.
//!
//! They know neither hosts nor events: the environment calls them with the time and schedules what they return. The
//! simulator and the datapath of real packets run the same links.

mod carried;
mod line;
mod link;
mod probe;
mod route;
mod tbf;
mod traced;
mod wire;

pub use carried::{Carried, Taken, Watcher};
pub use line::{Line, Verdict};
pub use link::Link;
pub use probe::LinkProbe;
pub use route::{Direction, NextHop, Passage, Routes, Step};
pub use wire::Wire;
