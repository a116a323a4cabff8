//! A packet's way through links and over wires.

use sojourn_net::Instant;
use sojourn_qdisc::Qdisc;

use super::World;
use crate::agenda::Event;
use crate::packet::Packet;
use crate::probe::Watch;
use crate::route::Step;

impl World<'_> {
    /// Sends a packet on from where it is.
    #[inline]
    pub(super) fn forward(&mut self, pkt: &Packet) {
        match self.routes.step(pkt.step) {
            Step::Link(id) => self.offer(id, pkt),
            Step::Wire(id) => {
                let on_wire = Packet {
                    step: pkt.step + 1,
                    ..*pkt
                };
                if let Some(at) = self.wires[id as usize].push(self.now, on_wire) {
                    self.agenda.schedule(at, Event::Wire(id));
                }
            }
            Step::Radio(id) => self.offer_to_radio(id, pkt),
            Step::Line(id) => self.put_on_line(id, pkt),
            Step::End => self.arrivals.push_back(*pkt),
        }
    }

    #[inline]
    fn offer(&mut self, id: u32, pkt: &Packet) {
        let n = id as usize;
        let queued = Packet {
            entered: self.now,
            step: pkt.step + 1,
            ..*pkt
        };
        let mut watch = Watch {
            probe: &mut self.probes[n],
            events: self.events.as_mut(),
            beginnings: &mut self.beginnings,
            link: id,
        };
        self.links[n].qdisc.enqueue(self.now, queued, &mut watch);
        self.follow_queue_timer(id);
        if !self.links[n].awaited
            && let Some(at) = self.on_link(id)
        {
            self.agenda.schedule(at, Event::Link(id));
        }
    }

    /// A link's turn; returns when it is its turn again, which the caller sees to.
    #[inline]
    pub(super) fn on_link(&mut self, id: u32) -> Option<Instant> {
        let n = id as usize;
        loop {
            let mut watch = Watch {
                probe: &mut self.probes[n],
                events: self.events.as_mut(),
                beginnings: &mut self.beginnings,
                link: id,
            };
            let turn = self.links[n].turn(self.now, &mut watch);
            if let Some(taken) = &turn.taken {
                self.probes[n].on_taken(taken);
            }
            self.links[n].awaited = turn.again.is_some();
            self.follow_queue_timer(id);
            if let Some(pkt) = &turn.left {
                self.forward(pkt);
            }
            match turn.again {
                // A bucket with credit left goes on at once.
                Some(at) if at <= self.now => {}
                again => return again,
            }
        }
    }

    pub(super) fn on_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if link.timer_at != self.now {
            return;
        }
        link.timer_at = Instant::MAX;
        if link.qdisc.next_timer().is_some_and(|due| due <= self.now) {
            link.qdisc.on_timer(self.now);
        }
        if self.links[id as usize].radio.is_some() {
            self.fill_driver(id);
            return;
        }
        let link = &self.links[id as usize];
        // A queue that held its packets back may let one go.
        if !link.awaited
            && link.qdisc.backlog().packets > 0
            && let Some(at) = self.on_link(id)
        {
            self.agenda.schedule(at, Event::Link(id));
        }
        self.follow_queue_timer(id);
    }

    /// Sees to it that an event is pending no later than the queue's timer.
    #[inline]
    pub(super) fn follow_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if link.timed
            && let Some(due) = link.qdisc.next_timer()
            && due < link.timer_at
        {
            link.timer_at = due.max(self.now);
            self.agenda.schedule(link.timer_at, Event::Queue(id));
        }
    }
}
