//! AFD: Approximate Fair Dropping, in part a reconstruction; and AFQ, its variant of 2012.
//!
//! # Source
//!
//! Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping",
//! CCR 33(2), 2003: the law as Xue et al. cite it in their equations (1) and (2) (ICCCN 2013), the
//! gains and the period as two public implementations quote them. AFQ: the kernel module that Xue
//! et al. compared AFCD with (facts only).
//!
//! # Algorithm
//!
//! One arrival in `sample` is remembered, by flow, in a *shadow buffer* of `shadow` entries; of
//! these, `m_i` are of flow i. An arrival of flow i is dropped with probability
//!
//! ```text
//! D_i = gain (1 - m_fair / m_i)            if m_i > tolerance * m_fair, else 0        (2)
//! ```
//!
//! so that what is left of a fast flow is the fair share. The fair share holds the backlog `Q`:
//!
//! ```text
//! m_fair += alpha (Q_old - Q_target) - beta (Q - Q_target)   each tupdate             (1)
//! ```
//!
//! # The two presets
//!
//! | | `afd` | `afq_kernel2012` |
//! |---|---|---|
//! | `gain` | 1 | 0.001 |
//! | `tolerance` | 1 | 1.2 |
//! | `accumulate` | (1) moves `m_fair` each `tupdate` | off: at each arrival (1) once, from `shadow / flow_count`, with `Q_old` as the last sample found it, in numbers without a sign |
//! | `random` | samples are drawn, each replaces one drawn | off: each `sample`-th arrival that finds room, it replaces the oldest |
//! | `table` | 2000 bins | 100 bins |
//! | a flow alone | as any | never dropped |
//!
//! # Reconstructed
//!
//! | here | why |
//! |---|---|
//! | `Q_target` is a fifth of the limit | as AFQ; the sources name none |
//! | 2000 entries; `sample` such that they are 1.2 s of the link | AFQ's at 10 Gbit/s; the sources name none |
//! | `m_i` and `Q` in packets | as AFQ; another implementation counts bytes |
//! | `m_fair` from 1 to `shadow`, at first `shadow` | keeps (2) meaningful |
//!
//! # Numbers without a sign
//!
//! AFQ's `m_fair` is huge if (1) is below 0, or if one of `Q` and `Q_old` is below the target and the other is not.
//! It drops nothing then. Two flows lose that way whatever control they had above `limit / 5 + 10000` packets.
//!
//! # Differences from AFQ
//!
//! | here | module | effect |
//! |---|---|---|
//! | real numbers | whole numbers | thresholds one sample apart |

use sojourn_net::{Duration, Ecn, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, PAPER_AND_KERNEL, Params, Profile, Retention, fixed, parameters,
};
use crate::parts::fifo::Fifo;
use crate::parts::fixed::{self, ONE_Q30, Probability, Q30};
use crate::parts::shadow::{FairShare, IntegerFairShare, Q16, Shadow, as_f64, sample_for};

const RECONSTRUCTION: Option<&str> = Some(
    "the sources give no target backlog, shadow buffer size or sampling rate; a fifth of the limit and 2000 \
     samples are the values of the AFQ module, and sampling is scaled to the link",
);

parameters! {
    /// Parameters of [`Afd`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AfdParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "Sojourn default; mandatory in the AFQ module of 2012";
        /// Number of arrivals in the shadow buffer.
        pub shadow: u32 = 2_000 => count(1, 1 << 20),
            "AFQ module of 2012, sch_afq.c: SHADOW_BUFFER_SIZE";
        /// Number of bins that flows are hashed to.
        pub table: u32 = 2_000 => count(1, 1 << 20),
            "reconstruction, as many as shadow; 100 in the AFQ module of 2012, sch_afq.c: FLOW_TABLE_SIZE";
        /// Sampling period in arrivals: one in this many enters the shadow buffer.
        pub sample: Option<u32> = None
            => count(1, 1_000_000_000).unset("such that shadow spans 1.2 s at the link's rate; 500 without a rate"),
            "reconstruction from SAMPLE_INTERVAL of the AFQ module of 2012, sch_afq.c";
        /// Sample at random and replace a random sample.
        pub random: bool = true => flag(),
            "Pan et al. 2003: shadow buffer";
        /// Update the fair share from its last value instead of computing it anew at each arrival.
        pub accumulate: bool = true => flag(),
            "Pan et al. 2003: m_fair(t); off in the AFQ module of 2012";
        /// Time between updates of the fair share.
        pub tupdate: Duration = Duration::from_micros(6_250) => time(1_000, LONGEST),
            "Pan et al. 2003: 160 updates per second";
        /// Gain on the previous backlog.
        pub alpha: f64 = 1.7 => fraction(0, 1_000),
            "Pan et al. 2003: a, as given in the AFQ module of 2012";
        /// Gain on the backlog.
        pub beta: f64 = 1.8 => fraction(0, 1_000),
            "Pan et al. 2003: b, as given in the AFQ module of 2012";
        /// Target backlog of the fair-share controller, in packets.
        pub qtarget: Option<u32> = None => count(0, 100_000_000).unset("limit / 5"),
            "AFQ module of 2012, sch_afq.c";
        /// Multiple of the fair share that a flow may use before its packets are dropped.
        pub tolerance: f64 = 1.0 => fraction(0, 1_000),
            "addition that models the AFQ module of 2012, sch_afq.c, which uses 6/5";
        /// Factor applied to the drop probability.
        pub gain: f64 = 1.0 => fraction(0, 1),
            "addition that models the AFQ module of 2012, sch_afq.c, which uses 1/1000";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "addition";
        /// Real numbers, or the integers of Sojourn's kernel module.
        pub profile: Profile = Profile::Paper => profile(),
            "Sojourn parameter";
    }
}

