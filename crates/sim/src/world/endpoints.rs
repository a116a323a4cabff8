//! Events of flows: start, stop and timers; packets for a flow without a connection.

use sojourn_apps::AppEvent;
use sojourn_net::Instant;

use super::World;
use crate::agenda::Event;
use crate::host::{Recorded, Source, TimerEvent};
use crate::packet::{Kind, Packet};

impl World<'_> {
    /// Delivers any packet to the endpoint it has reached; `follows`: another packet of the same flow and
    /// direction arrives at the same instant, which matters to TCP only.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    pub(super) fn deliver(&mut self, pkt: &Packet, follows: bool) {
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.on_arrived(pkt);
        }
        if pkt.is_quic() {
            self.deliver_datagram(pkt);
        } else {
            self.deliver_other(pkt, follows);
        }
    }

    pub(super) fn on_start(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let config = &self.config.flows[id as usize];
        let rng = self.flow_rng.fork(&config.name);
        let lead = self.leads[usize::from(flow.lead)];
        let recorded = Recorded {
            interval: self.sample,
            measure_from: Instant::ZERO + self.config.measure_from,
            end: self.end,
        };
        flow.start(self.now, config, self.hosts, lead, recorded, &rng);
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.open(id, &config.traffic);
        }
        match flow.source {
            Source::Datagrams(_) => self.on_datagram(id),
            _ => self.notify(id, AppEvent::Started),
        }
    }

    pub(super) fn on_stop(&mut self, id: u32) {
        self.stop_application(id);
        self.count_limit(id);
        self.flows[id as usize].stop(self.now);
    }

    fn on_datagram(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Datagrams(datagrams) = &mut flow.source else {
            return;
        };
        if let Some(due) = datagrams.counted.paced_by_replies() {
            return self.on_paced_datagram(id, due);
        }
        let (pkt, next) = datagrams.next(flow.owner, self.now);
        let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
        self.agenda.schedule(next, Event::Sender(id));
        self.launch(&pkt);
    }

    /// Sends the next datagram of a flow that replies pace, if it is `due`, and schedules an event
    /// for the one after it.
    fn on_paced_datagram(&mut self, id: u32, mut due: Instant) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        flow.sender_event.take(self.now);
        if due <= self.now
            && let Source::Datagrams(datagrams) = &mut flow.source
        {
            let (pkt, next) = datagrams.next_paced(flow.owner, self.now);
            due = next;
            if let Some(pkt) = pkt {
                let pkt = pkt.turned(pkt.kind(), flow.forward).in_class(flow.class);
                self.launch(&pkt);
            }
        }
        let flow = &mut self.flows[id as usize];
        if let Some(at) = flow.sender_event.advance(due, self.now) {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    /// Handles the event of a sender. Returns when to schedule the next one, if it has not been scheduled yet: that of
    /// one-way TCP.
    pub(super) fn on_sender(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return None;
        }
        if let Source::Datagrams(_) = flow.source {
            self.on_datagram(id);
            return None;
        }
        if !flow.sender_event.take(self.now) {
            return None;
        }
        match &flow.source {
            Source::Connection(connection) => {
                if connection.is_one_way_tcp() {
                    return self.on_one_way_sender(id);
                }
                self.on_connection_timer(id, TimerEvent::Sender);
            }
            Source::App(_) => self.on_application_timer(id),
            Source::None | Source::Datagrams(_) | Source::Finished(_) => {}
        }
        None
    }

    /// Handles the event of a receiver. Returns when to schedule the next one, as [`World::on_sender`] does.
    pub(super) fn on_receiver(&mut self, id: u32) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        if !flow.receiver_event.take(self.now) {
            return None;
        }
        if let Some(connection) = flow.connection()
            && connection.is_one_way_tcp()
        {
            return self.on_one_way_receiver(id);
        }
        self.on_connection_timer(id, TimerEvent::Receiver);
        None
    }

    /// Delivers a packet to whatever it has reached.
    #[inline(never)]
    pub(super) fn deliver_elsewhere(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.flow_number();
        let flow = &mut self.flows[id as usize];
        match &mut flow.source {
            Source::Connection(_) => self.deliver_to_connection(pkt, follows),
            Source::Datagrams(datagrams) => {
                let reply = datagrams.on_arrival(self.now, pkt);
                if let Some(control) = &mut self.control {
                    control.on_datagram(self.now, pkt);
                }
                let due = datagrams.counted.paced_by_replies();
                if let Some(reply) = reply {
                    let way = flow.reverse;
                    self.launch(&reply.turned(Kind::Pong, way));
                } else if let Some(due) = due {
                    self.on_paced_datagram(id, due);
                }
            }
            // The connection has ended; this packet was still in flight.
            Source::None | Source::Finished(_) | Source::App(_) => {
                self.observed.notes.starts.on_leaving(id);
            }
        }
    }
}
