//! Events of connections over QUIC: delivery and timers.
//!
//! Most events only send packets and set the timer of the endpoint concerned.

use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::quic::Datagram;

use super::network::World;
use crate::agenda::Event;
use crate::host::{End, QuicConnection, Source, TimerEvent};
use crate::packet::{Kind, Packet};

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
        let Source::Connection(connection) = &mut flow.source else {
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
        quic.on_datagram(self.now, end, (&pkt.datagram(), ce), out);
        let turn = Turn::of(quic, end, self.now);
        self.after_datagrams(id, &turn);
    }

    /// The timer event of an end of a connection of QUIC has come. The timer may have moved since it was scheduled.
    pub(super) fn on_quic_timer(&mut self, id: u32, event: TimerEvent) {
        if let Source::Connection(connection) = &mut self.flows[id as usize].source
            && let Some(quic) = connection.quic_mut()
        {
            let end = End::of(event);
            if quic.next_timer(end).is_some_and(|due| due <= self.now) {
                quic.on_timer(self.now, end, &mut self.outbox.datagrams);
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
