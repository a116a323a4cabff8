//! Links: a queue, the transmitter that drains it, the wire behind it, and a probe that records.
//!
//! They know neither hosts nor events: the environment calls them with the time and schedules what they return. The
//! simulator and the datapath of real packets run the same links.

mod events;
mod line;
mod link;
mod probe;
mod ring;
mod transmitter;

use sojourn_net::{Bytes, Duration, Instant, Packet};
use sojourn_qdisc::Observer;

pub use events::Events;
pub use line::{Line, Verdict, Wire};
pub use link::Link;
pub use probe::{CallCounts, LinkProbe};
pub(crate) use probe::{count_drop, count_mark};
pub use ring::ByteLimit;

/// A packet that links pass on: a value, or a handle to a buffer.
pub trait Carried: Packet + Copy {
    /// A placeholder where there is no packet.
    const NONE: Self;

    /// The time at which it was last offered to a link, or at which it reaches the end of its current wire.
    fn stamp(&self) -> Instant;

    /// The same packet one step further on its path, with a new time stamp.
    #[must_use]
    fn onward(&self, stamp: Instant) -> Self;
}

/// Observes a link: its queue, and the packets taken from the queue.
pub trait Watcher<P>: Observer<P> {
    /// A packet was dequeued for transmission.
    fn on_taken(&mut self, now: Instant, pkt: &P, taken: &Taken);

    /// The queue held its packets back for `time` while the link was idle.
    fn on_held(&mut self, time: Duration);

    /// The events of the run, if it records them.
    fn events(&mut self) -> Option<&mut Events>;
}

/// A packet dequeued at a link.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Time in the queue.
    pub waited: Duration,
    /// Size.
    pub size: Bytes,
    /// The time it occupies the link, if another packet waits meanwhile.
    pub busy: Duration,
}
