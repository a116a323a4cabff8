//! The short path of one-way TCP, which most packets take.
//!
//! It does what [`World::deliver_to_connection`] and [`World::on_connection_timer`] do for any
//! connection, inlined and without asking for what such a connection hardly ever has: events for its
//! user, and work for the other end.

use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::{Arrival, Segment};

use super::network::World;
use crate::agenda::Event;
use crate::host::Source;
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
        let Source::Connection(connection) = &mut flow.source else {
            return self.deliver_elsewhere(pkt, follows);
        };
        let Some(tcp) = connection.one_way_mut() else {
            return self.deliver_to_connection(pkt, follows);
        };
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
            let due = tcp.next_data_timer();
            let timer = due.and_then(|due| flow.receiver_event.advance(due, self.now));
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
            let (event, over) = (tcp.has_event(Kind::Ack), tcp.is_over());
            if event || over {
                self.after_change(id, event, over);
                return;
            }
            let due = tcp.data.sender.next_timer_before(flow.sender_event.limit());
            let timer = due.and_then(|due| flow.sender_event.advance(due, self.now));
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
        self.follow_receiver(id);
    }

    /// After an acknowledgement with which the connection has been established or is over.
    #[inline(never)]
    fn after_change(&mut self, id: u32, event: bool, over: bool) {
        let template = self.flows[id as usize].template(Kind::Data);
        if event {
            self.notify_user(id);
        }
        if over {
            self.flows[id as usize].release(self.now);
        }
        self.send_all::<Segment>(template);
        self.follow_sender(id);
    }

    /// Handles the timer event of a sender of one-way TCP; returns when to schedule the next one, if any.
    #[inline(never)]
    pub(super) fn on_one_way_sender(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return None;
        };
        let sender = &mut connection.one_way_mut()?.data.sender;
        let is_due = sender.next_timer().is_some_and(|due| due <= self.now);
        if is_due {
            sender.on_timer(self.now, &mut self.outbox.segments);
        }
        let due = sender.next_timer_before(flow.sender_event.limit());
        let timer = due.and_then(|due| flow.sender_event.advance(due, self.now));
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
        let Source::Connection(connection) = &mut flow.source else {
            return None;
        };
        let tcp = connection.one_way_mut()?;
        if tcp.follows_clock(self.now) {
            // Usually an ACK has been sent since the event was scheduled, and the timer has moved or stopped.
            let due = tcp.next_data_timer()?;
            if due > self.now {
                return flow.receiver_event.advance(due, self.now);
            }
        }
        self.on_due_receiver(id)
    }

    /// Handles the timer event of a receiver of one-way TCP whose timer is due, or whose clock passes an instant at
    /// which the flow is recorded. Returns when to schedule the next event, if any.
    #[inline(never)]
    fn on_due_receiver(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return None;
        };
        let tcp = connection.one_way_mut()?;
        let at = tcp.receiver_time(self.now)?;
        let receiver = &mut tcp.data.receiver;
        let is_due = receiver.next_timer().is_some_and(|due| due <= at);
        if is_due {
            receiver.on_timer(at, &mut self.outbox.segments);
        }
        let due = tcp.next_data_timer();
        let timer = due.and_then(|due| flow.receiver_event.advance(due, self.now));
        if is_due {
            let template = flow.template(Kind::Ack);
            self.send_all::<Segment>(template);
        }
        timer
    }

    /// Schedules an event for the timer of the sender, unless one is pending no later.
    fn follow_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        if let Some(tcp) = connection.one_way_mut()
            && let Some(due) = tcp.data.sender.next_timer_before(flow.sender_event.limit())
            && let Some(at) = flow.sender_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    /// The same for its receiver.
    fn follow_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        if let Some(tcp) = connection.one_way_mut()
            && let Some(due) = tcp.next_data_timer()
            && let Some(at) = flow.receiver_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Receiver(id));
        }
    }
}
