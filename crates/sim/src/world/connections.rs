//! Events of connections over TCP or QUIC: delivery and timers. Most events of QUIC only send packets and set the timer of
//! the endpoint concerned.

use sojourn_apps::Side;
use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::quic::Datagram;
use sojourn_transport::{Arrival, Segment};

use super::World;
use crate::agenda::Event;
use crate::host::{Connection, End, QuicConnection, Source, TimerEvent};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// A segment has reached an end of a connection over TCP.
    #[inline(never)]
    pub(super) fn deliver_to_connection(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.flow_number();
        self.observed.notes.starts.on_leaving(id);
        let Some(connection) = self.flows[id as usize].connection_mut() else {
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
        // Data and acknowledgements of requests reach the other end.
        if pkt.is_of(Kind::Ack) || pkt.is_of(Kind::Request) {
            tcp.note_limit(self.now, || self.observed.notes.waits.of(id));
        }
        let kind = pkt.kind().answer();
        if tcp.is_quiet_after(pkt.kind()) && self.applications.pending.is_empty() {
            return self.after_quiet(id, pkt.kind());
        }
        self.send(id, kind);
        if let Some(connection) = self.flows[id as usize].connection_mut()
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
        let Some(connection) = self.flows[id as usize].connection() else {
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

    /// Timers of a TCP connection with requests are due.
    #[inline(never)]
    fn on_due_timers(&mut self, id: u32, event: TimerEvent) {
        let mut last = None;
        for side in [Side::Client, Side::Server] {
            let connection = self.flows[id as usize].connection_mut();
            if let Some(tcp) = connection.and_then(Connection::tcp_mut) {
                let kind = tcp.on_timer(self.now, event, side, &mut self.outbox.segments);
                tcp.note_limit(self.now, || self.observed.notes.waits.of(id));
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
        if let Some(connection) = self.flows[id as usize].connection()
            && connection.is_quiet(kind)
            && self.applications.pending.is_empty()
        {
            self.follow_timers(id, kind);
            return;
        }
        self.collect_events(id);
        let flow = &self.flows[id as usize];
        if let Some(connection) = flow.connection()
            && connection.app().is_none()
        {
            // A bulk transfer ends with its connection, and with it what it has recorded.
            self.notify_pending();
        }
        let flow = &mut self.flows[id as usize];
        let Some(connection) = flow.connection_mut() else {
            return;
        };
        if connection.close_if_done(self.now, kind, &mut self.outbox) {
            self.send(id, kind);
        }
        let flow = &mut self.flows[id as usize];
        let Some(connection) = flow.connection() else {
            return;
        };
        if connection.is_over() {
            self.end_connection(id);
        } else {
            self.follow_timers(id, kind);
        }
        self.notify_pending();
    }

    /// Counts for how long what limits the connection of a flow or slot has done so.
    pub(super) fn count_limit(&mut self, id: u32) {
        let waited = self.observed.notes.waits.of(id);
        if let Some(connection) = self.flows[id as usize].connection_mut() {
            connection.count_limit(self.now, waited);
        }
    }

    /// The same of all connections.
    pub(super) fn count_limits(&mut self) {
        for (id, flow) in (0..).zip(&mut self.flows) {
            if let Some(connection) = flow.connection_mut() {
                let waited = self.observed.notes.waits.of(id);
                connection.count_limit(self.now, waited);
            }
        }
    }

    /// Collects the events of a connection for its user.
    pub(super) fn collect_events(&mut self, id: u32) {
        let Some(connection) = self.flows[id as usize].connection_mut() else {
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
            if let Some(connection) = self.flows[id as usize].connection()
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

/// The state of a connection after an endpoint has processed an event. Sending the datagrams does not change it.
struct Turn {
    end: End,
    /// The application has no event to process.
    quiet: bool,
    /// When the timer of the end is due.
    due: Option<Instant>,
}

impl Turn {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    fn of(quic: &QuicConnection, end: End, now: Instant) -> Self {
        Self {
            end,
            quiet: quic.is_quiet(end.kind()),
            // One that is overdue needs no second event now.
            due: quic.next_timer(end).map(|due| due.max(now)),
        }
    }
}

impl World<'_> {
    /// A datagram of QUIC has reached an end of its connection.
    #[inline(never)]
    pub(super) fn deliver_datagram(&mut self, pkt: &Packet) {
        let id = pkt.flow_number();
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let Some(connection) = flow.connection_mut() else {
            return self.deliver_elsewhere(pkt, false);
        };
        self.observed.notes.starts.on_leaving(id);
        let Some(quic) = connection.quic_mut() else {
            return;
        };
        let end = if pkt.is_of(Kind::QuicData) {
            End::Far
        } else {
            End::Near
        };
        let ce = pkt.ecn() == Ecn::Ce;
        let out = &mut self.outbox.datagrams;
        quic.on_datagram(self.now, end, &pkt.datagram(), ce, out);
        if end == End::Near {
            quic.note_limit(self.now, || self.observed.notes.waits.of(id));
        }
        let turn = Turn::of(quic, end, self.now);
        self.after_datagrams(id, &turn);
    }

    /// The timer event of an end of a connection of QUIC has come. The timer may have moved since it was scheduled.
    pub(super) fn on_quic_timer(&mut self, id: u32, event: TimerEvent) {
        if let Some(connection) = self.flows[id as usize].connection_mut()
            && let Some(quic) = connection.quic_mut()
        {
            let end = End::of(event);
            if quic.next_timer(end).is_some_and(|due| due <= self.now) {
                quic.on_timer(self.now, end, &mut self.outbox.datagrams);
                if end == End::Near {
                    quic.note_limit(self.now, || self.observed.notes.waits.of(id));
                }
                let turn = Turn::of(quic, end, self.now);
                self.after_datagrams(id, &turn);
            } else if let Some(due) = quic.next_timer(end) {
                self.schedule_timer(id, event, due);
            }
        }
    }

    /// Sends the datagrams of an endpoint and schedules its timer after it has processed an event.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    fn after_datagrams(&mut self, id: u32, turn: &Turn) {
        let &Turn { end, quiet, due } = turn;
        let kind = end.kind();
        if !quiet || !self.applications.pending.is_empty() {
            self.send(id, kind);
            return self.after_turn(id, kind);
        }
        let flow = &mut self.flows[id as usize];
        let template = flow.template(kind);
        let (pending, event) = match end {
            End::Near => (&mut flow.sender_event, Event::Sender(id)),
            End::Far => (&mut flow.receiver_event, Event::Receiver(id)),
        };
        let timer = due.and_then(|due| pending.advance(due, self.now));
        let packets = self.outbox.datagrams.len();
        if packets > 0 {
            self.observed.notes.starts.on_sending(id, packets);
            self.send_all::<Datagram>(template);
        }
        if let Some(at) = timer {
            self.agenda.schedule(at, event);
        }
    }
}
