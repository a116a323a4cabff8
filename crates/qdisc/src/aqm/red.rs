//! RED: Random Early Detection, and its adaptive form.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_red.c` and `include/net/red.h`; the defaults and tables of iproute2.
//! The algorithm is Floyd and Jacobson's (1993), the adaptation Floyd, Gummadi and Shenker's
//! (2001), *gentle* Floyd's (2000).
//!
//! # Algorithm
//!
//! An arrival updates the average backlog, then has one of three outcomes:
//!
//! ```text
//! avg += (backlog - avg) / 2^Wlog
//! avg <  min          pass
//! min <= avg < max    signal if (avg - min) * count >= R, R drawn from (0, (max - min) / max_p)
//! avg >= max          signal
//! ```
//!
//! `count` is the number of packets since the last signal, so the gaps between signals are
//! uniform. After an idle time the average decays instead, as if small packets had been served.
//! *Adaptive*: every 500 ms `max_p` moves so that the average stays in the middle fifth between
//! `min` and `max`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | the link's rate paces the idle decay unless `bandwidth` is given | 10 Mbit/s | decay after idling |
//! | `gentle` | absent | an addition: from `max` to `2 max` the probability rises from `max_p` to 1 |
//! | `limit` has a default | is mandatory | none |
//!
//! iproute2 builds the decay table in ticks of 64 ns with natural logarithms; the kernel reads it
//! in microseconds and shifts by powers of 2. The decay is 22.5 times slower than meant; so here.
//!
//! # Differences from the papers
//!
//! | here | paper | effect |
//! |---|---|---|
//! | the average does not sample the arrival that ends an idle time | it does | one sample |
//! | `Wlog` from `burst`, a power of 2 | any weight; ARED `1 - exp(-1/C)` | coarser |
//! | ARED's thresholds from `limit` | from a target delay | set `min` and `max` |

mod derive;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};
use crate::parameters::{
    Counter, Kind, LINUX, Leaf, LeafList, LinkFacts, OVERLIMITS, Params, Retention, TcStatistics,
    TcWord, parameters,
};
use crate::parts::classes::Classes;
use crate::parts::fifo::Fifo;
use crate::parts::leaf;

pub use derive::RedDerived;
pub(crate) use derive::beyond_kernel;

impl<L> RedParams<L> {
    /// Adaptive RED.
    pub fn adaptive() -> Self {
        Self {
            adaptive: true,
            ..Self::default()
        }
    }
}

/// What tc calls the drops and marks of this discipline and of those that derive from it.
pub(crate) const COUNTERS: &[(&str, Counter)] = &[
    ("marked", Counter::Marks(MarkReason::Aqm)),
    ("early", Counter::Drops(DropReason::Aqm)),
    ("pdrop", Counter::Drops(DropReason::Overlimit)),
];

impl<L: Leaf> Params for RedParams<L> {
    type Queue<P: Packet> = Red<P, L::Queue<P>>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "red",
            class: Some("Red"),
            summary: "Signals with a probability that grows with the average backlog",
            source: "Linux 6.1 sch_red, iproute2; Floyd and Jacobson 1993",
            reconstruction: None,
            profiles: LINUX,
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "ared",
            class: Some("Ared"),
            summary: "Adaptive RED: red with a probability that follows the load",
            source: "Linux 6.1 sch_red, iproute2; Floyd, Gummadi and Shenker 2001",
            reconstruction: None,
            profiles: LINUX,
            start: Self::adaptive,
            parameters: Self::PARAMETERS,
        },
    ];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(COUNTERS)
        .with_leaves("leaf")
        .with_overlimits();

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        const WORDS: &[(&str, TcWord)] = &[
            ("adaptative", TcWord::Means("adaptive")),
            ("ewma", WEIGHT),
            ("Plog", WEIGHT),
            ("Scell_log", WEIGHT),
            (
                "qevent",
                TcWord::NotModelled("actions of filters are not part of a queue"),
            ),
        ];
        WORDS
    }

    fn conflict(&self) -> Option<String> {
        if self.nodrop && !self.ecn {
            return Some("nodrop requires ecn".into());
        }
        let leaf = leaf::conflict(&self.leaf, 1);
        leaf.or(self.derive().err())
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        Some((&self.leaf, u32::from(!self.leaf.is_empty())))
    }

    fn resolve(&mut self, _link: &LinkFacts) {
        let RedDerived {
            min, max, burst, ..
        } = RedDerived::of(self);
        (self.min, self.max, self.burst) = (Some(min), Some(max), Some(burst));
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Red<P, L::Queue<P>> {
        let leaf = leaf::only(&self.leaf, link, &rng);
        let mut red = Red::new(self, link.rate, rng);
        if let Some(leaf) = leaf {
            red.buffer = Buffer::Leaf(Box::new(leaf));
        }
        red
    }

    /// As in Linux, which gives the queue a new buffer, the packets are dropped.
    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Drops)
    }
}

