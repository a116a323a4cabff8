//! Events of wires with impairments, and changes of links.

use sojourn_link::{Carried, Line, NextHop, Passage, Verdict};
use sojourn_net::{Instant, Rng};

use super::network::World;
use crate::agenda::Event;
use crate::packet::Packet;

impl World<'_> {
    /// What the links are to the ways through them.
    pub(super) fn add_lines(&mut self) -> Vec<Passage> {
        let root = Rng::new(self.config.seed).fork("line");
        let mut passages = Vec::new();
        for (n, link) in (0..).zip(&self.config.links) {
            let behind = if link.is_uneven() {
                let id = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
                let rng = root.fork(&link.name);
                self.lines.push(Line::new(n, link.delay, &link.line, &rng));
                NextHop::Line(id)
            } else {
                NextHop::Wire(link.delay)
            };
            passages.push(Passage {
                wireless: link.radio.is_some(),
                behind,
            });
        }
        passages
    }

    pub(super) fn put_on_line(&mut self, id: u32, pkt: &Packet) {
        let line = &mut self.lines[id as usize];
        let (n, before) = (line.link, line.next());
        match line.push(self.now, pkt.onward(self.now)) {
            Verdict::Lost => {
                self.observed.watch(n).on_lost(self.now, pkt);
            }
            Verdict::Arrives(copies) => {
                if copies > 1 {
                    self.observed.probes[n as usize].on_duplicated();
                    self.observed.notes.starts.on_sending(pkt.flow_number(), 1);
                    if let Some(capture) = &mut self.observed.notes.capture {
                        capture.on_duplicated(pkt);
                    }
                }
                // A packet that overtakes moves the event that is pending.
                let next = self.lines[id as usize].next();
                if let Some(at) = next
                    && next != before
                {
                    self.agenda.schedule(at, Event::Line(id));
                }
            }
        }
    }

    pub(super) fn on_line(&mut self, id: u32) {
        let line = &mut self.lines[id as usize];
        let Some(pkt) = line.pop() else {
            debug_assert!(false, "an arrival follows a packet");
            return;
        };
        let next = line.next();
        // Before the packet goes on: what follows from it may be put on this wire and overtake.
        if let Some(at) = next {
            self.agenda.schedule(at, Event::Line(id));
        }
        self.forward(&pkt);
    }

    /// Sees to change number `n` of a link.
    pub(super) fn await_change(&mut self, link: u32, n: usize) {
        let changes = &self.config.links[link as usize].changes;
        if let Some(change) = changes.get(n) {
            let at = Instant::ZERO + change.at;
            self.agenda.schedule(at, Event::Change(link));
        }
    }

    pub(super) fn on_change(&mut self, link: u32) {
        let changes = &self.config.links[link as usize].changes;
        let due = |at| Instant::ZERO + at == self.now;
        let Some(n) = changes.iter().position(|c| due(c.at)) else {
            debug_assert!(false, "the event follows a change");
            return;
        };
        let change = changes[n];
        if let Some(rate) = change.rate {
            if let Some(at) = self.links[link as usize].change_rate(self.now, rate) {
                self.agenda.schedule(at, Event::Link(link));
            }
            self.follow_queue_timer(link);
        }
        if let Some(delay) = change.delay {
            for line in self.lines.iter_mut().filter(|line| line.link == link) {
                line.delay = delay;
            }
        }
        self.await_change(link, n + 1);
    }
}
