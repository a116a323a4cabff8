//! The flow scheduler of `cocoa` and of `fq` in Linux 6.1, and what the bands of 6.12 share with it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate, Rng, TcpHeader, Transport};

use crate::contract::{Backlog, Observer, Statistic};
use crate::parts::pool::{List, Pool};
use crate::parts::round::{FlowId, Round};

/// With fewer flows, old flows are not removed.
const MANY_FLOWS: usize = 2_048;

/// Round-robin parameters of [`Fq`](super::Fq) and [`crate::Cocoa`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Bytes that a flow sends per turn; twice the MTU if unset.
    pub(crate) quantum: Option<Bytes>,
    /// Bytes that a flow sends in its first turn; ten times the MTU if unset.
    pub(crate) initial_quantum: Option<Bytes>,
    /// Idle time after which a flow returns with a full quantum.
    pub(crate) refill_delay: Duration,
    /// Bit mask on the hash of a flow.
    pub(crate) orphan_mask: u32,
    /// Flows are paced by the rates of their sockets, except for ACKs without data.
    pub(crate) pacing: bool,
}

impl Turns {
    /// The quantum and the initial quantum.
    pub(crate) fn quanta(&self, mtu: Bytes) -> (Bytes, Bytes) {
        let mtus = |n| Bytes(n * mtu.0);
        let initial = self.initial_quantum.unwrap_or(mtus(10));
        (self.quantum.unwrap_or(mtus(2)), initial)
    }
}

/// The pacing of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(super) rate: Rate,
    /// Pace every packet, regardless of credit.
    pub(super) each: bool,
}

/// What Linux takes if no `low_rate_threshold` is given.
pub(super) const LOW_RATE: u64 = 550_000;

impl Pace {
    /// At `rate`; at most at `low`, every packet is paced.
    pub(super) fn new(rate: Rate, low: Option<Rate>) -> Self {
        Self {
            rate,
            each: rate.bits_per_sec() <= low.map_or(LOW_RATE, Rate::bits_per_sec),
        }
    }

    /// The pacing after `pkt` by the rate of its socket, which may be at most `maxrate`.
    pub(crate) fn of_socket<P: Packet>(
        pkt: &P,
        obs: &dyn Observer<P>,
        maxrate: Option<Rate>,
        low: Option<Rate>,
    ) -> Option<Self> {
        if is_pure_ack(pkt) {
            return None;
        }
        let rates = obs.pacing_rate(pkt).into_iter().chain(maxrate);
        rates.min().map(|rate| Self::new(rate, low))
    }
}

/// Whether `pkt` is a TCP segment that only acknowledges.
pub(super) fn is_pure_ack<P: Packet>(pkt: &P) -> bool {
    const OTHERS: u16 = TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST;
    matches!(pkt.transport(), Transport::Tcp(tcp) if tcp.payload == 0 && tcp.flags & OTHERS == 0)
}

/// The flow scheduler without the limits, which Cocoa sets differently.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler<P> {
    quantum: i64,
    initial_credit: i64,
    refill_delay: Duration,
    mask: u32,
    pacing: bool,
    perturbation: u64,
    pool: Pool<P>,
    backlog: Backlog,
    pub(super) flows: Vec<Flow>,
    new: Round,
    old: Round,
    /// Links of `new` and `old`; a flow is in at most one of them.
    links: Vec<FlowId>,
    throttled: Throttled,
    control: List,
    /// Number of known flows, and number of those that are detached.
    pub(super) seen: usize,
    pub(super) detached: usize,
}

/// Flows that wait apart, by the time at which they are due.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttled(BinaryHeap<Reverse<(Instant, FlowId)>>);

impl Throttled {
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn push(&mut self, due: Instant, id: FlowId) {
        self.0.push(Reverse((due, id)));
    }

    #[inline]
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|&Reverse((due, _))| due)
    }

    /// Removes the first flow, if it is due.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<FlowId> {
        if self.next_due()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, id))| id)
    }
}

