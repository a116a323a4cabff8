//! CAKE: Common Applications Kept Enhanced.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_cake.c`; the keywords are those of iproute2. Høiland-Jørgensen, Täht and
//! Morton, "Piece of CAKE" (LANMAN 2018), describes it.
//!
//! # Algorithm
//!
//! A shaper around tins; in each tin, deficit round robin over the flows with host isolation; on
//! each flow, COBALT. The quantum of a flow is divided by `h`, the number of bulk flows of its
//! source host, its destination host or the larger of both, depending on `flowmode`, so that
//! capacity is shared first among hosts, then among their flows.
//!
//! Pseudo-code: `docs/qdiscs/cake.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | the length of a packet decides how much of `memlimit` it takes | its origin too | none for forwarded full packets |
//! | another hash, of each direction apart | one hash of both directions of a flow | none unless both pass one queue |
//! | no `autorate-ingress`, `fwmark`, filters | optional | none at the defaults |
//! | no GSO: every packet is one segment | splits batches by default | none |
//! | intervals of any length | a gap between signals loses the bits of the interval above 2^32 ns | none below 4.29 s |

mod flows;
mod options;
mod pace;
mod tin;

use sojourn_net::{Bytes, Comparison, Dscp, Instant, Packet, Rate, Rng};

use crate::aqm::cobalt::EXACT_ROOTS;
use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX, LinkFacts, OVERLIMITS, Params, Retention, Shorthand, TcStatistics, TcWord, fixed,
};
use crate::parts::framing::LINK_LAYERS;
use crate::parts::memory::Memory;
use crate::parts::pool::Pool;
use flows::{Lengths, Longest};
use options::Classes;
use options::{SHORTHANDS, WORDS, is_rtt_preset};
use pace::FLOWS;
use pace::{Count, Shaper};
use tin::{Tin, Tuning};

pub use options::{AckFilter, CakeParams, Diffserv, FlowMode};

/// The Ethernet header in bytes.
const ETHERNET_HEADER: i16 = 14;
/// The memory is limited to as many times the MTU, unless more was asked for.
const MOST_PACKETS: u64 = 10_240;

impl Params for CakeParams {
    type Queue<P: Packet> = Cake<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "cake",
        class: Some("Cake"),
        summary: "Shaper with priority tins, fairness among hosts and flows, and COBALT in each queue",
        source: "Linux 6.1 sch_cake, iproute2; Høiland-Jørgensen, Täht and Morton 2018",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_overlimits();

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        &[SHORTHANDS, LINK_LAYERS]
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        WORDS
    }

    /// `tc` takes one preset of the RTT; `raw` also counts the Ethernet header if an overhead follows it.
    fn settle(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let mut presets = words.iter().filter(|word| is_rtt_preset(word));
        if let (Some(first), Some(second)) = (presets.next(), presets.next()) {
            return Err(format!(
                "{second} after {first}: tc refuses a second preset of the RTT; expected one of them"
            ));
        }
        let Some(overhead) = self.overhead.filter(|_| words.contains(&"raw")) else {
            return Ok(Vec::new());
        };
        let framed = overhead + ETHERNET_HEADER;
        self.overhead = (overhead != 0).then_some(framed);
        if framed > 256 {
            return Err(format!(
                "raw overhead {overhead} is overhead {framed}; expected at most 256"
            ));
        }
        Ok(Vec::new())
    }

    fn shaper_rate(&self) -> Option<Rate> {
        self.bandwidth
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Cake<P> {
        Cake::new(self, link.mtu, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("diffserv", self.diffserv == next.diffserv),
            ("flowmode", self.flowmode == next.flowmode),
        ])
    }

    /// As in Linux, the shaper goes on from the time at which its next packet may leave, and packets above a lower
    /// limit stay until the next arrival.
    fn change<P: Packet>(
        &self,
        queue: &mut Cake<P>,
        _now: Instant,
        link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        let fresh = Cake::<P>::new(self, link.mtu, queue.rng.clone());
        for (tin, next) in queue.tins.iter_mut().zip(fresh.tins) {
            tin.change(next);
        }
        queue.shaper.set_pace(queue.tins[0].pace());
        queue.classes = fresh.classes;
        queue.count = fresh.count;
        queue.limit = fresh.limit;
        if queue.params.overhead != self.overhead {
            queue.sizes = Sizes::default();
        }
        queue.params = self.clone();
    }
}

