//! fq: a queue per flow, round robin, with a limit per flow and new flows first.
//!
//! # Source
//!
//! Linux 6.1 and 6.12 `net/sched/sch_fq.c`, as they treat packets that are forwarded; with `pacing`
//! Linux 4.19, as it treats packets of sockets on the same machine. What 6.7 added: commits
//! 29f834aa326e (bands) and 49e7265fd098 (weights), tc-fq(8).
//!
//! # Algorithm
//!
//! Each flow has a FIFO of at most `flow_limit` packets. Flows are served by deficit round robin,
//! flows of the *new* list before those of the *old* list. With `maxrate`, a flow that has used its
//! credit is throttled until the larger of its packet and a quantum is sent at that rate; with `pacing`
//! that is the pacing rate of its sender, where that is lower. Packets of the router itself have strict
//! priority, and only `limit` applies to them.
//!
//! Profile `linux-6.12`: flows belong to three bands by priority, which share the link by weight,
//! with a `limit` per band; a packet that finds no flow with packets is sent before all flows.
//!
//! Pseudo-code: `docs/qdiscs/fq.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | siphash; the socket where the sender is local | which flows collide |
//! | with `pacing`, flows hashed too | a flow per socket | flows of different rates may share one |
//! | a sender that paces itself still does | leaves it to the first `fq` | as with an `fq` at the sender |
//! | no `horizon` | the send times of local senders | none for what is forwarded |
//! | a paced packet leaves when it is due | up to 10 µs later (`timer_slack`) | below 10 µs |
//! | no `buckets` | trees in which flows are found | none |
//! | the delay of a refill in nanoseconds | in ticks of the kernel, 1 ms at HZ=1000 | a refill 1 ms sooner or later |
//! | a flow is forgotten when it comes back | when another is looked up near it | from 2048 flows on, which flow |
//! | in `linux-6.12` no flow is forgotten | the same, however few flows there are | its turn after 3 s without a packet |

mod bands;
mod scheduler;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Counter, Kind, LinkFacts, Params, Profile, Retention, Shorthand, TcStatistics, TcWord, fixed,
    parameters, shrink,
};
use crate::parts::priority::PRIOMAP;
pub(crate) use bands::FAST_PATH;
use bands::{BANDS, BandParams, BandScheduler, Full, WEIGHTS};
use scheduler::LOW_RATE;
pub(crate) use scheduler::{Pace, Scheduler, Turns};

