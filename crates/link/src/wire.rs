//! A delay line.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

use crate::carried::Carried;

/// How many packets at the front of a wire are looked at one by one.
const FEW: usize = 16;

/// A delay line; only its first packet has a pending event.
#[derive(Debug)]
pub struct Wire<P> {
    /// Propagation delay.
    pub delay: Duration,
    /// Each with its arrival time as time stamp.
    packets: VecDeque<P>,
}

impl<P: Carried> Wire<P> {
    /// A wire of this delay.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            packets: VecDeque::new(),
        }
    }

    /// Puts a packet on the wire; returns when it arrives if it is the only one.
    #[inline]
    pub fn push(&mut self, now: Instant, pkt: &P) -> Option<Instant> {
        self.put(pkt.onward(now + self.delay))
    }

    /// Puts a packet on the wire. Its time stamp is the time of its arrival, and it is at the step behind the wire.
    /// Returns when it arrives if it is the only one.
    #[inline]
    pub fn put(&mut self, pkt: P) -> Option<Instant> {
        let alone = self.packets.is_empty();
        let arrival = pkt.stamp();
        self.packets.push_back(pkt);
        alone.then_some(arrival)
    }

    /// The packet that arrives now. Returns a reference, because moving the packet out copies it twice.
    ///
    /// # Panics
    /// If nothing is on the wire.
    #[inline]
    pub fn first(&self) -> &P {
        self.packets.front().expect("an arrival follows a packet")
    }

    /// Removes the [first](Self::first) packet; returns the arrival time of the next one, if any.
    #[inline]
    pub fn remove_first(&mut self) -> Option<Instant> {
        self.packets.pop_front();
        self.packets.front().map(Carried::stamp)
    }

    /// The packets that arrive at `now`, the next one first.
    #[inline]
    pub fn due(&self, now: Instant) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        // Nothing on the wire is overdue. Mostly, few packets are due, of many on the wire.
        let is_due = |pkt: &P| pkt.stamp() <= now;
        let few = self.packets.iter().take(FEW);
        let due = match few.take_while(|pkt| is_due(pkt)).count() {
            FEW => self.packets.partition_point(is_due),
            due => due,
        };
        self.packets.range(..due)
    }

    /// The packet that arrives after `others` other ones.
    #[inline]
    pub fn after(&self, others: usize) -> Option<&P> {
        self.packets.get(others)
    }
}
