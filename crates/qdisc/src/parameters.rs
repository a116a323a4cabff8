//! The parameters of a discipline: keys, units, ranges, and the errors about them.
//!
//! A discipline lends its fields by key ([`Field`]); each [`Parameter`] says what a key means and which
//! values it accepts. Text, tables and typed values all pass through here.

pub(crate) mod choice;
mod declare;
pub(crate) mod domain;
mod error;
mod field;
mod kind;
mod leaves;
mod parameter;
mod params;
mod profile;

pub(crate) use declare::{Fields, parameters};
pub(crate) use error::Flaw;
pub use error::ParameterError;
pub(crate) use field::{Field, Value, time_text};
pub(crate) use kind::{ALL_PROFILES, Entry, Kind, LINUX};
pub use kind::{Counter, TcStatistics};
pub(crate) use leaves::{Leaf, LeafList};
pub(crate) use parameter::Parameter;
pub use parameter::Unit;
pub(crate) use params::{Params, Shorthand};
pub use profile::Profile;