parameters! {
    /// Parameters of [`Fq`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FqParams {
        /// Maximum number of packets of all flows together; linux-6.12: per band.
        pub limit: usize = 10_000 => packets(1, 100_000_000),
            "net/sched/sch_fq.c: fq_init, sch->limit";
        /// Maximum number of queued packets per flow.
        pub flow_limit: u32 = 100 => count(1, 100_000_000).in_packets(),
            "net/sched/sch_fq.c: fq_sched_data.flow_plimit";
        /// Bytes that a flow sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("2 MTU"),
            "net/sched/sch_fq.c: fq_sched_data.quantum";
        /// Bytes that a flow sends in its first turn.
        pub initial_quantum: Option<Bytes> = None => size(0, 1 << 20).unset("10 MTU"),
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
        /// Pace each flow by the rate of its TCP socket, as on the host of the sender.
        pub pacing: bool = false => flag(),
            "net/sched/sch_fq.c: fq_sched_data.rate_enable";
        /// Number of bands; profile linux-6.12.
        pub bands: Option<u32> = None => count(3, 3).unset("3"),
            "net/sched/sch_fq.c: FQ_BANDS";
        /// Band of each of the 16 priorities; profile linux-6.12.
        pub priomap: Option<[u8; 16]> = None
            => numbers(0, 2).unset("1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
            "net/sched/sch_fq.c: fq_sched_data.prio2band, sch_default_prio2band";
        /// Bytes that each band sends per turn; profile linux-6.12.
        pub weights: Option<[u32; 3]> = None
            => numbers(16_384, 2_147_483_647).unset("589824 196608 65536"),
            "net/sched/sch_fq.c: fq_perband_flows.quantum, FQ_MIN_WEIGHT";
        /// Version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}

impl FqParams {
    fn pace(&self) -> Option<Pace> {
        let pace = |rate| Pace::new(rate, self.low_rate_threshold);
        self.maxrate.map(pace)
    }

    const fn turns(&self) -> Turns {
        Turns {
            quantum: self.quantum,
            initial_quantum: self.initial_quantum,
            refill_delay: self.refill_delay,
            orphan_mask: self.orphan_mask,
            pacing: self.pacing,
        }
    }
}

impl Params for FqParams {
    type Queue<P: Packet> = Fq<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "fq",
        class: Some("Fq"),
        summary: "One queue per flow, each with its own limit; new and returning flows first",
        source: "Linux 6.1 and 6.12 sch_fq",
        reconstruction: None,
        profiles: &[Profile::Linux, Profile::Linux612],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1 and 6.12");

    const TC_STATISTICS: TcStatistics =
        TcStatistics::of(&[("ce_mark", Counter::Marks(MarkReason::CeThreshold))]);

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        const LOCAL: &str = "it concerns local senders; packets here are forwarded";
        const WORDS: &[(&str, TcWord)] = &[
            (
                "buckets",
                TcWord::WithoutEffect(1, "flows are found without buckets"),
            ),
            (
                "timer_slack",
                TcWord::WithoutEffect(1, "a paced packet leaves when it is due"),
            ),
            ("horizon", TcWord::WithoutEffect(1, LOCAL)),
            ("offload_horizon", TcWord::WithoutEffect(1, LOCAL)),
            ("horizon_drop", TcWord::WithoutEffect(0, LOCAL)),
            ("horizon_cap", TcWord::WithoutEffect(0, LOCAL)),
            ("defrate", TcWord::WithoutEffect(1, LOCAL)),
        ];
        WORDS
    }

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        &[&[("nopacing", &[("pacing", "off")])]]
    }

    /// With `nopacing` the kernel ignores `maxrate`, in any place.
    fn settle(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        if self.pacing || !words.contains(&"nopacing") {
            return Ok(Vec::new());
        }
        let change = self.maxrate.take().map(|rate| {
            format!("maxrate: unlimited, not {rate}: nopacing switches it off, as in the kernel")
        });
        Ok(change.into_iter().collect())
    }

    fn resolve(&mut self, link: &LinkFacts) {
        let (quantum, initial) = self.turns().quanta(link.mtu);
        (self.quantum, self.initial_quantum) = (Some(quantum), Some(initial));
        self.low_rate_threshold = self
            .low_rate_threshold
            .or(Rate::from_bits_per_sec(LOW_RATE));
        if self.profile == Profile::Linux612 {
            self.bands = self.bands.or(Some(u32::from(BANDS)));
            self.priomap = self.priomap.or(Some(PRIOMAP));
            self.weights = self.weights.or(Some(WEIGHTS));
        }
    }

    fn conflict(&self) -> Option<String> {
        let given = [
            ("bands", self.bands.is_some()),
            ("priomap", self.priomap.is_some()),
            ("weights", self.weights.is_some()),
        ];
        let (key, _) = given.into_iter().find(|&(_, given)| given)?;
        (self.profile != Profile::Linux612).then(|| format!("{key} requires profile linux-6.12"))
    }

    fn paces_sockets(&self) -> bool {
        self.pacing
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Fq<P> {
        Fq::new(self, link.mtu, rng)
    }

    /// Limits and rates change.
    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        if self.profile == Profile::Linux612 {
            return Err("a queue with profile linux-6.12 cannot change during a run".into());
        }
        fixed(&[
            ("profile", self.profile == next.profile),
            ("quantum", self.quantum == next.quantum),
            (
                "initial_quantum",
                self.initial_quantum == next.initial_quantum,
            ),
            ("refill_delay", self.refill_delay == next.refill_delay),
            ("orphan_mask", self.orphan_mask == next.orphan_mask),
            ("pacing", self.pacing == next.pacing),
        ])
    }

    /// As in Linux, packets that may leave are dequeued and dropped until the rest is below a lower limit.
    fn change<P: Packet>(
        &self,
        queue: &mut Fq<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
        queue.pace = self.pace();
        shrink(queue, self.limit, now, obs);
    }
}