/// A shaper with tins of fair queues governed by COBALT.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    params: CakeParams,
    classes: Classes,
    count: Count,
    shaper: Shaper,
    tins: Vec<Tin>,
    /// The tin whose turn it is where there is no shaper.
    current: usize,
    pool: Pool<P>,
    backlog: Backlog,
    longest: Longest,
    limit: u64,
    /// When a packet that was held back may leave.
    wake: Option<Instant>,
    memory: Memory,
    most_memory: u64,
    /// Dequeue calls that the shaper throttled while packets waited.
    overlimits: u64,
    sizes: Sizes,
    rng: Rng,
}

/// Counters of all tins together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u64,
    pub(super) marks: u64,
    pub(super) overlimits: u64,
    pub(super) memory_used: u64,
    pub(super) memory_limit: u64,
}

/// A queue by tin and flow.
#[derive(Clone, Copy, Debug)]
struct At {
    tin: usize,
    flow: usize,
}

impl At {
    const fn queue(self) -> usize {
        self.tin * FLOWS + self.flow
    }
}

impl Lengths for [Tin] {
    fn bytes(&self, queue: usize) -> u64 {
        self[queue / FLOWS].flows[queue % FLOWS].list.bytes().0
    }
}

impl<P: Packet> Cake<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &CakeParams, mtu: Bytes, mut rng: Rng) -> Self {
        let rate = params.bandwidth.map_or(0, |rate| rate.bits_per_sec() / 8);
        let rate = rate.max(u64::from(params.bandwidth.is_some()));
        let classes = Classes::of(params.diffserv, rate);
        let tuning = Tuning::of(params.rtt, mtu);
        let perturbation = rng.next_u64();
        let tins: Vec<_> = (classes.shares.iter())
            .map(|&share| Tin::new(share, &tuning, params.flowmode, perturbation))
            .collect();
        Self {
            count: Count::new(params),
            shaper: Shaper::new(tins[0].pace()),
            longest: Longest::new(tins.len() * FLOWS),
            limit: limit(params, rate, mtu),
            params: params.clone(),
            classes,
            tins,
            current: 0,
            pool: Pool::new(),
            backlog: Backlog::default(),
            wake: None,
            memory: Memory::of_buffers(),
            most_memory: 0,
            overlimits: 0,
            sizes: Sizes::default(),
            rng,
        }
    }

    /// Shapes at `rate` bytes per second from now on; the targets of COBALT stay.
    pub(super) fn set_rate(&mut self, rate: u64) {
        let shares = Classes::of(self.params.diffserv, rate).shares;
        for (tin, (threshold, _)) in self.tins.iter_mut().zip(shares) {
            tin.set_threshold(threshold);
        }
        self.shaper.set_pace(self.tins[0].pace());
    }

    /// COBALT counts with exact square roots from now on, as in Linux 7.3.
    pub(super) fn use_exact_roots(&mut self) {
        for tin in &mut self.tins {
            tin.law.roots = &EXACT_ROOTS;
        }
    }

    /// When the kernel asks an empty queue again, some of whose flows decay; `None`: not before a packet arrives.
    pub(super) fn asked_empty(&self, now: Instant) -> Option<Instant> {
        let mut tins = self.tins.iter();
        let decaying = tins.find(|tin| tin.flows.census.decaying() > 0)?;
        Some(now + decaying.law.target)
    }

    /// What all tins counted together.
    pub(super) fn totals(&self) -> Totals {
        let sum = |count: fn(&Tin) -> u64| self.tins.iter().map(count).sum();
        Totals {
            packets: sum(|tin| tin.counts.packets),
            bytes: sum(|tin| tin.counts.bytes),
            drops: sum(|tin| tin.counts.drops + tin.counts.acks),
            marks: sum(|tin| tin.counts.marks),
            overlimits: self.overlimits,
            memory_used: self.most_memory,
            memory_limit: self.limit,
        }
    }

    /// Removes the oldest packet of a queue and says when it arrived.
    fn pop(&mut self, at: At) -> Option<(P, Instant)> {
        let tin = &mut self.tins[at.tin];
        let (pkt, arrived) = self.pool.pop(&mut tin.flows[at.flow].list)?;
        let size = pkt.size();
        tin.backlog -= size.0;
        self.longest.shrink(at.queue(), self.tins.as_slice());
        self.backlog.remove(size);
        self.memory.remove(size);
        Some((pkt, arrived))
    }

    /// Makes room: the longest queue loses its oldest packet.
    #[cold]
    fn drop_longest(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let queue = self.longest.find(self.tins.as_slice());
        let at = At {
            tin: queue / FLOWS,
            flow: queue % FLOWS,
        };
        let Some((pkt, _)) = self.pop(at) else {
            return;
        };
        let tin = &mut self.tins[at.tin];
        let control = &mut tin.flows[at.flow].control;
        tin.counts.unresponsive += u64::from(control.on_full(&tin.law, now));
        tin.counts.drops += 1;
        if self.params.ingress {
            self.charge_drop(at.tin, self.count.adjusted(pkt.size()), now);
        }
        obs.on_class(self.classes.id(at.tin));
        obs.on_drop(now, pkt, DropReason::Overlimit);
    }

    /// Drops the acknowledgement that the newest packet of a queue makes superfluous.
    #[cold]
    fn filter_acks(&mut self, at: At, now: Instant, obs: &mut dyn Observer<P>) {
        let tin = &mut self.tins[at.tin];
        let list = &mut tin.flows[at.flow].list;
        let Some(place) = tin::superfluous(&self.pool, list, self.params.ack_filter) else {
            return;
        };
        let Some((ack, _)) = self.pool.remove(list, place) else {
            return;
        };
        tin.counts.acks += 1;
        tin.backlog -= ack.size().0;
        self.backlog.remove(ack.size());
        self.memory.remove(ack.size());
        if self.params.ingress {
            self.charge_drop(at.tin, self.count.adjusted(ack.size()), now);
        }
        obs.on_class(self.classes.id(at.tin));
        obs.on_drop(now, ack, DropReason::AckFilter);
    }

    /// Counts a dropped packet of `counted` bytes against the shaper and its tin's share.
    fn charge_drop(&mut self, tin: usize, counted: u64, now: Instant) {
        self.tins[tin].charge(counted, now);
        self.shaper.charge(counted, false);
    }

    /// The tin that sends next, if any has an active flow.
    #[inline]
    fn choose_tin(&mut self, now: Instant) -> Option<usize> {
        if !self.shaper.is_unlimited() {
            return self.most_urgent_tin(now);
        }
        let current = &self.tins[self.current];
        let ready = current.deficit >= 0 && current.flows.is_active();
        if !ready && !self.tins.iter().any(|tin| tin.flows.is_active()) {
            return None;
        }
        // What is owed falls with every round.
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.flows.is_active() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.current += 1;
            if self.current == self.tins.len() {
                self.current = 0;
            }
        }
    }

    /// The last tin within its share, else the one that will be first.
    fn most_urgent_tin(&self, now: Instant) -> Option<usize> {
        let mut best: Option<(usize, Instant)> = None;
        for (at, tin) in self.tins.iter().enumerate() {
            let due = tin.time_next;
            let urgent = due <= now || best.is_none_or(|(_, first)| due <= first);
            if tin.flows.is_active() && urgent {
                best = Some((at, due));
            }
        }
        best.map(|(at, _)| at)
    }

    /// Takes a packet from the flow whose turn it is in `chosen`; `None`: look for a tin again.
    #[inline]
    fn serve(
        &mut self,
        chosen: usize,
        first_look: &mut bool,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let ingress = self.params.ingress;
        let mut tin = &mut self.tins[chosen];
        // Each turn sends or drops a packet, retires a flow or adds to what one may send.
        loop {
            let at = tin.flows.first(std::mem::take(first_look))?;
            if tin.flows[at].deficit <= 0 {
                tin.flows.next_turn(at, &mut self.rng);
                continue;
            }
            // Takes packets as the law of the flow allows, until one may be sent or counts as sent.
            while let Some((pkt, arrived)) = self.pool.oldest_mut(&tin.flows[at].list) {
                let size = pkt.size();
                let sharing = if ingress { tin.flows.census.bulk() } else { 0 };
                let flow = &mut tin.flows[at];
                let sojourn = now.since(arrived);
                let signal = flow.control.next_signal(&tin.law, sojourn, sharing, now);
                let marked = signal && pkt.mark_ce();
                if marked {
                    tin.counts.marks += 1;
                    obs.on_decision(&|| flow.control.numbers(sojourn, true, now));
                    obs.on_class(self.classes.id(chosen));
                    obs.on_mark(now, pkt, MarkReason::Aqm);
                }
                let unheard = signal && !marked;
                let dropped = flow.control.settle(&tin.law, unheard, now, &mut self.rng);
                let sent = !dropped || flow.list.packets() == 1;
                if !sent {
                    obs.on_decision(&|| flow.control.numbers(sojourn, unheard, now));
                }
                let pkt = self.pool.pop_sized(&mut flow.list, size);
                tin.backlog -= size.0;
                self.backlog.remove(size);
                self.memory.remove(size);
                let counted = self.count.adjusted(size);
                if sent || ingress {
                    tin.charge(counted, now);
                    tin.spend(at, counted);
                    self.shaper.charge(counted, sent);
                }
                if sent {
                    tin.counts.delay.add(sojourn);
                } else {
                    tin.counts.drops += 1;
                }
                if self.longest.is_kept() {
                    let queue = chosen * FLOWS + at;
                    self.longest.shrink(queue, self.tins.as_slice());
                    tin = &mut self.tins[chosen];
                }
                if sent {
                    self.longest.on_sent();
                    return pkt;
                }
                obs.on_class(self.classes.id(chosen));
                if let Some(pkt) = pkt {
                    obs.on_drop(now, pkt, DropReason::Aqm);
                }
                if ingress {
                    break;
                }
            }
            let flow = &mut tin.flows[at];
            if flow.list.packets() == 0 {
                tin.counts.unresponsive -= u64::from(flow.control.on_empty(&tin.law, now));
                let calm = flow.control.is_at_rest(now);
                tin.flows.retire(at, calm);
                return None;
            }
        }
    }
}

