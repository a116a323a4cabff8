//! AFCD: Approximated-Fair and Controlled-Delay queueing, in part a reconstruction.
//!
//! # Source
//!
//! Xue, Kumar, Cui, Kondikoppa, Chiu and Park, "AFCD: An Approximated-Fair and Controlled-Delay
//! Queuing for High Speed Networks", ICCCN 2013; the first author's module of 2012 for Linux 3.6
//! (facts only). The paper leaves open how often it samples, how large its tables are and when
//! and with which gains equation (5) is applied; see *Reconstructed*.
//!
//! # Algorithm
//!
//! One arrival in `sample` is remembered, by flow, in a *shadow buffer* of the `shadow` newest.
//! Of these, `m_i` are of flow i, out of `flow_count` flows. With the fair share
//!
//! ```text
//! m_f = shadow / flow_count, rounded down                             (4)
//! m_f += alpha (Q_old - Q_target) - beta (Q - Q_target)               (5), if `average`
//! ```
//!
//! a flow's target delay is
//!
//! ```text
//! target_i = target_scale * target * (m_f / m_i)^exponent             (6)
//! ```
//!
//! long for slow flows, short for fast ones. A packet may be signalled when every packet of its
//! flow that left for more than `persist` had waited `target_i` or longer; with `protect`, only if
//! `m_i >= m_f`. `CoDel`'s control law, one for all flows, then decides when: signal `count + 1`
//! follows signal `count` after `interval / sqrt(count)`, until a packet leaves that may not be
//! signalled.
//!
//! # The two presets
//!
//! | | `afcd`, the paper | `afcd_kernel2012`, the module |
//! |---|---|---|
//! | `exponent` | 3 | 4 |
//! | `target_scale` | 1: 5 ms at the fair share | 0.01: 50 µs |
//! | `persist` | the interval, follows it | 10 ms, which `interval` does not move |
//! | flows below the fair share | long targets | never signalled |
//!
//! # Reconstructed
//!
//! | here | paper | module |
//! |---|---|---|
//! | shadow buffer and flow table of 2000 | "do not need to be big" | 2000 |
//! | `sample` such that the shadow buffer is 1.2 s of the link | "a sample interval" | 500, which is that at 10 Gbit/s |
//! | (5) is off | given without values | left out |
//! | switched on, (5) has AFD's 1.7 and 1.8 each 6.25 ms, starts from (4) when the number of flows changes, with `Q_target` a fifth of the limit, within 1 and `shadow` | does not say how it goes with (4) | – |
//! | `target_i` and how long it was exceeded, for each flow; the rest once | "single-state variables" | so |
//!
//! # Differences from the module
//!
//! | here | module | effect |
//! |---|---|---|
//! | 64-bit times and products | 32-bit, wrap every 4.4 s | none meant |
//! | `target_i` follows `m_i` and `m_f` always | kept while only one flow has samples | none known: such a flow has `m_i` = `m_f` or is protected |
//! | square root | as its kernel's `CoDel` | gaps after the first signals |
//! | no random drop | a leftover, one signal in 65536 is spared | none measurable |
//!
//! Profile `kernel`: the targets, equation (5) and the square roots of `CoDel`'s law in integers, as in
//! `kernel/sch_afcd.c`.

mod integer;

use sojourn_net::{Bytes, Duration, FlowKey, Instant, Packet, Rate, Rng};

use crate::aqm::codel::{CodelParams, Law, Popped, Signals};
use crate::contract::{Backlog, DropReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, PAPER_AND_KERNEL, Params, Profile, Retention, fixed, parameters,
};
use crate::parts::fifo::Fifo;
use crate::parts::shadow::{FairShare, Shadow, as_f64, sample_for};
use integer::IntegerTargets;

const RECONSTRUCTION: Option<&str> = Some(
    "the paper gives no sampling rate, table sizes or values for equation (5); table sizes are those of \
     the first author's module, sampling is scaled to the link, and equation (5) is disabled",
);

