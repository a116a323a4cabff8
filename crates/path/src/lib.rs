//! A bottleneck for test suites: a link with any queue of Sojourn, driven by the caller's clock.
//!
//! A [`Path`] connects two ends of a protocol stack in a test. Each direction has a bottleneck (a rate or a capacity
//! trace, and a queue such as `fq_codel`, `dualpi2` or `cake` in the syntax of `tc`) and a wire with delay, jitter,
//! loss, drop lists, duplicates and ECN rewriting. The queues are those that Sojourn compares with Linux packet by
//! packet.
//!
//! The crate performs no I/O and reads no clock: every call has the time as an argument. The same calls with the same
//! seed give the same packets, drops and marks on every machine.
//!
//! ```
//! use sojourn_path::{Bottleneck, Duration, Ecn, Instant, Path, Rate, udp_flow};
//!
//! # fn main() -> Result<(), sojourn_path::PathError> {
//! let mut path = Path::builder()
//!     .forward(Bottleneck::new(Rate::mbit(20), "fq_codel")?.delay(Duration::from_millis(10)))
//!     .seed(1)
//!     .build()?;
//!
//! // A sender offers the payload of a UDP datagram at time zero.
//! path.push(Instant::ZERO, vec![0; 1_200], Ecn::Ect0, udp_flow(1));
//!
//! // The test sleeps, in virtual time, until something happens.
//! let mut arrived = Vec::new();
//! while let Some(at) = path.deadline() {
//!     while let Some(delivery) = path.poll(at) {
//!         arrived.push(delivery);
//!     }
//! }
//! // 1,242 B at 20 Mbit/s take 496.8 µs, and the wire takes 10 ms.
//! assert_eq!(arrived[0].at, Instant::from_nanos(10_496_800));
//! assert_eq!(arrived[0].bytes.len(), 1_200);
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! An [`Instant`] counts nanoseconds since an origin that the caller chooses, such as the start of the test. Calls must
//! not go back in time. The environment calls [`Path::poll`] at the time that [`Path::deadline`] returns. A late call
//! changes nothing inside the path: each event is processed with the time at which it was due, in order, so packets
//! leave, drop and arrive as if every call had been in time. This includes the timers of queues such as `pie`, which
//! update their drop probability when no packet moves.
//!
//! # Order
//!
//! Events at the same instant are processed in this order: packets leave links, packets arrive, timers of queues
//! expire; of each kind, the forward direction first. A packet that is offered at an instant follows all of them.
//!
//! # Stability
//!
//! The items at the root of this crate and in [`ip`] follow semantic versioning. The hidden modules are the parts of
//! which Sojourn builds its simulator and its live datapath.

#[doc(hidden)]
pub mod config;
pub mod ip;
#[doc(hidden)]
pub mod links;
mod path;
#[doc(hidden)]
pub mod records;

pub use config::{
    Distribution, EcnRewrite, Encapsulation, GilbertElliott, Jitter, Loss, Order, RateTrace,
    RingConfig, Shaper, Trace, TraceError, WireChange,
};
pub use path::{
    Bottleneck, Delivery, Direction, Event, EventKind, Headers, LatePoll, Layer, PacketId, Path,
    PathBuilder, PathError, flow_between, udp_flow,
};
pub use records::{Histogram, LinkCounters};
pub use sojourn_net::{
    Bytes, Dscp, Duration, Ecn, FlowKey, Instant, IpVersion, Rate, TcpHeader, Transport,
};
pub use sojourn_qdisc::{Backlog, DropReason, Framing, MarkReason, Number, QdiscSpec, Statistic};

/// The guide and the README, whose programs are compiled and run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/howto/test_suite.md")]
    struct Guide;

    #[doc = include_str!("../README.md")]
    struct Readme;
}
