//! Events of connections over TCP or QUIC: delivery and timers.

use sojourn_apps::Side;
use sojourn_net::{Ecn, Packet as View};
use sojourn_transport::Arrival;

use super::World;
use crate::agenda::Event;
use crate::host::{Connection, End, Flow, Source};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// A segment has reached an end of a TCP connection with requests.
    #[inline(never)]
    pub(super) fn deliver_segment(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.owner.flow();
        self.observed.starts.on_leaving(id);
        let arrival = Arrival {
            ce: pkt.ecn() == Ecn::Ce,
            more: follows,
        };
        let kind = pkt.kind();
        if let Source::Connection(Connection::Tcp(tcp)) = &mut self.flows[id as usize].source {
            let out = &mut self.outbox.segments;
            tcp.on_segment(self.now, kind, pkt.segment(), arrival, out);
            self.send(id, kind.answer());
        }
        if let Source::Connection(Connection::Tcp(tcp)) = &mut self.flows[id as usize].source
            && let Some(kind) = tcp.close_server(self.now, &mut self.outbox.segments)
        {
            self.send(id, kind);
        }
        self.after_turn(id, kind.answer());
    }

    /// A datagram has reached an end of a QUIC connection.
    #[inline(never)]
    pub(super) fn deliver_datagram(&mut self, pkt: &Packet) {
        let id = pkt.owner.flow();
        self.observed.starts.on_leaving(id);
        let end = match pkt.kind() {
            Kind::QuicData => End::Far,
            _ => End::Near,
        };
        if let Source::Connection(Connection::Quic(quic)) = &mut self.flows[id as usize].source {
            let datagram = pkt.datagram();
            let ce = pkt.ecn() == Ecn::Ce;
            let out = &mut self.outbox.datagrams;
            quic.on_datagram(self.now, end, (&datagram, ce), out);
            self.after_turn(id, end.kind());
        }
    }

    /// The event of the senders of a TCP connection with requests has come.
    #[inline(never)]
    pub(super) fn on_tcp_senders(&mut self, id: u32) {
        for side in [Side::Client, Side::Server] {
            if let Source::Connection(Connection::Tcp(tcp)) = &mut self.flows[id as usize].source {
                let kind = tcp.on_sender_timer(self.now, side, &mut self.outbox.segments);
                self.send(id, kind);
            }
        }
        self.after_turn(id, Kind::Data);
    }

    /// The event of its receivers.
    #[inline(never)]
    pub(super) fn on_tcp_receivers(&mut self, id: u32) {
        for side in [Side::Client, Side::Server] {
            if let Source::Connection(Connection::Tcp(tcp)) = &mut self.flows[id as usize].source {
                let kind = tcp.on_receiver_timer(self.now, side, &mut self.outbox.segments);
                self.send(id, kind);
            }
        }
        self.after_turn(id, Kind::Ack);
    }

    /// The event of an end of a QUIC connection has come.
    pub(super) fn on_quic_timer(&mut self, id: u32, end: End) {
        let Source::Connection(Connection::Quic(quic)) = &mut self.flows[id as usize].source else {
            return;
        };
        if quic.next_timer(end).is_some_and(|due| due <= self.now) {
            quic.on_timer(self.now, end, &mut self.outbox.datagrams);
            self.after_turn(id, end.kind());
        } else {
            self.follow_timers(id, end.kind());
        }
    }

    /// What follows from a turn of a connection, one end of which sends packets of this kind: its
    /// user is notified, and a connection that is over is removed.
    fn after_turn(&mut self, id: u32, kind: Kind) {
        self.send(id, kind);
        self.collect_events(id);
        let flow = &mut self.flows[id as usize];
        if let Source::Connection(connection) = &mut flow.source
            && connection.app().is_none()
        {
            // The record of a flow is taken when its connection is over.
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
        let Flow {
            class,
            owner,
            forward,
            reverse,
            ..
        } = self.flows[id as usize];
        let way = match kind {
            Kind::Data | Kind::RequestAck | Kind::QuicData => forward,
            _ => reverse,
        };
        let packets = self.outbox.segments.len() + self.outbox.datagrams.len();
        self.observed.starts.on_sending(id, packets);
        self.send_segments(id, kind, way);
        for n in 0..self.outbox.datagrams.len() {
            let pkt = Packet::quic(owner, kind, way, &self.outbox.datagrams[n]).in_class(class);
            self.forward(&pkt);
        }
        self.outbox.datagrams.clear();
    }

    /// Schedules events for the timers of a connection, unless they are pending no later: those of
    /// TCP, or that of the end of QUIC that sends packets of this kind.
    pub(super) fn follow_timers(&mut self, id: u32, kind: Kind) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &flow.source else {
            return;
        };
        let (sender, receiver) = match (connection, kind) {
            (Connection::Tcp(tcp), _) => (tcp.next_sender_timer(), tcp.next_receiver_timer()),
            (Connection::Quic(quic), Kind::QuicData) => (quic.next_timer(End::Near), None),
            (Connection::Quic(quic), _) => (None, quic.next_timer(End::Far)),
        };
        // An overdue timer needs no second event now.
        let overdue = |due: sojourn_net::Instant| match connection {
            Connection::Tcp(_) => due,
            Connection::Quic(_) => due.max(self.now),
        };
        let (sender, receiver) = (sender.map(overdue), receiver.map(overdue));
        if let Some(due) = sender
            && let Some(at) = flow.sender_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Sender(id));
        }
        if let Some(due) = receiver
            && let Some(at) = flow.receiver_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Receiver(id));
        }
    }
}
