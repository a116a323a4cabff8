//! SFB: Stochastic Fair Blue.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_sfb.c` with the defaults of iproute2 6.1; Feng, Kandlur, Saha and Shin,
//! "Blue", 1999.
//!
//! # Algorithm
//!
//! One FIFO with eight levels of 16 *bins*. The hash of a flow selects one bin per level; each bin
//! counts its queued packets and has a marking probability, which an arrival decreases if the bin
//! is empty and increases if it holds `target` packets or more. The smallest probability of the
//! eight bins is that of the flow, so a bin shared with a heavy flow has no effect as long as
//! another bin of the flow is not shared. If it is 1, the flow is rate-limited by the penalty box.
//!
//! Every `rehash`, the queue changes to another set of bins with a different hash function. During
//! the last `db` before that, penalised flows are counted in both sets.
//!
//! Pseudo-code: `docs/qdiscs/sfb.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash | which flows collide |
//! | time in nanoseconds | in ticks, 1 ms at HZ=1000 | a token or a change of the hash 1 ms sooner or later |
//! | no filters | filters may classify flows | none without them |
//! | what a leaf drops leaves its bins | what it drops later stays counted | bins do not fill up |
//! | a bin counts to 2^32 | to 65535 | none at its limits |

mod bins;
mod inner;

use std::collections::VecDeque;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};
use crate::link::LinkFacts;
use crate::parameters::{
    Counter, Kind, LINUX, Leaf, LeafList, OVERLIMITS, Params, TcStatistics, parameters,
};
use crate::parts::leaf;
use bins::{ALL_BINS, CERTAIN, Flow, Law, Set};
use inner::Inner;

parameters! {
    /// Parameters of [`Sfb`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct SfbParams<L> {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "net/sched/sch_sfb.c: sfb_sched_data.limit; the default is the tx_queue_len of an Ethernet interface";
        /// Time between two changes of the hash.
        pub rehash: Duration = Duration::from_secs(600) => time(1, LONGEST),
            "net/sched/sch_sfb.c: sfb_sched_data.rehash_interval";
        /// Time before a change of the hash at which the warm-up of the next hash begins.
        pub db: Duration = Duration::from_secs(60) => time(0, LONGEST),
            "net/sched/sch_sfb.c: sfb_sched_data.warmup_time (double buffering)";
        /// Number of packets in a bin above which its probability increases.
        pub target: Option<u32> = None => count(1, 100_000_000).in_packets().unset("4/5 max"),
            "net/sched/sch_sfb.c: sfb_sched_data.bin_size; default of iproute2 tc/q_sfb.c";
        /// Maximum number of queued packets per flow.
        pub max: u32 = 25 => count(1, 100_000_000).in_packets(),
            "net/sched/sch_sfb.c: sfb_sched_data.max";
        /// Increase of the probability of a full bin per arrival.
        pub increment: f64 = 0.0005 => fraction(0, 1),
            "net/sched/sch_sfb.c: sfb_sched_data.increment; default of iproute2 tc/q_sfb.c (kernel default: 0.001)";
        /// Decrease of the probability of an empty bin per arrival.
        pub decrement: f64 = 0.00005 => fraction(0, 1),
            "net/sched/sch_sfb.c: sfb_sched_data.decrement; default of iproute2 tc/q_sfb.c (kernel default: 1/6000)";
        /// Rate limit of unresponsive flows, in packets per second.
        pub penalty_rate: u32 = 10 => count(0, 1_000_000),
            "net/sched/sch_sfb.c: sfb_sched_data.penalty_rate";
        /// Burst of unresponsive flows, in packets.
        pub penalty_burst: u32 = 20 => count(0, 1_000_000),
            "net/sched/sch_sfb.c: sfb_sched_data.penalty_burst";
        /// Inner queue, to which limit also applies; by default a FIFO.
        pub leaf: Vec<L> = Vec::new() => leaves(1).unset("a FIFO"),
            "net/sched/sch_sfb.c: sfb_sched_data.qdisc";
    }
}

impl<L> SfbParams<L> {
    fn law(&self) -> Law {
        Law::new(self.target(), self.increment, self.decrement)
    }

    fn target(&self) -> u32 {
        self.target.unwrap_or((4 * self.max + 3) / 5)
    }
}

