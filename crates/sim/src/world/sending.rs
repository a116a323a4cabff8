//! Sending the contents of the outbox.

use sojourn_link::Step;
use sojourn_qdisc::Qdisc;

use super::network::World;
use crate::agenda::Event;
use crate::host::Outgoing;
use crate::packet::{Label, Template};

impl World<'_> {
    /// Sends all segments or datagrams in the outbox, and empties it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per burst; the call of `capture_all` otherwise prevents inlining"
    )]
    pub(super) fn send_all<T: Outgoing>(&mut self, template: Template) {
        if self.observed.notes.capture.is_some() {
            self.capture_all::<T>(template.label());
        }
        match self.routes.step(template.step) {
            Step::Wire(wire) => {
                let label = template.label_after_first();
                let on_wire = &mut self.wires[wire as usize];
                let arrival = self.now + on_wire.delay;
                for sent in T::pending(&self.outbox) {
                    if let Some(at) = on_wire.put(sent.packet(label, arrival)) {
                        self.agenda.schedule(at, Event::Wire(wire));
                    }
                }
            }
            Step::Link(link) => {
                let label = template.label_after_first();
                let offered = if self.only_enqueues(link) {
                    0
                } else {
                    self.offer_until_busy::<T>(link, label)
                };
                self.enqueue_rest::<T>(link, label, offered);
            }
            _ => {
                let label = template.label();
                for n in 0..T::pending(&self.outbox).len() {
                    let pkt = T::pending(&self.outbox)[n].packet(label, self.now);
                    self.forward(&pkt);
                }
            }
        }
        T::clear(&mut self.outbox);
    }

    /// Offers packets from the outbox to a link one by one until the rest [only needs to be
    /// enqueued](Self::only_enqueues). Returns the number offered.
    #[inline(never)]
    fn offer_until_busy<T: Outgoing>(&mut self, link: u32, label: Label) -> usize {
        let all = T::pending(&self.outbox).len();
        for n in 0..all {
            let pkt = T::pending(&self.outbox)[n].packet(label, self.now);
            self.offer(link, &pkt);
            if self.only_enqueues(link) {
                return n + 1;
            }
        }
        all
    }

    /// Enqueues the packets in the outbox after the first `offered`, and asks once for the timer of the queue.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per burst")]
    fn enqueue_rest<T: Outgoing>(&mut self, id: u32, label: Label, offered: usize) {
        let mut watch = self.observed.watch(id);
        let link = &mut self.links[id as usize];
        for sent in &T::pending(&self.outbox)[offered..] {
            watch.begin_packet();
            let pkt = sent.packet(label, self.now);
            link.qdisc.enqueue(self.now, pkt, &mut watch);
        }
        if link.packets_affect_timer && offered < T::pending(&self.outbox).len() {
            self.follow_queue_timer(id);
        }
    }

    /// Captures the contents of the outbox before they are sent.
    #[cold]
    fn capture_all<T: Outgoing>(&mut self, label: Label) {
        if let Some(capture) = &mut self.observed.notes.capture {
            for sent in T::pending(&self.outbox) {
                capture.on_sent(&sent.packet(label, self.now));
            }
        }
    }
}
