//! The short path of one-way TCP, which most packets take.
//!
//! It does what [`World::deliver_to_connection`] and [`World::on_connection_timer`] do for any
//! connection, inlined and without asking for what such a connection hardly ever has: events for its
//! user, and work for the other end. Its timers alone, on the common path, cost 37 instructions per
//! packet more in S2 of `make bench`.

use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::{Arrival, Segment};

use super::network::World;
use crate::agenda::Event;
use crate::host::{Source, TimerEvent};
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
        let Some(tcp) = connection.tcp_mut() else {
            return self.deliver_to_connection(pkt, follows);
        };
        if !tcp.is_one_way() {
            return self.deliver_to_connection(pkt, follows);
        }
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

    /// Handles a timer event of a connection if it is of one-way TCP; returns whether it is.
    #[inline]
    pub(super) fn on_one_way_timer(&mut self, id: u32, event: TimerEvent) -> bool {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return false;
        };
        let Some(tcp) = connection.tcp_mut().filter(|tcp| tcp.is_one_way()) else {
            return false;
        };
        match event {
            TimerEvent::Sender => {
                let sender = &mut tcp.data.sender;
                if sender.next_timer().is_some_and(|due| due <= self.now) {
                    sender.on_timer(self.now, &mut self.outbox.segments);
                    let template = flow.template(Kind::Data);
                    flow.release(self.now);
                    self.send_all::<Segment>(template);
                }
                self.follow_sender(id);
            }
            TimerEvent::Receiver => {
                let Some(at) = tcp.receiver_time(self.now) else {
                    return true;
                };
                let receiver = &mut tcp.data.receiver;
                if receiver.next_timer().is_some_and(|due| due <= at) {
                    receiver.on_timer(at, &mut self.outbox.segments);
                    let template = flow.template(Kind::Ack);
                    self.send_all::<Segment>(template);
                }
                self.follow_receiver(id);
            }
        }
        true
    }

    /// If the event of a receiver of one-way TCP has come but its timer has moved or stopped, schedules the event of
    /// the new time, if any, and returns true. This is the usual case: the data has been acknowledged meanwhile.
    #[inline]
    pub(super) fn postpone_receiver(&mut self, id: u32) -> bool {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return false;
        };
        let Some(tcp) = connection.tcp_mut() else {
            return false;
        };
        if !tcp.is_one_way() || !tcp.follows_clock(self.now) {
            return false;
        }
        let Some(due) = tcp.next_data_timer() else {
            return true;
        };
        if due <= self.now {
            return false;
        }
        if let Some(at) = flow.receiver_event.advance(due, self.now) {
            self.agenda.schedule(at, Event::Receiver(id));
        }
        true
    }

    /// Schedules an event for the timer of the sender, unless one is pending no later.
    #[inline]
    fn follow_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        if let Some(tcp) = connection.tcp_mut()
            && let Some(due) = tcp.data.sender.next_timer_before(flow.sender_event.limit())
            && let Some(at) = flow.sender_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    /// The same for its receiver.
    #[inline]
    fn follow_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        if let Some(tcp) = connection.tcp_mut()
            && let Some(due) = tcp.next_data_timer()
            && let Some(at) = flow.receiver_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Receiver(id));
        }
    }
}
