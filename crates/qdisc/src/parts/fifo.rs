//! The FIFO buffer that most disciplines use.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Packet};

use crate::contract::{Backlog, DropReason, Observer, Peek};

/// A first-in first-out buffer that remembers when each packet arrived.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<(Instant, P)>,
    bytes: Bytes,
}

impl<P: Packet> Fifo<P> {
    /// An empty buffer.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: Bytes(0),
        }
    }

    /// Appends `pkt`, stamping it with `now`.
    #[inline]
    pub fn push(&mut self, now: Instant, pkt: P) {
        self.bytes += pkt.size();
        self.packets.push_back((now, pkt));
    }

    /// Removes the oldest packet and says how long it waited.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<(P, Duration)> {
        let (pkt, arrived) = self.pop_stamped()?;
        Some((pkt, now.since(arrived)))
    }

    /// Removes the oldest packet and says when it arrived.
    #[inline]
    pub fn pop_stamped(&mut self) -> Option<(P, Instant)> {
        // Looked at where it lies, so that it moves whole.
        self.bytes -= self.packets.front()?.1.size();
        let (arrived, pkt) = self.packets.pop_front()?;
        Some((pkt, arrived))
    }

    /// Drops the oldest packets above `limit` packets.
    pub(crate) fn shrink(&mut self, now: Instant, limit: usize, obs: &mut dyn Observer<P>) {
        while self.packets.len() > limit
            && let Some((pkt, _)) = self.pop_stamped()
        {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    /// Removes the newest packet.
    pub fn pop_newest(&mut self) -> Option<P> {
        let (_, pkt) = self.packets.pop_back()?;
        self.bytes -= pkt.size();
        Some(pkt)
    }

    /// The oldest packet, and when it arrived.
    pub fn oldest_mut(&mut self) -> Option<(&mut P, Instant)> {
        let (arrived, pkt) = self.packets.front_mut()?;
        Some((pkt, *arrived))
    }

    /// When the oldest packet arrived.
    pub fn oldest(&self) -> Option<Instant> {
        self.packets.front().map(|&(arrived, _)| arrived)
    }

    /// The oldest packet, as [`crate::Qdisc::peek`] reports it.
    pub fn peek(&self) -> Peek {
        self.packets.front().map(|(_, pkt)| pkt.size()).into()
    }

    /// What waits in the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len(),
            bytes: self.bytes,
        }
    }
}

impl<P: Packet> Default for Fifo<P> {
    fn default() -> Self {
        Self::new()
    }
}
