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

use std::collections::{BTreeMap, VecDeque};

use sojourn_net::{Bytes, Comparison, Duration, FlowKey, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};
use crate::parameters::{
    Counter, Kind, LINUX, Leaf, LeafList, LinkFacts, OVERLIMITS, Params, Retention, TcStatistics,
    parameters,
};
use crate::parts::classes::Classes;
use crate::parts::leaf;

parameters! {
    /// Parameters of [`Sfb`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct SfbParams<L> {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "net/sched/sch_sfb.c: sfb_sched_data.limit; the default is the tx_queue_len of an Ethernet interface";
        /// Time between two changes of the hash.
        pub rehash: Duration = Duration::from_secs(600) => time(1, LONGEST).plain("ms"),
            "net/sched/sch_sfb.c: sfb_sched_data.rehash_interval";
        /// Time before a change of the hash at which the warm-up of the next hash begins.
        pub db: Duration = Duration::from_secs(60) => time(0, LONGEST).plain("ms"),
            "net/sched/sch_sfb.c: sfb_sched_data.warmup_time (double buffering)";
        /// Number of packets in a bin above which its probability increases.
        pub target: Option<u32> = None => count(1, 100_000_000).in_packets().unset("4/5 max"),
            "net/sched/sch_sfb.c: sfb_sched_data.bin_size; default of iproute2 tc/q_sfb.c";
        /// Maximum number of queued packets per flow.
        pub max: Option<u32> = None
            => count(1, 100_000_000).in_packets().unset("25; (5 target + 1) / 4 if target is set"),
            "net/sched/sch_sfb.c: sfb_sched_data.max; default of iproute2 tc/q_sfb.c";
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
        pub penalty_burst: u32 = 20 => count(0, 1_000_000).in_packets(),
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
        self.target.unwrap_or((4 * self.max() + 3) / 5)
    }

    fn max(&self) -> u32 {
        let derived = self.target.map_or(25, |target| (5 * target + 1) / 4);
        self.max.unwrap_or(derived)
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
        (self.target, self.max) = (Some(self.target()), Some(self.max()));
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Sfb<P, L::Queue<P>> {
        let leaf = leaf::only(&self.leaf, link, &rng);
        let mut sfb = Sfb::new(self, rng);
        sfb.leaf = leaf.map(|queue| Box::new(Inner::new(queue)));
        sfb
    }

    /// As in Linux, which gives the queue a new buffer, the packets are dropped.
    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Drops)
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
            max: params.max(),
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
            let prob = f64::from(p) / f64::from(CERTAIN);
            obs.on_decision(&|| vec![Statistic::real("prob", prob)]);
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
        let numbers = || {
            vec![
                Statistic::real("prob", f64::from(p) / f64::from(CERTAIN)),
                Statistic::count("bucket", shortest.into()),
            ]
        };
        if shortest >= self.max {
            self.drops.bucket += 1;
            obs.on_decision(&numbers);
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
            obs.on_decision(&numbers);
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

    fn state(&self, now: Instant) -> Vec<Statistic> {
        let leaf = self.leaf.iter();
        leaf.flat_map(|leaf| leaf.queue.state("leaf", now))
            .collect()
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

/// A probability of 1, nearly: the kernel counts in 2^-16 and has 16 bits.
const CERTAIN: u32 = 0xFFFF;
const LEVELS: usize = 8;
/// Four bits of the hash name a bin in each level.
const BINS: usize = 16;
/// Bins of a set.
const ALL_BINS: f64 = 128.0;

#[derive(Clone, Copy, Debug)]
struct Law {
    target: u32,
    increment: u32,
    decrement: u32,
}

impl Law {
    /// Bins of `target` packets are full; each step is a probability.
    fn new(target: u32, increment: f64, decrement: f64) -> Self {
        Self {
            target,
            increment: q16(increment),
            decrement: q16(decrement),
        }
    }
}

/// The bins under one hash.
#[derive(Clone, Debug)]
struct Set {
    perturbation: u64,
    bins: [[Bin; BINS]; LEVELS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    packets: u32,
    p: u32,
}

impl Bin {
    /// The bin is empty or full.
    #[inline]
    fn adapt(&mut self, law: &Law) {
        self.p = if self.packets == 0 {
            self.p.saturating_sub(law.decrement)
        } else {
            (self.p + law.increment).min(CERTAIN)
        };
    }
}

/// What the bins of a flow say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    shortest: u32,
    p: u32,
}

impl Set {
    fn new(rng: &mut Rng) -> Self {
        Self {
            perturbation: rng.next_u64(),
            bins: [[Bin::default(); BINS]; LEVELS],
        }
    }

    #[inline]
    fn bins_of(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        let levels = self.bins.iter_mut().zip(0..);
        levels.map(move |(bins, level): (_, u32)| &mut bins[(hash >> (4 * level)) as usize % BINS])
    }

    /// Adapts the probabilities of the bins of a flow with this hash to the arrival of a packet.
    #[inline]
    fn judge(&mut self, hash: u32, law: &Law) -> Flow {
        let (mut shortest, mut p) = (u32::MAX, CERTAIN);
        for bin in self.bins_of(hash) {
            // One test for both: an empty bin wraps to the largest number.
            if bin.packets.wrapping_sub(1) >= law.target - 1 {
                bin.adapt(law);
            }
            shortest = shortest.min(bin.packets);
            p = p.min(bin.p);
        }
        Flow { shortest, p }
    }

    #[inline]
    fn count(&mut self, hash: Option<u32>, change: impl Fn(&mut u32)) {
        if let Some(hash) = hash {
            self.bins_of(hash).for_each(|bin| change(&mut bin.packets));
        }
    }
}

/// A probability in units of 2^-16.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a probability is not negative"
)]
fn q16(probability: f64) -> u32 {
    (probability * f64::from(CERTAIN)).round() as u32
}

