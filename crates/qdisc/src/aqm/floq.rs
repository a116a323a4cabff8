//! FLOQ: Flow Optimised Queuing, a reconstruction from slides.
//!
//! # Source
//!
//! M. Yanev's slides "FLOQ: A new queue management solution" and the abstract of the paper. They
//! say what is used (which traffic answers to loss, which connections are being set up) and when
//! (above a threshold, "like RED"); no formula, constant or code was published that we could find.
//!
//! # Algorithm
//!
//! One FIFO, three classes: packets of a connection in its *setup* ([`connections`]), other
//! packets of *responsive* traffic, *unresponsive* ones. An arrival that finds the share `x` of
//! the limit taken is signalled with probability
//!
//! ```text
//! 0                                                                           x <= threshold
//! min(1, probability ((x - threshold) / (1 - threshold))^gamma weight share^exponent)  above
//! ```
//!
//! `weight` is the class's. `share` is 1 for setup packets; for the others it is an average of
//! the class's part of the bytes that arrive, those of setups left out. So with `exponent` 0 the
//! weights alone decide, and with 2 the class that dominates is signalled far more than its
//! part. Setup packets have weight 0 and are lost only when the buffer is full.
//!
//! # What is ours
//!
//! | here | published | chosen because |
//! |---|---|---|
//! | the ramp, on the backlog as it is | "like RED", "exceeds a threshold" | the simplest such law |
//! | `share^2` | nothing | of simple rules the one for which the ratio of UDP's to TCP's losses falls with load as in the slides |
//! | setup is the SYN and an initial window of 10 packets, 3 s at most | "state if connection is in setup phase" | "initial packets"; 3 spares too few at light load, see papers/floq |
//! | weight 0 of setup packets, no push-out | "less connections suffer" | fewer, not none: the buffer may be full |
//! | QUIC is responsive | one of five kinds of traffic | it is congestion controlled |
//!
//! Profile `kernel`: shares and probabilities are multiples of 2^-30, as in `kernel/sch_floq.c`.

pub(crate) mod connections;
mod integer;

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, PAPER_AND_KERNEL, Params, Profile, Retention, fixed, parameters, shrink,
};
use crate::parts::fixed::Probability;
use connections::{Class, Connections};
use integer::IntegerLaw;

impl FloqParams {
    /// FLOQ under one of its names.
    const fn kind_named(
        name: &'static str,
        class: &'static str,
        start: fn() -> Self,
    ) -> Kind<Self> {
        Kind {
            name,
            class: Some(class),
            summary: "",
            source: "reconstruction of Yanev's FLOQ from its slides and abstract",
            reconstruction: Some(
                "only the idea of FLOQ was published; the classifier, the threshold, the formula \
                 and all constants are Sojourn's choice",
            ),
            profiles: PAPER_AND_KERNEL,
            start,
            parameters: Self::PARAMETERS,
        }
    }

    /// `floq_fixed`: unresponsive traffic is signalled five times as often, whatever its share.
    pub fn fixed() -> Self {
        Self {
            responsive_weight: 0.2,
            ..Self::protect()
        }
    }

    /// `floq_protect`: setup packets are spared, all others alike.
    pub fn protect() -> Self {
        Self {
            exponent: 0,
            ..Self::default()
        }
    }
}

impl Params for FloqParams {
    type Queue<P: Packet> = Floq<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            summary: "Exempts connections during setup; signals other traffic by class and share \
                      (reconstructed)",
            ..Self::kind_named("floq", "Floq", Self::default)
        },
        Kind {
            summary: "floq with its default preset, share (reconstructed)",
            ..Self::kind_named("floq_share", "FloqShare", Self::default)
        },
        Kind {
            summary: "floq, signalling unresponsive traffic five times as often (reconstructed)",
            ..Self::kind_named("floq_fixed", "FloqFixed", Self::fixed)
        },
        Kind {
            summary: "floq that treats all packets after connection setup alike (reconstructed)",
            ..Self::kind_named("floq_protect", "FloqProtect", Self::protect)
        },
    ];

    fn build<P: Packet>(&self, _link: &LinkFacts, rng: Rng) -> Floq<P> {
        Floq::new(self, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            ("connections", self.connections == next.connections),
        ])
    }

    /// As in the kernel module of Sojourn: connections and shares stay, and the oldest packets above a lower limit are
    /// dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Floq<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
        queue.connections.change(self);
        queue.law.change(self);
        shrink(queue, self.limit, now, obs);
    }
}

/// A FIFO that spares connections being set up.
#[derive(Clone, Debug)]
pub struct Floq<P> {
    params: FloqParams,
    packets: VecDeque<(Class, P)>,
    bytes: Bytes,
    /// How many of `packets` belong to setups.
    waiting_setups: usize,
    connections: Connections,
    law: Law,
    rng: Rng,
    /// In the order of [`Class::ALL`].
    counted: [Counted; 3],
    marked: u64,
    pushed_out: u64,
}

