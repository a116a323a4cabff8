//! The contract between a queue discipline and its world.

use sojourn_net::{Bytes, Instant, Packet};

/// A queueing discipline: packets go in, packets come out, time is told to it.
///
/// A `Qdisc` is *sans-IO*: it owns no clock, timer, socket or thread. The environment calls it
/// with a `now` that never decreases.
pub trait Qdisc<P: Packet> {
    /// Offers a packet. Whatever is discarded, this packet or another, goes to `obs`.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>);

    /// Takes the next packet to send, if there is one.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>;

    /// What is waiting now.
    fn backlog(&self) -> Backlog;

    /// When [`Qdisc::on_timer`] is next due; `None` if there is nothing to wait for.
    ///
    /// It may change with any call; the environment asks again after each.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The time returned by [`Qdisc::next_timer`] has come.
    fn on_timer(&mut self, _now: Instant) {}
}

/// Where a discipline reports what it did to packets it did not simply forward.
pub trait Observer<P> {
    /// `pkt` was discarded; its buffer is now the observer's to reuse.
    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason);

    /// `pkt` was CE-marked and kept.
    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason);
}

/// Why a packet was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The buffer was full.
    Overlimit,
    /// The AQM chose to signal congestion.
    Aqm,
}

/// Why a packet was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkReason {
    /// The AQM chose to signal congestion.
    Aqm,
    /// The packet waited longer than the shallow CE threshold.
    CeThreshold,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: usize,
    /// Sum of their sizes.
    pub bytes: Bytes,
}
