//! Packets on links and wires, with and without impairments; changes of links; sending the contents of the outbox.

use sojourn_backend::{NextHop, Passage, Step};
use sojourn_net::{Instant, Rate, Rng};
use sojourn_path::links::{Carried, Line, Link, Verdict};
use sojourn_qdisc::{LinkFacts, Qdisc, QdiscSpec, QueueChange};
use sojourn_scenario::plan::{Change, Config, LinkConfig};

use super::{FRAME, World};
use crate::agenda::Event;
use crate::host::Outgoing;
use crate::packet::{Label, Packet, Template};

impl World<'_> {
    /// Sends a packet on from where it is.
    #[inline]
    pub(super) fn forward(&mut self, pkt: &Packet) {
        match self.routes.step(pkt.step()) {
            Step::Link(id) => self.offer(id, &pkt.onward(self.now)),
            Step::Wire(id) => {
                if let Some(at) = self.wires[id as usize].push(self.now, pkt) {
                    self.agenda.schedule(at, Event::Wire(id));
                }
            }
            Step::Driver(id) => {
                self.enqueue(id, &pkt.onward(self.now));
                self.fill_driver(id);
            }
            Step::Line(id) => self.put_on_line(id, pkt),
            Step::End => self.arrivals.push(pkt),
        }
    }

    /// Offers a packet, which is at the step behind the link, to the link's queue.
    #[inline]
    fn enqueue(&mut self, id: u32, pkt: &Packet) -> &mut Link<Packet> {
        self.capture_offered(id, pkt);
        let link = &mut self.links[id as usize];
        let mut watch = self.observed.watch(id);
        // The stamp does not change. Set again, it is stored as a word, and so is the tag: they have just been stored
        // as words, and a load of both at once would wait for these stores.
        let pkt = pkt.stamped(self.now);
        link.enqueue(self.now, pkt, &mut watch);
        link
    }

    /// Whether a packet that is offered to the link is only enqueued, and may move the timer of the queue: the link is
    /// busy, and the run neither is captured nor keeps events.
    #[inline]
    pub(super) fn only_enqueues(&self, id: u32) -> bool {
        let notes = &self.observed.notes;
        self.links[id as usize].awaited && notes.capture.is_none() && notes.events.is_none()
    }

    /// Writes a packet that is offered to a link, if the run is captured.
    #[inline]
    fn capture_offered(&mut self, id: u32, pkt: &Packet) {
        if let Some(capture) = &mut self.observed.notes.capture {
            let queue = self.links[id as usize].qdisc.queue_of(pkt);
            capture.on_offered(self.now, id, queue, pkt);
        }
    }

    /// Offers a packet, which is at the step behind the link, to a link that takes turns.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per packet; it has two callers")]
    pub(super) fn offer(&mut self, id: u32, pkt: &Packet) {
        let link = &self.links[id as usize];
        if !link.awaited && link.passes(pkt) {
            return self.send_at_once(id, pkt);
        }
        let link = self.enqueue(id, pkt);
        let (packets_affect_timer, awaited) = (link.packets_affect_timer, link.awaited);
        if packets_affect_timer {
            self.follow_queue_timer(id);
        }
        if !awaited && let Some(at) = self.on_link(id) {
            self.agenda.schedule(at, Event::Link(id));
        }
    }

    /// Sends a packet on an idle link, past its empty queue.
    #[inline]
    fn send_at_once(&mut self, id: u32, pkt: &Packet) {
        self.capture_offered(id, pkt);
        let link = &mut self.links[id as usize];
        let sent = link.send_at_once(self.now, pkt, &mut self.observed.watch(id));
        link.awaited = true;
        // On a link that takes no time, it has left already.
        let again = if sent <= self.now {
            self.on_link(id)
        } else {
            Some(sent)
        };
        if let Some(at) = again {
            self.agenda.schedule(at, Event::Link(id));
        }
    }

    /// Processes a link; returns when to call again, for the caller to schedule.
    #[inline]
    pub(super) fn on_link(&mut self, id: u32) -> Option<Instant> {
        match self.turn(id) {
            Some(at) if at <= self.now => self.turn_again(id),
            again => again,
        }
    }

    /// A bucket with credit left goes on at once.
    #[inline(never)]
    fn turn_again(&mut self, id: u32) -> Option<Instant> {
        loop {
            match self.turn(id) {
                Some(at) if at <= self.now => {}
                again => return again,
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per packet; it has two callers")]
    fn turn(&mut self, id: u32) -> Option<Instant> {
        let mut link = &mut self.links[id as usize];
        // Pass the packet to its wire, its endpoint or the queue of another, busy link before the next packet is
        // dequeued, without a copy in `left`. This order can be observed in two cases only: the next step is the queue
        // of the same link, or the run records signals in the order in which they occur. Queues share no state.
        if let Some(pkt) = link.leaving() {
            // Branches are predicted better than the jump of a `match`.
            let step = self.routes.step(pkt.step());
            if step == Step::End {
                self.arrivals.push(pkt);
                link.has_left();
            } else if let Step::Wire(wire) = step {
                if let Some(at) = self.wires[wire as usize].push(self.now, pkt) {
                    self.agenda.schedule(at, Event::Wire(wire));
                }
                link.has_left();
            } else if let Step::Link(next) = step
                && next != id
            {
                let pkt = pkt.onward(self.now);
                let passes = self.only_enqueues(next);
                if passes {
                    // Not `enqueue`, which is called here, and would copy the packet.
                    let mut watch = self.observed.watch(next);
                    let link = &mut self.links[next as usize];
                    link.qdisc.enqueue(self.now, pkt, &mut watch);
                    if link.packets_affect_timer {
                        self.follow_queue_timer(next);
                    }
                }
                link = &mut self.links[id as usize];
                if passes {
                    link.has_left();
                }
            }
        }
        let mut left = None;
        let mut watch = self.observed.watch(id);
        if link.paces_sockets {
            watch.senders = Some(&self.flows);
        }
        let again = link.turn(self.now, &mut watch, &mut left);
        link.awaited = again.is_some();
        if link.packets_affect_timer {
            self.follow_queue_timer(id);
        }
        if let Some(pkt) = &left {
            self.forward(pkt);
        }
        self.prefetch_leaving(id);
        again
    }

    pub(super) fn on_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if !link.take_timer(self.now) {
            return;
        }
        if link.qdisc.next_timer().is_some_and(|due| due <= self.now) {
            link.qdisc.on_timer(self.now);
        }
        self.send_held(id);
        self.follow_queue_timer(id);
    }

    /// Schedules an event for the queue's timer, unless one is pending that is no later.
    #[inline(never)]
    pub(super) fn follow_queue_timer(&mut self, id: u32) {
        if let Some(at) = self.links[id as usize].advance_timer(self.now) {
            self.agenda.schedule(at, Event::Queue(id));
        }
    }
}

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
                has_driver: link.has_driver(),
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
        let config = self.config.clone();
        let changes = &config.links[link as usize].changes;
        let due = self.now.since(Instant::ZERO);
        let Ok(n) = changes.binary_search_by_key(&due, |c| c.at) else {
            debug_assert!(false, "the event follows a change");
            return;
        };
        let change = &changes[n];
        let of_all = (self.control.as_mut()).map_or(n, |control| control.on_change(link, change));
        self.apply_change(link, of_all, change);
        self.await_change(link, n + 1);
    }

    /// Applies a change to a link: its change number `n`.
    pub(super) fn apply_change(&mut self, link: u32, n: usize, change: &Change) {
        if let Some(rate) = change.rate {
            if let Some(at) = self.links[link as usize].change_rate(self.now, rate) {
                self.agenda.schedule(at, Event::Link(link));
            }
            self.follow_queue_timer(link);
        }
        for line in self.lines.iter_mut().filter(|line| line.link == link) {
            line.change(&change.wire);
        }
        if let Some(queue) = &change.queue {
            self.change_queue(link, n, queue);
        }
    }

    /// Change number `n` of a link changes its queue.
    #[cold]
    fn change_queue(&mut self, id: u32, n: usize, change: &QueueChange) {
        let config = &self.config.links[id as usize];
        let link = &mut self.links[id as usize];
        let facts = facts(&self.config, config, change.spec(), link.rate());
        let rng = Rng::new(self.config.seed).fork("link").fork(&config.name);
        let rng = rng.fork(&format!("change/{n}"));
        link.change_queue(
            self.now,
            change,
            (&facts, rng),
            &mut self.observed.watch(id),
        );
        if let QueueChange::Replacement(_) = change {
            self.observed.probes[id as usize].on_replaced();
        }
        self.send_held(id);
        self.follow_queue_timer(id);
    }

    /// Asks the queue of an idle link for packets that it held back.
    #[inline(never)]
    fn send_held(&mut self, id: u32) {
        let link = &self.links[id as usize];
        if self.radios[id as usize].is_some() || link.has_ring() {
            self.fill_driver(id);
        } else if !link.awaited
            && link.qdisc.backlog().packets > 0
            && let Some(at) = self.on_link(id)
        {
            self.agenda.schedule(at, Event::Link(id));
        }
    }
}

/// The properties of a link that sends at `rate`, for `queue`.
pub(super) fn facts(
    config: &Config,
    link: &LinkConfig,
    queue: &QdiscSpec,
    rate: Rate,
) -> LinkFacts {
    LinkFacts {
        // Nobody can tell a queue what a trace or the air will allow.
        rate: (!link.follows_trace() && link.radio.is_none()).then_some(rate),
        mtu: FRAME,
        name: Some(link.name.as_str().into()),
        flows: config.flow_facts(queue),
    }
}

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