impl<P: Packet> Qdisc<P> for Cake<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let tin = self.classes.tin(pkt.dscp());
        if self.params.wash {
            pkt.set_dscp(Dscp::DEFAULT);
        }
        let size = pkt.size();
        let class = &mut self.tins[tin];
        let flow = class.flows.place(|| pkt.flow());
        if class.backlog == 0 {
            class.time_next = class.time_next.max(now);
            if self.backlog.packets == 0 {
                self.shaper.forget(now);
                // Linux counts an arrival at an empty queue that may not send yet, besides the
                // request that follows.
                self.overlimits += u64::from(self.shaper.closed_until(now).is_some());
            }
        }
        self.sizes.add(&self.count, size);
        class.backlog += size.0;
        class.counts.packets += 1;
        class.counts.bytes += size.0;
        class.counts.longest = class.counts.longest.max(size.0);
        self.backlog.add(size);
        self.memory.add(size);
        self.pool.push(&mut class.flows[flow].list, now, pkt);
        class.flows.wake(flow, &mut self.rng);
        let at = At { tin, flow };
        if self.params.ack_filter != AckFilter::Off {
            self.filter_acks(at, now, obs);
        }
        self.longest.grow(at.queue(), self.tins.as_slice());
        self.most_memory = self.most_memory.max(self.memory.used());
        while self.memory.used() > self.limit {
            self.drop_longest(now, obs);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.wake = None;
        let mut first_look = true;
        // Each turn sends, drops or retires a flow that is empty.
        while self.backlog.packets > 0 {
            if let Some(open) = self.shaper.closed_until(now) {
                self.overlimits += 1;
                self.wake = Some(open);
                return None;
            }
            let tin = self.choose_tin(now)?;
            let pkt = self.serve(tin, &mut first_look, now, obs);
            if pkt.is_some() {
                obs.on_class(self.classes.id(tin));
                return pkt;
            }
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.wake
    }

    fn on_timer(&mut self, _now: Instant) {
        self.wake = None;
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        let tin = self.classes.tin(pkt.dscp());
        let flow = self.tins[tin].flows.place_of(&pkt.flow());
        u32::try_from(At { tin, flow }.queue()).ok()
    }

    fn statistics(&self) -> Vec<Statistic> {
        let memory = (self.most_memory, self.limit);
        let mut all = statistics_of(memory, &self.sizes, &self.tins, self.classes.order);
        all.push(Statistic::count(OVERLIMITS, self.overlimits));
        all
    }

    fn classes(&self) -> Vec<ClassId> {
        let tins = self.classes.order.iter();
        tins.map(|&tin| self.classes.id(tin)).collect()
    }
}

