//! The flights of TLS 1.3 (RFC 8446): one round trip before the first request. Sizes are assumed.

/// A client's first flight, which browsers pad to this (RFC 7685 gives the means).
pub(crate) const HELLO: u64 = 517;
/// A server's: its part of the key, and a chain of two certificates of usual size; assumed.
pub(crate) const FLIGHT: u64 = 3_500;
/// A client's last: its Finished and a change of cipher for old middleboxes.
pub(crate) const FINISHED: u64 = 64;