impl<L: Leaf> Params for SfbParams<L> {
    type Queue<P: Packet> = Sfb<P, L::Queue<P>>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "sfb",
        class: Some("Sfb"),
        summary: "Stochastic Fair Blue: signals each flow with the lowest probability among its bins",
        source: "Linux 6.1 sch_sfb, iproute2; Feng, Kandlur, Saha and Shin 1999",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics =
        TcStatistics::of(&[("marked", Counter::Marks(MarkReason::Aqm))])
            .with_leaves("leaf")
            .with_overlimits();

    fn conflict(&self) -> Option<String> {
        leaf::conflict(&self.leaf, 1)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        Some((&self.leaf, u32::from(!self.leaf.is_empty())))
    }

    fn resolve(&mut self, _link: &LinkFacts) {
        self.target = Some(self.target());
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Sfb<P, L::Queue<P>> {
        let leaf = leaf::only(&self.leaf, link, &rng);
        let mut sfb = Sfb::new(self, rng);
        sfb.leaf = leaf.map(|queue| Box::new(Inner::new(queue)));
        sfb
    }
}

/// Stochastic Fair Blue.
#[derive(Clone, Debug)]
pub struct Sfb<P, Q> {
    limit: usize,
    rehash: Duration,
    db: Duration,
    max: u32,
    law: Law,
    rng: Rng,
    packets: VecDeque<Counted<P>>,
    bytes: Bytes,
    /// Where packets wait instead of in `packets`.
    leaf: Option<Box<Inner<P, Q>>>,
    sets: Box<[Set; 2]>,
    /// The set that decides, 0 or 1.
    active: usize,
    /// When it began to.
    rehashed: Instant,
    penalty: Penalty,
    drops: Drops,
}

/// Why packets were dropped, as `tc` tells it.
#[derive(Clone, Copy, Debug, Default)]
struct Drops {
    early: u64,
    penalty: u64,
    bucket: u64,
    queue: u64,
}

#[derive(Clone, Debug)]
struct Counted<P> {
    pkt: P,
    /// Its bins in each set that counts it.
    hashes: [Option<u32>; 2],
}

impl<P: Packet, Q: Qdisc<P>> Sfb<P, Q> {
    /// An empty queue, made at the origin of time.
    pub fn new<L>(params: &SfbParams<L>, mut rng: Rng) -> Self {
        Self {
            limit: params.limit,
            rehash: params.rehash,
            db: params.db,
            max: params.max,
            law: params.law(),
            packets: VecDeque::new(),
            bytes: Bytes(0),
            leaf: None,
            sets: Box::new([Set::new(&mut rng), Set::new(&mut rng)]),
            active: 0,
            rehashed: Instant::ZERO,
            penalty: Penalty {
                rate: params.penalty_rate,
                burst: params.penalty_burst,
                tokens: params.penalty_burst,
                counted: Instant::ZERO,
            },
            rng,
            drops: Drops::default(),
        }
    }

    /// Lets the other set decide if it is time; the one that did gets another hash.
    fn rehash_if_due(&mut self, now: Instant) {
        if now.since(self.rehashed) > self.rehash {
            self.sets[self.active].perturbation = self.rng.next_u64();
            self.active ^= 1;
            self.rehashed = now;
        }
    }

    /// The other set is about to take over.
    fn is_warming_up(&self, now: Instant) -> bool {
        now.since(self.rehashed) + self.db > self.rehash
    }