/// Kernel memory that the buffer may take: what was asked for, else four round trips of the shaper, at least 4 MB.
fn limit(params: &CakeParams, rate: u64, mtu: Bytes) -> u64 {
    let most = mtu.0.saturating_mul(MOST_PACKETS);
    match params.memlimit {
        Some(limit) => limit.0,
        None if rate == 0 => most,
        None => {
            let trips = u128::from(rate) * u128::from(params.rtt.as_micros()) / 250_000;
            let trips = u64::try_from(trips).unwrap_or(u64::MAX);
            trips.max(4 << 20).min(most)
        }
    }
}

/// The range of sizes seen, without the link's header and as they were counted.
#[derive(Clone, Debug, Default)]
struct Sizes {
    network: Option<(u64, u64)>,
    adjusted: Option<(u64, u64)>,
    /// The size that was added last.
    last: Option<Bytes>,
}

impl Sizes {
    #[inline]
    fn add(&mut self, count: &Count, size: Bytes) {
        if self.last == Some(size) {
            return;
        }
        self.last = Some(size);
        self.network = Some(wider(self.network, count.network(size)));
        self.adjusted = Some(wider(self.adjusted, count.adjusted(size)));
    }
}

#[inline]
fn wider(range: Option<(u64, u64)>, size: u64) -> (u64, u64) {
    range.map_or((size, size), |(least, most)| {
        (least.min(size), most.max(size))
    })
}