/// What was counted of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    packets: u64,
    early: u64,
    overlimit: u64,
}

impl<P: Packet> Floq<P> {
    /// An empty queue, made at the origin of time.
    pub fn new(params: &FloqParams, mut rng: Rng) -> Self {
        Self {
            params: *params,
            packets: VecDeque::new(),
            bytes: Bytes(0),
            waiting_setups: 0,
            connections: Connections::new(params, rng.next_u64()),
            law: Law::new(params),
            rng,
            counted: [Counted::default(); 3],
            marked: 0,
            pushed_out: 0,
        }
    }

    fn push(&mut self, class: Class, pkt: P) {
        self.bytes += pkt.size();
        self.waiting_setups += usize::from(class == Class::Setup);
        self.packets.push_back((class, pkt));
    }

    /// Makes room for a setup packet; the search ends with the setup packets behind its victim.
    fn push_out(&mut self) -> Option<P> {
        if self.waiting_setups == self.packets.len() {
            return None;
        }
        let youngest = |(class, _): &(Class, P)| *class != Class::Setup;
        let (class, pkt) = self
            .packets
            .iter()
            .rposition(youngest)
            .and_then(|n| self.packets.remove(n))?;
        self.bytes -= pkt.size();
        self.pushed_out += 1;
        self.counted[class.place()].overlimit += 1;
        Some(pkt)
    }
}

