//! Endpoints: starting and stopping flows, delivering packets, and timers.

use sojourn_apps::AppEvent;
use sojourn_net::{Ecn, Instant, Packet as View};
use sojourn_transport::Arrival;

use super::World;
use crate::agenda::Event;
use crate::host::{Connection, End, Flow, Source};
use crate::packet::{Kind, Packet};

impl World<'_> {
    pub(super) fn on_start(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let config = &self.config.flows[id as usize];
        let rng = self.flow_rng.fork(&config.name);
        flow.start(self.now, config, self.hosts, &rng);
        match flow.source {
            Source::Probe(_) => self.on_probe(id),
            _ => self.notify(id, AppEvent::Started),
        }
    }

    pub(super) fn on_stop(&mut self, id: u32) {
        self.stop_application(id);
        self.flows[id as usize].stop(self.now);
    }

    fn on_probe(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Probe(probe) = &mut flow.source else {
            return;
        };
        if let Some(due) = probe.paced_by_replies() {
            return self.on_paced_request(id, due);
        }
        let (pkt, next) = probe.next(flow.owner, self.now);
        let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
        self.agenda.schedule(next, Event::Sender(id));
        self.forward(&pkt);
    }

    /// Sends the next request of a probe that replies pace, if it is `due`, and schedules an event
    /// for the one after it.
    fn on_paced_request(&mut self, id: u32, mut due: Instant) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        flow.sender_event.take(self.now);
        if due <= self.now
            && let Source::Probe(probe) = &mut flow.source
        {
            let (pkt, next) = probe.next(flow.owner, self.now);
            let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
            due = next;
            self.forward(&pkt);
        }
        let flow = &mut self.flows[id as usize];
        if let Some(at) = flow.sender_event.advance(due, self.now) {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    pub(super) fn on_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        if let Source::Probe(_) = flow.source {
            return self.on_probe(id);
        }
        if !flow.sender_event.take(self.now) {
            return;
        }
        match &mut flow.source {
            Source::Connection(Connection::Tcp(tcp)) if tcp.is_one_way() => {
                let sender = &mut tcp.data.sender;
                if sender.next_timer().is_some_and(|due| due <= self.now) {
                    sender.on_timer(self.now, &mut self.outbox.segments);
                    let way = flow.forward;
                    flow.release(self.now);
                    self.send_segments(id, Kind::Data, way);
                }
                self.follow_sender(id);
            }
            Source::Connection(Connection::Tcp(_)) => self.on_tcp_senders(id),
            Source::Connection(Connection::Quic(_)) => self.on_quic_timer(id, End::Near),
            Source::App(_) => self.on_application_timer(id),
            Source::None | Source::Probe(_) | Source::Finished(_) => {}
        }
    }

    pub(super) fn on_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if !flow.receiver_event.take(self.now) {
            return;
        }
        let Source::Connection(connection) = &mut flow.source else {
            return;
        };
        match connection {
            Connection::Tcp(tcp) if tcp.is_one_way() => {
                let receiver = &mut tcp.data.receiver;
                if receiver.next_timer().is_some_and(|due| due <= self.now) {
                    receiver.on_timer(self.now, &mut self.outbox.segments);
                    let way = flow.reverse;
                    self.send_segments(id, Kind::Ack, way);
                }
                self.follow_receiver(id);
            }
            Connection::Tcp(_) => self.on_tcp_receivers(id),
            Connection::Quic(_) => self.on_quic_timer(id, End::Far),
        }
    }

    /// Schedules an event for the timer of the sender of one-way TCP, unless one is pending no later.
    #[inline]
    fn follow_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(Connection::Tcp(tcp)) = &flow.source else {
            return;
        };
        let sender = &tcp.data.sender;
        if let Some(due) = sender.next_timer_before(flow.sender_event.limit())
            && let Some(at) = flow.sender_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    /// The same for its receiver.
    #[inline]
    fn follow_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Connection(Connection::Tcp(tcp)) = &flow.source else {
            return;
        };
        if let Some(due) = tcp.data.receiver.next_timer()
            && let Some(at) = flow.receiver_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Receiver(id));
        }
    }

    /// Delivers a packet to the endpoint it has reached; `follows`: another of its flow comes at the
    /// same instant.
    ///
    /// Packets of one-way TCP, which most are, take a short path: they rarely concern its user.
    #[inline]
    pub(super) fn deliver(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.owner.flow();
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let Source::Connection(Connection::Tcp(tcp)) = &mut flow.source else {
            return self.deliver_elsewhere(pkt, follows);
        };
        if !tcp.is_one_way() {
            return self.deliver_segment(pkt, follows);
        }
        if pkt.kind() == Kind::Data {
            let arrival = Arrival {
                ce: pkt.ecn() == Ecn::Ce,
                more: follows,
            };
            let out = &mut self.outbox.segments;
            let receiver = &mut tcp.data.receiver;
            receiver.on_segment(self.now, pkt.segment(), arrival, out);
            let (way, event) = (flow.reverse, tcp.has_event(Kind::Data));
            if event {
                self.notify_user(id);
            }
            self.send_segments(id, Kind::Ack, way);
            self.follow_receiver(id);
        } else {
            let out = &mut self.outbox.segments;
            tcp.data.sender.on_segment(self.now, pkt.segment(), out);
            let (way, event, over) = (flow.forward, tcp.has_event(Kind::Ack), tcp.is_over());
            if event {
                self.notify_user(id);
            }
            if over {
                self.flows[id as usize].release(self.now);
            }
            self.send_segments(id, Kind::Data, way);
            self.follow_sender(id);
        }
    }

    #[inline(never)]
    fn deliver_elsewhere(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.owner.flow();
        let flow = &mut self.flows[id as usize];
        match &mut flow.source {
            Source::Connection(Connection::Quic(_)) => self.deliver_datagram(pkt),
            Source::Connection(Connection::Tcp(_)) => self.deliver_segment(pkt, follows),
            Source::Probe(probe) => {
                let reply = probe.on_arrival(self.now, pkt);
                let due = probe.paced_by_replies();
                if reply {
                    let way = flow.reverse;
                    self.forward(&pkt.turned(Kind::Pong, way));
                } else if let Some(due) = due {
                    self.on_paced_request(id, due);
                }
            }
            // The connection has ended; this packet was still in flight.
            Source::None | Source::Finished(_) | Source::App(_) => {
                self.observed.starts.on_leaving(id);
            }
        }
    }

    /// Puts the segments that an endpoint sends on their way.
    #[inline]
    pub(super) fn send_segments(&mut self, id: u32, kind: Kind, way: u16) {
        let Flow { class, owner, .. } = self.flows[id as usize];
        for n in 0..self.outbox.segments.len() {
            let pkt = Packet::tcp(owner, kind, way, &self.outbox.segments[n]).in_class(class);
            self.forward(&pkt);
        }
        self.outbox.segments.clear();
    }
}
