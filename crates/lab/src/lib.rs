//! The laboratory: runs scenarios on a backend, builds and stores their tables, and computes statistics.
//!
//! ```text
//! TOML, JSON ──► Scenario ──► run ──► Outcome ──► directory of Parquet files, Arrow tables
//! ```

mod invocation;
mod keys;
mod manifest;
mod outcome;
mod run;
mod stats;
mod store;
mod tables;
mod transfer;

pub use invocation::{Engine, Invocation};
pub use manifest::{Build, ExternalQueue, Manifest, Provenance, RunFact};
pub use outcome::Outcome;
pub use run::{RunOptions, check, run, run_one};
pub use sojourn_records::{ColumnInfo, ColumnKind};
pub use sojourn_scenario::{
    ConfigError, MAX_SEED, Part, Scenario, ScenarioError, check_part, json_schema, message,
    printable, scenario_keys, trace_mean_rate, traffic_transactions,
};
pub use sojourn_store::{Disk, RunStore};
pub use stats::{Bootstrap, Interval, StatsError};
pub use store::ResultError;
pub use tables::{Table, TableKind, column_catalogue_json};
