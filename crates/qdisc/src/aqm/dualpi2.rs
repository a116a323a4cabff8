//! DualPI2: two coupled queues, one of very low delay for L4S.
//!
//! # Source
//!
//! RFC 9332, Appendix A with the edge cases of A.2; RFC 9956 (NQB); RFC 9957 (queue protection); Linux 6.18
//! `net/sched/sch_dualpi2.c` (merged in 6.17) and iproute2 `tc/q_dualpi2.c`.
//!
//! # Algorithm
//!
//! ECT(1) and CE go to the L queue, with `any_ect` also ECT(0), with `nqb` also packets with the DSCP of NQB, the
//! rest to the C queue; queue protection sends some packets of the L queue to the C queue. Every `tupdate` a
//! controller moves the base probability by the longer of the two waiting times, and what leaves is signalled by it:
//!
//! ```text
//! p += alpha (delay - target) + beta (delay - delay_old)
//! C    drop, or mark what can be, with p^2
//! L    mark with the greater of k p and a ramp over the packet's own sojourn
//! ```
//!
//! So the two react to one congestion as their senders' laws differ: C as its square root, L in
//! proportion. From `k p = 1` on (*overload*) C drops what could be marked and L drops with `p^2`.
//! A weighted round robin that favours L chooses the queue; the coupling, not the weight, shares the
//! link.
//!
//! # Differences between the profiles
//!
//! | | `rfc` | `linux` (6.18) |
//! |---|---|---|
//! | tupdate, alpha, beta | 15 ms, 0.15, 3 from `target` and `max_rtt` | 16 ms, 41/256, 819/256 |
//! | arithmetic | floating point | 32-bit probability, gains per 64 ns |
//! | signals | counted up (`recur`), no chance | random: C two draws below p, L one below k p |
//! | L's own threshold | ramp from 0.8 to 1.2 ms, if more than `th_len` packets waited | above 1 ms, always |
//! | a backlog below 2 MTU | is signalled | escapes p, not L's threshold |
//! | C's share in the round robin | 1/16 | 10 % |
//! | scheduler | that, or a time-shifted FIFO | that |
//! | overload | `k p >= 1` | `k p > 1` |
//! | NQB that is not L4S | signalled as Classic; with queue protection, Not-ECT passes | passes, as class 3 of the kernel |
//! | ECT(1) in C, after a sanction | marked with k p | with p^2 |
//! | buffer | 250 ms of the link | 10000 packets, 2 MTU of kernel memory each |
//!
//! # Differences from the RFC (profile `rfc`)
//!
//! | here | RFC 9332 | effect |
//! |---|---|---|
//! | L's delay is the sojourn of the packet that leaves, which counts among those that wait | `lq.time()`, `lq.len()` after it left | that of a queue of one packet is defined |
//! | k p is at most 1 | k p in Figure 8, probabilities of at most 1 in the text | in overload L drops p^2; counting k p - 1 on would drop more |
//! | both `limit` and `memlimit` | bytes | none at the default |
//!
//! # Differences from Linux (profile `linux`)
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | the length of a packet decides how much of `memlimit` it takes | its origin too | none for forwarded full packets |
//! | `nqb` | a filter on DSCP 45 that selects class 3 | none |
//! | no other filters, no threshold in packets | has them | none at the defaults |
//! | a packet marked for two reasons counts once | twice | `ecn_mark` is lower |

mod linux;
mod params;
mod protection;
mod rfc;

use std::collections::VecDeque;

use sojourn_net::{Bytes, Comparison, Dscp, Duration, Ecn, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, OVERLIMITS, Params, Profile, Retention, Shorthand, TcStatistics, TcWord, fixed,
};
use crate::parts::fifo::Fifo;
use crate::parts::memory::Memory;
use linux::Linux;
use protection::Protection;
use rfc::Rfc;

pub use params::{DropEarly, DualPi2Params, EcnMask};