parameters! {
    /// Parameters of [`Afcd`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AfcdParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "the first author's module of 2012, sch_afcodel.c: DEFAULT_AFCODEL_LIMIT";
        /// Acceptable standing delay of a flow at its fair share, before scaling.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "Xue et al. 2013: target";
        /// Factor applied to target.
        pub target_scale: f64 = 1.0 => fraction(0, 1_000),
            "addition that models the first author's module of 2012, afcodel.h, which uses 1/100";
        /// Exponent of the ratio of the fair share to the flow's share, in the target of the flow.
        pub exponent: u32 = 3 => count(1, 8),
            "Xue et al. 2013: equation (6)";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "Xue et al. 2013: interval";
        /// Time that a flow stays above its target before it is signalled.
        pub persist: Option<Duration> = None => time(0, LONGEST).unset("interval"),
            "Xue et al. 2013: interval; a tenth of it in the first author's module of 2012, afcodel.h";
        /// Never signal a flow below its fair share.
        pub protect: bool = false => flag(),
            "addition that models the first author's module of 2012, afcodel.h, where it is on";
        /// Number of arrivals in the shadow buffer.
        pub shadow: u32 = 2_000 => count(1, 1 << 20),
            "the first author's module of 2012, afcodel.h: SHADOW_BUFFER_SIZE";
        /// Number of bins that flows are hashed to.
        pub table: u32 = 2_000 => count(1, 1 << 20),
            "the first author's module of 2012, afcodel.h: FLOW_TABLE_SIZE";
        /// Sampling period in arrivals: one in this many enters the shadow buffer.
        pub sample: Option<u32> = None
            => count(1, 1_000_000_000).unset("such that shadow spans 1.2 s at the link's rate; 500 without a rate"),
            "reconstruction from SAMPLE_INTERVAL of the first author's module of 2012, afcodel.h";
        /// Adapt the fair share to the backlog.
        pub average: bool = false => flag(),
            "Xue et al. 2013: equation (5), for which the paper gives no values; disabled in this reconstruction";
        /// Gain on the previous backlog.
        pub alpha: f64 = 1.7 => fraction(0, 1_000),
            "Pan et al. 2003: a, as given in the first author's AFQ module of 2012";
        /// Gain on the backlog.
        pub beta: f64 = 1.8 => fraction(0, 1_000),
            "Pan et al. 2003: b, as given in the first author's AFQ module of 2012";
        /// Target backlog of the fair-share controller, in packets.
        pub qtarget: Option<u32> = None => count(0, 100_000_000).unset("limit / 5"),
            "the first author's AFQ module of 2012, sch_afq.c";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "the first author's module of 2012, sch_afcodel.c: codelparams.ecn; absent from the paper";
        /// Real numbers, or the integers of Sojourn's kernel module.
        pub profile: Profile = Profile::Paper => profile(),
            "Sojourn parameter";
    }
}

impl AfcdParams {
    /// What the first author's module of 2012 does.
    pub fn kernel2012() -> Self {
        Self {
            target_scale: 0.01,
            exponent: 4,
            persist: Some(Duration::from_millis(10)),
            protect: true,
            ..Self::default()
        }
    }

    fn law(&self) -> Law {
        let Self {
            target,
            interval,
            ecn,
            profile,
            ..
        } = *self;
        Law::new(&CodelParams::inside(target, interval, ecn, profile))
    }

    fn sampling_period(&self, rate: Option<Rate>) -> u32 {
        self.sample.unwrap_or_else(|| sample_for(rate, self.shadow))
    }

    /// Equation (5) before its first update, if it is applied.
    fn fair_share(&self) -> Option<FairShare> {
        let most = f64::from(self.shadow);
        self.average.then(|| FairShare {
            alpha: self.alpha,
            beta: self.beta,
            target: self.qtarget.map_or(as_f64(self.limit) / 5.0, f64::from),
            most,
            value: most,
            old: 0.0,
        })
    }
}

impl Params for AfcdParams {
    type Queue<P: Packet> = Afcd<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "afcd",
            class: Some("Afcd"),
            summary: "CoDel with a per-flow target that decreases as the flow's share increases \
                      (reconstructed)",
            source: "Xue, Kumar, Cui, Kondikoppa, Chiu and Park, ICCCN 2013",
            reconstruction: RECONSTRUCTION,
            profiles: PAPER_AND_KERNEL,
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "afcd_kernel2012",
            class: Some("AfcdKernel2012"),
            summary: "afcd as in its author's module: no signals below fair share, 50 µs target \
                      (reconstructed)",
            source: "the first author's module of 2012 for Linux 3.6",
            reconstruction: RECONSTRUCTION,
            profiles: PAPER_AND_KERNEL,
            start: Self::kernel2012,
            parameters: Self::PARAMETERS,
        },
    ];

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Afcd<P> {
        Afcd::new(self, link.rate, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            ("shadow", self.shadow == next.shadow),
            ("table", self.table == next.table),
        ])
    }

    /// As in the kernel module of Sojourn: samples and times above the targets stay, and the oldest packets above a lower
    /// limit are dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Afcd<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.limit = self.limit;
        queue.law = self.law();
        queue.shares.change(self, now);
        queue.targets.change(self);
        queue.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO governed by AFCD.
#[derive(Clone, Debug)]
pub struct Afcd<P> {
    limit: usize,
    fifo: Fifo<P>,
    shares: Shares,
    targets: Targets,
    law: Law,
    signals: Signals,
}

