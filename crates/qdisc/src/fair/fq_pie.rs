//! FQ-PIE: a queue per flow, round robin with sparse flows first, PIE in each.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_fq_pie.c` and `include/net/pie.h`; there is no RFC.
//!
//! # Algorithm
//!
//! The scheduler is that of [`crate::FqCodel`] in its profile `linux`. Each queue has its own
//! [`crate::Pie`] in the arithmetic of the kernel, with the backlog and the delay of that queue. An
//! arrival is dropped at `limit` packets, or dropped or marked by PIE.
//!
//! Pseudo-code: `docs/qdiscs/fq_pie.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash | which flows collide |
//! | the length of a packet decides how much of `memory_limit` it takes | its origin too | only `overmemory` |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::aqm::pie::linux::{Constants, Control};
use crate::aqm::pie::{self, PieParams};
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX, LinkFacts, Params, Profile, Retention, TcStatistics, TcWord, fixed, parameters,
    shrink,
};
use crate::parts::memory::Memory;
use crate::parts::pool::{List, Pool};
use crate::parts::round::{FlowId, SparseFirst};

/// Queues that are updated at once.
pub(crate) const BATCH: usize = 2_048;

parameters! {
    /// Parameters of [`FqPie`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FqPieParams {
        /// Maximum number of packets in all queues together.
        pub limit: usize = 10_240 => packets(1, 100_000_000),
            "net/sched/sch_fq_pie.c: fq_pie_init, sch->limit";
        /// Number of queues that flows are hashed to.
        pub flows: u32 = 1_024 => count(1, 65_536),
            "net/sched/sch_fq_pie.c: fq_pie_sched_data.flows_cnt";
        /// Target queueing delay of each queue.
        pub target: Duration = Duration::from_millis(15) => time(1, LONGEST),
            "include/net/pie.h: pie_params.target";
        /// Time between updates of the probabilities.
        pub tupdate: Duration = Duration::from_millis(15) => time(1_000, LONGEST),
            "include/net/pie.h: pie_params.tupdate";
        /// Gain on the deviation from target, in sixteenths of 1/s.
        pub alpha: u32 = 2 => count(0, 32),
            "include/net/pie.h: pie_params.alpha";
        /// Gain on the change of the delay, in sixteenths of 1/s.
        pub beta: u32 = 20 => count(0, 32),
            "include/net/pie.h: pie_params.beta";
        /// Bytes that a queue sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("the MTU"),
            "net/sched/sch_fq_pie.c: fq_pie_sched_data.quantum";
        /// Kernel memory above which arrivals are counted as overmemory; nothing is dropped.
        pub memory_limit: Bytes = Bytes(32 << 20) => size(1, 1 << 40),
            "net/sched/sch_fq_pie.c: fq_pie_sched_data.memory_limit";
        /// Highest probability in percent at which packets are marked.
        pub ecn_prob: u32 = 10 => count(0, 99),
            "net/sched/sch_fq_pie.c: fq_pie_sched_data.ecn_prob";
        /// Mark ECN-capable packets while the probability is low.
        pub ecn: bool = false => flag(),
            "include/net/pie.h: pie_params.ecn";
        /// Scale the probability with the packet size.
        pub bytemode: bool = false => flag(),
            "include/net/pie.h: pie_params.bytemode";
        /// Estimate the delay from the backlog and the departure rate.
        pub dq_rate_estimator: bool = false => flag(),
            "include/net/pie.h: pie_params.dq_rate_estimator";
    }
}

impl FqPieParams {
    fn pie(&self) -> PieParams {
        PieParams {
            limit: self.limit,
            target: Some(self.target),
            tupdate: Some(self.tupdate),
            alpha: self.alpha,
            beta: self.beta,
            ecn: self.ecn,
            bytemode: self.bytemode,
            dq_rate_estimator: self.dq_rate_estimator,
            profile: Profile::Linux,
            ..PieParams::default()
        }
    }
}

impl Params for FqPieParams {
    type Queue<P: Packet> = FqPie<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "fq_pie",
        class: Some("FqPie"),
        summary: "One queue per flow, sparse flows first, PIE in each queue",
        source: "Linux 6.1 sch_fq_pie",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(pie::COUNTERS);

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        &[("no_dq_rate_estimator", TcWord::Means("nodq_rate_estimator"))]
    }

    fn resolve(&mut self, link: &LinkFacts) {
        self.quantum.get_or_insert(link.mtu);
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> FqPie<P> {
        FqPie::new(self, link.mtu, rng)
    }

    /// As in Linux, `flows` cannot change.
    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("flows", self.flows == next.flows)])
    }

    /// As in Linux, packets are dequeued and dropped until the rest is below a lower limit.
    fn change<P: Packet>(
        &self,
        queue: &mut FqPie<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
        queue.law = Constants::new(&self.pie(), link.mtu);
        queue.turns.set_quantum(self.quantum.unwrap_or(link.mtu));
        shrink(queue, self.limit, now, obs);
    }
}

