//! The parameters of a discipline: keys, units, ranges, and the errors about them.
//!
//! [`parameters!`](crate::parameters!) declares them and [`Params`] builds a queue from them; a queue of
//! another crate does the same and calls [`register`](crate::register). A discipline lends its fields by
//! key ([`Field`]); each [`Parameter`] says what a key means and which values it accepts. Text, tables and
//! typed values all pass through here.

pub mod choice;
mod declare;
pub mod domain;
mod error;
mod field;
mod footprint;
mod kind;
mod leaves;
mod parameter;
mod params;
mod profile;
mod provenance;
pub mod row;

pub use declare::{Fields, parameters};
pub use error::{Flaw, ParameterError};
pub use field::{Field, Value, time_text};
pub use footprint::Footprint;
pub use kind::{Counter, Entry, Kind, LINUX, OVERLIMITS, RFC_AND_LINUX, TcStatistics};
pub use leaves::{Leaf, LeafList};
pub use parameter::{Parameter, Unit};
pub use params::{Params, Shorthand};
pub use profile::Profile;
pub use provenance::Provenance;
