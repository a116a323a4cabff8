//! Skeleton: what it does, in one line.
//!
//! # Source
//!
//! Where it is specified: RFC and section, kernel file and function, or paper.
//!
//! # Algorithm
//!
//! An arrival is dropped if `limit` packets are queued.
//!
//! # Differences
//!
//! None from its source.

use sojourn_net::{Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, Observer, Qdisc};
use crate::parameters::{Kind, LinkFacts, Params, Profile, parameters};
use crate::parts::fifo::Fifo;

parameters! {
    /// Parameters of [`Skeleton`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SkeletonParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "Sojourn default";
    }
}

impl Params for SkeletonParams {
    type Queue<P: Packet> = Skeleton<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "skeleton",
        class: Some("Skeleton"),
        summary: "A FIFO limited in packets",
        source: "its specification",
        reconstruction: None,
        profiles: &[Profile::Paper],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> Skeleton<P> {
        Skeleton::new(*self)
    }
}

/// A FIFO.
#[derive(Clone, Debug)]
pub struct Skeleton<P> {
    params: SkeletonParams,
    fifo: Fifo<P>,
}

impl<P: Packet> Skeleton<P> {
    /// An empty queue.
    pub const fn new(params: SkeletonParams) -> Self {
        Self {
            params,
            fifo: Fifo::new(),
        }
    }
}

impl<P: Packet> Qdisc<P> for Skeleton<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets >= self.params.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        self.fifo.pop_stamped().map(|(pkt, _)| pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, TestPacket};

    #[test]
    fn an_arrival_at_the_limit_is_dropped() {
        let mut queue = Skeleton::new(SkeletonParams { limit: 2 });
        let mut seen = Recorder::default();
        for id in 0..3 {
            queue.enqueue(Instant::ZERO, TestPacket::mtu(id), &mut seen);
        }
        let dropped: Vec<_> = seen.drops.iter().map(|drop| drop.1.id).collect();
        assert_eq!(dropped, [2]);
        let sent = queue.dequeue(Instant::ZERO, &mut seen).map(|pkt| pkt.id);
        assert_eq!(sent, Some(0));
    }
}