    /// Whether `pkt`, of a flow with this probability, is dropped; it may be marked instead.
    fn signal(&mut self, p: u32, pkt: &mut P, now: Instant, obs: &mut dyn Observer<P>) -> bool {
        let drawn = self.rng.next_u32() >> 16;
        if drawn >= p {
            return false;
        }
        // Above 1/2, part of the signals are drops, even for ECN-capable packets.
        if p > CERTAIN / 2 && drawn < (p - CERTAIN / 2) * 2 {
            return true;
        }
        let marked = pkt.mark_ce();
        if marked {
            obs.on_mark(now, pkt, MarkReason::Aqm);
        }
        !marked
    }
}

impl<P: Packet, Q: Qdisc<P>> Qdisc<P> for Sfb<P, Q> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        if self.backlog().packets >= self.limit {
            self.drops.queue += 1;
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.rehash_if_due(now);
        let warming_up = self.is_warming_up(now);
        let (active, other) = (self.active, self.active ^ 1);
        let mut hashes = [None; 2];
        let set = &mut self.sets[active];
        let hash = pkt.flow().digest(set.perturbation);
        let Flow { shortest, p } = set.judge(hash, &self.law);
        hashes[active] = Some(hash);
        if shortest >= self.max {
            self.drops.bucket += 1;
            return obs.on_drop(now, pkt, DropReason::Aqm);
        }
        let dropped = if p >= CERTAIN {
            if warming_up {
                let set = &mut self.sets[other];
                let hash = pkt.flow().digest(set.perturbation);
                set.judge(hash, &self.law);
                hashes[other] = Some(hash);
            }
            let refused = !self.penalty.admits(now);
            self.drops.penalty += u64::from(refused);
            refused
        } else {
            let dropped = self.signal(p, &mut pkt, now, obs);
            self.drops.early += u64::from(dropped);
            dropped
        };
        if dropped {
            return obs.on_drop(now, pkt, DropReason::Aqm);
        }
        for (set, hash) in self.sets.iter_mut().zip(hashes) {
            set.count(hash, |packets| *packets += 1);
        }
        if let Some(leaf) = &mut self.leaf {
            return leaf.enqueue(&mut self.sets, hashes, now, pkt, obs);
        }
        self.bytes += pkt.size();
        self.packets.push_back(Counted { pkt, hashes });
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        if let Some(leaf) = &mut self.leaf {
            return leaf.dequeue(&mut self.sets, now, obs);
        }
        let Counted { pkt, hashes } = self.packets.pop_front()?;
        for (set, hash) in self.sets.iter_mut().zip(hashes) {
            set.count(hash, |packets| *packets -= 1);
        }
        self.bytes -= pkt.size();
        Some(pkt)
    }

    fn peek(&self) -> Peek {
        match &self.leaf {
            Some(leaf) => leaf.queue.head(0),
            None => self.packets.front().map(|of| of.pkt.size()).into(),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match &self.leaf {
            Some(leaf) => leaf.queue.backlog(),
            None => Backlog {
                packets: self.packets.len(),
                bytes: self.bytes,
            },
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.leaf.as_ref()?.queue.next_timer()
    }

    fn packets_affect_timer(&self) -> bool {
        self.leaf.is_some()
    }

    fn on_timer(&mut self, now: Instant) {
        if let Some(leaf) = &mut self.leaf {
            leaf.queue.on_timer(now);
        }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        if let Some(leaf) = &mut self.leaf {
            leaf.queue.on_link_rate(now, rate);
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let bins = || self.sets[self.active].bins.iter().flatten();
        let probability = |p: f64| p / f64::from(CERTAIN);
        let longest = bins().map(|bin| bin.packets).max().unwrap_or(0);
        let highest = bins().map(|bin| bin.p).max().unwrap_or(0);
        let sum: f64 = bins().map(|bin| f64::from(bin.p)).sum();
        let leaf = self.leaf.iter();
        // Drops at a limit, not the signals of its law.
        let overlimits = self.drops.penalty + self.drops.bucket + self.drops.queue;
        let mut all = vec![
            Statistic::count("earlydrop", self.drops.early),
            Statistic::count("penaltydrop", self.drops.penalty),
            Statistic::count("bucketdrop", self.drops.bucket),
            Statistic::count("queuedrop", self.drops.queue),
            Statistic::count("maxqlen", longest.into()),
            Statistic::real("maxprob", probability(highest.into())),
            Statistic::real("avgprob", probability(sum / ALL_BINS)),
            Statistic::count(OVERLIMITS, overlimits),
        ];
        all.extend(leaf.flat_map(|leaf| leaf.queue.statistics("leaf")));
        all
    }

    fn classes(&self) -> Vec<ClassId> {
        let leaf = self.leaf.iter();
        leaf.flat_map(|leaf| leaf.queue.ids()).collect()
    }
}

/// What flows that do not answer may still send.
#[derive(Clone, Debug)]
struct Penalty {
    /// Tokens per second.
    rate: u32,
    burst: u32,
    tokens: u32,
    /// When tokens were last counted.
    counted: Instant,
}

impl Penalty {
    /// As in Linux, time in which no whole token came is lost: whoever asks more often than
    /// `penalty_rate` gets nothing once the burst is spent.
    fn admits(&mut self, now: Instant) -> bool {
        const OLDEST: Duration = Duration::from_secs(10);
        const NANOS_PER_SEC: u64 = 1_000_000_000;
        if self.tokens == 0 {
            let age = now.since(self.counted).min(OLDEST).as_nanos();
            let come = age * u64::from(self.rate) / NANOS_PER_SEC;
            self.tokens = u32::try_from(come).map_or(self.burst, |come| come.min(self.burst));
            self.counted = now;
        }
        let admitted = self.tokens > 0 && self.rate > 0;
        self.tokens -= u32::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests;
