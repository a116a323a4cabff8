//! A queue that is driven packet by packet.

use super::{Recorder, TestPacket};
use crate::contract::Qdisc;
use crate::parameters::LinkFacts;
use crate::registry::{AnyQdisc, QdiscSpec};
use sojourn_net::{Instant, Rng};

/// A queue, its timers and what it has signalled.
#[derive(Clone, Debug)]
pub struct Driven {
    queue: AnyQdisc<TestPacket>,
    /// The drops and marks so far.
    pub signals: Recorder,
}

impl Driven {
    /// An empty queue on `link`, made at the origin of time.
    pub fn new(queue: &QdiscSpec, link: &LinkFacts, rng: Rng) -> Self {
        Self {
            queue: queue.build(link, rng),
            signals: Recorder::default(),
        }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, now: Instant, packet: TestPacket) {
        self.run_timers(now);
        self.queue.enqueue(now, packet, &mut self.signals);
    }

    /// The packet that leaves; `None`: none may leave.
    pub fn dequeue(&mut self, now: Instant) -> Option<TestPacket> {
        self.run_timers(now);
        self.queue.dequeue(now, &mut self.signals)
    }

    /// The number of packets that wait.
    pub fn waiting(&self) -> usize {
        self.queue.backlog().packets
    }

    /// Lets the timers run that are due by `now`.
    fn run_timers(&mut self, now: Instant) {
        while let Some(due) = self.queue.next_timer().filter(|&due| due <= now) {
            self.queue.on_timer(due);
        }
    }
}
