//! What receivers that are ahead of the network (ADR 23) have received and not processed yet (ADR 43).
//!
//! Nothing that such a receiver does is seen elsewhere before its ACK has passed the wire behind it. If there are many
//! flows, its packets and timers wait here until then, and many are processed in one loop: the state of later receivers
//! is loaded meanwhile.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};
use sojourn_path::links::Carried;

use super::World;
use super::arrivals::Following;
use super::prefetch::MANY_FLOWS;
use crate::agenda::Event;
use crate::packet::Packet;

/// About how many packets wait at most. Those of one instant are processed together.
const MOST: usize = 64;

/// Packets and timers of receivers, from those that wait longest.
#[derive(Debug)]
pub(super) struct Receptions {
    /// The stamp of each is the time at which it left its last link.
    packets: Vec<Packet>,
    /// When the event of which flow was due, sorted.
    timers: VecDeque<(Instant, u32)>,
    /// The shortest time after which something of a receiver is seen elsewhere.
    delay: Duration,
    /// Events up to this time may be handled first; [`Instant::MAX`]: nothing waits.
    until: Instant,
    /// While they are processed, the time that the network has reached; else zero.
    reached: Instant,
    /// Empty but while packets are processed: which of one instant are followed by others of their flow.
    following: Following,
}

impl Receptions {
    pub(super) const fn new() -> Self {
        Self {
            packets: Vec::new(),
            timers: VecDeque::new(),
            delay: Duration::MAX,
            until: Instant::MAX,
            reached: Instant::ZERO,
            following: Following::new(),
        }
    }

    /// The ACKs of a receiver pass a wire with this delay.
    pub(super) fn add_wire(&mut self, delay: Duration) {
        self.delay = self.delay.min(delay);
    }

    /// The time up to which events may be handled before those that wait.
    #[inline]
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.until == Instant::MAX
    }

    /// The time up to which events may be handled before what has waited since `at`.
    fn last(&self, at: Instant) -> Instant {
        at + self.delay.saturating_sub(Duration::from_nanos(1))
    }

    /// A packet leaves its last link.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, pkt: &Packet) {
        self.packets.push(pkt.stamped(now));
        if self.packets.len() == MOST {
            // Others may leave at this instant.
            self.until = now;
        } else if self.is_empty() {
            self.until = self.last(now);
        }
    }

    /// The event of a flow is due while others wait.
    fn push_timer(&mut self, at: Instant, flow: u32) {
        let place = self.timers.partition_point(|&other| other <= (at, flow));
        self.timers.insert(place, (at, flow));
        self.until = self.until.min(self.last(at));
    }

    /// Notes when what is left must be processed.
    fn renew(&mut self) {
        let packet = self.packets.first().map(Carried::stamp);
        let timer = self.timers.front().map(|&(at, _)| at);
        let first = packet.into_iter().chain(timer).min();
        self.until = first.map_or(Instant::MAX, |at| self.last(at));
    }
}

impl World<'_> {
    /// Whether packets wait at receivers that are ahead. Captures and events are in the order of processing.
    pub(super) fn lets_receivers_wait(&self) -> bool {
        let notes = &self.observed.notes;
        self.config.flows.len() >= MANY_FLOWS && notes.capture.is_none() && notes.events.is_none()
    }

    /// Processes what receivers have received before `until`.
    #[inline(never)]
    pub(super) fn process_receptions(&mut self, until: Instant) {
        let now = self.now;
        self.receptions.reached = now;
        let packets = std::mem::take(&mut self.receptions.packets);
        let mut done = 0;
        while let Some(pkt) = packets.get(done).filter(|pkt| pkt.stamp() < until) {
            let at = pkt.stamp();
            self.process_timers(at);
            self.now = at;
            done += 1;
            let others = &packets[done..];
            self.prefetch_receivers(others);
            let follows = others.first().is_some_and(|other| other.stamp() == at) && {
                let same = others
                    .iter()
                    .take_while(|other| other.stamp() == at)
                    .count();
                let others = others[..same].iter();
                self.receptions.following.follows((at, None), pkt, others)
            };
            self.deliver_other(pkt, follows);
        }
        self.process_timers(until);
        self.now = now;
        let receptions = &mut self.receptions;
        receptions.following.forget();
        receptions.packets = packets;
        receptions.packets.drain(..done);
        receptions.reached = Instant::ZERO;
        receptions.renew();
    }

    /// Handles the events of receivers before `until`.
    fn process_timers(&mut self, until: Instant) {
        while let Some(&(at, flow)) = self.receptions.timers.front()
            && at < until
        {
            self.receptions.timers.pop_front();
            self.now = at;
            if let Some(at) = self.on_receiver(flow) {
                self.schedule_receiver(at, flow);
            }
        }
    }

    /// Schedules the event of a receiver.
    #[inline]
    pub(super) fn schedule_receiver(&mut self, at: Instant, flow: u32) {
        if at < self.receptions.reached {
            self.receptions.push_timer(at, flow);
        } else {
            self.agenda.schedule(at, Event::Receiver(flow));
        }
    }

    /// Handles the event of a receiver, or lets it wait for what arrived earlier; returns when the next one is due.
    #[inline]
    pub(super) fn on_receiver_event(&mut self, flow: u32) -> Option<Instant> {
        if self.receptions.is_empty() || self.flows[flow as usize].lead == 0 {
            return self.on_receiver(flow);
        }
        self.receptions.push_timer(self.now, flow);
        None
    }
}
