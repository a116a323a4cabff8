//! The short path of one-way TCP, which most packets take.
//!
//! It does what [`World::deliver_to_connection`] and [`World::on_connection_timer`] do for any
//! connection, inlined and without asking for what such a connection hardly ever has: events for its
//! user, and work for the other end.

use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::{Arrival, Segment};

use super::World;
use crate::agenda::Event;
use crate::host::TimerEvent;
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// Delivers a packet, but none of QUIC, to the endpoint it has reached; `follows`: another packet of
    /// the same flow and direction arrives at the same instant.
    #[inline]
    pub(super) fn deliver_other(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.flow_number();
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let Some(mut one_way) = flow.one_way() else {
            return self.deliver_elsewhere(pkt, follows);
        };
        let tcp = &mut *one_way.tcp;
        if pkt.kind() == Kind::Data {
            let Some(at) = tcp.receiver_time(self.now) else {
                return;
            };
            let arrival = Arrival {
                ce: pkt.ecn() == Ecn::Ce,
                more: follows,
            };
            let out = &mut self.outbox.segments;
            tcp.data
                .receiver
                .on_segment(at, pkt.segment(), arrival, out);
            if tcp.has_event(Kind::Data) {
                self.after_last_data(id, at);
                return;
            }
            // What follows changes nothing of the connection, so all is read of it here.
            let timer = one_way.advance_receiver(self.now);
            if !self.outbox.segments.is_empty() {
                let template = flow.template(Kind::Ack);
                self.send_all::<Segment>(template);
            }
            if let Some(at) = timer {
                self.agenda.schedule(at, Event::Receiver(id));
            }
        } else {
            let out = &mut self.outbox.segments;
            tcp.data.sender.on_segment(self.now, pkt.segment(), out);
            tcp.note_limit(self.now, || self.observed.notes.waits.of(id));
            let (event, over) = (tcp.has_event(Kind::Ack), tcp.is_over());
            if event || over {
                self.after_change(id, event, over);
                return;
            }
            let timer = one_way.advance_sender(self.now);
            if !self.outbox.segments.is_empty() {
                let template = flow.template(Kind::Data);
                self.send_all::<Segment>(template);
            }
            if let Some(at) = timer {
                self.agenda.schedule(at, Event::Sender(id));
            }
        }
    }

    /// Handles the end of a transfer at `at`, the time of the receiver. The user records it, so it gets that time.
    #[inline(never)]
    fn after_last_data(&mut self, id: u32, at: Instant) {
        let template = self.flows[id as usize].template(Kind::Ack);
        let now = std::mem::replace(&mut self.now, at);
        self.notify_user(id);
        self.now = now;
        self.send_all::<Segment>(template);
        self.follow_one_way(id, TimerEvent::Receiver);
    }

    /// After an acknowledgement with which the connection has been established or is over.
    #[inline(never)]
    fn after_change(&mut self, id: u32, event: bool, over: bool) {
        let template = self.flows[id as usize].template(Kind::Data);
        if event {
            self.notify_user(id);
        }
        if over {
            self.count_limit(id);
            self.flows[id as usize].release(self.now);
        }
        self.send_all::<Segment>(template);
        self.follow_one_way(id, TimerEvent::Sender);
    }

    /// Handles the timer event of a sender of one-way TCP; returns when to schedule the next one, if any.
    #[inline(never)]
    pub(super) fn on_one_way_sender(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        let mut one_way = flow.one_way()?;
        let sender = &mut one_way.tcp.data.sender;
        let is_due = sender.next_timer().is_some_and(|due| due <= self.now);
        if is_due {
            sender.on_timer(self.now, &mut self.outbox.segments);
            if one_way.tcp.limit_changed() || one_way.tcp.is_over() {
                let waited = self.observed.notes.waits.of(id);
                one_way.tcp.count_limit(self.now, waited);
            }
        }
        let timer = one_way.advance_sender(self.now);
        if is_due {
            let template = flow.template(Kind::Data);
            flow.release(self.now);
            self.send_all::<Segment>(template);
        }
        timer
    }

    /// Handles the timer event of a receiver of one-way TCP; returns when to schedule the next one, if any.
    #[inline]
    pub(super) fn on_one_way_receiver(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        let one_way = flow.one_way()?;
        if one_way.tcp.follows_clock(self.now) {
            // Usually an ACK has been sent since the event was scheduled, and the timer has moved or stopped.
            let due = one_way.tcp.next_data_timer()?;
            if due > self.now {
                return one_way.receiver_event.advance(due, self.now);
            }
        }
        self.on_due_receiver(id)
    }

    /// Handles the timer event of a receiver of one-way TCP whose timer is due, or whose clock passes an instant at
    /// which the flow is recorded. Returns when to schedule the next event, if any.
    #[inline(never)]
    fn on_due_receiver(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        let mut one_way = flow.one_way()?;
        let at = one_way.tcp.receiver_time(self.now)?;
        let receiver = &mut one_way.tcp.data.receiver;
        let is_due = receiver.next_timer().is_some_and(|due| due <= at);
        if is_due {
            receiver.on_timer(at, &mut self.outbox.segments);
        }
        if one_way.tcp.has_event(Kind::Data) {
            self.after_last_data(id, at);
            self.flows[id as usize].release(self.now);
            return None;
        }
        let timer = one_way.advance_receiver(self.now);
        if is_due {
            let template = flow.template(Kind::Ack);
            self.send_all::<Segment>(template);
        }
        timer
    }

    /// Schedules an event for the timer of the sender or the receiver, unless one is pending no later.
    fn follow_one_way(&mut self, id: u32, event: TimerEvent) {
        let Some(mut one_way) = self.flows[id as usize].one_way() else {
            return;
        };
        let (timer, event) = match event {
            TimerEvent::Sender => (one_way.advance_sender(self.now), Event::Sender(id)),
            TimerEvent::Receiver => (one_way.advance_receiver(self.now), Event::Receiver(id)),
        };
        if let Some(at) = timer {
            self.agenda.schedule(at, event);
        }
    }
}
