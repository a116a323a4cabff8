//! QUIC connections: what is delivered, what is sent, and the timers.

use sojourn_net::{Ecn, Instant, Packet as View};

use super::World;
use crate::agenda::Event;
use crate::host::{End, Flow, Source};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// Hands a datagram to the end it has reached.
    pub(super) fn deliver_quic(&mut self, id: u32, end: End, pkt: &Packet) {
        let flow = &mut self.flows[id as usize];
        let Source::Quic(quic) = &mut flow.source else {
            return;
        };
        let datagram = pkt.datagram();
        let ce = pkt.ecn() == Ecn::Ce;
        let out = &mut self.outbox.datagrams;
        quic.on_datagram(self.now, end, (&datagram, ce), out);
        if quic.is_over() {
            flow.settle();
        }
        self.send_quic(id, end);
        self.follow_quic(id, end);
    }

    pub(super) fn on_quic_timer(&mut self, id: u32, end: End) {
        let flow = &mut self.flows[id as usize];
        let due = match end {
            End::Near => &mut flow.sender_due,
            End::Far => &mut flow.receiver_due,
        };
        // A later event stands for this one.
        if *due != self.now {
            return;
        }
        *due = Instant::MAX;
        if let Some(endpoint) = flow.quic_end(end)
            && endpoint.next_timer().is_some_and(|due| due <= self.now)
        {
            endpoint.on_timer(self.now, &mut self.outbox.datagrams);
            flow.settle();
            self.send_quic(id, end);
            if let Source::Talk(_) = self.flows[id as usize].source {
                return self.after_talk(id, end);
            }
        }
        self.follow_quic(id, end);
    }

    /// Sees to it that an event is pending no later than the timer of `end`. A timer that moves
    /// back is looked at when the event comes.
    pub(super) fn follow_quic(&mut self, id: u32, end: End) {
        let flow = &mut self.flows[id as usize];
        let timer = flow.quic_end(end).and_then(|end| end.next_timer());
        let (due, event) = match end {
            End::Near => (&mut flow.sender_due, Event::Sender(id)),
            End::Far => (&mut flow.receiver_due, Event::Receiver(id)),
        };
        if let Some(at) = timer.map(|at| at.max(self.now))
            && at < *due
        {
            *due = at;
            self.agenda.schedule(at, event);
        }
    }

    /// Puts what `end` wants sent on its way.
    pub(super) fn send_quic(&mut self, id: u32, end: End) {
        let flow = &self.flows[id as usize];
        let Flow { class, owner, .. } = *flow;
        let (kind, way) = match end {
            End::Near => (Kind::QuicData, flow.forward),
            End::Far => (Kind::QuicBack, flow.reverse),
        };
        self.seen
            .beginnings
            .on_sending(id, self.outbox.datagrams.len());
        for n in 0..self.outbox.datagrams.len() {
            let pkt = Packet::quic(owner, kind, way, &self.outbox.datagrams[n]).in_class(class);
            self.forward(&pkt);
        }
        self.outbox.datagrams.clear();
    }
}