impl Params for DualPi2Params {
    type Queue<P: Packet> = DualPi2<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "dualpi2",
        class: Some("DualPi2"),
        summary: "Coupled Classic and low-latency (L4S) queues",
        source: "RFC 9332; Linux 6.18 sch_dualpi2, iproute2",
        reconstruction: None,
        profiles: &[Profile::Linux, Profile::Rfc],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        &[
            ("overflow", TcWord::Means("nodrop_on_overload")),
            (
                "no_split_gso",
                TcWord::WithoutEffect(0, "no packet here is a batch of segments"),
            ),
        ]
    }

    fn shorthands(&self) -> &'static [&'static [Shorthand]] {
        // No packet here is a batch of segments.
        &[&[("split_gso", &[])]]
    }

    fn settle(&mut self, _shorthands: &[&str]) -> Result<Vec<String>, String> {
        let derived = self.derive_of_rtt()?;
        let rounded = self.round_as_tc()?;
        Ok(derived.into_iter().chain(rounded).collect())
    }

    /// What the profile knows nothing of, or what excludes each other.
    fn conflict(&self) -> Option<String> {
        if self.tshift.is_some() && self.classic_protection.is_some() {
            return Some("tshift and classic_protection are mutually exclusive".into());
        }
        if !self.queue_protection {
            let parts = [
                ("qp_latency_threshold", self.qp_latency_threshold.is_some()),
                (
                    "qp_queuing_score_threshold",
                    self.qp_queuing_score_threshold.is_some(),
                ),
                (
                    "qp_drain_rate_exponent",
                    self.qp_drain_rate_exponent.is_some(),
                ),
            ];
            if let Some((key, _)) = parts.into_iter().find(|&(_, given)| given) {
                return Some(format!("{key} requires queue_protection"));
            }
        }
        if self.profile == Profile::Rfc {
            let linux = [
                ("min_qlen_step", self.min_qlen_step.is_some()),
                ("typical_rtt", self.typical_rtt.is_some()),
                ("drop_enqueue", self.drop_early == DropEarly::Enqueue),
            ];
            let (key, _) = linux.into_iter().find(|&(_, given)| given)?;
            return Some(format!("{key} requires profile linux"));
        }
        let foreign = [
            ("range", self.range.is_some()),
            ("th_len", self.th_len.is_some()),
            ("tshift", self.tshift.is_some()),
        ];
        let (key, _) = foreign.into_iter().find(|&(_, given)| given)?;
        Some(format!("{key} requires profile rfc"))
    }

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_overlimits();

    fn comparison(&self) -> Comparison {
        // The kernel that was measured had none of the options.
        if self.drop_early == DropEarly::Enqueue || self.min_qlen_step.is_some_and(|n| n > 0) {
            return Comparison::Partial("Linux 6.18, without drop_enqueue and min_qlen_step");
        }
        if self.profile == Profile::Linux && (self.nqb || self.queue_protection) {
            return Comparison::Partial("Linux 6.18, without nqb and queue_protection");
        }
        self.profile.compared_with("Linux 6.18")
    }

    fn resolve(&mut self, link: &LinkFacts) {
        self.set_derived(link);
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> DualPi2<P> {
        DualPi2::new(self, link.rate, link.mtu, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            (
                "queue_protection",
                self.queue_protection == next.queue_protection,
            ),
            (
                "qp_latency_threshold",
                self.qp_latency_threshold == next.qp_latency_threshold,
            ),
            (
                "qp_queuing_score_threshold",
                self.qp_queuing_score_threshold == next.qp_queuing_score_threshold,
            ),
            (
                "qp_drain_rate_exponent",
                self.qp_drain_rate_exponent == next.qp_drain_rate_exponent,
            ),
        ])
    }

    /// As in Linux after 6.18, the oldest packets of C, and then of L, are dropped until the rest is below a lower limit.
    /// (6.18 fails if C has too few.) A new `tupdate` follows the next update.
    fn change<P: Packet>(
        &self,
        queue: &mut DualPi2<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        let fresh = DualPi2::<P>::new(self, link.rate, link.mtu, queue.rng.clone());
        (queue.limit, queue.memlimit) = (fresh.limit, fresh.memlimit);
        (queue.tupdate, queue.ecn_mask) = (fresh.tupdate, fresh.ecn_mask);
        queue.nqb = fresh.nqb;
        queue.min_qlen_step = fresh.min_qlen_step;
        if !queue.scheduler.has_same_shares(&fresh.scheduler) {
            queue.scheduler = fresh.scheduler;
        }
        match (&mut queue.law, &fresh.law) {
            (Law::Rfc(law), Law::Rfc(next)) => law.change(next),
            (Law::Linux(law), Law::Linux(next)) => law.change(next),
            _ => debug_assert!(false, "the profile stays"),
        }
        while queue.backlog().packets > queue.limit || queue.memory.used() > queue.memlimit.0 {
            let (band, oldest) = match queue.classic.pop_stamped() {
                None => (Band::L4s, queue.l4s.pop_stamped()),
                oldest => (Band::Classic, oldest),
            };
            let Some((pkt, _)) = oldest else { break };
            if band == Band::L4s {
                queue.steps.pop_front();
            }
            queue.memory.remove(pkt.size());
            obs.on_class(band.id());
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }
}

