//! Files that survive a crash.
//!
//! All stored files are written through [`Files`], so that tests can make any operation fail
//! ([`testing::Faulty`]) and check the remaining files. [`RunStore`] keeps finished runs.

mod files;
mod folder;
mod regular;
mod runs;
pub mod testing;

pub use files::{Disk, Files, Lock, Output};
pub use folder::{Folder, Staging, find};
pub use regular::read_regular;
pub use runs::{COMMIT_INTERVAL, KEPT, Key, Kind, MAX_PAYLOAD, Record, RunStore, Segment, Writer};
