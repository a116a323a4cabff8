//! Scenarios: what to run, as data, and the plan of each run.
//!
//! One schema serves TOML files, JSON and Python. A scenario names links, traffic and, where
//! variants are compared, *arms*: sets of keys that differ. Replication `k` of every arm runs
//! under the same seed, so that the arms see the same random draws.
//!
//! ```text
//! TOML, JSON ──► tree of values ──► Scenario ──► Plan of one run (arm, replication)
//! ```
//!
//! Nothing here knows what runs a plan.

mod amount;
mod arms;
mod compile;
mod concerns;
mod declare;
mod decode;
pub mod digest;
mod encode;
mod error;
mod input;
mod key;
mod link;
mod load;
mod page;
mod part;
mod path;
mod place;
pub mod plan;
mod scenario;
mod schema;
mod specification;
mod text;
mod traffic;
mod value;
mod wait;

pub use concerns::{Concern, Severity};
pub use decode::MAX_SEED;
pub use error::ScenarioError;
pub use error::{message, printable};
pub use link::{changed_keys, controlled_change, trace_mean_rate, with_controlled_changes};
pub use load::{LinkLoad, Load};
pub use part::{Part, check_part};
pub use path::parameters_at;
pub use plan::{Config, ConfigError, FlowLabel, Plan};
pub use scenario::{Scenario, scenario_keys, traffic_properties, traffic_types};
pub use schema::json_schema;
pub use traffic::{Measured, TrafficProperties};
