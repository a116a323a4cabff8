//! `cake_mq`: a CAKE per transmit queue of a device, which share one rate.
//!
//! # Source
//!
//! Linux 7.0 `net/sched/sch_cake.c` (Köppeler and Høiland-Jørgensen, "mq-cake: Scaling software rate limiting across
//! CPU cores", Netdev 0x19), with the correction of the rates of the tins of February 2026.
//!
//! # Algorithm
//!
//! Each flow has one of the instances. An instance that is asked for a packet, at most once per `sync_time`, counts the
//! active instances and shapes at `bandwidth / active` until it counts again:
//!
//! ```text
//! active = 1 + other instances that hold packets, or sent one since the last count of this instance
//! ```
//!
//! An instance that has sent its last packet while flows decay also counts once more, a target of COBALT later.
//!
//! The thresholds of the tins and the quantum of the flows follow; COBALT keeps the targets of the whole rate.
//! Everything else is of each instance alone: memory limit, flows, hosts, tins.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | the hash of a flow selects its instance | the device does: a hash, the CPU of the sender or of the receive queue | which flows share an instance |
//! | one transmitter serves the instances in turn | a CPU and a transmit queue for each | none while the shaper is the bottleneck |
//! | `sync_time` | 200 us, no parameter | none at the default |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};
use sojourn_schema::Value;

use crate::contract::{Backlog, ClassId, Observer, Qdisc, Statistic};
use crate::fair::cake::{Cake, CakeParams};
use crate::parameters::{
    Kind, LINUX, LinkFacts, OVERLIMITS, Parameter, Parameters, Params, Retention, Shorthand,
    TcStatistics, TcWord, fixed, parameters,
};

parameters! {
    /// What the instances have in common.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SharingParams {
        /// Number of instances: the transmit queues of the device.
        pub queues: u32 = 4 => count(1, 64),
            "net/sched/sch_cake.c: cake_mq_init, num_tx_queues; the default is an addition";
        /// Minimum time between two counts of the active instances.
        pub sync_time: Duration = Duration::from_micros(200) => time(1_000, 1_000_000_000),
            "net/sched/sch_cake.c: cake_sched_config.sync_time";
    }
}

/// Parameters of [`CakeMq`]: those of the sharing, and of each instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CakeMqParams {
    /// What the instances have in common.
    pub sharing: SharingParams,
    /// Those of CAKE; the bandwidth is that of all instances together.
    pub cake: CakeParams,
}

impl CakeMqParams {
    const NUMBER: usize = SharingParams::PARAMETERS.len() + CakeParams::PARAMETERS.len();

    const PARAMETERS: &'static [Parameter] = &{
        let (own, cake) = (SharingParams::PARAMETERS, CakeParams::PARAMETERS);
        let mut all = [own[0]; Self::NUMBER];
        let mut n = 1;
        while n < Self::NUMBER {
            all[n] = if n < own.len() {
                own[n]
            } else {
                cake[n - own.len()]
            };
            n += 1;
        }
        all
    };

    /// In bytes per second; `None` is unlimited.
    fn rate(&self) -> Option<u64> {
        let rate = self.cake.bandwidth?;
        Some((rate.bits_per_sec() / 8).max(1))
    }
}

impl Parameters for CakeMqParams {
    fn table(&self) -> &'static [Parameter] {
        Self::PARAMETERS
    }

    fn value(&mut self, key: &str) -> Option<&mut dyn Value> {
        match self.sharing.value(key) {
            Some(value) => Some(value),
            None => self.cake.value(key),
        }
    }
}

impl Params for CakeMqParams {
    type Queue<P: Packet> = CakeMq<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "cake_mq",
        class: Some("CakeMq"),
        summary: "A CAKE per transmit queue; the active ones share the rate",
        source: "Linux 7.0 sch_cake; Köppeler and Høiland-Jørgensen 2025",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::Partial("Linux 7.3, two instances");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_overlimits();

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        self.cake.shorthands()
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        self.cake.tc_words()
    }

    fn settle(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        self.cake.settle(words)
    }

    fn shaper_rate(&self) -> Option<Rate> {
        self.cake.shaper_rate()
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> CakeMq<P> {
        CakeMq::new(self, link.mtu, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("queues", self.sharing.queues == next.sharing.queues)])?;
        self.cake.change_to(&next.cake)
    }

    /// Every instance changes, and shapes at its part of the new rate at once; in the patches of Linux after its next count.
    fn change<P: Packet>(
        &self,
        queue: &mut CakeMq<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.rate = self.rate();
        queue.sync_time = self.sharing.sync_time;
        for instance in &mut queue.instances {
            self.cake.change(&mut instance.queue, now, link, obs);
            instance.queue.use_exact_roots();
            if let Some(rate) = queue.rate {
                instance.queue.set_rate((rate / instance.active).max(1));
            }
        }
    }
}

/// Several instances of CAKE that share a rate.
#[derive(Clone, Debug)]
pub struct CakeMq<P> {
    instances: Vec<Instance<P>>,
    /// The instance that is asked first.
    next: usize,
    /// In bytes per second; `None` is unlimited.
    rate: Option<u64>,
    sync_time: Duration,
    perturbation: u64,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct Instance<P> {
    queue: Cake<P>,
    /// A packet arrived since it last had none to send.
    has_news: bool,
    /// The number of active instances that it shapes for.
    active: u64,
    last_checked: Option<Instant>,
    last_active: Option<Instant>,
    /// When it is asked although it is empty, and counts.
    asked_empty: Option<Instant>,
}

impl<P: Packet> Instance<P> {
    /// Notes when it is asked next although it is empty. The kernel has one timer for this and for the shaper.
    fn schedule(&mut self, now: Instant, has_sent: bool) {
        if self.queue.backlog().packets > 0 {
            self.asked_empty = None;
        } else if has_sent {
            self.asked_empty = self.queue.asked_empty(now).or(self.asked_empty);
        }
    }

