//! QUIC connections of applications.

use sojourn_apps::Command;
use sojourn_net::{Ecn, Packet as View};
use sojourn_transport::quic::Params;

use super::World;
use crate::host::{End, Source, Talk};
use crate::packet::Packet;

impl World<'_> {
    /// Connection `number` of application `id` begins in `slot`.
    pub(super) fn open_talk(&mut self, id: u32, number: u32, slot: u32, params: &Params) {
        let out = &mut self.outbox.datagrams;
        let talk = Talk::open(self.now, (id, number), params, out);
        self.seen
            .beginnings
            .open_slot(slot, id, params.initial_window);
        self.flows[slot as usize].source = Source::Talk(Box::new(talk));
        self.send_quic(slot, End::Far);
        self.follow_quic(slot, End::Far);
    }

    /// Does what an application wants of its connection in `slot`.
    pub(super) fn obey_about_talk(&mut self, slot: u32, command: Command) {
        let Source::Talk(talk) = &mut self.flows[slot as usize].source else {
            return;
        };
        let out = &mut self.outbox.datagrams;
        match command {
            Command::WriteStream(_, side, stream, bytes) => {
                let end = talk.write(self.now, side, (stream, bytes), out);
                self.send_quic(slot, end);
                self.follow_quic(slot, end);
            }
            Command::Close(_) => {
                talk.end(End::Far).close(self.now, out);
                self.send_quic(slot, End::Far);
                self.end_connection(slot);
            }
            Command::Open(_)
            | Command::Write(..)
            | Command::Expect(..)
            | Command::ExpectWritable(..) => {
                debug_assert!(false, "{command:?} is not for streams");
            }
        }
    }

    #[inline(never)]
    pub(super) fn deliver_to_talk(&mut self, id: u32, end: End, pkt: &Packet) {
        self.seen.beginnings.on_leaving(id);
        if let Source::Talk(talk) = &mut self.flows[id as usize].source {
            let datagram = pkt.datagram();
            let ce = pkt.ecn() == Ecn::Ce;
            let out = &mut self.outbox.datagrams;
            talk.end(end).on_datagram(self.now, &datagram, ce, out);
            self.send_quic(id, end);
            self.after_talk(id, end);
        }
    }

    /// What follows from a turn of an end.
    pub(super) fn after_talk(&mut self, id: u32, end: End) {
        self.gather_news(id);
        if let Source::Talk(talk) = &self.flows[id as usize].source
            && talk.failed()
        {
            self.end_connection(id);
        } else {
            self.follow_quic(id, end);
        }
        self.tell_pending();
    }
}
