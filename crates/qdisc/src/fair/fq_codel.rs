//! FQ-CoDel: a queue per flow, round robin with sparse flows first, CoDel in each.
//!
//! # Source
//!
//! RFC 8290 §4 with the CoDel of RFC 8289; Linux 6.1 and 3.14 `net/sched/sch_fq_codel.c`.
//!
//! # Algorithm
//!
//! The hash of a flow selects a queue. Queues are served by deficit round robin, those of the *new*
//! list before those of the *old* list, and each queue has a CoDel. On overload, packets are
//! dropped from the head of the queue with the most bytes.
//!
//! Pseudo-code: `docs/qdiscs/fq_codel.md`.
//!
//! # Differences between the profiles
//!
//! | `rfc` | `linux` (6.1) | `linux-3.14` |
//! |---|---|---|
//! | overload drops half the fat queue's packets, at most `drop_batch` | packets until half its bytes are gone, at most `drop_batch` | one packet |
//! | which CoDel does not see | are added to its `count` | are not seen |
//! | a new queue found empty goes to old, always | only if old is not empty | as 6.1 |
//! | CoDel's backlog test is of the queue | of all queues together | as 6.1, against the largest packet seen |
//! | CoDel in nanoseconds | in fixed point, see [`crate::Codel`] | as 6.1 |
//! | `memory_limit` counts bytes of packets | of kernel memory, 2304 for 1514 | as 6.1 |
//!
//! # Differences of all from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash (6.1), Jenkins (3.14) | which flows collide |
//! | the length of a packet decides how much of `memory_limit` it takes | its origin too | none for forwarded full packets |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::aqm::codel::{self, CodelParams, Control, Law, Source};
use crate::contract::{Backlog, DropReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX_AND_RFC, LinkFacts, Params, Profile, Retention, TcStatistics, fixed, parameters,
};
use crate::parts::memory::Memory;
use crate::parts::pool::{List, Pool};
use crate::parts::round::{FlowId, SparseFirst};

parameters! {
    /// Parameters of [`FqCodel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FqCodelParams {
        /// Maximum number of packets in all queues together.
        pub limit: usize = 10_240 => packets(1, 100_000_000),
            "RFC 8290 section 5.2.3: packet limit; net/sched/sch_fq_codel.c: fq_codel_init, sch->limit";
        /// Maximum kernel memory of all queues together; rfc: bytes of packets.
        pub memory_limit: Bytes = Bytes(32 << 20) => size(1, 1 << 40),
            "net/sched/sch_fq_codel.c: fq_codel_sched_data.memory_limit";
        /// Number of queues that flows are hashed to.
        pub flows: u32 = 1_024 => count(1, 65_536),
            "RFC 8290 section 5.2.5: flows; net/sched/sch_fq_codel.c: fq_codel_sched_data.flows_cnt";
        /// Acceptable standing delay of each queue.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "RFC 8290 section 5.2.2: target; include/net/codel.h: codel_params.target";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "RFC 8290 section 5.2.1: interval; include/net/codel.h: codel_params.interval";
        /// Bytes that a queue sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("the MTU"),
            "RFC 8290 section 5.2.4: quantum; net/sched/sch_fq_codel.c: fq_codel_sched_data.quantum";
        /// Maximum number of packets dropped at once on overload.
        pub drop_batch: u32 = 64 => count(1, 65_536),
            "net/sched/sch_fq_codel.c: fq_codel_sched_data.drop_batch_size";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "RFC 8290 section 5.2.7: ce_threshold; include/net/codel.h: codel_params.ce_threshold";
        /// Packets to which `ce_threshold` applies: those whose DSCP and ECN field, masked, equal this value.
        pub ce_threshold_selector: Option<u16> = None => masked().unset("all packets"),
            "include/net/codel.h: codel_params.ce_threshold_selector, ce_threshold_mask";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = true => flag(),
            "RFC 8290 section 5.2.6: ECN; net/sched/sch_fq_codel.c: fq_codel_init, cparams.ecn";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}

impl FqCodelParams {
    /// The scheduler alone: a target that is never reached keeps CoDel silent.
    pub fn without_codel() -> Self {
        Self {
            target: Duration::from_secs(100),
            ecn: false,
            ..Self::default()
        }
    }

    fn codel(&self) -> CodelParams {
        CodelParams {
            limit: self.limit,
            target: self.target,
            interval: self.interval,
            ce_threshold: self.ce_threshold,
            ecn: self.ecn,
            profile: self.profile,
        }
    }
}