/// A FIFO governed by RED.
#[derive(Clone, Debug)]
pub struct Red<P, Q> {
    limit: Bytes,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    buffer: Buffer<P, Q>,
    law: Law,
    rng: Rng,
    /// When `max_p` moves next; `None` if it does not adapt.
    next_adaptation: Option<Instant>,
    overlimits: u64,
}

/// Where packets wait.
#[derive(Clone, Debug)]
enum Buffer<P, Q> {
    /// In what RED brings along, limited to `limit` bytes.
    Fifo(Fifo<P>),
    /// In another discipline, with the limits that it has.
    Leaf(Box<Classes<Q, P>>),
}

/// Time between two adaptations; the kernel's `HZ / 2`.
const ADAPTATION: Duration = Duration::from_millis(500);

impl<P: Packet, Q: Qdisc<P>> Red<P, Q> {
    /// An empty queue on a link of `rate`, made at the origin of time.
    pub fn new<L>(params: &RedParams<L>, rate: Option<Rate>, rng: Rng) -> Self {
        let derived = RedDerived::of(params);
        let bandwidth = params.bandwidth.or(rate).unwrap_or(Rate::mbit(10));
        Self {
            limit: params.limit,
            ecn: params.ecn,
            harddrop: params.harddrop,
            nodrop: params.nodrop,
            buffer: Buffer::Fifo(Fifo::new()),
            law: Law::new(params, &derived, bandwidth),
            rng,
            next_adaptation: params.adaptive.then_some(Instant::ZERO + ADAPTATION),
            overlimits: 0,
        }
    }

    /// Whether `pkt` may join; it may have been marked.
    fn passes(
        &mut self,
        verdict: Verdict,
        now: Instant,
        pkt: &mut P,
        obs: &mut dyn Observer<P>,
    ) -> bool {
        let markable = match verdict {
            Verdict::Pass => return true,
            Verdict::Signal => self.ecn,
            Verdict::HardSignal => self.ecn && !self.harddrop,
        };
        // The kernel counts each signal, also one that `nodrop` suppresses.
        self.overlimits += 1;
        obs.on_decision(&|| self.law.numbers());
        if markable && pkt.mark_ce() {
            obs.on_mark(now, pkt, MarkReason::Aqm);
            return true;
        }
        markable && self.nodrop
    }
}