impl AfdParams {
    /// AFQ as the module of 2012.
    pub fn afq_kernel2012() -> Self {
        Self {
            table: 100,
            random: false,
            accumulate: false,
            tolerance: 1.2,
            gain: 0.001,
            ..Self::default()
        }
    }

    fn sampling_period(&self, rate: Option<Rate>) -> u32 {
        self.sample.unwrap_or_else(|| sample_for(rate, self.shadow))
    }

    fn target_backlog(&self) -> f64 {
        self.qtarget.map_or(as_f64(self.limit) / 5.0, f64::from)
    }
}

impl Params for AfdParams {
    type Queue<P: Packet> = Afd<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "afd",
            class: Some("Afd"),
            summary: "Drops packets of flows above a fair share that adapts to the backlog \
                      (reconstructed)",
            source: "Pan, Breslau, Prabhakar and Shenker, CCR 33(2), 2003, as cited in later publications",
            reconstruction: RECONSTRUCTION,
            profiles: &[Profile::Paper],
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "afq_kernel2012",
            class: Some("AfqKernel2012"),
            summary: "afd as in the AFQ module of 2012: one thousandth of the drop probability (reconstructed)",
            source: "the AFQ module of 2012 that AFCD was compared with, for Linux 3.6",
            reconstruction: RECONSTRUCTION,
            profiles: PAPER_AND_KERNEL,
            start: Self::afq_kernel2012,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "afq",
            class: None,
            summary: "Alias of afq_kernel2012 (reconstructed)",
            source: "the AFQ module of 2012 that AFCD was compared with, for Linux 3.6",
            reconstruction: RECONSTRUCTION,
            profiles: PAPER_AND_KERNEL,
            start: Self::afq_kernel2012,
            parameters: Self::PARAMETERS,
        },
    ];

    fn kind(&self) -> &'static str {
        // The module has AFQ only.
        match self.profile {
            Profile::Kernel => "afq_kernel2012",
            _ => Self::page(),
        }
    }

    fn conflict(&self) -> Option<String> {
        let given = [("random", self.random), ("accumulate", self.accumulate)];
        let (name, _) = given.into_iter().find(|&(_, on)| on)?;
        (self.profile == Profile::Kernel).then(|| format!("profile kernel requires no{name}"))
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Afd<P> {
        Afd::new(self, link.rate, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            ("shadow", self.shadow == next.shadow),
            ("table", self.table == next.table),
            ("random", self.random == next.random),
            ("accumulate", self.accumulate == next.accumulate),
        ])
    }

    /// Samples and fair share stay, and the oldest packets above a lower limit are dropped, as in Sojourn's kernel module
    /// of AFQ.
    fn change<P: Packet>(
        &self,
        queue: &mut Afd<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        let gains = (self.alpha, self.beta);
        queue.params = *self;
        if let Some(sample) = self.sample {
            queue.shadow.set_sample(sample);
        }
        queue.fair.tune(gains, self.target_backlog());
        if let Some(integer) = &mut queue.integer {
            integer.tune(gains, self.qtarget, self.limit);
        }
        queue.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO governed by AFD.
#[derive(Clone, Debug)]
pub struct Afd<P> {
    params: AfdParams,
    fifo: Fifo<P>,
    shadow: Shadow,
    fair: FairShare,
    /// Profile `kernel`: used instead of `fair`.
    integer: Option<IntegerFairShare>,
    next_update: Instant,
    rng: Rng,
}

impl<P: Packet> Afd<P> {
    /// An empty queue on a link of `rate`, if it is constant, made at the origin of time.
    pub fn new(params: &AfdParams, rate: Option<Rate>, mut rng: Rng) -> Self {
        let sample = params.sampling_period(rate);
        let most = f64::from(params.shadow);
        Self {
            params: *params,
            fifo: Fifo::new(),
            shadow: Shadow::new(params.shadow, params.table, sample, &mut rng),
            fair: FairShare {
                alpha: params.alpha,
                beta: params.beta,
                target: params.target_backlog(),
                most,
                value: most,
                old: 0.0,
            },
            integer: (params.profile == Profile::Kernel).then(|| {
                let gains = (params.alpha, params.beta);
                IntegerFairShare::new(gains, params.qtarget, params.limit, params.shadow)
            }),
            next_update: Instant::ZERO + params.tupdate,
            rng,
        }
    }

    /// Samples an arrival of `bin` if it is its turn; says whether it was.
    fn sample(&mut self, bin: usize) -> bool {
        if self.params.random {
            let drawn = self.shadow.is_drawn(&mut self.rng);
            if drawn {
                self.shadow.replace_random(bin, &mut self.rng);
            }
            return drawn;
        }
        let turn = self.shadow.is_turn();
        if turn {
            self.shadow.replace_oldest(bin);
        }
        turn
    }

    /// As AFQ: after the drop of a sampled arrival, and not for a flow alone.
    #[cold]
    fn sample_backlog(&mut self) {
        if !self.params.accumulate && self.shadow.flows() > 1 {
            let packets = self.fifo.backlog().packets;
            self.fair.old = as_f64(packets);
            if let Some(integer) = &mut self.integer {
                integer.old = packets;
            }
        }
    }

    /// `m_fair`; nothing if no flow has more.
    fn fair_share(&self) -> Option<f64> {
        if let Some(fair) = &self.integer {
            return self.integer_fair_share(fair).map(|m| fixed::real(m, Q16));
        }
        if self.params.accumulate {
            return Some(self.fair.value);
        }
        let backlog = as_f64(self.fifo.backlog().packets);
        let flows = self.shadow.flows();
        let start = (flows > 1).then(|| self.fair.most / f64::from(flows))?;
        self.fair.moved_unsigned(start, backlog)
    }

    /// The numbers behind a signal to a flow.
    #[cold]
    fn numbers(&self, bin: usize) -> Vec<Statistic> {
        let m_i = self.shadow.count(bin);
        let mut all = vec![
            Statistic::real("prob", self.probability(m_i).real()),
            Statistic::count("samples", m_i.into()),
        ];
        all.extend(self.fair_share().map(|m| Statistic::real("fair_share", m)));
        all
    }

    /// `D_i` of the flow with `m_i` samples.
    fn probability(&self, m_i: u32) -> Probability {
        if let Some(fair) = &self.integer {
            return Probability::Q30(self.integer_probability(fair, m_i).unwrap_or(0));
        }
        let (m_i, m_fair) = (f64::from(m_i), self.fair_share());
        Probability::Real(match m_fair {
            Some(m_fair) if m_i > self.params.tolerance * m_fair => {
                self.params.gain * (1.0 - m_fair / m_i)
            }
            _ => 0.0,
        })
    }

    /// The same in 2^-30, nothing if it is 0.
    fn integer_probability(&self, fair: &IntegerFairShare, m_i: u32) -> Option<u64> {
        let m_fair = self.integer_fair_share(fair)?;
        let m_i = u64::from(m_i);
        if m_i << (2 * Q16) <= fixed::binary(self.params.tolerance, Q16) * m_fair {
            return None;
        }
        let ratio = (m_fair << (Q30 - Q16)) / m_i;
        let gain = fixed::binary(self.params.gain, Q30);
        Some(fixed::mul_q30(gain, ONE_Q30.checked_sub(ratio)?))
    }

    /// `m_fair` in 2^-16; nothing if no flow has more.
    fn integer_fair_share(&self, fair: &IntegerFairShare) -> Option<u64> {
        let flows = self.shadow.flows();
        (flows > 1).then(|| fair.moved_unsigned(flows, self.fifo.backlog().packets))?
    }
}

impl<P: Packet> Qdisc<P> for Afd<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let full = self.fifo.backlog().packets >= self.params.limit;
        if full && !self.params.random {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        let bin = self.shadow.bin(&pkt.flow());
        let sampled = self.sample(bin);
        let probability = self.probability(self.shadow.count(bin));
        let signalled = probability.happens(&mut self.rng);
        if signalled {
            obs.on_decision(&|| self.numbers(bin));
        }
        if signalled && !(self.params.ecn && pkt.ecn() != Ecn::NotEct) {
            return obs.on_drop(now, pkt, DropReason::Aqm);
        }
        if full {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if signalled && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        if sampled {
            self.sample_backlog();
        }
        self.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        self.fifo.pop(now).map(|(pkt, _)| pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.params.accumulate.then_some(self.next_update)
    }

    fn packets_affect_timer(&self) -> bool {
        false
    }

    fn on_timer(&mut self, now: Instant) {
        if self.params.accumulate && self.next_update <= now {
            self.fair.update(self.fifo.backlog().packets);
            self.next_update = now + self.params.tupdate;
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("flows", self.shadow.flows().into()),
            Statistic::real("fair_share", self.fair_share().unwrap_or(self.fair.most)),
        ]
    }
}

#[cfg(test)]
mod tests;
