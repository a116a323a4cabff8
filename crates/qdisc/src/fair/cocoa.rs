//! Cocoa: fair queueing with a limit per flow that follows the need of its congestion control.
//!
//! # Source
//!
//! Bachl, Zseby and Fabini, "Cocoa: Congestion Control Aware Queuing", 2019, and their module for
//! Linux 4.19.
//!
//! # Algorithm
//!
//! The scheduler is that of [`crate::Fq`]; each flow has its own `limit`, which starts at
//! `flow_limit` and is adapted at losses. If the queue of the flow was empty since the last loss,
//! the limit grows by what could have been sent in that time. If the queue never became empty while
//! the limit was guarded, the limit decreases by the minimum backlog.
//!
//! Pseudo-code: `docs/qdiscs/cocoa.md`.
//!
//! # Differences between the profiles
//!
//! | `paper` | `linux` (the authors' module) |
//! |---|---|
//! | a guard is over at its end | after its end |
//! | in A, an arrival that still does not fit is treated by B | is kept: the queue holds one too many |
//!
//! # Differences of both from the module
//!
//! | here | there | effect |
//! |---|---|---|
//! | an interval without a departure does not shrink the limit | its least backlog is 2^64 - 1 | a crash there |
//! | an interval without an active time does not extend it | a division by 0 | a crash there |
//! | packets deleted at the tail leave the backlog | they stay in its sum of bytes | statistics |
//! | the limit never falls below 1 | nor there, but where A kept a packet too many | a flow is blocked forever |
//! | those of [`crate::Fq`] | | |

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, Observer, Qdisc, Statistic};
use crate::fair::fq::{Pace, Scheduler, Turns};
use crate::parameters::{Kind, LinkFacts, Params, Profile, Retention, fixed, parameters, shrink};
use crate::parts::round::FlowId;

parameters! {
    /// Parameters of [`Cocoa`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CocoaParams {
        /// Maximum number of packets of all flows together.
        pub limit: usize = 10_000 => packets(1, 100_000_000),
            "the authors' sch_cocoa.c: sch->limit";
        /// Initial maximum number of queued packets per flow.
        pub flow_limit: u32 = 100 => count(1, 100_000_000).in_packets(),
            "the authors' sch_cocoa.c: flow_plimit";
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
        /// Number of loss-free intervals before a limit may shrink.
        pub guard_interval: f64 = 1.25 => fraction(0, 1_000),
            "Bachl, Zseby and Fabini 2019: guard interval";
        /// Largest factor by which a limit grows in one step.
        pub max_increase: f64 = 2.0 => fraction(1, 1_000),
            "Bachl, Zseby and Fabini 2019: maximum increase";
        /// Longest time before a limit may shrink.
        pub max_monitoring_interval: Duration = Duration::from_secs(1) => time(1, LONGEST),
            "Bachl, Zseby and Fabini 2019: maximum monitoring interval";
        /// Pace each flow by the rate of its TCP socket, as on the host of the sender.
        pub pacing: bool = false => flag(),
            "the authors' sch_cocoa.c: rate_enable";
        /// Paper or kernel module to follow.
        pub profile: Profile = Profile::Paper => profile(),
            "Sojourn parameter";
    }
}

impl CocoaParams {
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

impl Params for CocoaParams {
    type Queue<P: Packet> = Cocoa<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "cocoa",
        class: Some("Cocoa"),
        summary: "fq with a limit per flow that adapts to the congestion control",
        source: "Bachl, Zseby and Fabini 2019; their module for Linux 4.19",
        reconstruction: None,
        profiles: &[Profile::Paper, Profile::Linux],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn resolve(&mut self, link: &LinkFacts) {
        let (quantum, initial) = self.turns().quanta(link.mtu);
        (self.quantum, self.initial_quantum) = (Some(quantum), Some(initial));
    }

    fn paces_sockets(&self) -> bool {
        self.pacing
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Cocoa<P> {
        Cocoa::new(self, link.mtu, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            ("orphan_mask", self.orphan_mask == next.orphan_mask),
            ("pacing", self.pacing == next.pacing),
        ])
    }

