//! Records as tidy tables.
//!
//! Each row begins with the arm and the replication it belongs to; what was not measured is null, never 0.

mod applications;
mod batch;
mod catalogue;
mod cell;
mod classes;
mod flow;
mod kind;
mod links;
mod pieces;
mod ping;
mod rows;
mod table;
mod voice;

pub use catalogue::column_catalogue_json;
pub(crate) use cell::Cell;
pub(crate) use kind::TABLES;
pub use kind::TableKind;
pub(crate) use pieces::{batches, empty_batches, metric_batches};
pub use table::Table;
