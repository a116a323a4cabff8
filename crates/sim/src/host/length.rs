//! The number of bytes that an endpoint is given for what an application writes.

use sojourn_apps::Length;

/// What is written for endless data. At 100 Gbit/s it lasts for 46 years.
const ENDLESS: u64 = u64::MAX;

/// The number of bytes to pass to an endpoint.
pub(super) const fn bytes_of(length: Length) -> u64 {
    match length {
        Length::Bytes(bytes) => bytes,
        Length::Endless => ENDLESS,
    }
}