impl<P: Packet> Qdisc<P> for Floq<P> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let class = self.connections.classify(now, &pkt);
        self.law.on_arrival(class, pkt.size());
        self.counted[class.place()].packets += 1;
        if self.packets.len() >= self.params.limit {
            let spared = self.params.pushout && class == Class::Setup;
            if let Some(victim) = spared.then(|| self.push_out()).flatten() {
                self.push(class, pkt);
                return obs.on_drop(now, victim, DropReason::Overlimit);
            }
            self.counted[class.place()].overlimit += 1;
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        let p = self.law.probability(class, self.packets.len());
        if p.happens(&mut self.rng) {
            obs.on_decision(&|| vec![Statistic::real("prob", p.real())]);
            let markable = self.params.ecn && class == Class::Responsive && !p.is_certain();
            if !(markable && pkt.mark_ce()) {
                self.counted[class.place()].early += 1;
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
            self.marked += 1;
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.push(class, pkt);
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let (class, pkt) = self.packets.pop_front()?;
        self.bytes -= pkt.size();
        self.waiting_setups -= usize::from(class == Class::Setup);
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len(),
            bytes: self.bytes,
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut all = vec![
            Statistic::count("marked", self.marked),
            Statistic::count("pushed_out", self.pushed_out),
            Statistic::real("responsive_share", self.law.responsive_share()),
        ];
        for class in Class::ALL {
            let Counted {
                packets,
                early,
                overlimit,
            } = self.counted[class.place()];
            for (name, n) in [
                ("packets", packets),
                ("early", early),
                ("overlimit", overlimit),
            ] {
                all.push(Statistic::count(name, n).within("classes", class.place()));
            }
        }
        all
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let of_class = |class: Class| {
            let p = self.law.probability(class, self.packets.len());
            Statistic::real("prob", p.real()).within("classes", class.place())
        };
        Class::ALL.map(of_class).to_vec()
    }
}

/// The drop chance, in the numbers of a profile.
#[derive(Clone, Debug)]
enum Law {
    Real(RealLaw),
    Integer(IntegerLaw),
}

impl Law {
    fn new(params: &FloqParams) -> Self {
        if params.profile == Profile::Kernel {
            Self::Integer(IntegerLaw::new(params))
        } else {
            Self::Real(RealLaw::new(params))
        }
    }

    /// Other parameters of the same profile.
    fn change(&mut self, params: &FloqParams) {
        match self {
            Self::Real(law) => {
                *law = RealLaw {
                    responsive_share: law.responsive_share,
                    ..RealLaw::new(params)
                };
            }
            Self::Integer(law) => law.change(params),
        }
    }

    /// Learns the shares of the classes.
    #[inline]
    fn on_arrival(&mut self, class: Class, size: Bytes) {
        match self {
            Self::Real(law) => law.on_arrival(class, size),
            Self::Integer(law) => law.on_arrival(class, size),
        }
    }

    /// The probability of a signal for an arrival that finds `backlog` packets.
    #[inline]
    fn probability(&self, class: Class, backlog: usize) -> Probability {
        match self {
            Self::Real(law) => Probability::Real(law.probability(class, backlog)),
            Self::Integer(law) => Probability::Q30(law.probability(class, backlog)),
        }
    }

    /// Responsive traffic's part of the bytes that do not belong to setups.
    fn responsive_share(&self) -> f64 {
        match self {
            Self::Real(law) => law.responsive_share,
            Self::Integer(law) => law.responsive_share(),
        }
    }
}

/// The drop chance.
#[derive(Clone, Debug)]
struct RealLaw {
    limit: f64,
    threshold: f64,
    gamma: u32,
    probability: f64,
    /// In the order of [`Class::ALL`].
    weights: [f64; 3],
    exponent: u32,
    /// Of one byte.
    gain: f64,
    /// Responsive traffic's part of the bytes that do not belong to setups.
    responsive_share: f64,
}

impl RealLaw {
    fn new(params: &FloqParams) -> Self {
        const MTU: f64 = 1_514.0;
        Self {
            limit: real(params.limit),
            threshold: params.threshold,
            gamma: params.gamma,
            probability: params.probability,
            weights: [
                params.setup_weight,
                params.responsive_weight,
                params.unresponsive_weight,
            ],
            exponent: params.exponent,
            gain: params.gain / MTU,
            responsive_share: 0.5,
        }
    }

    /// Learns the shares of the classes.
    #[inline]
    fn on_arrival(&mut self, class: Class, size: Bytes) {
        let target = match class {
            Class::Setup => return,
            Class::Responsive => 1.0,
            Class::Unresponsive => 0.0,
        };
        let bytes = u32::try_from(size.0).unwrap_or(u32::MAX);
        let gain = (self.gain * f64::from(bytes)).min(1.0);
        self.responsive_share += gain * (target - self.responsive_share);
    }

    /// The probability of a signal for an arrival that finds `backlog` packets.
    #[inline]
    fn probability(&self, class: Class, backlog: usize) -> f64 {
        let x = real(backlog) / self.limit;
        if x <= self.threshold {
            return 0.0;
        }
        let share = match class {
            Class::Setup => 1.0,
            Class::Responsive => self.responsive_share,
            Class::Unresponsive => 1.0 - self.responsive_share,
        };
        let above = (x - self.threshold) / (1.0 - self.threshold);
        let base = self.probability * power(above, self.gamma);
        (base * self.weights[class.place()] * power(share, self.exponent)).min(1.0)
    }
}

/// By multiplication alone, which is the same on every machine.
#[inline]
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[expect(clippy::cast_precision_loss, reason = "a limit is below 2^53")]
const fn real(n: usize) -> f64 {
    n as f64
}

parameters! {
    /// Parameters of [`Floq`](super::Floq).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct FloqParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "reconstruction";
        /// Fraction of the limit above which arrivals are signalled.
        pub threshold: f64 = 0.5 => fraction(0, 1),
            "reconstruction";
        /// Exponent of the ramp from threshold to limit.
        pub gamma: u32 = 1 => count(1, 8),
            "reconstruction";
        /// Probability of a signal when the buffer is full, before weight and share are applied.
        pub probability: f64 = 1.0 => fraction(0, 1),
            "reconstruction";
        /// Weight of packets during connection setup.
        pub setup_weight: f64 = 0.0 => weight(10),
            "reconstruction";
        /// Weight of other responsive traffic.
        pub responsive_weight: f64 = 1.0 => weight(10),
            "reconstruction";
        /// Weight of unresponsive traffic.
        pub unresponsive_weight: f64 = 1.0 => weight(10),
            "reconstruction";
        /// Exponent of the class's share of the traffic.
        pub exponent: u32 = 2 => count(0, 8),
            "reconstruction";
        /// Weight of 1514 bytes in the moving average of the shares.
        pub gain: f64 = 0.002 => fraction(0, 1),
            "reconstruction";
        /// Number of data packets that count as connection setup.
        pub setup_packets: u32 = 10 => count(0, 1_000_000),
            "reconstruction";
        /// Maximum duration of connection setup, from the last SYN.
        pub setup_time: Duration = Duration::from_secs(3) => time(0, LONGEST),
            "reconstruction";
        /// Size of the connection table, rounded up to a multiple of 4.
        pub connections: u32 = 4_096 => count(1, 1 << 20),
            "reconstruction";
        /// Idle time after which a connection is removed from the table.
        pub expiry: Duration = Duration::from_secs(10) => time(0, LONGEST),
            "reconstruction";
        /// Idle time after which a connection counts as being set up again.
        pub resume: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "reconstruction";
        /// Treat QUIC as responsive traffic with connection setup.
        pub quic: bool = true => flag(),
            "reconstruction";
        /// When the buffer is full, replace the youngest other packet with an arriving setup packet.
        pub pushout: bool = false => flag(),
            "reconstruction";
        /// Mark ECN-capable packets of responsive traffic.
        pub ecn: bool = false => flag(),
            "reconstruction";
        /// Real numbers, or the integers of the kernel module.
        pub profile: Profile = Profile::Paper => profile(),
            "Sojourn parameter";
    }
}

#[cfg(test)]
mod tests;
