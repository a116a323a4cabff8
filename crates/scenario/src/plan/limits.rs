//! Limits that several parts of a plan share.

/// What 10 Gbit/s and 120 ms hold; the controllers' 32-bit arithmetic has room for ten times that.
pub(crate) const MAX_INITIAL_WINDOW: u32 = 100_000;
