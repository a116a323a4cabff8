//! SFQ: Stochastic Fairness Queueing.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_sfq.c`; the idea is from 1990 (P. `McKenney`).
//!
//! # Algorithm
//!
//! A flow hashes to one of `divisor` buckets; a bucket with packets holds one of `flows` slots,
//! and the slots take turns of `quantum` bytes. A new slot joins the end of the round. When more
//! than `limit` packets wait, the longest slot loses its newest packet (with `headdrop` its
//! oldest); a slot holds at most `depth` packets.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash | which flows collide |
//! | a perturbation acts at the next packet after its time | at its time | none to be seen |
//! | no RED in the slots | `redflowlimit` | none at its default |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{Kind, LINUX, LinkFacts, Params, TcWord, parameters};
use crate::parts::pool::{List, Pool};

const NANOS_PER_SEC: u64 = 1_000_000_000;

parameters! {
    /// Parameters of [`Sfq`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SfqParams {
        /// Maximum number of packets in all slots together.
        pub limit: usize = 127 => packets(2, 65_536 * 127),
            "net/sched/sch_sfq.c: sfq_sched_data.limit";
        /// Maximum number of packets in one slot.
        pub depth: u32 = 127 => count(1, 127).in_packets(),
            "net/sched/sch_sfq.c: sfq_sched_data.maxdepth";
        /// Number of flows that can be queued at the same time.
        pub flows: u32 = 128 => count(1, 65_408),
            "net/sched/sch_sfq.c: sfq_sched_data.maxflows";
        /// Number of hash buckets; a power of 2.
        pub divisor: u32 = 1_024 => count(1, 65_536),
            "net/sched/sch_sfq.c: sfq_sched_data.divisor";
        /// Bytes that a slot sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("the MTU"),
            "net/sched/sch_sfq.c: sfq_sched_data.quantum";
        /// Time between two changes of the hash.
        pub perturb: Option<Duration> = None => time(NANOS_PER_SEC, LONGEST).plain("s").unset("off"),
            "net/sched/sch_sfq.c: sfq_sched_data.perturb_period";
        /// Drop the oldest packet of a slot instead of the newest.
        pub headdrop: bool = false => flag(),
            "net/sched/sch_sfq.c: sfq_sched_data.headdrop";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "addition, as in include/net/codel.h: codel_params.ce_threshold";
    }
}

impl SfqParams {
    /// With the flows and packets that the kernel allows.
    fn fitting(&self) -> Self {
        let mut flows = self.flows.min(self.divisor);
        let limit = self.limit.min(self.depth as usize * flows as usize);
        // The kernel bounds the flows by a limit that is set.
        if self.limit != Self::default().limit {
            flows = flows.min(u32::try_from(limit).unwrap_or(u32::MAX));
        }
        Self {
            limit,
            flows,
            ..*self
        }
    }
}

impl Params for SfqParams {
    type Queue<P: Packet> = Sfq<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "sfq",
        class: Some("Sfq"),
        summary: "Round robin over slots to which flows are hashed",
        source: "Linux 6.1 sch_sfq; McKenney 1990",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    fn unmanaged_buffer(&self, frame: Bytes) -> Option<Bytes> {
        let limit = Bytes(frame.0.saturating_mul(self.limit as u64));
        self.ce_threshold.is_none().then_some(limit)
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        const RED: TcWord = TcWord::NotModelled("RED within the slots");
        &[
            ("redflowlimit", RED),
            ("min", RED),
            ("max", RED),
            ("burst", RED),
            ("avpkt", RED),
            ("probability", RED),
            ("ewma", RED),
            ("ecn", RED),
            ("harddrop", RED),
        ]
    }

    /// As in the kernel, no more flows than buckets or packets, and no more packets than fit into the slots; the
    /// defaults, which nobody chose, follow without a note.
    fn settle(&mut self, _shorthands: &[&str]) -> Result<Vec<String>, String> {
        let (given, default) = (*self, Self::default());
        let fitting = self.fitting();
        if given.limit != default.limit && fitting.limit < 2 {
            return Err("depth * flows must be at least 2".into());
        }
        let mut changes = Vec::new();
        if given.flows != default.flows && given.flows > fitting.flows {
            let bound = if given.flows > given.divisor {
                "divisor"
            } else {
                "limit"
            };
            changes.push(format!(
                "flows: {}, not {}: the kernel allows at most {bound}",
                fitting.flows, given.flows
            ));
            self.flows = fitting.flows;
        }
        if given.limit != default.limit && given.limit > fitting.limit {
            changes.push(format!(
                "limit: {}, not {}: the kernel allows at most depth * flows",
                fitting.limit, given.limit
            ));
            self.limit = fitting.limit;
        }
        Ok(changes)
    }

