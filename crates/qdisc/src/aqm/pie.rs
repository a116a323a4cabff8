//! PIE: Proportional Integral controller Enhanced.
//!
//! # Source
//!
//! RFC 8033: §4 and Appendix A, the enhancements of §5.1 (ECN), §5.4 (de-randomisation) and
//! §5.5 (cap); Linux 6.1 and 3.14 `net/sched/sch_pie.c`.
//!
//! # Algorithm
//!
//! An arrival is dropped, or marked, with a probability that a controller sets every `tupdate`:
//!
//! ```text
//! p += k(p) (alpha (qdelay - target) + beta (qdelay - qdelay_old))
//! ```
//!
//! `qdelay` is the delay of the packet that left last. `k` falls from 1 to 1/2048 with `p`, so
//! that the gain suits the load. No packet is dropped while the queue is short, the delay is
//! below half of `target` and `p` below 20 %, or the burst allowance lasts.
//!
//! # Differences between the profiles
//!
//! | | `rfc` | `linux` (6.1) | `linux-3.14` |
//! |---|---|---|---|
//! | target, tupdate, burst | 15, 15, 150 ms | 15, 15, 150 ms | 20, 30, 100 ms |
//! | first update | after `tupdate` | after 504 ms | after 0.5 s |
//! | time between updates | `tupdate` | `tupdate` in ticks of 1 ms, rounded up, and one more | `tupdate` |
//! | qdelay | sojourn of the last departure | the same, 0 once the queue is empty | backlog / measured rate |
//! | early drop looks at | the delay of the update before | the current delay | the current delay |
//! | short queue | `<=` 2 MTU | `<` 2 MTU | `<` 2 MTU |
//! | burst allowance falls by | `tupdate` an update | the time between departures | each measurement's length |
//! | `k(p)`, lowest | 1/2048 below 1e-6 | 1/2048 below 1e-6 | 1/8 below 1 % |
//! | qdelay above 250 ms | – | p += 2 % | p += 2 % |
//! | decay when both delays are 0 | 2 % | 1/64 | 2 % |
//! | p above 1 | becomes 1 | goes on to 256 in 56-bit fixed point | becomes 1 |
//! | de-randomisation | yes | yes | no |
//! | marks instead of drops while | p < 10 % | p <= 10 % | p <= 10 % |
//!
//! # Differences from the RFC (profile `rfc`)
//!
//! | here | RFC 8033 | effect |
//! |---|---|---|
//! | `MEAN_PKTSIZE` is the MTU | has no value | 2 MTU wait unsignalled |
//! | `limit` in packets | `TAIL_DROP` in bytes | none at equal sizes |
//! | a drop or mark resets `accu_prob` | §5.4: after a drop; Appendix B is ambiguous | marks are spaced like drops |
//! | burst is tested before the lottery | Appendix A so, B after | `accu_prob` does not grow in a burst |
//! | always active | Appendix B: off below a third of `TAIL_DROP` | reacts sooner |

pub(crate) mod linux;
mod rfc;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};
use crate::parameters::{
    Counter, Kind, LINUX_AND_RFC, LinkFacts, Params, Profile, Retention, TcStatistics, TcWord,
    fixed, parameters,
};
use crate::parts::fifo::Fifo;
use linux::Linux;
use rfc::Rfc;

/// What tc calls the drops and marks of this discipline and of those that derive from it.
pub(crate) const COUNTERS: &[(&str, Counter)] = &[
    ("overlimit", Counter::Drops(DropReason::Overlimit)),
    ("dropped", Counter::Drops(DropReason::Aqm)),
    ("ecn_mark", Counter::Marks(MarkReason::Aqm)),
];

impl Params for PieParams {
    type Queue<P: Packet> = Pie<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "pie",
        class: Some("Pie"),
        summary: "Signals with a probability that keeps the delay at a target",
        source: "RFC 8033; Linux 6.1 and 3.14 sch_pie",
        reconstruction: None,
        profiles: LINUX_AND_RFC,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(COUNTERS);

