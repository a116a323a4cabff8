//! The laboratory: scenarios, runs, records and statistics.
//!
//! ```text
//! TOML, JSON ──► Scenario ──► run ──► Outcome ──► folder of Parquet files, Arrow tables
//! ```

mod digest;
mod manifest;
mod outcome;
mod run;
mod scenario;
mod stats;
mod store;
mod tables;

pub use manifest::{Build, Manifest};
pub use outcome::Outcome;
pub use run::{RunOptions, run};
pub use scenario::{Part, Scenario, ScenarioError, check_part, scenario_keys};
pub use sojourn_sim::ConfigError;
pub use stats::{Bootstrap, Interval, StatsError};
pub use store::ResultError;
pub use tables::{Table, TableKind};
