//! prio and `pfifo_fast`: bands in strict order.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_prio.c` and `sch_generic.c`; Linux 3.14 `sch_generic.c`. The class of a
//! packet: `net/ipv4/route.c`.
//!
//! # Algorithm
//!
//! The DSCP of a packet gives its priority, the priority its band. The next packet comes from the
//! first band that has one: a band that is always busy starves those behind it.
//!
//! `pfifo_fast` is three such bands of FIFOs; each is a ring of `limit` places. The places of packets
//! that have left become free 16 at a time, or when the ring starts anew (`include/linux/ptr_ring.h`, on
//! machines with cache lines of 64 bytes), so that a full band holds up to 15 packets less. In Linux 3.14
//! the three together hold `limit` packets.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | the DSCP alone decides | also `SO_PRIORITY`, ARP and filters | priorities 0, 2, 4 and 6 only |
//! | IPv6 as IPv4 | forwarded IPv6 has priority 0 | none without DSCP |

use sojourn_net::{Bytes, Comparison, Instant, Packet, Rate, Rng};

use crate::aqm::droptail::{DropTail, DropTailParams, Limit};
use crate::contract::{Backlog, ClassId, DropReason, Observer, Peek, Qdisc, Statistic};
use crate::parameters::{
    ALL_NUMBERS, Kind, LINUX, Leaf, LeafList, LinkFacts, Params, Profile, Retention, TcStatistics,
    TcWord, fixed, parameters,
};
use crate::parts::classes::Classes;
use crate::parts::leaf;
use crate::parts::priority::{self, PRIOMAP};

parameters! {
    /// Parameters of [`Prio`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct PrioParams<L> {
        /// Number of bands.
        pub bands: u32 = 3 => count(2, 16),
            "net/sched/sch_prio.c: prio_sched_data.bands; default of iproute2 tc/q_prio.c";
        /// Band of each of the 16 priorities.
        pub priomap: [u8; 16] = PRIOMAP => numbers(0, 15),
            "net/sched/sch_prio.c: prio_sched_data.prio2band; default of iproute2 tc/q_prio.c";
        /// Queue of each band; a single queue applies to all bands.
        pub leaf: Vec<L> = Vec::new() => leaves(16).unset("pfifo"),
            "net/sched/sch_prio.c: prio_sched_data.queues";
    }
}

parameters! {
    /// Parameters of [`PfifoFast`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PfifoFastParams {
        /// Maximum number of packets in each band; linux-3.14: in all bands together.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "net/sched/sch_generic.c: pfifo_fast_init, the tx_queue_len of the interface";
        /// Version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}

impl<L: Leaf> Params for PrioParams<L> {
    type Queue<P: Packet> = Prio<P, L::Queue<P>>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "prio",
        class: Some("Prio"),
        summary: "Bands in strict priority order, with any queue in each band",
        source: "Linux 6.1 sch_prio",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_leaves("bands");

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        const ONE: &str = "a link has one transmit queue";
        &[
            ("multiqueue", TcWord::WithoutEffect(0, ONE)),
            ("multiqueue:", TcWord::WithoutEffect(1, ONE)),
        ]
    }

    fn conflict(&self) -> Option<String> {
        let bands = self.bands;
        if let Some(band) = self.priomap.iter().find(|&&band| u32::from(band) >= bands) {
            return Some(format!(
                "priomap contains band {band}; expected 0 to {}",
                bands - 1
            ));
        }
        leaf::conflict(&self.leaf, bands)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        Some((&self.leaf, self.bands))
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Prio<P, L::Queue<P>> {
        let queues = leaf::build(&self.leaf, self.bands, link, &rng);
        Prio(Bands::new(queues, self.priomap))
    }

    /// Linux can also add and remove bands.
    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("bands", self.bands == next.bands),
            ("leaf", self.leaf == next.leaf),
        ])
    }

    /// What waits stays in its band.
    fn change<P: Packet>(
        &self,
        queue: &mut Prio<P, L::Queue<P>>,
        _now: Instant,
        _link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.0.map(self.priomap);
    }
}

impl Params for PfifoFastParams {
    type Queue<P: Packet> = PfifoFast<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "pfifo_fast",
        class: Some("PfifoFast"),
        summary: "Three FIFOs in strict priority order, chosen by DSCP",
        source: "Linux 6.1 and 3.14 sch_generic",
        reconstruction: None,
        profiles: &[Profile::Linux, Profile::Linux314],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
        const FIXED: &str = "the bands of pfifo_fast are fixed";
        &[
            ("bands", TcWord::WithoutEffect(1, FIXED)),
            ("priomap", TcWord::WithoutEffect(ALL_NUMBERS, FIXED)),
        ]
    }

    fn comparison(&self) -> Comparison {
        self.profile.compared_with("Linux 6.1")
    }

    /// That of a band.
    fn unmanaged_buffer(&self, frame: Bytes) -> Option<Bytes> {
        Some(Bytes(frame.0.saturating_mul(self.limit as u64)))
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> PfifoFast<P> {
        PfifoFast::new(*self)
    }
}

/// Strict priority over any queues.
#[derive(Clone, Debug)]
pub struct Prio<P, Q>(Bands<Q, P>);

/// Strict priority over three FIFOs.
#[derive(Clone, Debug)]
pub struct PfifoFast<P> {
    buffer: Buffer,
    bands: Bands<DropTail<P>, P>,
}

