//! Applications and their connections.
//!
//! A connection lives in a slot behind the flows of the configuration. When it has ended and the
//! last of its packets has left the network, another may take the slot: memory is that of the
//! connections under way, however many there are in the course of a run.

use std::collections::VecDeque;

use sojourn_apps::{AppEvent, AppOutput, Command, Side};
use sojourn_net::{Ecn, Packet as View};
use sojourn_transport::Arrival;

use super::World;
use crate::agenda::{Event, MAX_INDEX};
use crate::host::{Duplex, Flow, Source};
use crate::packet::{Kind, Packet};

/// How many ended connections are looked at for one whose slot is free.
const LOOKED_AT: usize = 8;

/// What is not of one application only.
#[derive(Debug, Default)]
pub(super) struct Applications {
    /// What they want done and what they report; empty of commands between events.
    net: AppOutput,
    /// To be told, the oldest first.
    pending: VecDeque<(u32, AppEvent)>,
    /// Slots of connections that have ended, the oldest first.
    ended: VecDeque<u32>,
}

impl World<'_> {
    /// Tells application `id` what happened, and does what it wants.
    pub(super) fn tell(&mut self, id: u32, what: AppEvent) {
        self.applications.pending.push_back((id, what));
        self.tell_pending();
    }

    pub(super) fn tell_pending(&mut self) {
        while let Some((id, what)) = self.applications.pending.pop_front() {
            let Source::App(application) = &mut self.flows[id as usize].source else {
                continue;
            };
            let mut net = std::mem::take(&mut self.applications.net);
            net.flow = id;
            application.app.on(self.now, what, &mut net);
            for n in 0..net.commands.len() {
                self.obey(id, net.commands[n]);
            }
            net.commands.clear();
            self.applications.net = net;
            self.follow_application(id);
        }
    }

    fn obey(&mut self, id: u32, command: Command) {
        let (number, side) = match command {
            Command::Open(number) => return self.open(id, number),
            Command::Write(number, side, _)
            | Command::Expect(number, side, _)
            | Command::WriteStream(number, side, ..) => (number, side),
            Command::ExpectWritable(number, _) | Command::Close(number) => (number, Side::Client),
        };
        let Source::App(application) = &self.flows[id as usize].source else {
            return;
        };
        let Some(slot) = application.slot(number) else {
            return;
        };
        let Source::Connection(connection) = &mut self.flows[slot as usize].source else {
            return self.obey_about_talk(slot, command);
        };
        let kind = match command {
            Command::Write(.., bytes) => {
                connection.write(self.now, side, bytes, &mut self.outbox.segments)
            }
            Command::Close(_) => {
                connection.silent = true;
                connection.close(self.now, side, &mut self.outbox.segments)
            }
            Command::Expect(.., total) => {
                connection.expect(side, total);
                return self.gather_news(slot);
            }
            Command::ExpectWritable(_, below) => {
                connection.want_room(below);
                return self.gather_news(slot);
            }
            Command::Open(_) | Command::WriteStream(..) => return,
        };
        self.send_of_connection(slot, kind);
        self.follow_connection(slot);
    }

    fn open(&mut self, id: u32, number: u32) {
        let Some(slot) = self.free_slot(id) else {
            self.applications
                .pending
                .push_back((id, AppEvent::Failed(number)));
            return;
        };
        let Source::App(application) = &mut self.flows[id as usize].source else {
            return;
        };
        application.opened(number, slot);
        if let Some(params) = application.quic() {
            return self.open_talk(id, number, slot, &params);
        }
        let params = application.tcp();
        let connection = Duplex::open(
            self.now,
            (id, number),
            params,
            self.hosts,
            &mut self.outbox.segments,
        );
        self.seen
            .beginnings
            .open_slot(slot, id, params.initial_window);
        self.flows[slot as usize].source = Source::Connection(Box::new(connection));
        self.send_of_connection(slot, Kind::Request);
        self.follow_connection(slot);
    }

    /// A slot for a connection of application `id`; `None`: there are as many as can be named.
    fn free_slot(&mut self, id: u32) -> Option<u32> {
        let Flow {
            forward,
            reverse,
            class,
            owner,
            ..
        } = self.flows[id as usize];
        let fresh = |slot| Flow::new((forward, reverse), class, owner.with_flow(slot));
        for _ in 0..self.applications.ended.len().min(LOOKED_AT) {
            let slot = self.applications.ended.pop_front()?;
            if self.seen.beginnings.is_clear(slot) {
                self.flows[slot as usize] = fresh(slot);
                return Some(slot);
            }
            self.applications.ended.push_back(slot);
        }
        let slot = u32::try_from(self.flows.len()).ok()?;
        if slot > MAX_INDEX {
            return None;
        }
        self.flows.push(fresh(slot));
        self.seen.beginnings.add_slot();
        Some(slot)
    }

    /// A packet of a connection of an application has reached its end.
    #[inline(never)]
    pub(super) fn deliver_to_connection(&mut self, id: u32, pkt: &Packet, follows: bool) {
        self.seen.beginnings.on_leaving(id);
        let Source::Connection(connection) = &mut self.flows[id as usize].source else {
            // It has ended; this packet was still under way.
            return;
        };
        let arrival = Arrival {
            ce: pkt.ecn() == Ecn::Ce,
            more: follows,
        };
        connection.on_packet(
            self.now,
            pkt.kind(),
            pkt.segment(),
            arrival,
            &mut self.outbox.segments,
        );
        self.send_of_connection(id, pkt.kind().answer());
        if let Source::Connection(connection) = &mut self.flows[id as usize].source
            && let Some(kind) = connection.close_in_turn(self.now, &mut self.outbox.segments)
        {
            self.send_of_connection(id, kind);
        }
        self.after_turn(id);
    }

    #[inline(never)]
    pub(super) fn on_connection_sender(&mut self, id: u32) {
        for side in [Side::Client, Side::Server] {
            let Source::Connection(connection) = &mut self.flows[id as usize].source else {
                return;
            };
            let kind = connection.on_sender_timer(self.now, side, &mut self.outbox.segments);
            self.send_of_connection(id, kind);
        }
        self.after_turn(id);
    }

    #[inline(never)]
    pub(super) fn on_connection_receiver(&mut self, id: u32) {
        for side in [Side::Client, Side::Server] {
            let Source::Connection(connection) = &mut self.flows[id as usize].source else {
                return;
            };
            let kind = connection.on_receiver_timer(self.now, side, &mut self.outbox.segments);
            self.send_of_connection(id, kind);
        }
        self.after_turn(id);
    }

    /// What follows from a turn of a connection.
    fn after_turn(&mut self, id: u32) {
        self.gather_news(id);
        if let Source::Connection(connection) = &self.flows[id as usize].source
            && connection.is_over()
        {
            self.end_connection(id);
        } else {
            self.follow_connection(id);
        }
        self.tell_pending();
    }

    pub(super) fn gather_news(&mut self, id: u32) {
        if let Source::Connection(connection) = &mut self.flows[id as usize].source {
            let app = connection.app;
            while let Some(what) = connection.news() {
                self.applications.pending.push_back((app, what));
            }
        }
        if let Source::Talk(talk) = &mut self.flows[id as usize].source {
            let app = talk.app;
            while let Some(what) = talk.news() {
                self.applications.pending.push_back((app, what));
            }
        }
    }

    /// The connection in slot `id` has nothing more to send.
    pub(super) fn end_connection(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let (app, number, failed, counters, new) = match &mut flow.source {
            Source::Connection(c) => {
                let new = c.newly_delivered();
                (c.app, c.number, c.failed(), c.counters(), new)
            }
            Source::Talk(t) => {
                let new = t.newly_delivered();
                (t.app, t.number, t.failed(), t.counters(), new)
            }
            _ => return,
        };
        flow.source = Source::Waiting;
        let lost = self.seen.beginnings.losses_of(id);
        if let Source::App(application) = &mut self.flows[app as usize].source {
            application.interval_bytes += new;
            application.record.failed += u64::from(failed);
            application.closed(number, &counters, lost);
        }
        self.applications.ended.push_back(id);
    }

    fn send_of_connection(&mut self, id: u32, kind: Kind) {
        let flow = &self.flows[id as usize];
        let way = match kind {
            Kind::Data | Kind::RequestAck => flow.forward,
            _ => flow.reverse,
        };
        self.seen
            .beginnings
            .on_sending(id, self.outbox.segments.len());
        self.send(id, kind, way);
    }

    /// Sees to it that events are pending no later than the timers of a connection.
    fn follow_connection(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &flow.source else {
            return;
        };
        if let Some(due) = connection.next_sender_timer()
            && due < flow.sender_due
        {
            flow.sender_due = due.max(self.now);
            self.agenda.schedule(flow.sender_due, Event::Sender(id));
        }
        if let Some(due) = connection.next_receiver_timer()
            && due < flow.receiver_due
        {
            flow.receiver_due = due.max(self.now);
            self.agenda.schedule(flow.receiver_due, Event::Receiver(id));
        }
    }

    /// The same for an application's timer.
    fn follow_application(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Source::App(application) = &flow.source
            && let Some(due) = application.app.next_timer()
            && due < flow.sender_due
        {
            flow.sender_due = due.max(self.now);
            self.agenda.schedule(flow.sender_due, Event::Sender(id));
        }
    }

    #[inline(never)]
    pub(super) fn on_application_timer(&mut self, id: u32) {
        let Source::App(application) = &self.flows[id as usize].source else {
            return;
        };
        if application
            .app
            .next_timer()
            .is_some_and(|due| due <= self.now)
        {
            self.tell(id, AppEvent::Timer);
        } else {
            self.follow_application(id);
        }
    }

    /// Stops application `id`: its connections are given up at once.
    #[inline(never)]
    pub(super) fn stop_application(&mut self, id: u32) {
        let Source::App(application) = &mut self.flows[id as usize].source else {
            return;
        };
        self.applications.net.flow = id;
        application.app.finish(self.now, &mut self.applications.net);
        for slot in application.take_slots() {
            self.end_connection(slot);
        }
    }

    /// Brings what is counted of applications up to date with their connections.
    pub(super) fn gather_connections(&mut self, what: Gather) {
        let declared = self.config.flows.len();
        let (flows, slots) = self.flows.split_at_mut(declared);
        if let Gather::Totals = what {
            for flow in &mut *flows {
                if let Source::App(application) = &mut flow.source {
                    application.under_way = sojourn_records::FlowCounters::default();
                }
            }
        }
        for slot in slots {
            let app = match &slot.source {
                Source::Connection(connection) => connection.app,
                Source::Talk(talk) => talk.app,
                _ => continue,
            };
            let Source::App(application) = &mut flows[app as usize].source else {
                continue;
            };
            match (what, &mut slot.source) {
                (Gather::Interval, Source::Connection(c)) => {
                    application.interval_bytes += c.newly_delivered();
                }
                (Gather::Interval, Source::Talk(t)) => {
                    application.interval_bytes += t.newly_delivered();
                }
                (Gather::Totals, Source::Connection(c)) => application.under_way.add(&c.counters()),
                (Gather::Totals, Source::Talk(t)) => application.under_way.add(&t.counters()),
                _ => {}
            }
        }
    }

    /// The run is over: what applications waited for, and their records.
    pub(super) fn finish_applications(&mut self) -> AppOutput {
        for id in 0..self.flows.len() {
            let app = match &self.flows[id].source {
                Source::Connection(connection) => Some(connection.app),
                Source::Talk(talk) => Some(talk.app),
                _ => None,
            };
            if let Some(app) = app {
                let slot = u32::try_from(id).unwrap_or(u32::MAX);
                let lost = self.seen.beginnings.losses_of(slot);
                if let Source::App(application) = &mut self.flows[app as usize].source {
                    application.count_losses(lost);
                }
            }
        }
        let mut net = std::mem::take(&mut self.applications.net);
        for (id, flow) in (0..).zip(&mut self.flows) {
            if let Source::App(application) = &mut flow.source {
                net.flow = id;
                application.app.finish(self.now, &mut net);
            }
        }
        net
    }
}

/// What to bring up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gather {
    /// Bytes of this interval.
    Interval,
    /// All counters.
    Totals,
}
