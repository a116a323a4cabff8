//! Links: a queue, the transmitter that drains it, the wire behind it, and the records of all of them.

pub mod config;
pub mod links;
pub mod records;
