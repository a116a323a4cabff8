//! The interface between the laboratory and backends.
//!
//! A [`Backend`] runs one replication of one arm and passes its records to a sink. The laboratory
//! schedules runs, and knows a backend only by this contract: a backend is one crate that
//! implements it and one line that adds it to a [`Registry`].

mod contract;
mod error;
mod registry;

pub use contract::{Backend, Cancellation, Completion, Fingerprint, Properties};
pub use error::{BackendError, Feature, Unsupported};
pub use registry::{Registry, UnknownBackend};
