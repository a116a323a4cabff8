//! RED of ns-2: with its options gentle, wait, adaptive and nonlinear.
//!
//! # Source
//!
//! ns-2 `queue/red.cc` (revision 1.89) and `tcl/lib/ns-default.tcl`, facts only; the nonlinear form is
//! Zhou, Yeung and Li's (2006) as in ns-3's `red-queue-disc.cc`.
//!
//! # Algorithm
//!
//! The average is updated at each arrival; idle time counts as samples of zero. Between the
//! thresholds the gaps between signals are uniform: `p_a = p_b / (1 - count p_b)`, or with `wait` 0
//! until `count p_b = 1` and then `p_b / (2 - count p_b)`. With `gentle` the base probability rises
//! from `max_p` at `max` to 1 at `2 max`.
//!
//! Pseudo-code: `docs/qdiscs/red_ns2.md`.
//!
//! # Differences from [`crate::Red`], which is Linux's
//!
//! | here | `red` |
//! |---|---|
//! | the queue in packets, or in bytes of average packets | in bytes |
//! | any weight, from the link's rate if not given | a power of 2 from `burst` |
//! | idle time counts as samples of zero, and the arrival is sampled | decays by a table, no sample |
//! | `gentle` and `wait` on | absent; no wait |
//! | nothing is dropped while at most 1 waits, a packet or, with `bytes`, a byte | may be |
//!
//! # Differences from ns-2
//!
//! | here | ns-2 | effect |
//! |---|---|---|
//! | the link's delay is unknown | `q_weight` -1 takes 3 delays for 100 ms if longer | a faster average on long links |
//! | `bytes` is one switch | `bytes_` and `queue_in_bytes_` | none at the defaults |
//! | `ecn` marks at any probability between the thresholds | up to `mark_p`, in some revisions | marks for drops |
//! | a full buffer drops the arrival | or the oldest, or one at random, on request | none at its default |

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{Kind, LinkFacts, Params, Profile, Retention, fixed, parameters};
use crate::parts::fifo::Fifo;

parameters! {
    /// Parameters of [`Ns2Red`]; unset ones are derived as ns-2 does.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Ns2RedParams {
        /// Maximum number of packets in the buffer; with bytes, multiplied by `mean_pktsize`.
        pub limit: u32 = 50 => count(1, 100_000_000),
            "ns-2 tcl/lib/ns-default.tcl: Queue limit_";
        /// Average backlog in packets above which packets are signalled at random.
        pub min: Option<f64> = None => fraction(0, 100_000_000).unset("max(5, targetdelay / 2 in packets)"),
            "ns-2 queue/red.cc: thresh_";
        /// Average backlog in packets at which the probability reaches its maximum.
        pub max: Option<f64> = None => fraction(0, 100_000_000).unset("3 * min"),
            "ns-2 queue/red.cc: maxthresh_";
        /// Weight of a sample in the average.
        pub q_weight: Option<f64> = None => fraction(0, 1).unset("derived from a time constant of ten round trips of 100 ms"),
            "ns-2 queue/red.cc: q_weight_";
        /// Probability of a signal at max.
        pub probability: f64 = 0.1 => fraction(0, 1),
            "ns-2 tcl/lib/ns-default.tcl: 1 / linterm_";
        /// Average packet size.
        pub mean_pktsize: Bytes = Bytes(500) => size(1, 65_536),
            "ns-2 tcl/lib/ns-default.tcl: mean_pktsize_";
        /// Link rate.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "ns-2 queue/red.cc: the bandwidth of link_";
        /// Delay from which unset min and max are derived.
        pub targetdelay: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "ns-2 tcl/lib/ns-default.tcl: targetdelay_";
        /// Measure the queue in bytes and drop large packets more often.
        pub bytes: bool = true => flag(),
            "ns-2 tcl/lib/ns-default.tcl: bytes_, queue_in_bytes_";
        /// After a signal, wait until the next one is due on average.
        pub wait: bool = true => flag(),
            "ns-2 tcl/lib/ns-default.tcl: wait_";
        /// Raise the probability linearly to 1 between max and 2 * max.
        pub gentle: bool = true => flag(),
            "Floyd 2000; ns-2 tcl/lib/ns-default.tcl: gentle_";
        /// Raise the probability with the square of the average.
        pub nonlinear: bool = false => flag(),
            "Zhou, Yeung and Li 2006; ns-3 red-queue-disc.cc: NLRED";
        /// Adapt the probability to the load.
        pub adaptive: bool = false => flag(),
            "Floyd, Gummadi and Shenker 2001; ns-2 queue/red.cc: adaptive_";
        /// Mark ECN-capable packets instead of dropping them, except forced drops.
        pub ecn: bool = false => flag(),
            "ns-2 tcl/lib/ns-default.tcl: setbit_";
    }
}