impl<P: Packet> Afcd<P> {
    /// An empty queue on a link of `rate`, if it is constant, made at the origin of time.
    pub fn new(params: &AfcdParams, rate: Option<Rate>, mut rng: Rng) -> Self {
        Self {
            limit: params.limit,
            fifo: Fifo::new(),
            shares: Shares::new(params, rate, &mut rng),
            targets: Targets::new(params),
            law: params.law(),
            signals: Signals::default(),
        }
    }
}

impl<P: Packet> Qdisc<P> for Afcd<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let sampled = self.shares.shadow.is_turn();
        if self.fifo.backlog().packets >= self.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if sampled {
            self.shares.sample(&pkt.flow());
        }
        self.targets.maxpacket = self.targets.maxpacket.max(pkt.size());
        self.fifo.push(now, pkt);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let Self {
            fifo,
            shares,
            targets,
            ..
        } = self;
        let first = dodequeue(fifo, shares, targets, now);
        let next = || dodequeue_again(fifo, shares, targets, now);
        self.signals.dequeue(&self.law, first, next, now, obs)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.shares.next_update
    }

    fn packets_affect_timer(&self) -> bool {
        false
    }

    fn on_timer(&mut self, now: Instant) {
        if self.shares.next_update.is_some_and(|next| next <= now) {
            self.shares.update(self.fifo.backlog().packets);
            self.shares.next_update = Some(now + PERIOD);
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut statistics = self.signals.statistics().to_vec();
        statistics.extend([
            Statistic::count("maxpacket", self.targets.maxpacket.0),
            Statistic::count("flows", self.shares.shadow.flows().into()),
            Statistic::real("fair_share", self.shares.fair()),
        ]);
        statistics
    }

    /// The time to the next signal, and the targets in µs of the flows with most and fewest samples.
    fn state(&self, now: Instant) -> Vec<Statistic> {
        let Targets {
            target, exponent, ..
        } = self.targets;
        let shadow = &self.shares.shadow;
        let counts = (0..self.targets.flows.len()).map(|bin| shadow.count(bin));
        let counts = counts.filter(|&count| count > 0);
        let of = |name, samples: u32| {
            let share = self.shares.fair() / f64::from(samples);
            Statistic::real(name, target * power(share, exponent) / 1e3)
        };
        let least = counts.clone().max().map(|most| of("min_target", most));
        let most = counts.min().map(|fewest| of("max_target", fewest));
        let next = self.signals.state(now);
        [next, least, most].into_iter().flatten().collect()
    }
}

/// The next packet, and whether it may be signalled.
#[inline]
fn dodequeue<P: Packet>(
    fifo: &mut Fifo<P>,
    shares: &Shares,
    targets: &mut Targets,
    now: Instant,
) -> Option<Popped<P>> {
    let (pkt, arrived) = fifo.pop_stamped()?;
    let sojourn = now.since(arrived);
    let ok_to_drop = targets.ok_to_drop(shares, &pkt.flow(), sojourn, fifo.backlog().bytes, now);
    Some((pkt, arrived, ok_to_drop))
}

/// The same after a signal.
#[inline(never)]
fn dodequeue_again<P: Packet>(
    fifo: &mut Fifo<P>,
    shares: &Shares,
    targets: &mut Targets,
    now: Instant,
) -> Option<Popped<P>> {
    dodequeue(fifo, shares, targets, now)
}

/// AFD's 1 / 160 Hz.
const PERIOD: Duration = Duration::from_micros(6_250);

/// Who sends how much.
#[derive(Clone, Debug)]
struct Shares {
    shadow: Shadow,
    size: u32,
    /// Whole samples for each flow that has any; a division that few arrivals change.
    even: f64,
    /// Equation (5), where it is applied, in real numbers.
    average: Option<FairShare>,
    /// When it is applied next, in the numbers of any profile.
    next_update: Option<Instant>,
    /// Profile `kernel`.
    integer: Option<Box<IntegerTargets>>,
}

impl Shares {
    fn new(params: &AfcdParams, rate: Option<Rate>, rng: &mut Rng) -> Self {
        let sample = params.sampling_period(rate);
        Self {
            shadow: Shadow::new(params.shadow, params.table, sample, rng),
            size: params.shadow,
            even: f64::from(params.shadow),
            average: params.fair_share(),
            next_update: params.average.then_some(Instant::ZERO + PERIOD),
            integer: (params.profile == Profile::Kernel)
                .then(|| Box::new(IntegerTargets::new(params))),
        }
    }

    fn change(&mut self, params: &AfcdParams, now: Instant) {
        // Otherwise it follows the rate that the link had at first.
        if let Some(sample) = params.sample {
            self.shadow.set_sample(sample);
        }
        self.average = params.fair_share().map(|next| match &self.average {
            Some(FairShare { value, old, .. }) => FairShare {
                value: *value,
                old: *old,
                ..next
            },
            None => next,
        });
        let first = self.next_update.unwrap_or(now + PERIOD);
        self.next_update = params.average.then_some(first);
        if let Some(integer) = &mut self.integer {
            integer.change(params);
        }
    }