impl<P: Packet, Q: Qdisc<P>> Qdisc<P> for Red<P, Q> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let backlog = self.backlog().bytes;
        let verdict = self.law.on_arrival(now, backlog, &mut self.rng);
        if !self.passes(verdict, now, &mut pkt, obs) {
            return obs.on_drop(now, pkt, DropReason::Aqm);
        }
        match &mut self.buffer {
            Buffer::Fifo(_) if backlog + pkt.size() > self.limit => {
                obs.on_drop(now, pkt, DropReason::Overlimit);
            }
            Buffer::Fifo(fifo) => fifo.push(now, pkt),
            Buffer::Leaf(leaf) => leaf.enqueue(0, now, pkt, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let pkt = match &mut self.buffer {
            Buffer::Fifo(fifo) => fifo.pop_stamped().map(|(pkt, _)| pkt),
            Buffer::Leaf(leaf) => leaf.dequeue(0, now, obs),
        };
        // A leaf that holds packets back is not idle.
        if pkt.is_none() && self.backlog().packets == 0 {
            self.law.idle(now);
        }
        pkt
    }

    fn peek(&self) -> Peek {
        match &self.buffer {
            Buffer::Fifo(fifo) => fifo.peek(),
            Buffer::Leaf(leaf) => leaf.head(0),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match &self.buffer {
            Buffer::Fifo(fifo) => fifo.backlog(),
            Buffer::Leaf(leaf) => leaf.backlog(),
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let inner = match &self.buffer {
            Buffer::Fifo(_) => Vec::new(),
            Buffer::Leaf(leaf) => leaf.statistics("leaf"),
        };
        let mut all = vec![
            Statistic::count("average", self.law.average()),
            Statistic::real("max_prob", self.law.max_prob()),
            Statistic::count(OVERLIMITS, self.overlimits),
        ];
        all.extend(inner);
        all
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        let mut all = vec![Statistic::real("prob", self.law.probability())];
        if let Buffer::Leaf(leaf) = &self.buffer {
            all.extend(leaf.state("leaf", now));
        }
        all
    }

    fn classes(&self) -> Vec<ClassId> {
        match &self.buffer {
            Buffer::Fifo(_) => Vec::new(),
            Buffer::Leaf(leaf) => leaf.ids(),
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        let inner = match &self.buffer {
            Buffer::Fifo(_) => None,
            Buffer::Leaf(leaf) => leaf.next_timer(),
        };
        self.next_adaptation.into_iter().chain(inner).min()
    }

    fn packets_affect_timer(&self) -> bool {
        matches!(self.buffer, Buffer::Leaf(_))
    }

    fn on_timer(&mut self, now: Instant) {
        if self.next_adaptation.is_some_and(|due| now >= due) {
            self.law.adapt(now);
            self.next_adaptation = Some(now + ADAPTATION);
        }
        if let Buffer::Leaf(leaf) = &mut self.buffer {
            leaf.on_timer(now);
        }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        if let Buffer::Leaf(leaf) = &mut self.buffer {
            leaf.on_link_rate(now, rate);
        }
    }
}

/// Decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Signal,
    HardSignal,
}

/// The control law; averages and thresholds are scaled by `2^wlog`.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    wlog: u32,
    qth_min: u64,
    qth_max: u64,
    gentle: bool,
    /// `max - min` in bytes.
    qth_delta: u64,
    /// Where adaptation wants the average, in bytes.
    target_min: u64,
    target_max: u64,
    /// By what power of 2 the average falls in `i << scell_log` microseconds of idling.
    stab: Box<[u8; 256]>,
    scell_log: u32,

    /// Highest probability, of 2^32.
    max_p: u32,
    qavg: u64,
    /// Packets since the last signal; `None` below `min` and above `max`.
    qcount: Option<u64>,
    /// The lot drawn for the next signal.
    qr: u64,
    /// Packets from the signal before to the last one; `None`: that was above the thresholds.
    spacing: Option<u64>,
    idle_since: Option<Instant>,
}

/// 1 % and 50 % of 2^32.
const MAX_P_MIN: u32 = 42_949_672;
const MAX_P_MAX: u32 = 2_147_483_647;

impl Law {
    pub(crate) fn new<L>(params: &RedParams<L>, derived: &RedDerived, bandwidth: Rate) -> Self {
        let (min, max, wlog) = (derived.min.0, derived.max.0, derived.wlog);
        let (scell_log, stab) = derive::idle_damping(wlog, params.avpkt, bandwidth);
        Self {
            wlog,
            qth_min: min << wlog,
            qth_max: max << wlog,
            gentle: params.gentle,
            qth_delta: (max - min).max(1),
            target_min: derived.target_min.0,
            target_max: derived.target_max.0,
            stab: Box::new(stab),
            scell_log,
            max_p: derive::q32(params.probability),
            qavg: 0,
            qcount: None,
            qr: 0,
            spacing: None,
            idle_since: None,
        }
    }

    #[inline]
    fn on_arrival(&mut self, now: Instant, backlog: Bytes, rng: &mut Rng) -> Verdict {
        self.sample(now, backlog.0);
        if self.qavg < self.qth_min {
            self.forget();
            return Verdict::Pass;
        }
        if self.qavg >= self.qth_max {
            if self.gentle && self.qavg < 2 * self.qth_max {
                return self.gentle_verdict(rng);
            }
            self.forget();
            self.spacing = None;
            return Verdict::HardSignal;
        }
        if self.draws_signal(rng) {
            Verdict::Signal
        } else {
            Verdict::Pass
        }
    }

    /// Takes the backlog, or the idle time before an arrival, into the average.
    #[inline]
    pub(crate) fn sample(&mut self, now: Instant, backlog: u64) {
        self.qavg = match self.idle_since.take() {
            Some(since) => self.decayed(now.since(since)),
            None => self.qavg + backlog - (self.qavg >> self.wlog),
        };
    }

    /// The link found nothing to send.
    #[inline]
    pub(crate) fn idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    #[inline]
    pub(crate) const fn is_above_min(&self) -> bool {
        self.qavg > self.qth_min
    }

    #[inline]
    pub(crate) const fn is_above_max(&self) -> bool {
        self.qavg > self.qth_max
    }

    /// The next packet between the thresholds is the first.
    #[inline]
    pub(crate) const fn forget(&mut self) {
        self.qcount = None;
    }

    /// The lottery for an arrival between the thresholds.
    #[inline]
    pub(crate) fn draws_signal(&mut self, rng: &mut Rng) -> bool {
        let Some(qcount) = self.qcount else {
            self.qcount = Some(0);
            self.qr = self.lot(rng);
            return false;
        };
        let qcount = qcount + 1;
        if ((self.qavg - self.qth_min) >> self.wlog) * qcount < self.qr {
            self.qcount = Some(qcount);
            return false;
        }
        self.spacing = Some(qcount);
        self.qcount = Some(0);
        self.qr = self.lot(rng);
        true
    }

    /// Uniform in `(0, (max - min) / max_p)`.
    fn lot(&self, rng: &mut Rng) -> u64 {
        let delta = self.qth_delta;
        let max_p_delta = ((u64::from(self.max_p) + delta / 2) / delta).max(1);
        u64::from(rng.next_u32()) / max_p_delta
    }

    /// The numbers behind the last signal.
    #[cold]
    pub(crate) fn numbers(&self) -> Vec<Statistic> {
        let mut all = vec![
            Statistic::count("average", self.average()),
            Statistic::real("prob", self.probability()),
        ];
        all.extend(self.spacing.map(|n| Statistic::count("count", n)));
        all
    }

    /// The average in the unit of the thresholds.
    pub(crate) const fn average(&self) -> u64 {
        self.qavg >> self.wlog
    }

    /// `max_p` as a fraction.
    fn max_prob(&self) -> f64 {
        f64::from(self.max_p) / 4_294_967_296.0
    }

    /// `p_b` at this average; the gaps between signals are uniform up to `1 / p_b` arrivals.
    #[expect(clippy::cast_precision_loss, reason = "a probability; 53 bits suffice")]
    pub(crate) fn probability(&self) -> f64 {
        if self.qavg < self.qth_min {
            0.0
        } else if self.qavg < self.qth_max {
            let range = (self.qth_delta << self.wlog) as f64;
            self.max_prob() * (self.qavg - self.qth_min) as f64 / range
        } else if self.gentle && self.qavg < 2 * self.qth_max {
            self.gentle_probability()
        } else {
            1.0
        }
    }

    /// From `max` to `2 max` the probability rises from `max_p` to 1.
    #[expect(clippy::cast_precision_loss, reason = "a probability; 53 bits suffice")]
    fn gentle_probability(&self) -> f64 {
        let max_p = self.max_prob();
        let above = (self.qavg - self.qth_max) as f64 / self.qth_max as f64;
        max_p + (1.0 - max_p) * above
    }

    /// Between `max` and `2 max`; the gaps stay uniform.
    #[expect(clippy::cast_precision_loss, reason = "a probability; 53 bits suffice")]
    fn gentle_verdict(&mut self, rng: &mut Rng) -> Verdict {
        let qcount = self.qcount.map_or(0, |n| n + 1);
        let p_b = self.gentle_probability();
        let left = 1.0 - qcount as f64 * p_b;
        if left <= p_b || rng.uniform() * left < p_b {
            self.spacing = Some(qcount);
            self.qcount = Some(0);
            Verdict::Signal
        } else {
            self.qcount = Some(qcount);
            Verdict::Pass
        }
    }

    /// The average after an idle time.
    fn decayed(&self, idle: Duration) -> u64 {
        let most = 255 << self.scell_log;
        let micros = idle.as_micros().min(most);
        let shift = self.stab[usize::from(cell(micros >> self.scell_log))];
        if shift > 0 {
            return self.qavg >> shift;
        }
        // The product of a large average and a long cell exceeds 64 bits.
        let fall = (u128::from(self.qavg) * u128::from(micros)) >> self.scell_log;
        let half = self.qavg / 2;
        self.qavg - u64::try_from(fall).map_or(half, |fall| fall.min(half))
    }

    /// Moves `max_p` so that the average comes to the middle of the thresholds.
    fn adapt(&mut self, now: Instant) {
        let qavg = match self.idle_since {
            Some(since) => self.decayed(now.since(since)),
            None => self.qavg,
        } >> self.wlog;
        if qavg > self.target_max && self.max_p <= MAX_P_MAX {
            self.max_p += MAX_P_MIN.min(self.max_p / 4);
        } else if qavg < self.target_min && self.max_p >= MAX_P_MIN {
            self.max_p = self.max_p / 10 * 9;
        }
    }
}

/// An index of the decay table.
fn cell(index: u64) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

/// Words of `tc -d` about the weight of the average.
pub(super) const WEIGHT: TcWord = TcWord::WithoutEffect(
    1,
    "the weight follows from min, burst and avpkt, and its decay from bandwidth",
);

parameters! {
    /// Parameters of [`Red`](super::Red); unset ones are derived as iproute2 does.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RedParams<L> {
        /// Maximum number of bytes in the buffer.
        pub limit: Bytes = Bytes(1_514_000) => size(1, (1 << 32) - 1),
            "include/uapi/linux/pkt_sched.h: tc_red_qopt.limit; mandatory in tc; Sojourn default";
        /// Average backlog above which packets are signalled at random.
        pub min: Option<Bytes> = None => size(1, (1 << 32) - 1).unset("max / 3"),
            "Floyd and Jacobson 1993: min_th; include/net/red.h: red_parms.qth_min; default of iproute2 tc/q_red.c";
        /// Average backlog above which every packet is signalled.
        pub max: Option<Bytes> = None => size(1, (1 << 32) - 1).unset("3 * min if min is set, else limit / 4"),
            "Floyd and Jacobson 1993: max_th; include/net/red.h: red_parms.qth_max; default of iproute2 tc/q_red.c";
        /// Average packet size; the weight and the idle decay of the average backlog derive from it.
        pub avpkt: Bytes = Bytes(1_000) => size(1, 65_536),
            "iproute2 tc/q_red.c: avpkt; mandatory in tc; Sojourn default";
        /// Number of packets in a burst that pass without a signal.
        pub burst: Option<u32> = None => count(1, 1 << 24).in_packets().unset("(2 * min + max) / (3 * avpkt)"),
            "iproute2 tc/q_red.c: burst, for tc_red_eval_ewma";
        /// Probability of a signal at max; with adaptive, its initial value.
        pub probability: f64 = 0.02 => fraction(0, 1),
            "Floyd and Jacobson 1993: max_p; include/net/red.h: red_parms.max_P; default of iproute2 tc/q_red.c";
        /// Link rate for the decay of the average while idle.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "iproute2 tc/q_red.c: bandwidth, for tc_red_eval_idle_damping; Sojourn defaults to the link rate";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_ECN";
        /// Drop every packet above max, ECN-capable or not.
        pub harddrop: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_HARDDROP";
        /// Queue packets that cannot be marked instead of dropping them; requires ecn.
        pub nodrop: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_NODROP";
        /// Adapt the probability to the load.
        pub adaptive: bool = false => flag(),
            "Floyd, Gummadi and Shenker 2001; include/uapi/linux/pkt_sched.h: TC_RED_ADAPTATIVE";
        /// Raise the probability linearly to 1 between max and 2 * max.
        pub gentle: bool = false => flag(),
            "Floyd 2000; absent from Linux";
        /// Inner queue; by default a FIFO of limit bytes.
        pub leaf: Vec<L> = Vec::new() => leaves(1).unset("a FIFO of limit bytes"),
            "net/sched/sch_red.c: red_sched_data.qdisc";
    }
}

#[cfg(test)]
mod tests;
