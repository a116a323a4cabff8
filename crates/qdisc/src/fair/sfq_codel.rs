//! SFQ-CoDel: flows hashed to bins, served packet by packet, with CoDel in each.
//!
//! # Source
//!
//! Kathleen Nichols' `sfqcodel.cc` for ns-2 as of January 2013 (the version for `CableLabs`), facts only.
//!
//! # Algorithm
//!
//! The hash of a flow selects a bin. Bins are served round robin, one packet or `quantum` bytes per
//! turn. An inactive bin is inserted before the bins that have been served in this round and after
//! other new bins; an empty bin is removed when it is its turn, so it keeps its position for one
//! round. When `limit` is reached, the newest packet of the bin with the most packets is dropped.
//! Each bin has the CoDel of 2013.
//!
//! Pseudo-code: `docs/qdiscs/sfq_codel.md`.
//!
//! # Differences from `fq_codel` (RFC 8290)
//!
//! | here | `fq_codel` | effect |
//! |---|---|---|
//! | a packet a turn, unless `quantum` is given | a quantum of bytes | small packets get a smaller share |
//! | an overflow costs the bin with most packets its newest one | the one with most bytes many of its oldest | |
//! | a bin that is served stays in the ring behind bins that wait for their first turn | as an old flow | |
//! | 8 intervals, `count - 2` | 16 intervals, the signals of the time before | starts harder after a pause |
//! | the last packet of a bin is never signalled | may be | thin flows lose less |
//!
//! # Differences from ns-2
//!
//! | here | ns-2 | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | Jenkins | which flows collide |
//! | `ecn` | absent | an addition: a mark counts as the signal |
//! | no bin for CBR alone (`isolate-cbr`) | on request | none at its default |

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use crate::aqm::codel::{self, div_sqrt};
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, Params, Profile, Retention, TcStatistics, fixed, parameters,
};
use crate::parts::pool::{List, Pool};
use crate::parts::round::FlowId;

/// The largest packet is learned, from this on.
const LEAST_MAXPACKET: Bytes = Bytes(256);

parameters! {
    /// Parameters of [`SfqCodel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SfqCodelParams {
        /// Maximum number of packets in all bins together.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "ns-2 sfqcodel.cc: limit_, set per scenario; Sojourn default, as in net/sched/sch_codel.c";
        /// Number of bins that flows are hashed to.
        pub flows: u32 = 1_024 => count(1, 65_536),
            "ns-2 sfqcodel.cc: maxbins_";
        /// Acceptable standing delay of each bin.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "ns-2 sfqcodel.cc: target_";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "ns-2 sfqcodel.cc: interval_";
        /// Bytes that a bin sends per turn.
        pub quantum: Option<Bytes> = None => size(1, 1 << 20).unset("one packet"),
            "ns-2 sfqcodel.cc: quantum_";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "addition";
    }
}

impl Params for SfqCodelParams {
    type Queue<P: Packet> = SfqCodel<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "sfq_codel",
        class: Some("SfqCodel"),
        summary: "Packet-by-packet round robin over bins, with the CoDel of 2013 in each bin",
        source: "Nichols' sfqcodel.cc for ns-2, 2013",
        reconstruction: None,
        profiles: &[Profile::Paper],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(codel::COUNTERS);

    fn build<P: Packet>(&self, _link: &LinkFacts, rng: Rng) -> SfqCodel<P> {
        SfqCodel::new(self, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("flows", self.flows == next.flows)])
    }

    /// As when a script of ns-2 sets the variables: with more packets than a lower limit, each arrival costs one.
    fn change<P: Packet>(
        &self,
        queue: &mut SfqCodel<P>,
        _now: Instant,
        _link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
    }
}

/// Bins in a ring with CoDel in each.
#[derive(Clone, Debug)]
pub struct SfqCodel<P> {
    params: SfqCodelParams,
    perturbation: u64,
    pool: Pool<P>,
    backlog: Backlog,
    bins: Vec<Bin>,
    /// The bin whose turn it is.
    turn: Option<usize>,
    /// The bin that lost a packet last.
    fattest: usize,
    maxpacket: Bytes,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Bin {
    list: List,
    /// Neighbours in the ring.
    prev: u32,
    next: u32,
    waits: bool,
    /// It has had no turn since it joined the ring.
    is_new: bool,
    deficit: i64,
    control: Control,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    joined: u64,
    overlimit: u64,
    marks: u64,
}

impl<P: Packet> SfqCodel<P> {
    /// An empty queue.
    pub fn new(params: &SfqCodelParams, mut rng: Rng) -> Self {
        let bin = Bin {
            list: List::EMPTY,
            prev: 0,
            next: 0,
            waits: false,
            is_new: false,
            deficit: 0,
            control: Control::default(),
        };
        Self {
            params: *params,
            perturbation: rng.next_u64(),
            pool: Pool::new(),
            backlog: Backlog::default(),
            bins: vec![bin; params.flows as usize],
            turn: None,
            fattest: 0,
            maxpacket: LEAST_MAXPACKET,
            counters: Counters::default(),
        }
    }

