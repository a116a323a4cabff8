//! The laboratory: runs scenarios on a backend, builds and stores their tables, and computes statistics.
//!
//! ```text
//! TOML, JSON ──► Scenario ──► run ──► Outcome ──► directory of Parquet files, Arrow tables
//! ```

mod budget;
mod capture;
mod frame;
mod gathered;
mod inventory;
mod invocation;
mod jobs;
mod keys;
mod load;
mod manifest;
mod metrics;
mod outcome;
mod piece;
mod run;
mod save;
mod stats;
mod stored;
mod tables;
mod watch;

pub use budget::{Estimate, Kept, Part as MemoryPart, default_limit, estimate, kept_bytes};
pub use capture::{Capture, check_capture};
pub use frame::ResultError;
pub use inventory::{StoredScenario, Verified, collect_garbage, stored_scenarios, verify_store};
pub use invocation::{Engine, Invocation};
pub use load::{MOST_BYTES, read_table};
pub use manifest::{Build, ExternalQueue, Manifest, Provenance, RunFact};
pub use metrics::{
    Declaration, Means, Measurements, Meter, OnThread, Parts, Role, Row, RunMeans, Scope, Stretch,
    averaged_pings, jain, load_means, metric_catalogue_json, metrics, part_means, read_stream,
    replies, stuck,
};
pub use outcome::Outcome;
pub use run::{RunOptions, check, run, run_one, run_while_it_lasts};
pub use save::{Claim, Replace};
pub use sojourn_records::{ColumnInfo, ColumnKind};
pub use sojourn_scenario::{
    ConfigError, MAX_SEED, Measured, Part, Scenario, ScenarioError, check_part, json_schema,
    message, parameters_at, printable, scenario_keys, trace_mean_rate, traffic_types,
};
pub use sojourn_store::{Disk, RunStore};
pub use stats::{Bootstrap, Interval, StatsError};
pub use tables::{Table, TableKind, column_catalogue_json};
pub use watch::{limit_memory, limit_worker_memory, worker_memory};