/// Two coupled queues governed by DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    limit: usize,
    memlimit: Bytes,
    memory: Memory,
    mtu: Bytes,
    tupdate: Duration,
    ecn_mask: EcnMask,
    nqb: bool,
    protection: Option<Box<Protection>>,
    min_qlen_step: usize,
    l4s: Fifo<P>,
    /// For each packet of L, whether the step threshold applies (Linux profile). Empty in the RFC profile.
    steps: VecDeque<bool>,
    classic: Fifo<P>,
    scheduler: Scheduler,
    law: Law,
    rng: Rng,
    next_update: Instant,
    counters: Counters,
}

/// The controller and the signals of the profile.
#[derive(Clone, Debug)]
enum Law {
    Rfc(Rfc),
    Linux(Linux),
}

#[derive(Clone, Debug, Default)]
struct Counters {
    in_classic: u64,
    in_l4s: u64,
    in_nqb: u64,
    most_waiting: usize,
    marks: u64,
    step_marks: u64,
    overlimits: u64,
    /// Waiting times at the last update.
    delay_classic: Duration,
    delay_l4s: Duration,
}

impl<P: Packet> DualPi2<P> {
    /// An empty queue on a link of `rate`, made at the origin of time, for packets of up to `mtu`
    /// bytes.
    pub fn new(params: &DualPi2Params, rate: Option<Rate>, mtu: Bytes, rng: Rng) -> Self {
        // Of typed parameters; a text or a table reports the error, after which the defaults remain.
        let mut derived = *params;
        let _overrides = derived.derive_of_rtt();
        let params = &derived;
        let law = match params.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => Law::Rfc(Rfc::new(params)),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => {
                Law::Linux(Linux::new(params, mtu))
            }
        };
        Self {
            limit: params.limit,
            memlimit: params.memlimit(rate, mtu),
            memory: match law {
                Law::Rfc(_) => Memory::of_packets(),
                Law::Linux(_) => Memory::of_buffers(),
            },
            mtu,
            tupdate: params.tupdate(),
            ecn_mask: params.ecn_mask,
            nqb: params.nqb,
            protection: (params.queue_protection)
                .then(|| Box::new(Protection::new(params, rate, &rng))),
            min_qlen_step: params.min_qlen_step.unwrap_or(0) as usize,
            l4s: Fifo::new(),
            steps: VecDeque::new(),
            classic: Fifo::new(),
            scheduler: params.scheduler(mtu),
            law,
            rng,
            next_update: Instant::ZERO + params.tupdate(),
            counters: Counters::default(),
        }
    }

    /// Whether a packet of `size` bytes finds room.
    #[inline]
    fn has_room(&mut self, size: Bytes) -> bool {
        // The RFC keeps room for the largest packet, so that large ones are not dropped more often.
        let size = match self.law {
            Law::Rfc(_) => self.mtu,
            Law::Linux(_) => size,
        };
        self.backlog().packets < self.limit
            && self.memory.used() + self.memory.of(size) <= self.memlimit.0
    }

    /// Whether this ECN field is that of L4S traffic.
    #[inline]
    fn is_l4s(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.ecn_mask == EcnMask::Any,
            Ecn::NotEct => false,
        }
    }

    /// The queue that a packet goes to.
    #[inline]
    fn classify(&mut self, now: Instant, pkt: &P) -> Band {
        let is_l4s = self.is_l4s(pkt.ecn());
        let nqb = self.nqb && !is_l4s && pkt.dscp() == Dscp::NQB;
        if !is_l4s && !nqb || self.protection.is_some() && self.is_sanctioned(now, pkt) {
            return Band::Classic;
        }
        self.counters.in_nqb += u64::from(nqb);
        Band::L4s
    }

    /// Whether queue protection keeps a packet out of L.
    #[inline(never)]
    fn is_sanctioned(&mut self, now: Instant, pkt: &P) -> bool {
        let Some(protection) = &mut self.protection else {
            return false;
        };
        let Backlog { packets, bytes } = self.l4s.backlog();
        let delay = protection.delay(bytes, Self::delay(&self.l4s, now));
        let native = match &self.law {
            Law::Rfc(law) => law.native(packets, delay),
            Law::Linux(law) if packets >= self.min_qlen_step => law.native(delay),
            Law::Linux(_) => 0.0,
        };
        protection.sanctions(now, &pkt.flow(), pkt.size(), delay, native)
    }

    fn mark(&mut self, now: Instant, pkt: &mut P, reason: MarkReason, obs: &mut dyn Observer<P>) {
        pkt.mark_ce();
        obs.on_mark(now, pkt, reason);
        self.counters.marks += 1;
        self.counters.step_marks += u64::from(reason == MarkReason::CeThreshold);
    }

    /// The queue that the next packet comes from, and whether the other one holds some too.
    #[inline]
    fn choose(&mut self, now: Instant) -> Option<(Band, bool)> {
        match (self.l4s.oldest(), self.classic.oldest()) {
            (None, None) => {
                self.scheduler.reset();
                None
            }
            (Some(_), None) => Some((Band::L4s, false)),
            (None, Some(_)) => Some((Band::Classic, false)),
            (Some(l4s), Some(classic)) => {
                let band = self.scheduler.choose(now.since(l4s), now.since(classic));
                Some((band, true))
            }
        }
    }

    /// How long the oldest packet of a queue has waited.
    fn delay(queue: &Fifo<P>, now: Instant) -> Duration {
        queue
            .oldest()
            .map_or(Duration::ZERO, |oldest| now.since(oldest))
    }
}