    /// As in the kernel module of Sojourn: flows keep their limits, and packets above a lower total that may leave
    /// are dequeued and dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Cocoa<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.limit = self.limit;
        queue.flow_limit = self.flow_limit;
        queue.law = Law::new(self);
        queue.scheduler.change(&self.turns(), link.mtu);
        shrink(queue, self.limit, now, obs);
    }
}

/// Fair queueing with a limit for each flow that follows its need.
#[derive(Clone, Debug)]
pub struct Cocoa<P> {
    limit: usize,
    flow_limit: u32,
    pacing: bool,
    law: Law,
    scheduler: Scheduler<P>,
    /// One for each flow that was ever seen.
    controls: Vec<Option<Control>>,
}

impl<P: Packet> Cocoa<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &CocoaParams, mtu: Bytes, rng: Rng) -> Self {
        let scheduler = Scheduler::new(&params.turns(), mtu, rng);
        Self {
            limit: params.limit,
            flow_limit: params.flow_limit,
            pacing: params.pacing,
            law: Law::new(params),
            controls: vec![None; scheduler.flows()],
            scheduler,
        }
    }

    fn control(&mut self, flow: FlowId, now: Instant) -> &mut Control {
        let limit = self.flow_limit;
        self.controls[flow.index()].get_or_insert_with(|| Control::new(limit, now))
    }
}

impl<P: Packet> Qdisc<P> for Cocoa<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.scheduler.backlog().packets >= self.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if pkt.is_control() {
            return self.scheduler.append_control(now, pkt);
        }
        let flow = self.scheduler.classify(&pkt);
        if self.scheduler.forget_if_old(flow, now, FORGOTTEN_AFTER) {
            self.controls[flow.index()] = None;
        }
        let packets = self.scheduler.packets(flow);
        let law = self.law;
        let control = self.control(flow, now);
        if packets >= control.limit {
            match control.overflow(&law, packets, now) {
                Verdict::Keep => {}
                Verdict::Drop { newest } => {
                    for _ in 0..newest {
                        if let Some(newest) = self.scheduler.take_newest(flow) {
                            obs.on_drop(now, newest, DropReason::Overlimit);
                        }
                    }
                    return obs.on_drop(now, pkt, DropReason::Overlimit);
                }
            }
        }
        self.control(flow, now).arrival(now);
        self.scheduler.append(flow, now, pkt);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let (flow, pkt, _) = self.scheduler.next(now)?;
        if let Some(flow) = flow {
            if self.pacing
                && let Some(pace) = Pace::of_socket(&pkt, obs, None, None)
            {
                self.scheduler.pace(flow, pace, pkt.size(), now);
            }
            let left = self.scheduler.packets(flow);
            self.control(flow, now).departure(left, now);
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

    fn packets_affect_timer(&self) -> bool {
        self.pacing
    }

    fn on_timer(&mut self, now: Instant) {
        self.scheduler.release(now);
    }

    /// With `limits`: the limit of each flow that was seen, by its place in the table.
    fn statistics(&self) -> Vec<Statistic> {
        let limits = self.controls.iter().flatten().map(|control| control.limit);
        let limits = limits
            .zip(0..)
            .map(|(limit, n)| Statistic::count("limit", limit.into()).within("limits", n));
        self.scheduler
            .statistics()
            .into_iter()
            .chain(limits)
            .collect()
    }
}

/// A flow away for longer is a new one when it comes back, if there are many: its limit is lost.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Law {
    guard_interval: Factor,
    max_increase: Factor,
    longest_guard: Duration,
    profile: Profile,
}

impl Law {
    fn new(params: &CocoaParams) -> Self {
        Self {
            guard_interval: Factor::new(params.guard_interval),
            max_increase: Factor::new(params.max_increase),
            longest_guard: params.max_monitoring_interval,
            profile: params.profile,
        }
    }
}

/// Decision about an arrival beyond its flow's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// It is dropped, together with this number of the newest packets of its flow.
    Drop {
        newest: u32,
    },
}