    /// The bin with most packets loses its newest; among equals another than the last time.
    #[cold]
    fn drop_from_fattest(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let mut fattest = self.fattest;
        for (at, bin) in self.bins.iter().enumerate() {
            let most = self.bins[fattest].list.packets();
            if at != self.fattest && bin.waits && bin.list.packets() >= most {
                fattest = at;
            }
        }
        self.fattest = fattest;
        if let Some((pkt, _)) = self.pool.pop_newest(&mut self.bins[fattest].list) {
            self.backlog.remove(pkt.size());
            self.counters.overlimit += 1;
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    /// Puts bin `at` into the ring: before the bins that have had a turn, behind those that have not.
    fn join(&mut self, at: usize) {
        self.counters.joined += 1;
        let place = match self.turn {
            None => at,
            Some(turn) => {
                let mut place = turn;
                while self.bins[place].is_new && index(self.bins[place].next) != turn {
                    place = index(self.bins[place].next);
                }
                if index(self.bins[place].next) == turn {
                    // The last of the ring, whatever it is: behind it.
                    turn
                } else {
                    if place == turn {
                        self.turn = Some(at);
                    }
                    place
                }
            }
        };
        let quantum = self.params.quantum.map_or(0, signed);
        let before = if self.turn.is_none() {
            self.turn = Some(at);
            at
        } else {
            index(self.bins[place].prev)
        };
        let bin = &mut self.bins[at];
        (bin.prev, bin.next) = (link(before), link(place));
        (bin.waits, bin.is_new, bin.deficit) = (true, true, quantum);
        self.bins[before].next = link(at);
        self.bins[place].prev = link(at);
    }

    /// Takes the bin whose turn it is, found empty, out of the ring.
    fn leave(&mut self, at: usize) {
        let bin = &mut self.bins[at];
        bin.waits = false;
        bin.control.dropping = false;
        let (prev, next) = (index(bin.prev), index(bin.next));
        self.bins[prev].next = link(next);
        self.bins[next].prev = link(prev);
        self.turn = (next != at).then_some(next);
    }

    /// The bin that sends next; empty ones on the way leave.
    #[inline]
    fn ready(&mut self) -> Option<usize> {
        let mut at = self.turn?;
        while self.bins[at].list.packets() == 0 {
            self.leave(at);
            at = self.turn?;
        }
        let Some(quantum) = self.params.quantum else {
            return Some(at);
        };
        // Some bin of the ring holds a packet, and its credit grows with every round.
        while self.bins[at].deficit <= 0 {
            self.bins[at].deficit += signed(quantum);
            at = index(self.bins[at].next);
            while self.bins[at].list.packets() == 0 {
                at = index(self.bins[at].next);
            }
        }
        self.turn = Some(at);
        Some(at)
    }

    /// The oldest packet of a bin, and whether the bin is standing.
    #[inline]
    fn dodequeue(&mut self, at: usize, now: Instant) -> Option<(P, bool)> {
        let Bin { list, control, .. } = &mut self.bins[at];
        let (pkt, arrived) = self.pool.pop(list)?;
        self.backlog.remove(pkt.size());
        self.maxpacket = self.maxpacket.max(pkt.size());
        let is_short = self.backlog.bytes <= self.maxpacket || list.packets() == 0;
        if now.since(arrived) < self.params.target || is_short {
            control.first_above_time = None;
            return Some((pkt, false));
        }
        let standing = match control.first_above_time {
            None => {
                control.first_above_time = Some(now + self.params.interval);
                false
            }
            Some(above_at) => now >= above_at,
        };
        Some((pkt, standing))
    }

    /// Marks `pkt` if that is allowed and possible; says whether it did.
    fn marks(&mut self, pkt: &mut P, now: Instant, obs: &mut dyn Observer<P>) -> bool {
        let marked = self.params.ecn && pkt.mark_ce();
        if marked {
            self.counters.marks += 1;
            obs.on_mark(now, pkt, MarkReason::Aqm);
        }
        marked
    }

    /// Begins signalling with `pkt`; gives the packet to send.
    #[cold]
    fn begin(
        &mut self,
        at: usize,
        mut pkt: P,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let control = &self.bins[at].control;
        obs.on_decision(&|| {
            let mut then = control.clone();
            then.begin(self.params.interval, now);
            then.numbers(now)
        });
        if !self.marks(&mut pkt, now, obs) {
            obs.on_drop(now, pkt, DropReason::Aqm);
            (pkt, _) = self.dodequeue(at, now)?;
        }
        self.bins[at].control.begin(self.params.interval, now);
        Some(pkt)
    }

    /// Sends the signals that have fallen due; gives the packet to send.
    #[cold]
    fn go_on(
        &mut self,
        at: usize,
        mut pkt: P,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        // Each turn removes a packet, and the last of a bin ends it.
        while self.bins[at].control.is_due(now) {
            let control = &self.bins[at].control;
            obs.on_decision(&|| {
                let mut then = control.clone();
                then.go_on(self.params.interval);
                then.numbers(now)
            });
            let marked = self.marks(&mut pkt, now, obs);
            let mut standing = true;
            if !marked {
                obs.on_drop(now, pkt, DropReason::Aqm);
                (pkt, standing) = self.dodequeue(at, now)?;
            }
            let control = &mut self.bins[at].control;
            if standing {
                control.go_on(self.params.interval);
            } else {
                control.dropping = false;
            }
            if marked {
                break;
            }
        }
        Some(pkt)
    }

    /// The bin that `pkt` belongs to.
    #[inline]
    fn classify(&self, pkt: &P) -> FlowId {
        let digest = pkt.flow().digest(self.perturbation);
        FlowId::scaled(digest, self.params.flows)
    }
}

impl<P: Packet> Qdisc<P> for SfqCodel<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.backlog.packets >= self.params.limit {
            self.drop_from_fattest(now, obs);
        }
        let at = self.classify(&pkt).index();
        self.backlog.add(pkt.size());
        self.pool.push(&mut self.bins[at].list, now, pkt);
        if !self.bins[at].waits {
            self.join(at);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let at = self.ready()?;
        self.bins[at].is_new = false;
        let (mut pkt, standing) = self.dodequeue(at, now)?;
        let control = &mut self.bins[at].control;
        if !standing {
            control.dropping = false;
        } else if !control.dropping {
            pkt = self.begin(at, pkt, now, obs)?;
        } else if control.is_due(now) {
            pkt = self.go_on(at, pkt, now, obs)?;
        }
        let bin = &mut self.bins[at];
        if self.params.quantum.is_some() {
            bin.deficit -= signed(pkt.size());
        } else {
            self.turn = Some(index(bin.next));
        }
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        Some(self.classify(pkt).number())
    }

    fn statistics(&self) -> Vec<Statistic> {
        let seen = &self.counters;
        vec![
            Statistic::count("maxpacket", self.maxpacket.0),
            Statistic::count("drop_overlimit", seen.overlimit),
            Statistic::count("new_flow_count", seen.joined),
            Statistic::count("ecn_mark", seen.marks),
        ]
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let count = |is: fn(&Bin) -> bool| self.bins.iter().filter(|bin| is(bin)).count() as u64;
        vec![
            Statistic::count("flows", count(|bin| bin.waits)),
            Statistic::count("dropping_flows", count(|bin| bin.control.dropping)),
        ]
    }
}

/// CoDel as its authors had it in 2013, of one bin.
#[derive(Clone, Debug, Default)]
struct Control {
    first_above_time: Option<Instant>,
    /// When the next signal is due, or was due when signalling ended.
    drop_next: Instant,
    /// Signals since signalling began.
    count: u32,
    dropping: bool,
}

impl Control {
    #[inline]
    fn is_due(&self, now: Instant) -> bool {
        self.dropping && now >= self.drop_next
    }

    /// The first signal was sent.
    fn begin(&mut self, interval: Duration, now: Instant) {
        // `drop_next` may lie ahead of us yet: that is recent, too.
        let recent = now.saturating_since(self.drop_next) < interval.times(8);
        self.count = match self.count {
            count @ 3.. if recent => count - 2,
            _ => 1,
        };
        self.dropping = true;
        self.drop_next = now + div_sqrt(interval, self.count);
    }

    /// The numbers after a signal.
    fn numbers(&self, now: Instant) -> Vec<Statistic> {
        vec![
            Statistic::count("count", self.count.into()),
            Statistic::micros_until("drop_next", now, self.drop_next),
        ]
    }

    /// Another one was.
    fn go_on(&mut self, interval: Duration) {
        self.count = self.count.saturating_add(1);
        self.drop_next += div_sqrt(interval, self.count);
    }
}

/// A bin as it is linked; there are at most 65536.
#[inline]
fn link(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[inline]
const fn index(link: u32) -> usize {
    link as usize
}

/// Credits go below zero; no packet comes near 2^63 bytes.
#[inline]
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