impl Params for FqCodelParams {
    type Queue<P: Packet> = FqCodel<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "fq_codel",
            class: Some("FqCoDel"),
            summary: "One queue per flow, sparse flows first, CoDel in each queue",
            source: "RFC 8290; Linux 6.1 and 3.14 sch_fq_codel",
            reconstruction: None,
            profiles: LINUX_AND_RFC,
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "fq_nocodel",
            class: Some("FqNoCoDel"),
            summary: "fq_codel with a CoDel that never signals: fair queueing alone",
            source: "Linux 6.1 sch_fq_codel with target 100s",
            reconstruction: None,
            profiles: LINUX_AND_RFC,
            start: Self::without_codel,
            parameters: Self::PARAMETERS,
        },
    ];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(codel::COUNTERS);

    fn settle(&mut self, _shorthands: &[&str]) -> Result<Vec<String>, String> {
        let why = match self.ce_threshold_selector {
            Some(_) if self.ce_threshold.is_none() => "without ce_threshold",
            // The kernel tests the mask first.
            Some(selector) if selector.trailing_zeros() >= 8 => "with a mask of 0",
            _ => return Ok(Vec::new()),
        };
        self.ce_threshold_selector = None;
        Ok(vec![format!("ce_threshold_selector has no effect {why}")])
    }

    fn resolve(&mut self, link: &LinkFacts) {
        self.quantum.get_or_insert(link.mtu);
    }

    fn comparison(&self) -> Comparison {
        self.profile.compared_with("Linux 6.1")
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> FqCodel<P> {
        FqCodel::new(self, link.mtu, rng)
    }

    /// As in Linux, `flows` cannot change.
    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("flows", self.flows == next.flows),
            ("profile", self.profile == next.profile),
        ])
    }

    /// As in Linux, packets are dequeued and dropped until the rest is below a lower limit.
    fn change<P: Packet>(
        &self,
        queue: &mut FqCodel<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
        queue.law = Law::new(&self.codel());
        queue.turns.set_quantum(self.quantum.unwrap_or(link.mtu));
        while (queue.store.backlog.packets > self.limit
            || queue.store.memory.used() > self.memory_limit.0)
            && let Some(pkt) = queue.dequeue(now, obs)
        {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }
}

/// Below this number, all packets fit into the caches, and prefetching does not help.
const MANY_PACKETS: usize = 500;

/// Fair queueing with CoDel in each queue.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    params: FqCodelParams,
    perturbation: u64,
    law: Law,
    store: Store<P>,
    turns: SparseFirst<Flow>,
    /// How often a flow became new.
    new_flow_count: u64,
}

/// The packets of all queues, apart from the queues, so that CoDel can draw on them.
#[derive(Clone, Debug)]
struct Store<P> {
    pool: Pool<P>,
    backlog: Backlog,
    memory: Memory,
    /// Bytes in each queue, apart from the queues, so that the search for the largest is short.
    bytes: Vec<u64>,
    /// A backlog this small is never signalled.
    maxpacket: Bytes,
    /// The largest packet that CoDel saw.
    largest: Bytes,
    /// The size of the packet that CoDel saw last, which is the one that leaves: a packet that is asked for its size
    /// after it has moved is copied in parts.
    last: Bytes,
    profile: Profile,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    control: Control,
}

impl<P: Packet> FqCodel<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &FqCodelParams, mtu: Bytes, mut rng: Rng) -> Self {
        let flow = Flow {
            list: List::EMPTY,
            control: Control::default(),
        };
        let number = params.flows as usize;
        let maxpacket = match params.profile {
            // Linux before 4.2 began here and learned.
            Profile::Linux314 => Bytes(256),
            Profile::Rfc
            | Profile::Paper
            | Profile::Linux
            | Profile::Linux612
            | Profile::Kernel => mtu,
        };
        let memory = match params.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => Memory::of_packets(),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => Memory::of_buffers(),
        };
        Self {
            params: *params,
            perturbation: rng.next_u64(),
            law: Law::new(&params.codel()).selecting(params.ce_threshold_selector),
            store: Store {
                pool: Pool::new(),
                backlog: Backlog::default(),
                memory,
                bytes: vec![0; number],
                maxpacket,
                largest: Bytes(0),
                last: Bytes(0),
                profile: params.profile,
            },
            turns: SparseFirst::new(flow, params.flows, params.quantum.unwrap_or(mtu)),
            new_flow_count: 0,
        }
    }

    /// The queue that `pkt` belongs to: its digest scaled to the number of queues.
    #[inline]
    fn classify(&self, pkt: &P) -> FlowId {
        let digest = pkt.flow().digest(self.perturbation);
        FlowId::scaled(digest, self.params.flows)
    }

    /// Drops from the queue with the most bytes; the first of them, if several have as many.
    #[cold]
    fn drop_from_fat_flow(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let (mut fat, mut most) = (0, 0);
        for (at, &bytes) in (0..).zip(&self.store.bytes) {
            if bytes > most {
                (fat, most) = (at, bytes);
            }
        }
        let fat = FlowId::at(fat);
        let flow = &mut self.turns[fat];
        let (packets, bytes) = match self.params.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => {
                ((flow.list.packets() / 2).min(self.params.drop_batch), most)
            }
            Profile::Linux | Profile::Linux612 => (self.params.drop_batch, most / 2),
            Profile::Linux314 => (1, most),
        };
        let mut dropped = 0;
        let mut gone = 0;
        while let Some((pkt, _)) = self.store.pop(fat.index(), &mut flow.list) {
            gone += pkt.size().0;
            dropped += 1;
            obs.on_drop(now, pkt, DropReason::Overlimit);
            if dropped >= packets || gone >= bytes {
                break;
            }
        }
        if self.params.profile == Profile::Linux {
            flow.control.count_overload(dropped);
        }
    }

    /// Prefetches the head packet of the flow after `flow` in its list, and the state of the flow after that.
    #[inline]
    fn look_ahead(&self, flow: FlowId) {
        if self.store.backlog.packets >= MANY_PACKETS
            && let Some(next) = self.turns.behind(flow)
        {
            self.store.pool.prefetch_oldest(&self.turns[next].list);
            if let Some(then) = self.turns.behind(next) {
                self.turns.prefetch(then);
            }
        }
    }
}