    fn conflict(&self) -> Option<String> {
        (!self.divisor.is_power_of_two())
            .then(|| format!("divisor {} is not a power of 2", self.divisor))
    }

    fn resolve(&mut self, link: &LinkFacts) {
        *self = self.fitting();
        self.quantum.get_or_insert(link.mtu);
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Sfq<P> {
        Sfq::new(self, link.mtu, rng)
    }
}

/// Stochastic fair queueing.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    params: SfqParams,
    quantum: i64,
    rng: Rng,
    perturbation: u64,
    next_perturbation: Option<Instant>,
    pool: Pool<P>,
    backlog: Backlog,
    /// The slot of each bucket.
    buckets: Vec<u32>,
    slots: Vec<Slot>,
    lengths: Lengths,
    /// The slot served last in the round; the next one follows it.
    tail: Option<u32>,
}

#[derive(Clone, Debug)]
struct Slot {
    list: List,
    bucket: u32,
    /// What it may still send in its turn.
    allot: i64,
    /// The slot after it in the round.
    next: u32,
}

/// A bucket without a slot.
const EMPTY: u32 = u32::MAX;

impl<P: Packet> Sfq<P> {
    /// An empty queue, made at the origin of time, for packets of up to `mtu` bytes.
    pub fn new(params: &SfqParams, mtu: Bytes, mut rng: Rng) -> Self {
        let slot = Slot {
            list: List::EMPTY,
            bucket: 0,
            allot: 0,
            next: 0,
        };
        let params = params.fitting();
        Self {
            params,
            quantum: signed(params.quantum.unwrap_or(mtu)),
            perturbation: rng.next_u64(),
            rng,
            next_perturbation: params.perturb.map(|period| Instant::ZERO + period),
            pool: Pool::new(),
            backlog: Backlog::default(),
            buckets: vec![EMPTY; params.divisor as usize],
            slots: vec![slot; params.flows as usize],
            lengths: Lengths::new(params.flows, params.depth),
            tail: None,
        }
    }

    /// Puts `pkt` at the end of its slot, whose place in the round stays.
    fn put(&mut self, at: u32, now: Instant, pkt: P) {
        self.backlog.add(pkt.size());
        let list = &mut self.slots[at as usize].list;
        self.pool.push(list, now, pkt);
        self.lengths.change(at, list.packets());
    }

    /// Appends `pkt` to its slot, which must have room.
    fn append(&mut self, at: u32, now: Instant, pkt: P) {
        self.put(at, now, pkt);
        let slot = &mut self.slots[at as usize];
        if slot.list.packets() > 1 {
            return;
        }
        slot.allot = self.quantum;
        match self.tail {
            None => slot.next = at,
            Some(tail) => {
                let first = self.slots[tail as usize].next;
                self.slots[at as usize].next = first;
                self.slots[tail as usize].next = at;
            }
        }
        self.tail = Some(at);
    }

    /// The number of the hash bucket of `pkt`.
    fn bucket(&self, pkt: &P) -> u32 {
        pkt.flow().digest(self.perturbation) & (self.params.divisor - 1)
    }

    /// The slot of `pkt`, taken from the vacant ones if its flow has none.
    fn slot_of(&mut self, pkt: &P) -> Option<u32> {
        let bucket = self.bucket(pkt);
        let held = self.buckets[bucket as usize];
        if held != EMPTY {
            return Some(held);
        }
        let vacant = self.lengths.first_of(0)?;
        self.buckets[bucket as usize] = vacant;
        self.slots[vacant as usize].bucket = bucket;
        Some(vacant)
    }

    fn take(&mut self, at: u32, from_head: bool) -> Option<(P, Instant)> {
        let list = &mut self.slots[at as usize].list;
        let (pkt, arrived) = if from_head {
            self.pool.pop(list)
        } else {
            self.pool.pop_newest(list)
        }?;
        self.backlog.remove(pkt.size());
        self.lengths.change(at, list.packets());
        Some((pkt, arrived))
    }

