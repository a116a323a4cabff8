//! `CHOKe`: RED that compares each arrival with a packet drawn from the queue.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_choke.c`, the defaults of iproute2; Pan, Prabhakar and Psounis, "`CHOKe`:
//! a stateless active queue management scheme for approximating fair bandwidth allocation", 2000.
//!
//! # Algorithm
//!
//! The average is that of [RED](crate::Red), in packets. An arrival that finds the average above
//! `min` is compared with a random queued packet; if both belong to the same flow, both are
//! dropped. Otherwise it is signalled as by RED. A flow that fills the queue often matches its own
//! packets, so it is limited without per-flow state.
//!
//! Pseudo-code: `docs/qdiscs/choke.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows distinguished by their five-tuple | by a digest of what was dissected | none |
//! | gaps of dropped packets are closed when they outnumber the packets that fit | never but at the ends | a draw meets a gap less often, then |
//! | the link's rate paces the idle decay unless `bandwidth` is given | 10 Mbit/s | decay after idling |
//! | `limit` has a default | is mandatory | none |

use std::collections::VecDeque;
use std::convert::Infallible;

use sojourn_net::{Bytes, Comparison, FlowKey, Instant, Packet, Rate, Rng};

use crate::aqm::red::{self, Law, RedDerived, RedParams};
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX, LinkFacts, OVERLIMITS, Params, Retention, TcStatistics, TcWord, parameters,
};

parameters! {
    /// Parameters of [`Choke`]; unset ones are derived as iproute2 does.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ChokeParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 131_071),
            "net/sched/sch_choke.c: choke_sched_data.limit, CHOKE_MAX_QUEUE; mandatory in tc; Sojourn default";
        /// Average backlog in packets above which each arrival is compared with a random queued packet.
        pub min: Option<u32> = None => count(1, 100_000_000).in_packets().unset("max / 3"),
            "include/net/red.h: red_parms.qth_min; default of iproute2 tc/q_choke.c";
        /// Average backlog in packets above which every packet is signalled.
        pub max: Option<u32> = None => count(1, 100_000_000).in_packets().unset("limit / 4"),
            "include/net/red.h: red_parms.qth_max; default of iproute2 tc/q_choke.c";
        /// Average packet size, for the decay of the average while idle.
        pub avpkt: Bytes = Bytes(1_000) => size(1, 65_536),
            "iproute2 tc/q_choke.c: avpkt";
        /// Number of packets in a burst that pass without a signal.
        pub burst: Option<u32> = None => count(1, 1 << 24).in_packets().unset("(2 * min + max) / 3"),
            "iproute2 tc/q_choke.c: burst";
        /// Probability of a signal at max.
        pub probability: f64 = 0.02 => fraction(0, 1),
            "include/net/red.h: red_parms.max_P; default of iproute2 tc/q_choke.c";
        /// Link rate for the decay of the average while idle.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "iproute2 tc/q_choke.c: bandwidth; mandatory in tc; Sojourn default";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_ECN";
        /// Drop every packet above max, ECN-capable or not.
        pub harddrop: bool = false => flag(),
            "net/sched/sch_choke.c: use_harddrop (TC_RED_HARDDROP); tc choke has no option for it";
    }
}

impl ChokeParams {
    fn max(&self) -> u32 {
        let quarter = u32::try_from(self.limit / 4).unwrap_or(u32::MAX);
        self.max.unwrap_or(quarter)
    }

    fn min(&self) -> u32 {
        self.min.unwrap_or(self.max() / 3)
    }

    fn burst(&self) -> u64 {
        let derived = (2 * u64::from(self.min()) + u64::from(self.max())) / 3;
        self.burst.map_or(derived, u64::from)
    }

    /// Most packets that the kernel's table holds, which is seen only when the table is made smaller.
    const fn places(&self) -> usize {
        (self.limit + 1).next_power_of_two() - 1
    }