impl<P: Packet> Qdisc<P> for DualPi2<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let band = self.classify(now, &pkt);
        let size = pkt.size();
        if !self.has_room(size) {
            self.counters.overlimits += 1;
            obs.on_class(band.id());
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        let Backlog {
            packets: waiting,
            bytes,
        } = self.backlog();
        let verdict = match &self.law {
            // The RFC signals packets that leave.
            Law::Rfc(_) => Verdict::Pass,
            Law::Linux(_) if band == Band::L4s && !self.is_l4s(pkt.ecn()) => Verdict::Pass,
            Law::Linux(law) => {
                law.judge_arrival(band, pkt.ecn() != Ecn::NotEct, bytes, &mut self.rng)
            }
        };
        // A packet that is already marked is not marked again on departure.
        let mut step = self.l4s.backlog().packets >= self.min_qlen_step;
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark(reason) => {
                obs.on_class(band.id());
                self.mark(now, &mut pkt, reason, obs);
                step = false;
            }
            Verdict::Drop => {
                obs.on_class(band.id());
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
        }
        self.counters.most_waiting = self.counters.most_waiting.max(waiting);
        self.memory.add(size);
        match band {
            Band::L4s => {
                self.counters.in_l4s += 1;
                self.l4s.push(now, pkt);
                if let Law::Linux(_) = self.law {
                    self.steps.push_back(step);
                }
            }
            Band::Classic => {
                self.counters.in_classic += 1;
                self.classic.push(now, pkt);
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn takes a packet, so the loop ends with the queues.
        loop {
            let (band, contended) = self.choose(now)?;
            let queue = match band {
                Band::L4s => &mut self.l4s,
                Band::Classic => &mut self.classic,
            };
            let held = queue.backlog().packets;
            let (mut pkt, arrived) = queue.pop_stamped()?;
            let size = pkt.size();
            self.memory.remove(size);
            let ecn = pkt.ecn();
            let nqb = band == Band::L4s && !self.is_l4s(ecn);
            let mut leaving = Leaving {
                band,
                step: false,
                ecn,
                waited: now.since(arrived),
                held,
                left: self.backlog().bytes,
            };
            let verdict = match &mut self.law {
                Law::Rfc(_) if nqb && ecn == Ecn::NotEct && self.protection.is_some() => {
                    Verdict::Pass
                }
                Law::Rfc(law) if nqb => law.judge_nqb(&leaving),
                Law::Rfc(law) => law.judge(&leaving),
                Law::Linux(law) => {
                    leaving.step = band == Band::L4s && self.steps.pop_front().unwrap_or(false);
                    if nqb {
                        Verdict::Pass
                    } else {
                        law.judge(&leaving, &mut self.rng)
                    }
                }
            };
            obs.on_class(band.id());
            match verdict {
                Verdict::Pass => {}
                Verdict::Mark(reason) => self.mark(now, &mut pkt, reason, obs),
                Verdict::Drop => {
                    obs.on_drop(now, pkt, DropReason::Aqm);
                    continue;
                }
            }
            if contended {
                self.scheduler.charge(band, size);
            }
            return Some(pkt);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (l4s, classic) = (self.l4s.backlog(), self.classic.backlog());
        Backlog {
            packets: l4s.packets + classic.packets,
            bytes: l4s.bytes + classic.bytes,
        }
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
        self.counters.delay_l4s = Self::delay(&self.l4s, now);
        self.counters.delay_classic = Self::delay(&self.classic, now);
        let delay = self.counters.delay_l4s.max(self.counters.delay_classic);
        match &mut self.law {
            Law::Rfc(law) => law.update(delay),
            Law::Linux(law) => law.update(delay),
        }
        self.next_update = now + self.tupdate;
    }

    fn on_link_rate(&mut self, _now: Instant, rate: Rate) {
        if let Some(protection) = &mut self.protection {
            protection.set_rate(rate);
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let seen = &self.counters;
        let prob = match &self.law {
            Law::Rfc(law) => law.probability(),
            Law::Linux(law) => law.probability(),
        };
        let mut all = vec![
            Statistic::real("prob", prob),
            Statistic::count("delay_c", seen.delay_classic.as_micros()),
            Statistic::count("delay_l", seen.delay_l4s.as_micros()),
            Statistic::count("pkts_in_c", seen.in_classic),
            Statistic::count("pkts_in_l", seen.in_l4s),
            Statistic::count("maxq", seen.most_waiting as u64),
            Statistic::count("ecn_mark", seen.marks),
            Statistic::count("step_mark", seen.step_marks),
            Statistic::count(OVERLIMITS, seen.overlimits),
        ];
        if let Scheduler::RoundRobin { credit, .. } = self.scheduler {
            #[expect(clippy::cast_precision_loss, reason = "for display")]
            all.push(Statistic::real("credit", credit as f64 / 100.0));
        }
        if self.nqb {
            all.push(Statistic::count("pkts_nqb", seen.in_nqb));
        }
        if let Some(protection) = &self.protection {
            all.extend(protection.statistics());
        }
        all
    }

    /// The probability of the Classic queue and the coupled one of the L4S queue.
    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let (classic, l4s) = match &self.law {
            Law::Rfc(law) => law.coupled(),
            Law::Linux(law) => law.coupled(),
        };
        vec![
            Statistic::real("prob_c", classic),
            Statistic::real("prob_l", l4s),
        ]
    }

    fn classes(&self) -> Vec<ClassId> {
        [Band::L4s, Band::Classic].map(Band::id).to_vec()
    }
}

/// Which of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Band {
    L4s,
    Classic,
}

impl Band {
    /// What reports call it: the name of RFC 9332.
    const fn id(self) -> ClassId {
        match self {
            Self::L4s => ClassId::named("L", 0),
            Self::Classic => ClassId::named("C", 1),
        }
    }
}

/// A packet that is about to leave, as the law sees it.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    band: Band,
    ecn: Ecn,
    waited: Duration,
    /// L's own threshold applies to it in the kernel.
    step: bool,
    /// Packets its queue held, itself among them.
    held: usize,
    /// Bytes that both queues still hold.
    left: Bytes,
}

