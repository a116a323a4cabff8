//! Files that survive a crash.
//!
//! Everything that Sojourn stores is written through [`Files`], so that tests can make any
//! operation fail ([`testing::Faulty`]) and check what is left.

mod files;
mod regular;
pub mod testing;

pub use files::{Disk, Files, Lock, Output};
pub use regular::read_regular;
