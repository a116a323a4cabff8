//! What the simulator and its queues cost, beside the peers.
//!
//! `sojourn-bench` runs this; `docs/validation/performance.md` says what the numbers mean.

pub mod dumbbell;
pub mod idle;
pub mod peers;
pub mod queues;
pub mod usage;
pub mod web;