/// A flow and its packets.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) list: List,
    /// Remaining credit in its turn, in bytes.
    pub(super) credit: i64,
    /// Earliest departure of its next packet; [`Instant::ZERO`] if it was never paced.
    pub(super) due: Instant,
    pub(super) place: Place,
}

/// Whether a flow waits for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The flow has never sent.
    Unknown,
    /// In one of the lists, or waiting apart.
    Listed,
    /// In none, since then.
    Detached(Instant),
}

impl Flow {
    /// A flow that has never sent.
    pub(super) const fn new(credit: i64) -> Self {
        Self {
            list: List::EMPTY,
            credit,
            due: Instant::ZERO,
            place: Place::Unknown,
        }
    }

    /// After a packet of `size`: when the next may leave.
    pub(super) fn pace(&mut self, pace: Pace, quantum: i64, size: Bytes, now: Instant) {
        const LONGEST: Duration = Duration::from_secs(1);
        let mut paced = size;
        if pace.each {
            self.credit = 0;
        } else {
            paced = paced.max(Bytes(quantum.unsigned_abs()));
            if self.credit > 0 {
                return;
            }
        }
        let mut gap = pace.rate.serialise(paced).min(LONGEST);
        if self.due > Instant::ZERO {
            gap = gap.saturating_sub(
                now.saturating_since(self.due)
                    .min(Duration::from_nanos(gap.as_nanos() / 2)),
            );
        }
        self.due = now + gap;
    }
}

impl<P: Packet> Scheduler<P> {
    pub(crate) fn new(turns: &Turns, mtu: Bytes, mut rng: Rng) -> Self {
        let (quantum, initial_quantum) = turns.quanta(mtu);
        let flow_credit = signed(initial_quantum);
        let number = turns.orphan_mask as usize + 1;
        Self {
            quantum: signed(quantum),
            refill_delay: turns.refill_delay,
            mask: turns.orphan_mask,
            pacing: turns.pacing,
            perturbation: rng.next_u64(),
            pool: Pool::new(),
            backlog: Backlog::default(),
            flows: vec![Flow::new(flow_credit); number],
            new: Round::EMPTY,
            old: Round::EMPTY,
            links: vec![FlowId::NONE; number],
            initial_credit: flow_credit,
            throttled: Throttled::default(),
            control: List::EMPTY,
            seen: 0,
            detached: 0,
        }
    }

    /// Other quanta; the number of flows and whether they are paced stay.
    pub(crate) fn change(&mut self, turns: &Turns, mtu: Bytes) {
        let (quantum, initial_quantum) = turns.quanta(mtu);
        self.quantum = signed(quantum);
        self.refill_delay = turns.refill_delay;
        self.initial_credit = signed(initial_quantum);
        let unknown = self
            .flows
            .iter_mut()
            .filter(|flow| flow.place == Place::Unknown);
        unknown.for_each(|flow| flow.credit = self.initial_credit);
    }

