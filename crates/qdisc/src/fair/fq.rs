//! fq: a queue per flow, round robin, with a limit per flow and new flows first.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_fq.c`, as it treats packets that are forwarded.
//!
//! # Algorithm
//!
//! Each flow has a FIFO of at most `flow_limit` packets. Flows are served by deficit round robin,
//! flows of the *new* list before those of the *old* list. With `maxrate`, a flow that has used its
//! credit is throttled until the larger of its packet and a quantum is sent at that rate. Packets
//! of the router itself have strict priority, and only `limit` applies to them.
//!
//! Pseudo-code: `docs/qdiscs/fq.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash; the socket where the sender is local | which flows collide |
//! | no pacing by socket, no `horizon` | the rate and the send times of local senders | none for what is forwarded |
//! | a paced packet leaves when it is due | up to 10 µs later (`timer_slack`) | below 10 µs |
//! | no `buckets` | trees in which flows are found | none |
//! | the delay of a refill in nanoseconds | in ticks of the kernel, 1 ms at HZ=1000 | a refill 1 ms sooner or later |
//! | a flow is forgotten when it comes back | when another is looked up near it | from 2048 flows on, which flow |

mod scheduler;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::link::LinkFacts;
use crate::parameters::{Counter, Kind, LINUX, Params, Shorthand, TcStatistics, parameters};
use scheduler::Pace;
pub(crate) use scheduler::{Scheduler, Turns};

parameters! {
    /// Parameters of [`Fq`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FqParams {
        /// Maximum number of packets of all flows together.
        pub limit: usize = 10_000 => packets(1, 100_000_000),
            "net/sched/sch_fq.c: fq_init, sch->limit";
        /// Maximum number of queued packets per flow.
        pub flow_limit: u32 = 100 => count(1, 100_000_000).in_packets(),
            "net/sched/sch_fq.c: fq_sched_data.flow_plimit";
        /// Bytes that a flow sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("2 MTU"),
            "net/sched/sch_fq.c: fq_sched_data.quantum";
        /// Bytes that a flow sends in its first turn.
        pub initial_quantum: Option<Bytes> = None => size(1, 1 << 24).unset("10 MTU"),
            "net/sched/sch_fq.c: fq_sched_data.initial_quantum";
        /// Idle time after which a flow returns with a full quantum.
        pub refill_delay: Duration = Duration::from_millis(40) => time(0, LONGEST),
            "net/sched/sch_fq.c: fq_sched_data.flow_refill_delay";
        /// Bit mask on the hash of a flow.
        pub orphan_mask: u32 = 1_023 => count(0, 65_535),
            "net/sched/sch_fq.c: fq_sched_data.orphan_mask";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "net/sched/sch_fq.c: fq_sched_data.ce_threshold";
        /// Maximum rate of one flow.
        pub maxrate: Option<Rate> = None => rate().unset("unlimited"),
            "net/sched/sch_fq.c: fq_sched_data.flow_max_rate";
        /// If maxrate is at most this, space every packet instead of every quantum.
        pub low_rate_threshold: Option<Rate> = None => rate().unset("550kbit"),
            "net/sched/sch_fq.c: fq_sched_data.low_rate_threshold";
    }
}

/// What Linux takes if no `low_rate_threshold` is given.
const LOW_RATE: u64 = 550_000;

impl FqParams {
    const fn turns(&self) -> Turns {
        Turns {
            quantum: self.quantum,
            initial_quantum: self.initial_quantum,
            refill_delay: self.refill_delay,
            orphan_mask: self.orphan_mask,
        }
    }
}

impl Params for FqParams {
    type Queue<P: Packet> = Fq<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "fq",
        class: Some("Fq"),
        summary: "One queue per flow, each with its own limit; new and returning flows first",
        source: "Linux 6.1 sch_fq",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics =
        TcStatistics::of(&[("ce_mark", Counter::Marks(MarkReason::CeThreshold))]);

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        // Packets that are forwarded bear no send time: what `pacing` could delay are `maxrate`'s.
        &[&[("pacing", &[]), ("nopacing", &[("maxrate", "")])]]
    }

    fn resolve(&mut self, link: &LinkFacts) {
        let (quantum, initial) = self.turns().quanta(link.mtu);
        (self.quantum, self.initial_quantum) = (Some(quantum), Some(initial));
        self.low_rate_threshold = self
            .low_rate_threshold
            .or(Rate::from_bits_per_sec(LOW_RATE));
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Fq<P> {
        Fq::new(self, link.mtu, rng)
    }
}

/// Fair queueing with a limit for each flow.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    params: FqParams,
    pace: Option<Pace>,
    scheduler: Scheduler<P>,
    /// Drops at the limit of a flow.
    flows_plimit: u64,
}

impl<P: Packet> Fq<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &FqParams, mtu: Bytes, rng: Rng) -> Self {
        Self {
            params: *params,
            pace: params.maxrate.map(|rate| Pace {
                rate,
                each: rate.bits_per_sec()
                    <= params
                        .low_rate_threshold
                        .map_or(LOW_RATE, Rate::bits_per_sec),
            }),
            scheduler: Scheduler::new(&params.turns(), mtu, rng),
            flows_plimit: 0,
        }
    }
}

impl<P: Packet> Qdisc<P> for Fq<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.scheduler.backlog().packets >= self.params.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if pkt.is_control() {
            return self.scheduler.append_control(now, pkt);
        }
        let flow = self.scheduler.classify(&pkt);
        self.scheduler.forget_if_old(flow, now, FORGOTTEN_AFTER);
        if self.scheduler.packets(flow) >= self.params.flow_limit {
            self.flows_plimit += 1;
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.scheduler.append(flow, now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let (flow, mut pkt, ready) = self.scheduler.next(now)?;
        let Some(flow) = flow else {
            return Some(pkt);
        };
        if let Some(pace) = self.pace {
            self.scheduler.pace(flow, pace, pkt.size(), now);
        }
        let late = self
            .params
            .ce_threshold
            .is_some_and(|threshold| now.since(ready) > threshold);
        if late && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::CeThreshold);
        }
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.scheduler.next_due()
    }

    fn on_timer(&mut self, now: Instant) {
        self.scheduler.release(now);
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut numbers = self.scheduler.statistics();
        numbers.push(Statistic::count("flows_plimit", self.flows_plimit));
        numbers
    }
}

/// A flow away for longer is a new one when it comes back, if there are many.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
