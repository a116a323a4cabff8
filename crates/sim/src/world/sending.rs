//! What an endpoint sends sets out.

use sojourn_link::Step;
use sojourn_qdisc::Qdisc;

use super::network::World;
use crate::agenda::Event;
use crate::host::Outgoing;
use crate::packet::{Departure, Label};

impl World<'_> {
    /// Puts what an endpoint sends on its way.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; because of the call of a capture it is not inlined without this"
    )]
    pub(super) fn send_all<T: Outgoing>(&mut self, departure: Departure) {
        if self.observed.notes.capture.is_some() {
            self.capture_all::<T>(departure.label());
        }
        match self.routes.step(departure.step) {
            Step::Wire(wire) => {
                let label = departure.onward();
                let on_wire = &mut self.wires[wire as usize];
                let arrival = self.now + on_wire.delay;
                for sent in T::of(&self.outbox) {
                    if let Some(at) = on_wire.put(sent.packet(label, arrival)) {
                        self.agenda.schedule(at, Event::Wire(wire));
                    }
                }
            }
            Step::Link(link) => {
                let label = departure.onward();
                let offered = if self.only_queues(link) {
                    0
                } else {
                    self.offer_first::<T>(link, label)
                };
                self.queue_rest::<T>(link, label, offered);
            }
            _ => {
                let label = departure.label();
                for n in 0..T::of(&self.outbox).len() {
                    let pkt = T::of(&self.outbox)[n].packet(label, self.now);
                    self.forward(&pkt);
                }
            }
        }
        T::clear(&mut self.outbox);
    }

    /// Offers what an endpoint sends to a link, until the link [only queues](Self::only_queues) what follows. Returns
    /// how many packets.
    #[inline(never)]
    fn offer_first<T: Outgoing>(&mut self, link: u32, label: Label) -> usize {
        let all = T::of(&self.outbox).len();
        for n in 0..all {
            let pkt = T::of(&self.outbox)[n].packet(label, self.now);
            self.offer(link, &pkt);
            if self.only_queues(link) {
                return n + 1;
            }
        }
        all
    }

    /// Offers the rest of what an endpoint sends, all but the first `offered`, to the queue of a link that
    /// [only queues](Self::only_queues) it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per packet")]
    fn queue_rest<T: Outgoing>(&mut self, link: u32, label: Label, offered: usize) {
        let mut watch = self.observed.watch(link);
        let link = &mut self.links[link as usize];
        for sent in &T::of(&self.outbox)[offered..] {
            watch.begin();
            let pkt = sent.packet(label, self.now);
            link.qdisc.enqueue(self.now, pkt, &mut watch);
        }
    }

    /// Captures what an endpoint sends, before it sets out.
    #[cold]
    fn capture_all<T: Outgoing>(&mut self, label: Label) {
        if let Some(capture) = &mut self.observed.notes.capture {
            for sent in T::of(&self.outbox) {
                capture.on_sent(&sent.packet(label, self.now));
            }
        }
    }
}