impl Ns2RedParams {
    /// NLRED.
    pub fn nonlinear() -> Self {
        Self {
            nonlinear: true,
            ..Self::default()
        }
    }

    /// Thresholds in packets on a link that carries `per_sec` average packets per second.
    fn thresholds(&self, per_sec: f64) -> (f64, f64) {
        let half = self.targetdelay.as_secs_f64() * per_sec / 2.0;
        let derived = half.max(5.0);
        let min = match (self.min, self.max) {
            (Some(min), _) => min,
            // What ns-2 derives would lie above what was given.
            (None, Some(max)) if max <= derived => max / 3.0,
            (None, _) => derived,
        };
        (min, self.max.unwrap_or(3.0 * min))
    }
}

impl Params for Ns2RedParams {
    type Queue<P: Packet> = Ns2Red<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "red_ns2",
            class: Some("Ns2Red"),
            summary: "RED as in ns-2: arbitrary weight, gentle mode, idle time counted as samples",
            source: "ns-2 red.cc, ns-default.tcl; Floyd and Jacobson 1993, Floyd 2000",
            reconstruction: None,
            profiles: &[Profile::Paper],
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "nlred",
            class: Some("Nlred"),
            summary: "Nonlinear RED: red_ns2 with a probability that rises with the square of the average",
            source: "ns-3 red-queue-disc, after Zhou, Yeung and Li 2006",
            reconstruction: None,
            profiles: &[Profile::Paper],
            start: Self::nonlinear,
            parameters: Self::PARAMETERS,
        },
    ];

    fn conflict(&self) -> Option<String> {
        let (min, max) = (self.min?, self.max?);
        (min >= max).then(|| format!("min {min} must be below max {max}"))
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Ns2Red<P> {
        Ns2Red::new(self, link.rate, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("bytes", self.bytes == next.bytes),
            ("mean_pktsize", self.mean_pktsize == next.mean_pktsize),
        ])
    }

    fn change<P: Packet>(
        &self,
        queue: &mut Ns2Red<P>,
        _now: Instant,
        link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.change(self, link.rate);
    }
}

/// A FIFO governed by RED as in ns-2.
#[derive(Clone, Debug)]
pub struct Ns2Red<P> {
    fifo: Fifo<P>,
    law: Law,
    rng: Rng,
    ecn: bool,
    limit: f64,
    marked: u64,
    early: u64,
    forced: u64,
    pdrop: u64,
}

impl<P: Packet> Ns2Red<P> {
    /// An empty queue on a link of `rate`, made at the origin of time.
    pub fn new(params: &Ns2RedParams, rate: Option<Rate>, rng: Rng) -> Self {
        let law = Law::new(params, rate);
        Self {
            fifo: Fifo::new(),
            limit: f64::from(params.limit) * law.unit,
            law,
            rng,
            ecn: params.ecn,
            marked: 0,
            early: 0,
            forced: 0,
            pdrop: 0,
        }
    }

    /// As when a script of ns-2 sets the variables: the average and what waits stay, also above a lower limit;
    /// adaptation starts again at `probability`.
    pub(super) fn change(&mut self, params: &Ns2RedParams, rate: Option<Rate>) {
        let fresh = Law::new(params, rate);
        self.law = Law {
            average: self.law.average,
            count: self.law.count,
            count_bytes: self.law.count_bytes,
            spacing: self.law.spacing,
            above: self.law.above,
            idle_since: self.law.idle_since,
            adapted: self.law.adapted,
            ..fresh
        };
        self.limit = f64::from(params.limit) * self.law.unit;
        self.ecn = params.ecn;
    }
}