/// Fair queueing with PIE in each queue.
#[derive(Clone, Debug)]
pub struct FqPie<P> {
    params: FqPieParams,
    perturbation: u64,
    law: Constants,
    pool: Pool<P>,
    backlog: Backlog,
    memory: Memory,
    turns: SparseFirst<Flow>,
    rng: Rng,
    next_update: Instant,
    /// The first queue of the next batch.
    cursor: usize,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    control: Control,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    accepted: u64,
    overlimit: u64,
    overmemory: u64,
    dropped: u64,
    marks: u64,
    new_flows: u64,
}

impl<P: Packet> FqPie<P> {
    /// An empty queue, made at the origin of time, for packets of up to `mtu` bytes.
    pub fn new(params: &FqPieParams, mtu: Bytes, mut rng: Rng) -> Self {
        let law = Constants::new(&params.pie(), mtu);
        let flow = Flow {
            list: List::EMPTY,
            control: Control::new(&law),
        };
        let next_update = law.first_update();
        Self {
            params: *params,
            perturbation: rng.next_u64(),
            law,
            pool: Pool::new(),
            backlog: Backlog::default(),
            memory: Memory::of_buffers(),
            turns: SparseFirst::new(flow, params.flows, params.quantum.unwrap_or(mtu)),
            rng,
            next_update,
            cursor: 0,
            counters: Counters::default(),
        }
    }

    /// The queue that `pkt` belongs to: its digest scaled to the number of queues.
    #[inline]
    fn classify(&self, pkt: &P) -> FlowId {
        FlowId::scaled(pkt.flow().digest(self.perturbation), self.params.flows)
    }

    fn drop(
        &mut self,
        id: FlowId,
        now: Instant,
        pkt: P,
        reason: DropReason,
        obs: &mut dyn Observer<P>,
    ) {
        self.counters.dropped += 1;
        self.turns[id].control.on_drop();
        obs.on_drop(now, pkt, reason);
    }
}

impl<P: Packet> Qdisc<P> for FqPie<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let id = self.classify(&pkt);
        let size = pkt.size();
        if self.backlog.packets >= self.params.limit {
            self.counters.overlimit += 1;
            return self.drop(id, now, pkt, DropReason::Overlimit, obs);
        }
        let most = self.params.memory_limit.0 + self.memory.of(size);
        self.counters.overmemory += u64::from(self.memory.used() > most);
        let Flow { list, control } = &mut self.turns[id];
        if control.drop_early(&self.law, list.bytes(), size, &mut self.rng) {
            obs.on_decision(&|| control.numbers(&self.law));
            let may_mark = self.params.ecn && control.is_below(&self.law, self.params.ecn_prob);
            if !(may_mark && pkt.mark_ce()) {
                return self.drop(id, now, pkt, DropReason::Aqm, obs);
            }
            self.counters.marks += 1;
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.counters.accepted += 1;
        self.backlog.add(size);
        self.memory.add(size);
        self.pool.push(list, now, pkt);
        self.counters.new_flows += u64::from(self.turns.join(id));
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn sends or sets a queue aside, and only an arrival brings one back.
        loop {
            let id = self.turns.next()?;
            let Flow { list, control } = &mut self.turns[id];
            let Some((pkt, arrived)) = self.pool.pop(list) else {
                self.turns.pass(id, false);
                continue;
            };
            let size = pkt.size();
            self.backlog.remove(size);
            self.memory.remove(size);
            control.on_dequeue(&self.law, now, arrived, list.bytes(), size);
            self.turns.charge(id, size);
            return Some(pkt);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        Some(self.next_update)
    }

    fn packets_affect_timer(&self) -> bool {
        false
    }

    fn on_timer(&mut self, now: Instant) {
        if now < self.next_update {
            return;
        }
        let end = self.turns.len().min(self.cursor + BATCH);
        for flow in self.turns.range_mut(self.cursor..end) {
            let backlog = flow.list.bytes();
            flow.control.calculate_probability(&self.law, backlog);
        }
        let delay = if end == self.turns.len() {
            self.cursor = 0;
            self.params.tupdate
        } else {
            self.cursor = end;
            Duration::ZERO
        };
        self.next_update = self.law.update_after(now, delay);
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        Some(self.classify(pkt).number())
    }

    fn statistics(&self) -> Vec<Statistic> {
        let seen = &self.counters;
        vec![
            Statistic::count("pkts_in", seen.accepted),
            Statistic::count("overlimit", seen.overlimit),
            Statistic::count("overmemory", seen.overmemory),
            Statistic::count("dropped", seen.dropped),
            Statistic::count("ecn_mark", seen.marks),
            Statistic::count("new_flow_count", seen.new_flows),
            Statistic::count("memory_used", self.memory.used()),
        ]
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let (new, old) = self.turns.lengths();
        let flows = self.turns.iter();
        let probs = flows.map(|flow| flow.control.probability(&self.law));
        vec![
            Statistic::count("new_flows_len", new),
            Statistic::count("old_flows_len", old),
            Statistic::real("maxprob", probs.fold(0.0, f64::max)),
        ]
    }
}

#[cfg(test)]
mod tests;