    /// Switches that the profile knows nothing of.
    fn conflict(&self) -> Option<String> {
        let rfc = self.profile == Profile::Rfc;
        let foreign = if rfc && self.bytemode {
            "bytemode requires profile linux or linux-3.14"
        } else if self.profile != Profile::Linux && self.dq_rate_estimator {
            "dq_rate_estimator requires profile linux"
        } else if !rfc && (!self.cap || !self.derandomise) {
            "nocap and noderandomise require profile rfc"
        } else {
            return None;
        };
        Some(foreign.into())
    }

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        &[("no_dq_rate_estimator", TcWord::Means("nodq_rate_estimator"))]
    }

    fn resolve(&mut self, _link: &LinkFacts) {
        (self.target, self.tupdate) = (Some(self.target()), Some(self.tupdate()));
    }

    fn comparison(&self) -> Comparison {
        self.profile.compared_with("Linux 6.1")
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Pie<P> {
        Pie::new(self, link.mtu, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("profile", self.profile == next.profile)])
    }

    /// As in Linux, the oldest packets above a lower limit are dropped, and a new `tupdate` follows the next update.
    fn change<P: Packet>(
        &self,
        queue: &mut Pie<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.limit = self.limit;
        queue.tupdate = self.tupdate();
        queue.ecn = self.ecn;
        match &mut queue.law {
            Law::Rfc(law) => law.change(self, link.mtu),
            Law::Linux(law) => law.change(self, link.mtu),
        }
        queue.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO governed by PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    limit: usize,
    tupdate: Duration,
    ecn: bool,
    fifo: Fifo<P>,
    law: Law,
    rng: Rng,
    next_update: Instant,
    /// The largest backlog, in packets.
    maxq: u64,
}

/// The controller of the profile.
#[derive(Clone, Debug)]
enum Law {
    Rfc(Rfc),
    Linux(Linux),
}

impl<P: Packet> Pie<P> {
    /// An empty queue, made at the origin of time, for packets of up to `mtu` bytes.
    pub fn new(params: &PieParams, mtu: Bytes, rng: Rng) -> Self {
        let law = match params.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => Law::Rfc(Rfc::new(params, mtu)),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => {
                Law::Linux(Linux::new(params, mtu))
            }
        };
        let next_update = match &law {
            Law::Rfc(_) => Instant::ZERO + params.tupdate(),
            Law::Linux(law) => law.first_update(),
        };
        Self {
            limit: params.limit,
            tupdate: params.tupdate(),
            ecn: params.ecn,
            fifo: Fifo::new(),
            law,
            rng,
            next_update,
            maxq: 0,
        }
    }
}

