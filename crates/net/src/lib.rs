//! Shared vocabulary: time, bytes, rate, ECN, DSCP, flow key, packet view and
//! seeded random numbers.
//!
//! Nothing here allocates, reads a clock or depends on anything but `core`, so that a queue
//! written against it runs in the simulator, on live packets and in a browser.
#![no_std]

mod comparison;
mod dscp;
mod flow;
mod header;
mod names;
mod packet;
mod rng;
mod size;
mod time;
mod units;

pub use comparison::Comparison;
pub use dscp::{Dscp, DscpError};
pub use flow::FlowKey;
pub use header::{TcpHeader, Transport};
pub use names::{instead_of, nearest};
pub use packet::{Ecn, Packet};
pub use rng::Rng;
pub use size::{Bytes, Rate};
pub use time::{Duration, Instant};
pub use units::UnitError;