    fn law(&self, rate: Option<Rate>) -> Law {
        let red = self.as_red();
        let in_packets = RedDerived {
            min: Bytes(self.min().into()),
            max: Bytes(self.max().max(self.min()).into()),
            ..RedDerived::of(&red)
        };
        let bandwidth = self.bandwidth.or(rate).unwrap_or(Rate::mbit(10));
        Law::new(&red, &in_packets, bandwidth)
    }

    /// Why the kernel refuses these thresholds, if it does.
    pub(crate) fn beyond_kernel(&self) -> Option<String> {
        let derived = self.as_red().derive().ok()?;
        red::beyond_kernel(self.max().into(), derived.wlog)
    }

    /// The same average for RED, which counts bytes; it has no leaf.
    fn as_red(&self) -> RedParams<Infallible> {
        let bytes = |packets: u32| Bytes(u64::from(packets) * self.avpkt.0);
        RedParams {
            min: Some(bytes(self.min())),
            max: Some(bytes(self.max())),
            avpkt: self.avpkt,
            burst: u32::try_from(self.burst()).ok(),
            probability: self.probability,
            ..RedParams::default()
        }
    }
}

impl Params for ChokeParams {
    type Queue<P: Packet> = Choke<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "choke",
        class: Some("Choke"),
        summary: "RED that drops an arrival and a random queued packet if both belong to the same flow",
        source: "Linux 6.1 sch_choke, iproute2; Pan, Prabhakar and Psounis 2000",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(red::COUNTERS).with_overlimits();

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        &[
            ("ewma", red::WEIGHT),
            ("Plog", red::WEIGHT),
            ("Scell_log", red::WEIGHT),
        ]
    }

    fn conflict(&self) -> Option<String> {
        let (min, max, limit) = (self.min(), self.max(), self.limit);
        if min == 0 || min >= max {
            return Some(format!("min {min} must be positive and below max {max}"));
        }
        if max as usize > limit {
            return Some(format!("max {max} must not exceed limit {limit}"));
        }
        self.as_red().derive().err()?;
        let burst = self.burst();
        Some(if burst < u64::from(min) {
            format!("burst {burst} is too small for min {min}; expected at least {min}")
        } else {
            format!("burst {burst} is too large for min {min}; raise min or lower burst")
        })
    }

    fn resolve(&mut self, _link: &LinkFacts) {
        let burst = u32::try_from(self.burst()).ok();
        (self.min, self.max, self.burst) = (Some(self.min()), Some(self.max()), burst);
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Choke<P> {
        Choke::new(self, link.rate, rng)
    }

    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Keeps)
    }

    /// The average starts again. Packets above a lower limit stay, but for those beyond the places of a smaller table.
    fn change<P: Packet>(
        &self,
        queue: &mut Choke<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        if self.places() != queue.params.places() {
            queue.resize(self.places(), now, obs);
        }
        queue.law = self.law(link.rate);
        queue.params = *self;
    }
}

/// A FIFO governed by `CHOKe`.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    params: ChokeParams,
    /// In order of arrival; a gap where one was dropped. There is none at either end.
    slots: VecDeque<Option<P>>,
    backlog: Backlog,
    law: Law,
    rng: Rng,
    counts: Counts,
}

/// As `tc -s` names them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    early: u64,
    marked: u64,
    pdrop: u64,
    matched: u64,
}

/// How often a draw that met a gap is repeated before the oldest packet is taken.
const DRAWS: usize = 3;

impl<P: Packet> Choke<P> {
    /// An empty queue on a link of `rate`, made at the origin of time.
    pub fn new(params: &ChokeParams, rate: Option<Rate>, rng: Rng) -> Self {
        Self {
            params: *params,
            slots: VecDeque::new(),
            backlog: Backlog::default(),
            law: params.law(rate),
            rng,
            counts: Counts::default(),
        }
    }