impl<P: Packet> Qdisc<P> for Ns2Red<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let queue = self.law.measured(self.fifo.backlog());
        let verdict = self.law.on_arrival(now, queue, pkt.size(), &mut self.rng);
        // As in ns-2 a full buffer comes last, and what it costs is no longer a random drop.
        if queue >= self.limit {
            self.law.restart();
            self.pdrop += 1;
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if verdict != Verdict::Pass {
            obs.on_decision(&|| self.law.numbers(verdict));
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Early if self.ecn && pkt.mark_ce() => {
                self.marked += 1;
                obs.on_mark(now, &pkt, MarkReason::Aqm);
            }
            Verdict::Early => {
                self.early += 1;
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
            Verdict::Forced => {
                self.forced += 1;
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
        }
        self.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let popped = self.fifo.pop_stamped();
        if popped.is_none() {
            self.law.idle_since.get_or_insert(now);
        }
        popped.map(|(pkt, _)| pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("marked", self.marked),
            Statistic::count("early", self.early),
            Statistic::count("forced", self.forced),
            Statistic::count("pdrop", self.pdrop),
            Statistic::real("average", self.law.average / self.law.unit),
            Statistic::real("max_p", self.law.max_p),
        ]
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        vec![Statistic::real("prob", self.law.prob())]
    }
}

/// Decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Signalled by chance.
    Early,
    /// Dropped since the average is far too large.
    Forced,
}

/// The control law; the queue and the thresholds are in packets or in bytes.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of the algorithm, and one state"
)]
struct Law {
    bytes: bool,
    /// An average packet in the measure of the queue.
    unit: f64,
    mean_pktsize: u64,
    /// Average packets that the link carries in a second.
    per_sec: f64,
    weight: f64,
    min: f64,
    max: f64,
    wait: bool,
    gentle: bool,
    nonlinear: bool,
    adaptive: bool,

    max_p: f64,
    average: f64,
    /// Packets and bytes since the last signal.
    count: u64,
    count_bytes: u64,
    /// Packets up to the last signal that was drawn.
    spacing: u64,
    /// The average was above `min` already.
    above: bool,
    idle_since: Option<Instant>,
    adapted: Instant,
}

/// Adaptation: time between two steps, what is added at most, what is multiplied with, the range.
const INTERVAL: Duration = Duration::from_millis(500);
const ALPHA: f64 = 0.01;
const BETA: f64 = 0.9;
const BOTTOM: f64 = 0.01;
const TOP: f64 = 0.5;

