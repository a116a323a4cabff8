//! CoDel: Controlled Delay.
//!
//! # Source
//!
//! RFC 8289 §5, pseudo-code `dequeue` and `dodequeue`; marking and `ce_threshold` as in Linux.
//!
//! # Algorithm
//!
//! A packet's *sojourn* is the time it spent in the queue. When every packet leaving
//! for one `interval` had a sojourn of at least `target`, the queue is *standing*
//! and CoDel signals: it marks the packet if it may, else drops it. While the queue
//! stays standing, signal `count + 1` follows signal `count` after
//!
//! ```text
//! interval / sqrt(count)
//! ```
//!
//! so that the signal rate grows linearly in time, which is what a window that falls
//! as the square root of the loss rate needs.
//!
//! Names are the RFC's; "drop" in them means "signal".
//!
//! # Differences between the profiles
//!
//! | `rfc` | `linux` (6.1, `include/net/codel_impl.h`) | effect |
//! |---|---|---|
//! | `now >= first_above_time` | `>` | a signal comes one packet later on a tie |
//! | correctly rounded square root | one Q0.16 Newton step a signal | gap 2 is 50 ms, not 71; 2.6 % short at 3; within 0.4 % from 10 |
//! | nanoseconds | ticks of 1024 ns | below one tick a comparison |
//!
//! # Differences of both from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | 64-bit clock | 32 bits of ticks | none in states younger than 36 minutes |
//! | `ce_threshold` for all packets | optionally for some DSCP and ECN values | none at its default |

mod control;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Counter, Kind, LinkFacts, Params, Profile, Retention, TcStatistics, fixed, parameters,
};
use crate::parts::fifo::Fifo;

pub(crate) use control::{Control, Law, Popped, Signals, Source, div_sqrt};

/// What tc calls the drops and marks of this discipline and of those that derive from it.
pub(crate) const COUNTERS: &[(&str, Counter)] = &[
    ("ecn_mark", Counter::Marks(MarkReason::Aqm)),
    ("ce_mark", Counter::Marks(MarkReason::CeThreshold)),
    ("drop_overlimit", Counter::Drops(DropReason::Overlimit)),
];

impl Params for CodelParams {
    type Queue<P: Packet> = Codel<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "codel",
        class: Some("CoDel"),
        summary: "Signals when the delay has stayed above a target for an interval",
        source: "RFC 8289; Linux 6.1 sch_codel",
        reconstruction: None,
        profiles: &[Profile::Linux, Profile::Rfc],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(COUNTERS);

    fn comparison(&self) -> Comparison {
        self.profile.compared_with("Linux 6.1")
    }

    fn build<P: Packet>(&self, link: &LinkFacts, _rng: Rng) -> Codel<P> {
        Codel::new(self, link.mtu)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("profile", self.profile == next.profile)])
    }

    /// As in Linux, the oldest packets above a lower limit are dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Codel<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.limit = self.limit;
        queue.law = Law::new(self);
        queue.fifo.fifo.shrink(now, self.limit, obs);
    }
}

impl CodelParams {
    /// The parameters of a law inside another queue, in the arithmetic of its profile.
    pub(crate) fn inside(target: Duration, interval: Duration, ecn: bool, of: Profile) -> Self {
        Self {
            target,
            interval,
            ecn,
            profile: if of == Profile::Kernel {
                Profile::Kernel
            } else {
                Profile::Rfc
            },
            ..Self::default()
        }
    }
}

/// A FIFO governed by CoDel.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    limit: usize,
    law: Law,
    fifo: CodelFifo<P>,
    control: Control,
    /// How long the packet that left last had waited.
    ldelay: Duration,
}

impl<P: Packet> Codel<P> {
    /// An empty queue for packets of up to `mtu` bytes, link header included.
    pub fn new(params: &CodelParams, mtu: Bytes) -> Self {
        Self {
            limit: params.limit,
            law: Law::new(params),
            fifo: CodelFifo {
                fifo: Fifo::new(),
                maxpacket: mtu,
                largest: Bytes(0),
                last_arrival: Instant::ZERO,
            },
            control: Control::default(),
            ldelay: Duration::ZERO,
        }
    }
}

impl<P: Packet> Qdisc<P> for Codel<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.backlog().packets < self.limit {
            self.fifo.fifo.push(now, pkt);
        } else {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let pkt = self.control.dequeue(&self.law, &mut self.fifo, now, obs)?;
        let arrived = self.law.clock(self.fifo.last_arrival);
        self.ldelay = self.law.clock(now).since(arrived);
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut statistics = self.control.signals.statistics().to_vec();
        statistics.extend([
            Statistic::count("ldelay", self.ldelay.as_micros()),
            Statistic::count("maxpacket", self.fifo.largest.0),
        ]);
        statistics
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.control.signals.state(now).into_iter().collect()
    }
}

#[derive(Clone, Debug)]
struct CodelFifo<P> {
    fifo: Fifo<P>,
    maxpacket: Bytes,
    /// The largest packet that was taken out.
    largest: Bytes,
    /// When the packet arrived that was taken out last.
    last_arrival: Instant,
}

impl<P: Packet> Source<P> for CodelFifo<P> {
    #[inline]
    fn pop(&mut self) -> Option<(P, Instant)> {
        let before = self.fifo.backlog().bytes;
        let (pkt, arrived) = self.fifo.pop_stamped()?;
        self.last_arrival = arrived;
        self.largest = self.largest.max(before - self.fifo.backlog().bytes);
        Some((pkt, arrived))
    }

    #[inline]
    fn is_small(&self) -> bool {
        self.fifo.backlog().bytes <= self.maxpacket
    }
}

parameters! {
    /// Parameters of [`Codel`](super::Codel).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CodelParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "net/sched/sch_codel.c: DEFAULT_CODEL_LIMIT";
        /// Acceptable standing delay.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "RFC 8289 section 4.3: TARGET; include/net/codel.h: codel_params.target";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "RFC 8289 section 4.2: INTERVAL; include/net/codel.h: codel_params.interval";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "include/net/codel.h: codel_params.ce_threshold";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "include/net/codel.h: codel_params.ecn";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}