/// The statistics of a queue: the memory used and its limit, the sizes, and the tins in `order`.
fn statistics_of(
    (memory_used, memory_limit): (u64, u64),
    sizes: &Sizes,
    tins: &[Tin],
    order: &[usize],
) -> Vec<Statistic> {
    let mut all = vec![
        Statistic::count("memory_used", memory_used),
        Statistic::count("memory_limit", memory_limit),
        Statistic::count("capacity_estimate", tins[0].threshold),
    ];
    if let (Some(network), Some(adjusted)) = (sizes.network, sizes.adjusted) {
        all.extend([
            Statistic::count("min_network_size", network.0),
            Statistic::count("max_network_size", network.1),
            Statistic::count("min_adj_size", adjusted.0),
            Statistic::count("max_adj_size", adjusted.1),
        ]);
    }
    for (place, &at) in order.iter().enumerate() {
        let tin = of_tin(&tins[at]).into_iter();
        all.extend(tin.map(|(name, value)| Statistic::count(name, value).within("tins", place)));
    }
    all
}

fn of_tin(tin: &Tin) -> [(&'static str, u64); 20] {
    let Tin { counts, flows, .. } = tin;
    let census = &flows.census;
    [
        ("threshold_rate", tin.threshold),
        ("sent_bytes", counts.bytes),
        ("backlog_bytes", tin.backlog),
        ("target_us", tin.law.target.as_micros()),
        ("interval_us", tin.law.interval.as_micros()),
        ("peak_delay_us", counts.delay.peak / 1_000),
        ("avg_delay_us", counts.delay.average / 1_000),
        ("base_delay_us", counts.delay.base / 1_000),
        ("sent_packets", counts.packets),
        ("way_indirect_hits", flows.ways.hits),
        ("way_misses", flows.ways.misses),
        ("way_collisions", flows.ways.collisions),
        ("drops", counts.drops),
        ("ecn_mark", counts.marks),
        ("ack_drops", counts.acks),
        (
            "sparse_flows",
            u64::from(census.sparse()) + u64::from(census.decaying()),
        ),
        ("bulk_flows", census.bulk().into()),
        ("unresponsive_flows", counts.unresponsive),
        ("max_pkt_len", counts.longest),
        ("flow_quantum", flows.quantum.into()),
    ]
}

#[cfg(test)]
mod tests;