/// Decision about a packet that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark(MarkReason),
    Drop,
}

/// What chooses between two queues that both hold packets.
#[derive(Clone, Debug)]
enum Scheduler {
    /// Weighted: the sign of the credit says whose turn it is.
    RoundRobin {
        /// Weights in hundredths of a per cent.
        classic: i64,
        l4s: i64,
        start: i64,
        credit: i64,
    },
    /// The oldest, C's packets made younger.
    TimeShifted { shift: Duration },
}

impl Scheduler {
    /// Whether both share the link alike, whatever their credit.
    const fn has_same_shares(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RoundRobin { classic: a, .. }, Self::RoundRobin { classic: b, .. }) => *a == *b,
            (Self::TimeShifted { shift: a }, Self::TimeShifted { shift: b }) => {
                a.as_nanos() == b.as_nanos()
            }
            _ => false,
        }
    }

    #[inline]
    fn choose(&self, l4s_waited: Duration, classic_waited: Duration) -> Band {
        let l4s = match *self {
            Self::RoundRobin { credit, .. } => credit <= 0,
            Self::TimeShifted { shift } => classic_waited.saturating_sub(shift) <= l4s_waited,
        };
        if l4s { Band::L4s } else { Band::Classic }
    }

    /// A packet of `size` left while the other queue held some.
    #[inline]
    fn charge(&mut self, band: Band, size: Bytes) {
        if let Self::RoundRobin {
            classic,
            l4s,
            credit,
            ..
        } = self
        {
            let change = match band {
                Band::L4s => *classic,
                Band::Classic => -*l4s,
            };
            *credit = credit.saturating_add(change.saturating_mul(signed(size)));
        }
    }

    /// Both queues are empty.
    #[inline]
    fn reset(&mut self) {
        if let Self::RoundRobin { start, credit, .. } = self {
            *credit = *start;
        }
    }
}

/// A length as weights are multiplied with; no packet comes near 2^40 bytes.
#[inline]
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).map_or(1 << 40, |n| n.min(1 << 40))
}

#[cfg(test)]
mod tests;