/// What limits the packets of [`PfifoFast`].
#[derive(Clone, Debug)]
enum Buffer {
    /// The number in all bands together.
    Shared(usize),
    /// The ring of each band.
    Rings([Ring; 3]),
}

/// The places of a band.
#[derive(Clone, Copy, Debug)]
struct Ring {
    places: usize,
    /// Places that become free together.
    batch: usize,
    /// The place of the oldest packet.
    oldest: usize,
    waiting: usize,
    /// Packets that have left and whose places are not free yet.
    left: usize,
}

impl Ring {
    /// Places in two cache lines.
    const BATCH: usize = 16;

    const fn new(places: usize) -> Self {
        Self {
            places,
            batch: if Self::BATCH > places / 2 {
                1
            } else {
                Self::BATCH
            },
            oldest: 0,
            waiting: 0,
            left: 0,
        }
    }

    #[inline]
    const fn is_full(&self) -> bool {
        self.waiting + self.left >= self.places
    }

    #[inline]
    const fn on_sent(&mut self) {
        self.waiting -= 1;
        self.left += 1;
        self.oldest += 1;
        if self.left >= self.batch || self.oldest >= self.places {
            self.left = 0;
        }
        if self.oldest >= self.places {
            self.oldest = 0;
        }
    }
}

impl<P: Packet> PfifoFast<P> {
    /// An empty queue.
    pub fn new(params: PfifoFastParams) -> Self {
        let band = DropTailParams {
            limit: Limit::Packets(params.limit),
            ..DropTailParams::PFIFO
        };
        Self {
            buffer: match params.profile {
                Profile::Linux314 => Buffer::Shared(params.limit),
                Profile::Linux
                | Profile::Linux612
                | Profile::Rfc
                | Profile::Paper
                | Profile::Kernel => Buffer::Rings([Ring::new(params.limit); 3]),
            },
            bands: Bands::new((0..3).map(|_| DropTail::new(band)).collect(), PRIOMAP),
        }
    }
}

impl<P: Packet, Q: Qdisc<P>> Qdisc<P> for Prio<P, Q> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.0.enqueue(now, pkt, obs);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.0.dequeue(now, obs)
    }

    fn peek(&self) -> Peek {
        self.0.peek()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.0.classes.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.0.classes.next_timer()
    }

    fn on_timer(&mut self, now: Instant) {
        self.0.classes.on_timer(now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.0.classes.on_link_rate(now, rate);
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.0.classes.statistics("bands")
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.0.classes.state("bands", now)
    }

    fn classes(&self) -> Vec<ClassId> {
        self.0.classes.ids()
    }
}

impl<P: Packet> Qdisc<P> for PfifoFast<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let band = self.bands.band(&pkt);
        let full = match &mut self.buffer {
            Buffer::Shared(limit) => self.bands.classes.backlog().packets >= *limit,
            Buffer::Rings(rings) => {
                let full = rings[band].is_full();
                rings[band].waiting += usize::from(!full);
                full
            }
        };
        if full {
            if let Some(id) = self.bands.classes.id(band) {
                obs.on_class(id);
            }
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.bands.classes.enqueue(band, now, pkt, obs);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        (0..self.bands.classes.len()).find_map(|band| {
            let pkt = self.bands.classes.dequeue(band, now, obs)?;
            if let Buffer::Rings(rings) = &mut self.buffer {
                rings[band].on_sent();
            }
            Some(pkt)
        })
    }

    fn peek(&self) -> Peek {
        self.bands.peek()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bands.classes.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.bands.classes.statistics("bands")
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.bands.classes.state("bands", now)
    }

    fn classes(&self) -> Vec<ClassId> {
        self.bands.classes.ids()
    }
}

/// Queues in strict order, and the way of a packet to its own.
#[derive(Clone, Debug)]
struct Bands<Q, P> {
    classes: Classes<Q, P>,
    /// The band of each DSCP.
    band_of: [u8; 64],
}

impl<Q: Qdisc<P>, P: Packet> Bands<Q, P> {
    fn new(queues: Vec<Q>, priomap: [u8; 16]) -> Self {
        let mut bands = Self {
            classes: Classes::new(Some("band"), queues),
            band_of: [0; 64],
        };
        bands.map(priomap);
        bands
    }

    /// Gives each priority its band.
    fn map(&mut self, priomap: [u8; 16]) {
        // Typed parameters that bypassed the check lead to the last band, not to none.
        let last = u8::try_from(self.classes.len() - 1).unwrap_or(u8::MAX);
        self.band_of = priority::bands(&priomap.map(|band| band.min(last)));
    }

    #[inline]
    fn band(&self, pkt: &P) -> usize {
        usize::from(self.band_of[usize::from(pkt.dscp().number())])
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.classes.enqueue(self.band(&pkt), now, pkt, obs);
    }

    /// A band that waits but may not send yet lets the next one go first.
    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Empty queues are asked too: some laws want to know that the link idles.
        (0..self.classes.len()).find_map(|band| self.classes.dequeue(band, now, obs))
    }

    fn peek(&self) -> Peek {
        let mut bands = (0..self.classes.len()).map(|band| self.classes.head(band));
        bands
            .find(|head| *head != Peek::Empty)
            .unwrap_or(Peek::Empty)
    }
}

#[cfg(test)]
mod tests;