    /// Drops from the longest slot; among equals, from the one that reached its length last.
    #[cold]
    fn drop_one(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let longest = match (self.lengths.longest, self.tail) {
            (0, _) | (_, None) => None,
            // All slots hold one packet: the next in the round loses its place.
            (1, Some(tail)) => {
                let first = self.slots[tail as usize].next;
                self.leave_round(tail, first);
                Some(first)
            }
            (length, _) => self.lengths.first_of(length),
        };
        let lost = longest.and_then(|at| self.take(at, self.params.headdrop));
        if let Some((pkt, _)) = lost {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    /// Takes `first`, which follows `tail`, out of the round and of its bucket.
    fn leave_round(&mut self, tail: u32, first: u32) {
        let slot = &self.slots[first as usize];
        self.buckets[slot.bucket as usize] = EMPTY;
        let next = slot.next;
        if next == first {
            self.tail = None;
        } else {
            self.slots[tail as usize].next = next;
        }
    }

    /// Changes the hash if it is time, and moves what waits to where it now belongs.
    fn perturb_if_due(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let (Some(due), Some(period)) = (self.next_perturbation, self.params.perturb) else {
            return;
        };
        if now < due {
            return;
        }
        self.next_perturbation = Some(now + period);
        self.perturbation = self.rng.next_u64();

        let mut waiting = Vec::with_capacity(self.backlog.packets);
        for at in 0..self.params.flows {
            while let Some(popped) = self.take(at, true) {
                waiting.push(popped);
            }
        }
        self.tail = None;
        self.buckets.fill(EMPTY);
        for (pkt, arrived) in waiting {
            match self.slot_of(&pkt) {
                Some(at) if self.has_room(at) => self.append(at, arrived, pkt),
                _ => obs.on_drop(now, pkt, DropReason::Overlimit),
            }
        }
    }

    fn has_room(&self, at: u32) -> bool {
        self.slots[at as usize].list.packets() < self.params.depth
    }
}

impl<P: Packet> Qdisc<P> for Sfq<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.perturb_if_due(now, obs);
        let Some(at) = self.slot_of(&pkt) else {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        };
        if !self.has_room(at) {
            if !self.params.headdrop {
                return obs.on_drop(now, pkt, DropReason::Overlimit);
            }
            if let Some((oldest, _)) = self.take(at, true) {
                obs.on_drop(now, oldest, DropReason::Overlimit);
            }
            // One for one: even if that emptied the slot, it has not left the round.
            return self.put(at, now, pkt);
        }
        self.append(at, now, pkt);
        if self.backlog.packets > self.params.limit {
            self.drop_one(now, obs);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.perturb_if_due(now, obs);
        // A slot's allotment grows each time the round passes it, so the loop ends.
        loop {
            let tail = self.tail?;
            let first = self.slots[tail as usize].next;
            let slot = &mut self.slots[first as usize];
            if slot.allot <= 0 {
                slot.allot += self.quantum;
                self.tail = Some(first);
                continue;
            }
            let (mut pkt, arrived) = self.take(first, true)?;
            let slot = &mut self.slots[first as usize];
            if slot.list.packets() == 0 {
                self.leave_round(tail, first);
            } else {
                slot.allot -= signed(pkt.size());
            }
            let threshold = self.params.ce_threshold;
            if threshold.is_some_and(|threshold| now.since(arrived) > threshold) && pkt.mark_ce() {
                obs.on_mark(now, &pkt, MarkReason::CeThreshold);
            }
            return Some(pkt);
        }
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        Some(self.bucket(pkt))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let flows = self.buckets.iter().filter(|&&slot| slot != EMPTY).count();
        vec![Statistic::count("flows", flows as u64)]
    }
}

/// The slots by length, so that the longest is found at once; those of length 0 are vacant.
///
/// Each length has a doubly linked list; the slot that came to it last is first.
#[derive(Clone, Debug)]
struct Lengths {
    first: Vec<u32>,
    /// Length, previous and next slot.
    links: Vec<(u32, u32, u32)>,
    longest: u32,
}

impl Lengths {
    fn new(slots: u32, depth: u32) -> Self {
        let mut lengths = Self {
            first: vec![EMPTY; depth as usize + 1],
            links: vec![(0, EMPTY, EMPTY); slots as usize],
            longest: 0,
        };
        for slot in 0..slots {
            lengths.link(slot, 0);
        }
        lengths
    }

    fn first_of(&self, length: u32) -> Option<u32> {
        let slot = self.first[length as usize];
        (slot != EMPTY).then_some(slot)
    }

    /// `slot` now holds `length` packets, one more or one less than before.
    fn change(&mut self, slot: u32, length: u32) {
        let (before, prev, next) = self.links[slot as usize];
        match self.links.get_mut(prev as usize) {
            Some(prev) => prev.2 = next,
            None => self.first[before as usize] = next,
        }
        if let Some(next) = self.links.get_mut(next as usize) {
            next.1 = prev;
        }
        self.link(slot, length);
        let vacated = before == self.longest && self.first[before as usize] == EMPTY;
        if length > self.longest || vacated {
            self.longest = length;
        }
    }

    fn link(&mut self, slot: u32, length: u32) {
        let next = self.first[length as usize];
        self.links[slot as usize] = (length, EMPTY, next);
        if let Some(next) = self.links.get_mut(next as usize) {
            next.1 = slot;
        }
        self.first[length as usize] = slot;
    }
}

/// Allotments go below zero; no packet comes near 2^63 bytes.
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
