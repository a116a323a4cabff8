//! The short path of datagrams of QUIC, whose arrival hardly ever has more effects than new packets and a timer.
//!
//! It does what [`World::deliver_to_connection`] does for any connection.

use sojourn_link::Step;
use sojourn_net::{Ecn, Packet as View};

use super::network::World;
use crate::agenda::Event;
use crate::host::{End, Source};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// A datagram of QUIC has reached an end of its connection.
    #[inline(never)]
    pub(super) fn deliver_datagram(&mut self, pkt: &Packet) {
        let id = pkt.flow_number();
        let flow = &mut self.flows[id as usize];
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        let Some(quic) = connection.quic_mut() else {
            return;
        };
        self.observed.notes.starts.on_leaving(id);
        let (end, way) = match pkt.kind() {
            Kind::QuicData => (End::Far, flow.reverse),
            _ => (End::Near, flow.forward),
        };
        let kind = end.kind();
        let ce = pkt.ecn() == Ecn::Ce;
        let out = &mut self.outbox.datagrams;
        quic.on_datagram(self.now, end, (&pkt.datagram(), ce), out);
        if !quic.is_quiet(kind) || !self.applications.pending.is_empty() {
            self.send(id, kind);
            return self.after_turn(id, kind);
        }
        // What follows changes nothing of the connection, so all is read of it here.
        let due = quic.next_timer(end);
        let (pending, event) = match end {
            End::Near => (&mut flow.sender_event, Event::Sender(id)),
            End::Far => (&mut flow.receiver_event, Event::Receiver(id)),
        };
        let timer = due.and_then(|due| pending.advance(due, self.now));
        if !self.outbox.datagrams.is_empty() {
            self.send_datagrams(id, kind, way);
        }
        if let Some(at) = timer {
            self.agenda.schedule(at, event);
        }
    }

    /// Puts the datagrams of QUIC that an endpoint sends on their way.
    #[inline]
    pub(super) fn send_datagrams(&mut self, id: u32, kind: Kind, way: u16) {
        let flow = &self.flows[id as usize];
        let (owner, class) = (flow.owner, flow.class);
        let packets = self.outbox.datagrams.len();
        self.observed.notes.starts.on_sending(id, packets);
        if self.observed.notes.capture.is_some() {
            self.capture_datagrams(id, kind, way);
        }
        if let Step::Wire(wire) = self.routes.step(way) {
            let on_wire = &mut self.wires[wire as usize];
            for datagram in &self.outbox.datagrams {
                let pkt = Packet::quic(owner, kind, way, datagram).in_class(class);
                if let Some(at) = on_wire.push(self.now, &pkt) {
                    self.agenda.schedule(at, Event::Wire(wire));
                }
            }
        } else {
            for n in 0..packets {
                let datagram = &self.outbox.datagrams[n];
                let pkt = Packet::quic(owner, kind, way, datagram).in_class(class);
                self.forward(&pkt);
            }
        }
        self.outbox.datagrams.clear();
    }
}