    /// Applies equation (5).
    fn update(&mut self, packets: usize) {
        if let Some(average) = &mut self.average {
            average.update(packets);
        }
        if let Some(integer) = &mut self.integer {
            integer.update(packets);
        }
    }

    fn sample(&mut self, flow: &FlowKey) {
        let bin = self.shadow.bin(flow);
        let flows = self.shadow.flows();
        self.shadow.replace_oldest(bin);
        self.even = f64::from(self.size / self.shadow.flows().max(1));
        if self.shadow.flows() == flows {
            return;
        }
        if let Some(average) = &mut self.average {
            let start = f64::from(self.size) / f64::from(self.shadow.flows());
            average.restart(start);
        }
        if let Some(integer) = &mut self.integer {
            integer.restart(self.shadow.flows());
        }
    }

    /// `m_f`.
    #[inline]
    fn fair(&self) -> f64 {
        match (&self.integer, &self.average) {
            (Some(integer), _) => integer.real_fair_share(self.shadow.flows()),
            (None, Some(average)) => average.value,
            (None, None) => self.even,
        }
    }
}

/// Which packets may be signalled.
#[derive(Clone, Debug)]
struct Targets {
    /// The target at the fair share, in nanoseconds.
    target: f64,
    exponent: u32,
    persist: Duration,
    protect: bool,
    flows: Box<[Target]>,
    /// The largest packet seen; a smaller backlog is no standing queue.
    maxpacket: Bytes,
}

/// The target of a flow.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// When the flow will have been above it for `persist`.
    first_above: Option<Instant>,
    /// In nanoseconds, for the `m_i` and `m_f` below, which few packets change: a division and
    /// several products take longer than the rest of a departure.
    nanos: f64,
    m_i: f64,
    m_f: f64,
}

impl Target {
    /// Never computed.
    const UNKNOWN: Self = Self {
        first_above: None,
        nanos: 0.0,
        m_i: 0.0,
        m_f: f64::NAN,
    };
}

impl Targets {
    fn new(params: &AfcdParams) -> Self {
        Self {
            target: as_nanos(params.target) * params.target_scale,
            exponent: params.exponent,
            persist: params.persist.unwrap_or(params.interval),
            protect: params.protect,
            flows: vec![Target::UNKNOWN; params.table as usize].into(),
            maxpacket: Bytes(0),
        }
    }

    fn change(&mut self, params: &AfcdParams) {
        let flows = std::mem::take(&mut self.flows);
        let known = |flow: Target| Target {
            first_above: flow.first_above,
            ..Target::UNKNOWN
        };
        *self = Self {
            flows: flows.into_iter().map(known).collect(),
            maxpacket: self.maxpacket,
            ..Self::new(params)
        };
    }

    #[inline]
    fn ok_to_drop(
        &mut self,
        shares: &Shares,
        flow: &FlowKey,
        sojourn: Duration,
        backlog: Bytes,
        now: Instant,
    ) -> bool {
        let bin = shares.shadow.bin(flow);
        let samples = shares.shadow.count(bin);
        if let Some(integer) = &shares.integer {
            let flows = shares.shadow.flows();
            let waited = sojourn.as_nanos() >= integer.target(samples, flows);
            let below = integer.is_below_fair_share(samples, flows);
            return self.is_late(bin, waited, below, backlog, now);
        }
        let m_i = f64::from(samples);
        let m_f = shares.fair();
        let flow = &mut self.flows[bin];
        #[expect(clippy::float_cmp, reason = "the same operands give the same target")]
        if flow.m_i != m_i || flow.m_f != m_f {
            // A flow without samples has a target beyond all delays.
            let nanos = self.target * power(m_f / m_i, self.exponent);
            (flow.nanos, flow.m_i, flow.m_f) = (nanos, m_i, m_f);
        }
        let waited = as_nanos(sojourn) >= flow.nanos;
        self.is_late(bin, waited, m_i < m_f, backlog, now)
    }

    /// The same of a packet of `bin` that has `waited` for its target, of a flow that may be `below` its fair share.
    #[inline]
    fn is_late(
        &mut self,
        bin: usize,
        waited: bool,
        below: bool,
        backlog: Bytes,
        now: Instant,
    ) -> bool {
        let first_above = &mut self.flows[bin].first_above;
        if !waited || backlog <= self.maxpacket {
            if first_above.is_some() {
                *first_above = None;
            }
            return false;
        }
        match *first_above {
            None => {
                *first_above = Some(now + self.persist);
                false
            }
            Some(above_at) => now > above_at && !(self.protect && below),
        }
    }
}

/// `x^n` by multiplication, so that every machine agrees.
fn power(x: f64, n: u32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ns (104 days)")]
fn as_nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[cfg(test)]
mod tests;