impl Law {
    #[expect(clippy::cast_precision_loss, reason = "rates and sizes are below 2^53")]
    fn new(params: &Ns2RedParams, rate: Option<Rate>) -> Self {
        let bandwidth = params.bandwidth.or(rate).unwrap_or(Rate::mbit(10));
        let mean = params.mean_pktsize.0.max(1);
        let per_sec = bandwidth.bits_per_sec() as f64 / (8.0 * mean as f64);
        let (min, max) = params.thresholds(per_sec);
        let unit = if params.bytes { mean as f64 } else { 1.0 };
        // Ten round trips of 100 ms, or of three transmissions if that is longer.
        let auto = || one_minus_exp(1.0 / (10.0 * f64::max(0.1 * per_sec, 3.0)));
        Self {
            bytes: params.bytes,
            unit,
            mean_pktsize: mean,
            per_sec,
            weight: params.q_weight.unwrap_or_else(auto),
            min: min * unit,
            max: max * unit,
            wait: params.wait,
            gentle: params.gentle,
            nonlinear: params.nonlinear,
            adaptive: params.adaptive,
            max_p: params.probability,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            spacing: 0,
            above: false,
            idle_since: Some(Instant::ZERO),
            adapted: Instant::ZERO,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a backlog is below 2^53")]
    #[inline]
    fn measured(&self, backlog: Backlog) -> f64 {
        if self.bytes {
            backlog.bytes.0 as f64
        } else {
            backlog.packets as f64
        }
    }

    /// A signal was sent or forced.
    fn restart(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    #[inline]
    fn on_arrival(&mut self, now: Instant, queue: f64, size: Bytes, rng: &mut Rng) -> Verdict {
        if let Some(since) = self.idle_since.take() {
            let idle = now.since(since).as_secs_f64();
            self.average *= power(1.0 - self.weight, whole(self.per_sec * idle));
        }
        self.average += self.weight * (queue - self.average);
        if self.adaptive && now > self.adapted + INTERVAL {
            self.adapt(now);
        }
        self.count = self.count.saturating_add(1);
        self.count_bytes = self.count_bytes.saturating_add(size.0);
        if self.average < self.min || queue <= 1.0 {
            self.above = false;
            return Verdict::Pass;
        }
        if self.average >= self.forced_from() {
            self.restart();
            return Verdict::Forced;
        }
        if !self.above {
            (self.above, self.count, self.count_bytes) = (true, 1, size.0);
            return Verdict::Pass;
        }
        if rng.uniform() > self.probability(size) {
            return Verdict::Pass;
        }
        self.spacing = self.count;
        self.restart();
        Verdict::Early
    }

    /// The average from which every arrival is dropped.
    #[inline]
    fn forced_from(&self) -> f64 {
        if self.gentle {
            2.0 * self.max
        } else {
            self.max
        }
    }

    /// The probability at this average.
    fn prob(&self) -> f64 {
        if self.average < self.min {
            0.0
        } else if self.average >= self.forced_from() {
            1.0
        } else {
            self.base()
        }
    }

    /// The numbers behind a signal.
    #[cold]
    fn numbers(&self, verdict: Verdict) -> Vec<Statistic> {
        let mut all = vec![
            Statistic::real("average", self.average),
            Statistic::real("prob", self.prob()),
        ];
        all.extend((verdict == Verdict::Early).then(|| Statistic::count("count", self.spacing)));
        all
    }

    /// `p_b`: how often a packet is to be signalled on average.
    fn base(&self) -> f64 {
        if self.average >= self.max {
            let above = (self.average - self.max) / self.max;
            return (self.max_p + (1.0 - self.max_p) * above).min(1.0);
        }
        let x = (self.average - self.min) / (self.max - self.min);
        let shape = if self.nonlinear { 1.5 * x * x } else { x };
        (self.max_p * shape).min(1.0)
    }

    /// `p_a`: such that the gaps between signals are uniform.
    #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    fn probability(&self, size: Bytes) -> f64 {
        let base = self.base();
        let count = if self.bytes {
            self.count_bytes / self.mean_pktsize
        } else {
            self.count
        };
        let due = count as f64 * base;
        let p = match due {
            _ if self.wait && due < 1.0 => 0.0,
            _ if self.wait && due < 2.0 => base / (2.0 - due),
            _ if !self.wait && due < 1.0 => base / (1.0 - due),
            _ => 1.0,
        };
        if self.bytes && p < 1.0 {
            (p * size.0 as f64 / self.mean_pktsize as f64).min(1.0)
        } else {
            p.min(1.0)
        }
    }

    /// Moves `max_p` so that the average comes to the middle of the thresholds.
    fn adapt(&mut self, now: Instant) {
        let part = 0.4 * (self.max - self.min);
        if self.average < self.min + part && self.max_p > BOTTOM {
            self.max_p *= BETA;
            self.adapted = now;
        } else if self.average > self.max - part && self.max_p < TOP {
            self.max_p += ALPHA.min(self.max_p / 4.0);
            self.adapted = now;
        }
    }
}

/// `x` rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates"
)]
fn whole(x: f64) -> u64 {
    x as u64
}

/// `base^exponent` by squaring: multiplication is the same on every machine, `powf` is not.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// `1 - exp(-x)` for `x` up to 1/30 from its series, to the last bits: `exp` differs between machines.
fn one_minus_exp(x: f64) -> f64 {
    let terms = (1..12_u32).rev();
    terms.fold(0.0, |sum, k| (1.0 - sum) * x / f64::from(k))
}

#[cfg(test)]
mod tests;
