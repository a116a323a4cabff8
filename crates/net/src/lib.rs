//! Shared vocabulary: time, bytes, rate, ECN, DSCP, flow key, packet view and
//! seeded random numbers.
//!
//! Nothing here allocates, reads a clock or depends on anything but `core`, so that a queue
//! written against it runs in the simulator, on live packets and in a browser.
#![no_std]

mod names;
mod packet;
mod rng;
mod size;
mod time;
mod units;

pub use names::{instead_of, nearest};
pub use packet::{Dscp, DscpError, Ecn, FlowKey, IpVersion, Packet, TcpHeader, Transport};
pub use rng::Rng;
pub use size::{Bytes, Rate};
pub use time::{Duration, Instant};
pub use units::UnitError;

/// The comparison of a model with a real implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// Not compared.
    None,
    /// Compared in part: the implementation and the part of the behaviour.
    Partial(&'static str),
    /// Not compared in this profile; another one was.
    OtherProfile(&'static str),
    /// Compared with this implementation.
    With(&'static str),
}