    /// Whether it may have a packet to send: one arrived, or the shaper opened.
    fn is_ready(&self, now: Instant) -> bool {
        self.has_news || self.queue.next_timer().is_some_and(|due| due <= now)
    }
}

impl<P: Packet> CakeMq<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &CakeMqParams, mtu: Bytes, mut rng: Rng) -> Self {
        let perturbation = rng.next_u64();
        let instance = |n| Instance {
            queue: Cake::new(&params.cake, mtu, rng.fork(&format!("queue/{n}"))),
            has_news: false,
            active: 1,
            last_checked: None,
            last_active: None,
            asked_empty: None,
        };
        let mut instances: Vec<_> = (0..params.sharing.queues).map(instance).collect();
        for instance in &mut instances {
            instance.queue.use_exact_roots();
        }
        Self {
            instances,
            next: 0,
            rate: params.rate(),
            sync_time: params.sharing.sync_time,
            perturbation,
            backlog: Backlog::default(),
        }
    }

    /// The instance of a packet.
    #[inline]
    fn classify(&self, pkt: &P) -> usize {
        let digest = u64::from(pkt.flow().digest(self.perturbation));
        let number = self.instances.len() as u64;
        usize::try_from((digest * number) >> 32).unwrap_or(0)
    }

    /// Counts the active instances for instance `at`, if it is time, and shapes at its part of the rate.
    fn synchronise(&mut self, at: usize, now: Instant) {
        let Some(rate) = self.rate else {
            return;
        };
        let before = self.instances[at].last_checked;
        if before.is_some_and(|before| now.since(before) < self.sync_time) {
            return;
        }
        let is_active =
            |other: &Instance<P>| other.queue.backlog().packets > 0 || other.last_active > before;
        let others = self.instances.iter().enumerate();
        let others = others.filter(|&(n, other)| n != at && is_active(other));
        let active = 1 + others.count() as u64;
        let instance = &mut self.instances[at];
        instance.last_checked = Some(now);
        if instance.active != active {
            instance.active = active;
            instance.queue.set_rate((rate / active).max(1));
        }
    }

    /// Adds up the backlog after a call of instance `at`, before which it was `before`.
    #[inline]
    fn recount(&mut self, at: usize, before: Backlog) {
        let after = self.instances[at].queue.backlog();
        let all = &mut self.backlog;
        all.packets = all.packets + after.packets - before.packets;
        all.bytes = Bytes(all.bytes.0 + after.bytes.0 - before.bytes.0);
    }
}

impl<P: Packet> Qdisc<P> for CakeMq<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let at = self.classify(&pkt);
        let instance = &mut self.instances[at];
        let before = instance.queue.backlog();
        instance.queue.enqueue(now, pkt, obs);
        instance.has_news = true;
        self.recount(at, before);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let number = self.instances.len();
        for turn in 0..number {
            let at = (self.next + turn) % number;
            if !self.instances[at].is_ready(now) {
                continue;
            }
            self.synchronise(at, now);
            let instance = &mut self.instances[at];
            let before = instance.queue.backlog();
            let pkt = instance.queue.dequeue(now, obs);
            instance.has_news = pkt.is_some();
            if pkt.is_some() {
                instance.last_active = Some(now);
            }
            instance.schedule(now, pkt.is_some());
            self.recount(at, before);
            if pkt.is_some() {
                self.next = (at + 1) % number;
                return pkt;
            }
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn next_timer(&self) -> Option<Instant> {
        let instances = self.instances.iter();
        let wakes = instances.flat_map(|each| [each.queue.next_timer(), each.asked_empty]);
        wakes.flatten().min()
    }

    fn on_timer(&mut self, now: Instant) {
        for at in 0..self.instances.len() {
            if self.instances[at].asked_empty.is_some_and(|due| due <= now) {
                self.instances[at].asked_empty = None;
                self.synchronise(at, now);
            }
        }
        for instance in &mut self.instances {
            if instance.queue.next_timer().is_some_and(|due| due <= now) {
                instance.queue.on_timer(now);
                instance.has_news = true;
            }
        }
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        let at = self.classify(pkt);
        let queue = self.instances[at].queue.queue_of(pkt)?;
        let number = u32::try_from(self.instances.len()).ok()?;
        // Numbers of different instances differ.
        Some(queue * number + u32::try_from(at).ok()?)
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut all = Vec::new();
        let mut overlimits = 0;
        for (n, instance) in self.instances.iter().enumerate() {
            let counts = instance.queue.totals();
            overlimits += counts.overlimits;
            all.extend(
                [
                    ("active_queues", instance.active),
                    ("sent_packets", counts.packets),
                    ("sent_bytes", counts.bytes),
                    ("backlog_bytes", instance.queue.backlog().bytes.0),
                    ("drops", counts.drops),
                    ("ecn_mark", counts.marks),
                    ("memory_used", counts.memory_used),
                    ("memory_limit", counts.memory_limit),
                ]
                .map(|(name, value)| Statistic::count(name, value).within("queues", n)),
            );
        }
        all.push(Statistic::count(OVERLIMITS, overlimits));
        all
    }

    fn classes(&self) -> Vec<ClassId> {
        self.instances
            .first()
            .map_or_else(Vec::new, |each| each.queue.classes())
    }
}

#[cfg(test)]
mod tests;