    /// Numbers of known, inactive and throttled flows.
    pub(crate) fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("flows", self.seen as u64),
            Statistic::count("inactive", self.detached as u64),
            Statistic::count("throttled", self.throttled.len()),
        ]
    }

    /// How many flows there may be.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    #[inline]
    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The flow that `pkt` belongs to.
    #[inline]
    pub(crate) fn classify(&self, pkt: &P) -> FlowId {
        FlowId::masked(pkt.flow().digest(self.perturbation), self.mask)
    }

    /// How many packets of `flow` wait.
    #[inline]
    pub(crate) fn packets(&self, flow: FlowId) -> u32 {
        self.flows[flow.index()].list.packets()
    }

    /// Appends `pkt` to its flow without checking limits.
    #[inline]
    pub(crate) fn append(&mut self, id: FlowId, now: Instant, pkt: P) {
        let flow = &mut self.flows[id.index()];
        if flow.place != Place::Listed {
            if let Place::Detached(since) = flow.place
                && now.since(since) > self.refill_delay
            {
                flow.credit = flow.credit.max(self.quantum);
            }
            match flow.place {
                Place::Unknown => self.seen += 1,
                Place::Listed | Place::Detached(_) => self.detached -= 1,
            }
            flow.place = Place::Listed;
            self.new.push(&mut self.links, id);
        }
        self.backlog.add(pkt.size());
        self.pool.push(&mut flow.list, now, pkt);
    }

    /// Appends a control packet, which precedes the packets of all flows.
    pub(crate) fn append_control(&mut self, now: Instant, pkt: P) {
        self.backlog.add(pkt.size());
        self.pool.push(&mut self.control, now, pkt);
    }

    /// Resets `flow` if it was detached for longer than `age` and there are many flows; returns
    /// whether it was reset.
    #[inline]
    pub(crate) fn forget_if_old(&mut self, id: FlowId, now: Instant, age: Duration) -> bool {
        if self.seen < MANY_FLOWS || 2 * self.detached <= self.seen {
            return false;
        }
        let flow = &mut self.flows[id.index()];
        let Place::Detached(since) = flow.place else {
            return false;
        };
        let old = now.since(since) > age;
        if old {
            flow.credit = self.initial_credit;
            flow.due = Instant::ZERO;
            flow.place = Place::Unknown;
            self.seen -= 1;
            self.detached -= 1;
        }
        old
    }

    /// Sets the earliest departure of the next packet of `id` after it has sent `size` bytes.
    pub(crate) fn pace(&mut self, id: FlowId, pace: Pace, size: Bytes, now: Instant) {
        self.flows[id.index()].pace(pace, self.quantum, size, now);
    }

    /// When the next throttled flow is due, if no other flow can send.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = self.throttled.next_due()?;
        let others = self.new.first().is_some() || self.old.first().is_some();
        (!others && self.control.packets() == 0).then_some(due)
    }

    /// Moves throttled flows that are due to the old flows.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some(id) = self.throttled.pop_due(now) {
            self.old.push(&mut self.links, id);
        }
    }

    /// Removes the newest packet of `flow`, which keeps its place.
    pub(crate) fn take_newest(&mut self, flow: FlowId) -> Option<P> {
        let (pkt, _) = self.pool.pop_newest(&mut self.flows[flow.index()].list)?;
        self.backlog.remove(pkt.size());
        Some(pkt)
    }

    /// Returns the next packet to send, its flow (`None` for control packets), and the time from which
    /// it could have left: its arrival, or the time at which its flow was due.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Option<FlowId>, P, Instant)> {
        if let Some((pkt, arrived)) = self.pool.pop(&mut self.control) {
            self.backlog.remove(pkt.size());
            return Some((None, pkt, arrived));
        }
        self.release(now);
        // Each turn sends, takes a flow's place, moves one from new to old or refills one, so the
        // loop ends: credit grows with every visit.
        loop {
            let (id, is_new) = match self.new.first() {
                Some(id) => (id, true),
                None => (self.old.first()?, false),
            };
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = &mut self.flows[id.index()];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop(&self.links);
                self.old.push(&mut self.links, id);
                continue;
            }
            if flow.due > now
                && let Some((head, _)) = self.pool.oldest_mut(&flow.list)
                && !(self.pacing && is_pure_ack(head))
            {
                list.pop(&self.links);
                self.throttled.push(flow.due, id);
                continue;
            }
            if let Some((pkt, arrived)) = self.pool.pop(&mut flow.list) {
                flow.credit -= signed(pkt.size());
                self.backlog.remove(pkt.size());
                return Some((Some(id), pkt, arrived.max(flow.due)));
            }
            list.pop(&self.links);
            // A new flow may not come back as new before the old have had their turn.
            if is_new && self.old.first().is_some() {
                self.old.push(&mut self.links, id);
            } else {
                flow.place = Place::Detached(now);
                self.detached += 1;
            }
        }
    }
}

/// Credit goes below zero; no packet comes near 2^63 bytes.
#[inline]
pub(super) fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}