impl<P: Packet> Qdisc<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let id = self.classify(&pkt);
        let flow = &mut self.turns[id];
        self.store.push(id.index(), &mut flow.list, now, pkt);
        self.new_flow_count += u64::from(self.turns.join(id));
        let (packets, memory) = (self.store.backlog.packets, self.store.memory.used());
        if packets > self.params.limit || memory > self.params.memory_limit.0 {
            self.drop_from_fat_flow(now, obs);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn sends or sets a queue aside, and only an arrival brings one back.
        loop {
            let id = self.turns.next()?;
            self.look_ahead(id);
            let flow = &mut self.turns[id];
            let mut source = FlowSource {
                store: &mut self.store,
                at: id.index(),
                list: &mut flow.list,
            };
            if let Some(pkt) = flow.control.dequeue(&self.law, &mut source, now, obs) {
                self.turns.charge(id, self.store.last);
                return Some(pkt);
            }
            self.turns.pass(id, self.params.profile == Profile::Rfc);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        Some(self.classify(pkt).number())
    }

    fn statistics(&self) -> Vec<Statistic> {
        let (new, old) = self.turns.lengths();
        vec![
            Statistic::count("maxpacket", self.store.largest.0),
            Statistic::count("new_flow_count", self.new_flow_count),
            Statistic::count("memory_used", self.store.memory.used()),
            Statistic::count("new_flows_len", new),
            Statistic::count("old_flows_len", old),
        ]
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let flows = self.turns.iter();
        let dropping = flows.filter(|flow| flow.control.is_dropping()).count();
        vec![Statistic::count("dropping_flows", dropping as u64)]
    }
}

impl<P: Packet> Store<P> {
    #[inline]
    fn push(&mut self, at: usize, list: &mut List, now: Instant, pkt: P) {
        let before = list.bytes();
        self.pool.push(list, now, pkt);
        let size = list.bytes() - before;
        self.backlog.add(size);
        self.memory.add(size);
        self.bytes[at] = list.bytes().0;
    }

    #[inline]
    fn pop(&mut self, at: usize, list: &mut List) -> Option<(P, Instant)> {
        let before = list.bytes();
        let popped = self.pool.pop(list)?;
        let size = before - list.bytes();
        self.backlog.remove(size);
        self.memory.remove(size);
        self.bytes[at] = list.bytes().0;
        Some(popped)
    }
}

/// One queue, as CoDel sees it.
struct FlowSource<'a, P> {
    store: &'a mut Store<P>,
    at: usize,
    list: &'a mut List,
}

impl<P: Packet> Source<P> for FlowSource<'_, P> {
    #[inline]
    fn pop(&mut self) -> Option<(P, Instant)> {
        let before = self.list.bytes();
        let popped = self.store.pop(self.at, self.list)?;
        let size = before - self.list.bytes();
        self.store.largest = self.store.largest.max(size);
        self.store.last = size;
        if self.store.profile == Profile::Linux314 {
            self.store.maxpacket = self.store.maxpacket.max(size);
        }
        Some(popped)
    }

    #[inline]
    fn is_small(&self) -> bool {
        let bytes = match self.store.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => self.list.bytes(),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => self.store.backlog.bytes,
        };
        bytes <= self.store.maxpacket
    }
}

#[cfg(test)]
mod tests;