impl<P: Packet> Qdisc<P> for Pie<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let backlog = self.fifo.backlog();
        if backlog.packets >= self.limit {
            self.law.on_drop();
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if self
            .law
            .drop_early(backlog.bytes, pkt.size(), &mut self.rng)
        {
            obs.on_decision(&|| self.law.numbers());
            if !(self.ecn && self.law.may_mark() && pkt.mark_ce()) {
                self.law.on_drop();
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
            self.law.on_mark();
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.fifo.push(now, pkt);
        self.maxq = self.maxq.max(self.fifo.backlog().packets as u64);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let (pkt, arrived) = self.fifo.pop_stamped()?;
        match &mut self.law {
            Law::Rfc(law) => law.on_dequeue(now.since(arrived)),
            Law::Linux(law) => law.on_dequeue(now, arrived, self.fifo.backlog().bytes, pkt.size()),
        }
        Some(pkt)
    }

    fn peek(&self) -> Peek {
        self.fifo.peek()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut numbers = match &self.law {
            Law::Rfc(law) => law.statistics().to_vec(),
            Law::Linux(law) => law.statistics(),
        };
        numbers.push(Statistic::count("maxq", self.maxq));
        numbers
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        Some(self.next_update)
    }

    fn packets_affect_timer(&self) -> bool {
        false
    }

    fn on_timer(&mut self, now: Instant) {
        if now < self.next_update {
            return;
        }
        self.next_update = match &mut self.law {
            Law::Rfc(law) => {
                law.calculate_drop_prob();
                now + self.tupdate
            }
            Law::Linux(law) => {
                law.calculate_probability(self.fifo.backlog().bytes);
                law.update_after(now, self.tupdate)
            }
        };
    }
}

impl Law {
    /// Whether an arrival of `size` bytes is to be signalled.
    #[inline]
    fn drop_early(&mut self, backlog: Bytes, size: Bytes, rng: &mut Rng) -> bool {
        match self {
            Self::Rfc(law) => law.drop_early(backlog, rng),
            Self::Linux(law) => law.drop_early(backlog, size, rng),
        }
    }

    /// The load is low enough for marks.
    fn may_mark(&self) -> bool {
        match self {
            Self::Rfc(law) => law.may_mark(),
            Self::Linux(law) => law.may_mark(),
        }
    }

    fn on_drop(&mut self) {
        match self {
            Self::Rfc(law) => law.on_signal(),
            Self::Linux(law) => law.on_drop(),
        }
    }

    /// The numbers behind a signal.
    #[cold]
    fn numbers(&self) -> Vec<Statistic> {
        match self {
            Self::Rfc(law) => law.numbers(),
            Self::Linux(law) => law.statistics(),
        }
    }

    fn on_mark(&mut self) {
        if let Self::Rfc(law) = self {
            law.on_signal();
        }
    }
}

parameters! {
    /// Parameters of [`Pie`](super::Pie).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PieParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "include/net/pie.h: pie_params.limit";
        /// Target queueing delay.
        pub target: Option<Duration> = None => time(1, LONGEST).unset("15ms; linux-3.14: 20ms"),
            "RFC 8033 section 4.2: QDELAY_REF; include/net/pie.h: pie_params.target";
        /// Time between updates of the probability.
        pub tupdate: Option<Duration> = None => time(1_000, LONGEST).unset("15ms; linux-3.14: 30ms"),
            "RFC 8033 section 4.2: T_UPDATE; include/net/pie.h: pie_params.tupdate";
        /// Gain on the deviation from target, in sixteenths of 1/s.
        pub alpha: u32 = 2 => count(0, 32),
            "RFC 8033 section 4.2 and appendix A: alpha; include/net/pie.h: pie_params.alpha";
        /// Gain on the change of the delay, in sixteenths of 1/s.
        pub beta: u32 = 20 => count(0, 32),
            "RFC 8033 section 4.2 and appendix A: beta; include/net/pie.h: pie_params.beta";
        /// Mark ECN-capable packets while the probability is low.
        pub ecn: bool = false => flag(),
            "RFC 8033 section 5.1; include/net/pie.h: pie_params.ecn";
        /// Scale the probability with the packet size.
        pub bytemode: bool = false => flag(),
            "include/net/pie.h: pie_params.bytemode";
        /// Estimate the delay from the backlog and the departure rate.
        pub dq_rate_estimator: bool = false => flag(),
            "RFC 8033 section 5.2; include/net/pie.h: pie_params.dq_rate_estimator";
        /// Space the drops evenly; profile rfc.
        pub derandomise: bool = true => flag(),
            "RFC 8033 section 5.4";
        /// Limit the increase of the probability to 2 % per update; profile rfc.
        pub cap: bool = true => flag(),
            "RFC 8033 section 5.5";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}

impl PieParams {
    /// The delay that is held.
    pub fn target(&self) -> Duration {
        self.target.unwrap_or(match self.profile {
            Profile::Rfc
            | Profile::Paper
            | Profile::Linux
            | Profile::Linux612
            | Profile::Kernel => Duration::from_millis(15),
            Profile::Linux314 => Duration::from_millis(20),
        })
    }

    /// The time between updates.
    pub fn tupdate(&self) -> Duration {
        self.tupdate.unwrap_or(match self.profile {
            Profile::Rfc
            | Profile::Paper
            | Profile::Linux
            | Profile::Linux612
            | Profile::Kernel => Duration::from_millis(15),
            Profile::Linux314 => Duration::from_millis(30),
        })
    }
}

#[cfg(test)]
mod tests;