    /// Whether `pkt` may join; it may have been marked, and another of its flow may be gone.
    fn passes(&mut self, now: Instant, pkt: &mut P, obs: &mut dyn Observer<P>) -> bool {
        self.law.sample(now, self.backlog.packets as u64);
        if !self.law.is_above_min() {
            self.law.forget();
            return true;
        }
        if let Some(other) = self.drop_if_drawn(&pkt.flow()) {
            self.counts.matched += 1;
            obs.on_decision(&|| self.numbers(true));
            obs.on_drop(now, other, DropReason::Aqm);
            obs.on_decision(&|| self.numbers(true));
            return false;
        }
        let markable = if self.law.is_above_max() {
            self.law.forget();
            self.params.ecn && !self.params.harddrop
        } else if self.law.draws_signal(&mut self.rng) {
            self.params.ecn
        } else {
            return true;
        };
        obs.on_decision(&|| self.numbers(false));
        let marked = markable && pkt.mark_ce();
        if marked {
            self.counts.marked += 1;
            obs.on_mark(now, pkt, MarkReason::Aqm);
        } else {
            self.counts.early += 1;
        }
        marked
    }

    /// The numbers behind a signal, and whether the packet drawn was of the same flow.
    #[cold]
    fn numbers(&self, matched: bool) -> Vec<Statistic> {
        let mut all = self.law.numbers();
        all.push(Statistic::flag("matched", matched));
        all
    }

    /// Draws a packet and takes it out if it is of `flow`.
    fn drop_if_drawn(&mut self, flow: &FlowKey) -> Option<P> {
        if self.slots.is_empty() {
            return None;
        }
        let places = (0..DRAWS).map(|_| below(&mut self.rng, self.slots.len()));
        let at = places.into_iter().find(|&at| self.slots[at].is_some());
        let at = at.unwrap_or(0);
        if self.slots[at].as_ref().map(P::flow) != Some(*flow) {
            return None;
        }
        let met = self.slots[at].take();
        self.trim();
        met.inspect(|pkt| self.uncount(pkt))
    }

    /// Closes all gaps, and drops the newest packets beyond `places`.
    fn resize(&mut self, places: usize, now: Instant, obs: &mut dyn Observer<P>) {
        self.slots.retain(Option::is_some);
        let beyond = self.slots.split_off(places.min(self.slots.len()));
        for pkt in beyond.into_iter().flatten() {
            self.uncount(&pkt);
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    fn uncount(&mut self, pkt: &P) {
        self.backlog.remove(pkt.size());
    }

    /// Closes the gaps at both ends and, when they are many, all of them.
    fn trim(&mut self) {
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
        }
        while self.slots.back().is_some_and(Option::is_none) {
            self.slots.pop_back();
        }
        if self.slots.len() - self.backlog.packets.min(self.slots.len()) > self.params.limit {
            self.slots.retain(Option::is_some);
        }
    }
}

/// A position in a queue of this length.
fn below(rng: &mut Rng, slots: usize) -> usize {
    usize::try_from(rng.below(slots as u64)).unwrap_or(0)
}

impl<P: Packet> Qdisc<P> for Choke<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        if !self.passes(now, &mut pkt, obs) {
            return obs.on_drop(now, pkt, DropReason::Aqm);
        }
        if self.backlog.packets >= self.params.limit {
            self.counts.pdrop += 1;
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.backlog.add(pkt.size());
        self.slots.push_back(Some(pkt));
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let Some(oldest) = self.slots.pop_front() else {
            self.law.idle(now);
            return None;
        };
        self.trim();
        oldest.inspect(|pkt| self.uncount(pkt))
    }

    fn peek(&self) -> Peek {
        self.slots.iter().flatten().next().map(P::size).into()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("early", self.counts.early),
            Statistic::count("marked", self.counts.marked),
            Statistic::count("pdrop", self.counts.pdrop),
            Statistic::count("matched", self.counts.matched),
            Statistic::count(OVERLIMITS, self.counts.early + self.counts.marked),
        ]
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        vec![
            Statistic::count("average", self.law.average()),
            Statistic::real("prob", self.law.probability()),
        ]
    }
}

#[cfg(test)]
mod tests;