/// Fair queueing with a limit for each flow.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    params: FqParams,
    pace: Option<Pace>,
    order: Order<P>,
    /// Drops at the limit of a flow.
    flows_plimit: u64,
}

/// The flows and the order in which they send.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the default profile needs no indirection"
)]
enum Order<P> {
    /// Of Linux 6.1.
    Flows(Scheduler<P>),
    /// Of Linux 6.12.
    Bands(Box<BandScheduler<P>>),
}

impl<P: Packet> Fq<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &FqParams, mtu: Bytes, rng: Rng) -> Self {
        let pace = params.pace();
        Self {
            params: *params,
            pace,
            order: if params.profile == Profile::Linux612 {
                let bands = BandParams {
                    limit: params.limit,
                    flow_limit: params.flow_limit,
                    turns: params.turns(),
                    priomap: params.priomap,
                    weights: params.weights,
                };
                let paces = params.pacing || pace.is_some();
                Order::Bands(Box::new(BandScheduler::new(&bands, paces, mtu, rng)))
            } else {
                Order::Flows(Scheduler::new(&params.turns(), mtu, rng))
            },
            flows_plimit: 0,
        }
    }
}

impl<P: Packet> Qdisc<P> for Fq<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let full = match &mut self.order {
            Order::Flows(flows) if flows.backlog().packets >= self.params.limit => Full::Queue,
            Order::Flows(flows) if pkt.is_control() => return flows.append_control(now, pkt),
            Order::Flows(flows) => {
                let flow = flows.classify(&pkt);
                flows.forget_if_old(flow, now, FORGOTTEN_AFTER);
                if flows.packets(flow) < self.params.flow_limit {
                    return flows.append(flow, now, pkt);
                }
                Full::Flow
            }
            Order::Bands(bands) => match bands.admit(&pkt) {
                Ok(way) => return bands.append(way, now, pkt),
                Err(full) => full,
            },
        };
        self.flows_plimit += u64::from(full == Full::Flow);
        obs.on_drop(now, pkt, DropReason::Overlimit);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let (flow, mut pkt, ready) = match &mut self.order {
            Order::Flows(flows) => flows.next(now)?,
            Order::Bands(bands) => bands.next(now)?,
        };
        let Some(flow) = flow else {
            return Some(pkt);
        };
        let pace = if self.params.pacing {
            Pace::of_socket(
                &pkt,
                obs,
                self.params.maxrate,
                self.params.low_rate_threshold,
            )
        } else {
            self.pace
        };
        if let Some(pace) = pace {
            match &mut self.order {
                Order::Flows(flows) => flows.pace(flow, pace, pkt.size(), now),
                Order::Bands(bands) => bands.pace(flow, pace, pkt.size(), now),
            }
        }
        let late = self
            .params
            .ce_threshold
            .is_some_and(|threshold| now.saturating_since(ready) > threshold);
        if late && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::CeThreshold);
        }
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match &self.order {
            Order::Flows(flows) => flows.backlog(),
            Order::Bands(bands) => bands.backlog(),
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        match &self.order {
            Order::Flows(flows) => flows.next_due(),
            Order::Bands(bands) => bands.next_due(),
        }
    }

    fn on_timer(&mut self, now: Instant) {
        match &mut self.order {
            Order::Flows(flows) => flows.release(now),
            Order::Bands(bands) => bands.release(now),
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut numbers = match &self.order {
            Order::Flows(flows) => flows.statistics(),
            Order::Bands(bands) => bands.statistics(),
        };
        numbers.push(Statistic::count("flows_plimit", self.flows_plimit));
        numbers
    }
}

/// A flow away for longer is a new one when it comes back, if there are many.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