/// The limit of one flow and what it is judged by.
#[derive(Clone, Debug)]
struct Control {
    limit: u32,
    /// The limit has grown since the last loss.
    enlarged: bool,
    guard_start: Instant,
    guard_end: Instant,
    current: Interval,
    longest: Interval,
    /// Since when the queue is empty, if it is and this counts.
    idle_since: Option<Instant>,
}

/// A time without loss.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Instant,
    end: Instant,
    idle: Duration,
    /// The least that a departure left; nothing left yet is not the same as nothing.
    least: Option<u32>,
    sent: u64,
}

impl Control {
    const fn new(limit: u32, now: Instant) -> Self {
        Self {
            limit,
            enlarged: false,
            guard_start: now,
            guard_end: now,
            current: Interval::new(now),
            longest: Interval::new(now),
            idle_since: None,
        }
    }

    fn arrival(&mut self, now: Instant) {
        if let Some(since) = self.idle_since.take() {
            self.current.idle += now.since(since);
        }
    }

    fn departure(&mut self, left: u32, now: Instant) {
        self.current.sent += 1;
        self.current.least = Some(self.current.least.map_or(left, |least| least.min(left)));
        if left == 0 {
            self.idle_since = Some(now);
        }
    }

    /// An arrival has found `packets` of its flow, as many as it may have.
    fn overflow(&mut self, law: &Law, packets: u32, now: Instant) -> Verdict {
        let first = self.guard_start == self.guard_end;
        if self.current.idle > Duration::ZERO && !self.enlarged && !first {
            self.enlarge(law, now);
            if law.profile != Profile::Paper || packets < self.limit {
                return Verdict::Keep;
            }
        }
        self.current.end = now;
        let enlarged = std::mem::take(&mut self.enlarged);
        if enlarged || self.current.length() >= self.longest.length() {
            self.longest = self.current;
        }
        if first || enlarged {
            self.guard(law, now);
            return Verdict::Drop { newest: 0 };
        }
        let over = match law.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => now >= self.guard_end,
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => now > self.guard_end,
        };
        if !over {
            self.current = Interval::new(now);
            return Verdict::Drop { newest: 0 };
        }
        let newest = self.longest.least.unwrap_or(0).min(self.limit - 1);
        self.limit -= newest;
        self.guard(law, now);
        Verdict::Drop { newest }
    }

    /// Makes room for what could have been sent while the queue was empty.
    fn enlarge(&mut self, law: &Law, now: Instant) {
        self.enlarged = true;
        let Interval {
            start, idle, sent, ..
        } = self.current;
        let active = now.since(start).saturating_sub(idle);
        let missed = u128::from(sent) * u128::from(idle.as_nanos());
        if let Some(missed) = missed.checked_div(u128::from(active.as_nanos())) {
            let wanted = u64::from(self.limit).saturating_add(saturating(missed));
            let most = law.max_increase.of(u64::from(self.limit));
            self.limit = u32::try_from(wanted.min(most)).unwrap_or(u32::MAX);
        }
    }

    /// Watches the limit for a while before it may shrink.
    fn guard(&mut self, law: &Law, now: Instant) {
        let wanted = law.guard_interval.of(self.longest.length().as_nanos());
        self.guard_start = now;
        self.guard_end = now + Duration::from_nanos(wanted).min(law.longest_guard);
        self.idle_since = None;
        self.current = Interval::new(now);
        self.longest = self.current;
    }
}

impl Interval {
    const fn new(now: Instant) -> Self {
        Self {
            start: now,
            end: now,
            idle: Duration::ZERO,
            least: None,
            sent: 0,
        }
    }

    fn length(&self) -> Duration {
        self.end.since(self.start)
    }
}

/// A multiplier in millionths, so that 1.1 times 100 is 110.
#[derive(Clone, Copy, Debug)]
struct Factor(u64);

impl Factor {
    const ONE: f64 = 1e6;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float saturates; a factor is not negative"
    )]
    fn new(factor: f64) -> Self {
        Self((factor * Self::ONE).round() as u64)
    }

    /// The product, rounded down.
    fn of(self, n: u64) -> u64 {
        saturating(u128::from(n) * u128::from(self.0) / 1_000_000)
    }
}

fn saturating(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
