//! Files that survive a crash.
//!
//! All stored files are written through [`Files`], so that tests can make any operation fail
//! ([`testing::Faulty`]) and check the remaining files. [`Folder`] replaces the files of a directory
//! at once, [`Replacement`] one file; [`RunStore`] keeps finished runs.

mod clock;
mod derived;
mod files;
mod folder;
mod regular;
mod replace;
mod runs;
pub mod testing;

pub use derived::add_derived;
pub use files::{Access, Disk, Files, Lock, Output};
pub use folder::{Folder, Staging, open_committed, read_committed};
pub use regular::{Links, open_regular, read_regular};
pub use replace::Replacement;
pub use runs::{
    Appended, COMMIT_INTERVAL, KEPT, Key, Kind, MAX_PAYLOAD, Payload, Record, RunStore, Segment,
    Writer,
};
