//! Metrics of runs: computed from tables, or from the records of a run as soon as it ends.

mod column;
mod columns;
mod formulae;
mod latency;
mod measurements;
mod meter;
mod outcome;
mod row;
mod run;
mod tables;

pub use measurements::{Measurements, OnThread, Row};
pub use meter::Meter;
pub use tables::{averaged_pings, per_run, read_stream};