/// The queue, and which bins count what waits there.
///
/// The packets themselves cannot carry their bins: the queue hands back what it was given.
#[derive(Clone, Debug)]
struct Inner<P, Q> {
    queue: Classes<Q, P>,
    /// The bins of the packets of each flow that waits, oldest first. Which of them is the one
    /// that goes matters only in the moments after a change of the hash.
    counted: BTreeMap<FlowKey, VecDeque<Hashes>>,
}

/// The bins of a packet in each set that counts it.
type Hashes = [Option<u32>; 2];

impl<P: Packet, Q: Qdisc<P>> Inner<P, Q> {
    const fn new(queue: Classes<Q, P>) -> Self {
        Self {
            queue,
            counted: BTreeMap::new(),
        }
    }

    /// Offers a packet that the sets have counted.
    fn enqueue(
        &mut self,
        sets: &mut [Set; 2],
        hashes: Hashes,
        now: Instant,
        pkt: P,
        obs: &mut dyn Observer<P>,
    ) {
        let of_flow = self.counted.entry(pkt.flow()).or_default();
        of_flow.push_back(hashes);
        let counted = &mut self.counted;
        let obs = &mut Uncounting { sets, counted, obs };
        self.queue.enqueue(0, now, pkt, obs);
    }

    fn dequeue(
        &mut self,
        sets: &mut [Set; 2],
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let counted = &mut self.counted;
        let obs = &mut Uncounting { sets, counted, obs };
        let pkt = self.queue.dequeue(0, now, obs)?;
        obs.uncount(&pkt.flow());
        Some(pkt)
    }
}

/// Takes what the queue drops out of the bins.
struct Uncounting<'a, P> {
    sets: &'a mut [Set; 2],
    counted: &'a mut BTreeMap<FlowKey, VecDeque<Hashes>>,
    obs: &'a mut dyn Observer<P>,
}

impl<P> Uncounting<'_, P> {
    fn uncount(&mut self, flow: &FlowKey) {
        let Some(of_flow) = self.counted.get_mut(flow) else {
            return;
        };
        let hashes = of_flow.pop_front();
        if of_flow.is_empty() {
            self.counted.remove(flow);
        }
        for (set, hash) in self.sets.iter_mut().zip(hashes.unwrap_or_default()) {
            set.count(hash, |packets| *packets -= 1);
        }
    }
}

impl<P: Packet> Observer<P> for Uncounting<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        self.obs.on_class(class);
    }

    fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        self.obs.on_decision(numbers);
    }

    fn pacing_rate(&self, pkt: &P) -> Option<Rate> {
        self.obs.pacing_rate(pkt)
    }

    fn flow_of(&mut self, pkt: &P) -> Option<u32> {
        self.obs.flow_of(pkt)
    }

    fn station_of(&self, pkt: &P) -> u8 {
        self.obs.station_of(pkt)
    }

    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason) {
        self.uncount(&pkt.flow());
        self.obs.on_drop(now, pkt, reason);
    }

    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason) {
        self.obs.on_mark(now, pkt, reason);
    }
}

#[cfg(test)]
mod tests;
