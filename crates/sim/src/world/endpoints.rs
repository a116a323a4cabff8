//! Endpoints: what starts, what is delivered, what is sent, and the timers.

use sojourn_apps::AppEvent;
use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::Arrival;

use super::World;
use crate::agenda::Event;
use crate::host::{End, Flow, Source};
use crate::packet::{Kind, Packet};

impl World<'_> {
    pub(super) fn on_start(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let config = &self.config.flows[id as usize];
        let rng = self.flow_rng.fork(&config.name);
        let first = flow.start(self.now, config, self.hosts, &rng, &mut self.outbox);
        if let Some(end) = first {
            self.send_quic(id, end);
            self.follow_quic(id, end);
            return;
        }
        let way = flow.forward;
        match flow.source {
            Source::Tcp(_) => {
                self.send(id, Kind::Data, way);
                self.follow_sender(id);
            }
            Source::App(_) => self.tell(id, AppEvent::Started),
            _ => self.on_probe(id),
        }
    }

    pub(super) fn on_stop(&mut self, id: u32) {
        self.stop_application(id);
        self.flows[id as usize].stop();
    }

    fn on_probe(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Source::Ping(ping) = &flow.source
            && let Some(due) = ping.due()
        {
            return self.on_transaction(id, due);
        }
        if let Some((pkt, next)) = flow.next_probe(self.now) {
            let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
            self.agenda.schedule(next, Event::Sender(id));
            self.forward(&pkt);
        }
    }

    /// The next request of pings that wait for replies, if it is `due`; else sees to it that an
    /// event is pending no later.
    fn on_transaction(&mut self, id: u32, mut due: Instant) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        if flow.sender_due <= self.now {
            flow.sender_due = Instant::MAX;
        }
        if due <= self.now
            && let Some((pkt, next)) = flow.next_probe(self.now)
        {
            let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
            due = next;
            self.forward(&pkt);
        }
        let flow = &mut self.flows[id as usize];
        if due < flow.sender_due {
            flow.sender_due = due;
            self.agenda.schedule(due, Event::Sender(id));
        }
    }

    pub(super) fn on_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        match flow.source {
            Source::Udp(_) | Source::Ping(_) | Source::Voip(_) => return self.on_probe(id),
            Source::Quic(_) | Source::Talk(_) => return self.on_quic_timer(id, End::Near),
            _ => {}
        }
        // A later event stands for this one.
        if flow.sender_due != self.now {
            return;
        }
        flow.sender_due = Instant::MAX;
        let tcp = match &mut flow.source {
            Source::Tcp(tcp) => tcp,
            Source::App(_) => return self.on_application_timer(id),
            Source::Connection(_) => return self.on_connection_sender(id),
            _ => return,
        };
        if tcp.sender.next_timer().is_some_and(|due| due <= self.now) {
            tcp.sender.on_timer(self.now, &mut self.outbox.segments);
            let way = flow.forward;
            flow.settle();
            self.send(id, Kind::Data, way);
        }
        self.follow_sender(id);
    }

    pub(super) fn on_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Source::Quic(_) | Source::Talk(_) = flow.source {
            return self.on_quic_timer(id, End::Far);
        }
        if flow.receiver_due != self.now {
            return;
        }
        flow.receiver_due = Instant::MAX;
        let tcp = match &mut flow.source {
            Source::Tcp(tcp) => tcp,
            Source::Connection(_) => return self.on_connection_receiver(id),
            _ => return,
        };
        if tcp.receiver.next_timer().is_some_and(|due| due <= self.now) {
            tcp.receiver.on_timer(self.now, &mut self.outbox.segments);
            let way = flow.reverse;
            self.send(id, Kind::Ack, way);
        }
        self.follow_receiver(id);
    }

    /// Sees to it that an event is pending no later than the sender's timer. A timer that moves
    /// back is looked at when the event comes.
    #[inline]
    fn follow_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Tcp(tcp) = &flow.source else {
            return;
        };
        if let Some(due) = tcp.sender.next_timer_before(flow.sender_due) {
            flow.sender_due = due.max(self.now);
            self.agenda.schedule(flow.sender_due, Event::Sender(id));
        }
    }

    /// The same for the receiver's.
    #[inline]
    fn follow_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Tcp(tcp) = &flow.source else {
            return;
        };
        if let Some(due) = tcp.receiver.next_timer()
            && due < flow.receiver_due
        {
            flow.receiver_due = due.max(self.now);
            self.agenda.schedule(flow.receiver_due, Event::Receiver(id));
        }
    }

    /// Hands a packet to the endpoint it has reached; `follows`: another of its flow comes at the
    /// same instant.
    #[inline]
    pub(super) fn deliver(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.owner.flow();
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        match (&mut flow.source, pkt.kind()) {
            (Source::Tcp(tcp), Kind::Data) => {
                let arrival = Arrival {
                    ce: pkt.ecn() == Ecn::Ce,
                    more: follows,
                };
                tcp.on_data(self.now, pkt.segment(), arrival, &mut self.outbox.segments);
                let way = flow.reverse;
                self.send(id, Kind::Ack, way);
                self.follow_receiver(id);
            }
            (Source::Tcp(tcp), Kind::Ack) => {
                let over = tcp.on_ack(self.now, pkt.segment(), &mut self.outbox.segments);
                let way = flow.forward;
                if over {
                    flow.settle();
                }
                self.send(id, Kind::Data, way);
                self.follow_sender(id);
            }
            (Source::Quic(_), Kind::QuicData) => self.deliver_quic(id, End::Far, pkt),
            (Source::Quic(_), Kind::QuicBack) => self.deliver_quic(id, End::Near, pkt),
            (Source::Talk(_), Kind::QuicData) => self.deliver_to_talk(id, End::Far, pkt),
            (Source::Talk(_), Kind::QuicBack) => self.deliver_to_talk(id, End::Near, pkt),
            _ if id as usize >= self.config.flows.len() => {
                self.deliver_to_connection(id, pkt, follows);
            }
            _ => {
                if let Some(reply) = flow.deliver_probe(self.now, pkt) {
                    self.forward(&reply);
                } else if let Source::Ping(ping) = &flow.source
                    && let Some(due) = ping.due()
                {
                    self.on_transaction(id, due);
                }
            }
        }
    }

    /// Puts what an endpoint wants sent on its way.
    #[inline]
    pub(super) fn send(&mut self, id: u32, kind: Kind, way: u16) {
        let Flow { class, owner, .. } = self.flows[id as usize];
        for n in 0..self.outbox.segments.len() {
            let pkt = Packet::tcp(owner, kind, way, &self.outbox.segments[n]).in_class(class);
            self.forward(&pkt);
        }
        self.outbox.segments.clear();
    }
}
