//! FQ-PIE: a queue per flow, round robin with sparse flows first, PIE in each.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_fq_pie.c` and `include/net/pie.h`; there is no RFC.
//!
//! # Law
//!
//! The flows, their turns and credits are those of [`crate::FqCodel`] in its profile `linux`. Each
//! queue has a [`crate::Pie`] of its own, in the kernel's arithmetic, that looks at the queue alone:
//!
//! ```text
//! limit packets in all    drop the arrival
//! PIE of its queue        drop it, or mark it while p is at most ecn_prob
//! departure               PIE learns the delay of the packet that leaves
//! every tupdate           every queue's p moves
//! ```
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash | which flows collide |
//! | `memory_limit` counts bytes of packets | bytes of buffer | only `overmemory`: neither drops for it |

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use crate::aqm::pie::PieParams;
use crate::aqm::pie::linux::{Constants, Control};
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::link::LinkFacts;
use crate::parameters::{Field, Params, Profile};
use crate::parts::pool::{List, Pool};
use crate::parts::round::{FlowId, SparseFirst};

/// Queues that are updated at once.
const BATCH: usize = 2_048;

/// Parameters of [`FqPie`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqPieParams {
    /// Packets that all queues hold together before arrivals are dropped.
    pub limit: usize,
    /// Number of queues that flows are hashed to.
    pub flows: u32,
    /// The delay to hold each queue at.
    pub target: Duration,
    /// Time between updates of the probabilities.
    pub tupdate: Duration,
    /// Gain on the error, in sixteenths of 1/s.
    pub alpha: u32,
    /// Gain on the trend, in sixteenths of 1/s.
    pub beta: u32,
    /// Bytes a queue may send in its turn; the MTU if not given.
    pub quantum: Option<Bytes>,
    /// Bytes above which arrivals are counted as `overmemory`.
    pub memory_limit: Bytes,
    /// Highest probability in per cent at which packets are marked.
    pub ecn_prob: u32,
    /// Mark ECN-capable packets while the probability is low, instead of dropping them.
    pub ecn: bool,
    /// Scale the probability by the packet's size.
    pub bytemode: bool,
    /// Estimate the delay from backlog and departure rate.
    pub dq_rate_estimator: bool,
}

impl Default for FqPieParams {
    fn default() -> Self {
        Self {
            limit: 10_240,
            flows: 1_024,
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(15),
            alpha: 2,
            beta: 20,
            quantum: None,
            memory_limit: Bytes(32 << 20),
            ecn_prob: 10,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
        }
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

    fn kind(&self) -> &'static str {
        "fq_pie"
    }

    fn field(&mut self, key: &str) -> Option<Field<'_>> {
        Some(match key {
            "limit" => Field::Packets(&mut self.limit),
            "flows" => Field::Count(&mut self.flows),
            "target" => Field::Time(&mut self.target),
            "tupdate" => Field::Time(&mut self.tupdate),
            "alpha" => Field::Count(&mut self.alpha),
            "beta" => Field::Count(&mut self.beta),
            "quantum" => Field::OptionalSize(&mut self.quantum),
            "memory_limit" => Field::Size(&mut self.memory_limit),
            "ecn_prob" => Field::Count(&mut self.ecn_prob),
            "ecn" => Field::Flag(&mut self.ecn),
            "bytemode" => Field::Flag(&mut self.bytemode),
            "dq_rate_estimator" => Field::Flag(&mut self.dq_rate_estimator),
            _ => return None,
        })
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> FqPie<P> {
        FqPie::new(self, link.mtu, rng)
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
    flows: Vec<Flow>,
    turns: SparseFirst,
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
            flows: vec![flow; params.flows as usize],
            turns: SparseFirst::new(params.flows, params.quantum.unwrap_or(mtu)),
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
        self.flows[id.index()].control.on_drop();
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
        let most = self.params.memory_limit + size;
        self.counters.overmemory += u64::from(self.backlog.bytes > most);
        let Flow { list, control } = &mut self.flows[id.index()];
        if control.drop_early(&self.law, list.bytes(), size, &mut self.rng) {
            let may_mark = self.params.ecn && control.is_below(&self.law, self.params.ecn_prob);
            if !(may_mark && pkt.mark_ce()) {
                return self.drop(id, now, pkt, DropReason::Aqm, obs);
            }
            self.counters.marks += 1;
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.counters.accepted += 1;
        self.backlog.packets += 1;
        self.backlog.bytes += size;
        self.pool.push(list, now, pkt);
        self.counters.new_flows += u64::from(self.turns.join(id));
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn sends or sets a queue aside, and only an arrival brings one back.
        loop {
            let id = self.turns.next()?;
            let Flow { list, control } = &mut self.flows[id.index()];
            let Some((pkt, arrived)) = self.pool.pop(list) else {
                self.turns.pass(id, false);
                continue;
            };
            let size = pkt.size();
            self.backlog.packets -= 1;
            self.backlog.bytes -= size;
            self.turns.charge(id, size);
            control.on_dequeue(&self.law, now, arrived, list.bytes(), size);
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

    fn on_timer(&mut self, now: Instant) {
        if now < self.next_update {
            return;
        }
        let end = self.flows.len().min(self.cursor + BATCH);
        for flow in &mut self.flows[self.cursor..end] {
            let backlog = flow.list.bytes();
            flow.control.calculate_probability(&self.law, backlog);
        }
        let delay = if end < self.flows.len() {
            self.cursor = end;
            Duration::ZERO
        } else {
            self.cursor = 0;
            self.params.tupdate
        };
        self.next_update = self.law.update_after(now, delay);
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
            Statistic::count("memory_used", self.backlog.bytes.0),
        ]
    }
}

#[cfg(test)]
mod tests;
