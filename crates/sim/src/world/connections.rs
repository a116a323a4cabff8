//! Events of connections over TCP or QUIC: delivery and timers.

use sojourn_apps::Side;
use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::quic::Datagram;
use sojourn_transport::{Arrival, Segment};

use super::network::World;
use crate::agenda::Event;
use crate::host::{Connection, Source, TimerEvent};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// A segment has reached an end of a connection over TCP.
    #[inline(never)]
    pub(super) fn deliver_to_connection(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.flow_number();
        self.observed.notes.starts.on_leaving(id);
        let Source::Connection(connection) = &mut self.flows[id as usize].source else {
            return;
        };
        let Some(tcp) = connection.tcp_mut() else {
            return;
        };
        let arrival = Arrival {
            ce: pkt.ecn() == Ecn::Ce,
            more: follows,
        };
        let out = &mut self.outbox.segments;
        tcp.on_segment(self.now, pkt.kind(), pkt.segment(), arrival, out);
        let kind = pkt.kind().answer();
        if tcp.is_quiet_after(pkt.kind()) && self.applications.pending.is_empty() {
            return self.after_quiet(id, pkt.kind());
        }
        self.send(id, kind);
        if let Source::Connection(connection) = &mut self.flows[id as usize].source
            && let Some(kind) = connection.close_server(self.now, &mut self.outbox)
        {
            self.send(id, kind);
        }
        self.after_turn(id, kind);
    }

    /// After a segment of `kind` that has caused nothing but its answer: what [`World::after_turn`] would do.
    fn after_quiet(&mut self, id: u32, kind: Kind) {
        let flow = &self.flows[id as usize];
        let (event, pending) = match kind {
            Kind::Data => (TimerEvent::Receiver, flow.receiver_event),
            _ => (TimerEvent::Sender, flow.sender_event),
        };
        let Source::Connection(Connection::Tcp(tcp)) = &flow.source else {
            return;
        };
        debug_assert!(!tcp.is_over(), "an end is not quiet");
        let due = tcp.next_timer_after(kind, pending.limit());
        self.send(id, kind.answer());
        if let Some(due) = due {
            self.schedule_timer(id, event, due);
        }
    }

    /// Handles a timer event of a connection other than one-way TCP. The timer may have moved since the event was
    /// scheduled.
    #[inline(never)]
    pub(super) fn on_connection_timer(&mut self, id: u32, event: TimerEvent) {
        let Source::Connection(connection) = &self.flows[id as usize].source else {
            return;
        };
        debug_assert!(!connection.is_one_way_tcp(), "it has a path of its own");
        if connection.is_quic() {
            return self.on_quic_timer(id, event);
        }
        match connection.next_timer(self.now, event) {
            Some(due) if due <= self.now => self.on_due_timers(id, event),
            Some(due) => self.schedule_timer(id, event, due),
            None => {}
        }
    }

    /// Timers of a connection are due.
    #[inline(never)]
    fn on_due_timers(&mut self, id: u32, event: TimerEvent) {
        let mut last = None;
        for side in [Side::Client, Side::Server] {
            if let Source::Connection(connection) = &mut self.flows[id as usize].source
                && let Some(kind) = connection.on_timer(self.now, (event, side), &mut self.outbox)
            {
                self.send(id, kind);
                last = Some(kind);
            }
        }
        if let Some(kind) = last {
            self.after_turn(id, kind);
        }
    }

    /// What follows from a turn of a connection, one end of which sends packets of this kind: its
    /// user is notified, and a connection that is over is removed.
    pub(super) fn after_turn(&mut self, id: u32, kind: Kind) {
        if let Source::Connection(connection) = &self.flows[id as usize].source
            && connection.is_quiet(kind)
            && self.applications.pending.is_empty()
        {
            self.follow_timers(id, kind);
            return;
        }
        self.collect_events(id);
        let flow = &self.flows[id as usize];
        if let Source::Connection(connection) = &flow.source
            && connection.app().is_none()
        {
            // A bulk transfer ends with its connection, and with it what it has recorded.
            self.notify_pending();
        }
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        if connection.close_if_done(self.now, kind, &mut self.outbox) {
            self.send(id, kind);
        }
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &flow.source else {
            return;
        };
        if connection.is_over() {
            self.end_connection(id);
        } else {
            self.follow_timers(id, kind);
        }
        self.notify_pending();
    }

    /// Collects the events of a connection for its user.
    pub(super) fn collect_events(&mut self, id: u32) {
        let Source::Connection(connection) = &mut self.flows[id as usize].source else {
            return;
        };
        let user = connection.app().map_or(id, |(app, _)| app);
        while let Some(event) = connection.next_event() {
            self.applications.pending.push_back((user, event));
        }
    }

    /// Notifies the user of a connection of its events.
    #[inline(never)]
    pub(super) fn notify_user(&mut self, id: u32) {
        self.collect_events(id);
        self.notify_pending();
    }

    /// Puts what an endpoint sends on its way: packets of this kind.
    pub(super) fn send(&mut self, id: u32, kind: Kind) {
        if self.outbox.segments.is_empty() && self.outbox.datagrams.is_empty() {
            return;
        }
        let template = self.flows[id as usize].template(kind);
        // A connection sends either segments or datagrams.
        let packets = self.outbox.segments.len() + self.outbox.datagrams.len();
        self.observed.notes.starts.on_sending(id, packets);
        if self.outbox.datagrams.is_empty() {
            self.send_all::<Segment>(template);
        } else {
            self.send_all::<Datagram>(template);
        }
    }

    /// Schedules events for the timers that a turn may have set, of the end that sends packets of this
    /// kind.
    pub(super) fn follow_timers(&mut self, id: u32, kind: Kind) {
        for event in TimerEvent::ALL {
            if let Source::Connection(connection) = &self.flows[id as usize].source
                && connection.may_set(kind, event)
                && let Some(due) = connection.next_timer(self.now, event)
            {
                self.schedule_timer(id, event, due);
            }
        }
    }

    /// Schedules an event for timers that are `due`, unless one is pending no later.
    #[inline]
    pub(super) fn schedule_timer(&mut self, id: u32, event: TimerEvent, due: Instant) {
        let flow = &mut self.flows[id as usize];
        let (pending, event) = match event {
            TimerEvent::Sender => (&mut flow.sender_event, Event::Sender(id)),
            TimerEvent::Receiver => (&mut flow.receiver_event, Event::Receiver(id)),
        };
        if let Some(at) = pending.advance(due, self.now) {
            self.agenda.schedule(at, event);
        }
    }
}
