//! Tail-drop and head-drop FIFOs: `pfifo`, `bfifo`, `pfifo_head_drop`.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_fifo.c`.
//!
//! # Algorithm
//!
//! A packet that does not fit is dropped; with *head drop* the oldest packets leave until it
//! fits, so that the sender learns of the overload one queue delay earlier. With `ce_threshold` a packet
//! that waited longer is marked as it leaves: a full buffer drops, marking or not.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | `headdrop` also with a limit in bytes | packets only | an addition |
//! | `ce_threshold` | none | an addition |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Peek, Qdisc};
use crate::parameters::domain::size;
use crate::parameters::{
    Flaw, Kind, LINUX, LinkFacts, Parameter, Params, Retention, Unit, Value, parameters,
};
use crate::parts::fifo::Fifo;

parameters! {
    /// Parameters of [`DropTail`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DropTailParams {
        /// Maximum number of packets in the buffer.
        pub limit: Limit = Limit::Packets(1_000) => packets(1, 100_000_000),
            "net/sched/sch_fifo.c: fifo_init, sch->limit; the default is the tx_queue_len of an Ethernet interface";
        /// Make room by dropping the oldest packet instead of the arriving one.
        pub headdrop: bool = false => flag(),
            "net/sched/sch_fifo.c: pfifo_tail_enqueue (pfifo_head_drop); an addition for bfifo";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "addition, as in include/net/codel.h: codel_params.ce_threshold";
    }
}

/// The size of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets.
    Packets(usize),
    /// A number of bytes.
    Bytes(Bytes),
}

/// `limit` of `bfifo`.
const BYTE_LIMIT: Parameter = size(1, 1 << 32).declare(
    "limit",
    "Maximum number of bytes in the buffer",
    "net/sched/sch_fifo.c: fifo_init, sch->limit; the default is tx_queue_len Ethernet frames",
);

impl Value for Limit {
    fn text(&self, unit: Unit) -> Option<String> {
        match self {
            Self::Packets(packets) => packets.text(unit),
            Self::Bytes(bytes) => bytes.text(unit),
        }
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        match self {
            Self::Packets(packets) => packets.read(parameter, text),
            Self::Bytes(bytes) => bytes.read(parameter, text),
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Self::Packets(packets) => packets.whole(),
            Self::Bytes(bytes) => bytes.whole(),
        }
    }
}

impl DropTailParams {
    /// `pfifo` at its defaults.
    pub const PFIFO: Self = Self::DEFAULT;

    /// `bfifo` at its defaults: as many bytes as 1000 Ethernet frames.
    pub const BFIFO: Self = Self {
        limit: Limit::Bytes(Bytes(1_514_000)),
        ..Self::DEFAULT
    };

    /// `pfifo_head_drop` at its defaults.
    pub const PFIFO_HEAD_DROP: Self = Self {
        headdrop: true,
        ..Self::DEFAULT
    };
}

impl Params for DropTailParams {
    type Queue<P: Packet> = DropTail<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "pfifo",
            class: Some("Pfifo"),
            summary: "Packet-limited FIFO that drops arrivals when full",
            source: "Linux 6.1 sch_fifo",
            reconstruction: None,
            profiles: LINUX,
            start: || Self::PFIFO,
            parameters: &[Self::PARAMETERS[0], Self::PARAMETERS[2]],
        },
        Kind {
            name: "bfifo",
            class: Some("Bfifo"),
            summary: "Byte-limited FIFO that drops arrivals when full",
            source: "Linux 6.1 sch_fifo",
            reconstruction: None,
            profiles: LINUX,
            start: || Self::BFIFO,
            parameters: &[BYTE_LIMIT, Self::PARAMETERS[1], Self::PARAMETERS[2]],
        },
        Kind {
            name: "pfifo_head_drop",
            class: Some("PfifoHeadDrop"),
            summary: "Packet-limited FIFO that drops its oldest packet when full",
            source: "Linux 6.1 sch_fifo",
            reconstruction: None,
            profiles: LINUX,
            start: || Self::PFIFO_HEAD_DROP,
            parameters: &[Self::PARAMETERS[0], Self::PARAMETERS[2]],
        },
    ];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    fn kind(&self) -> &'static str {
        match (self.limit, self.headdrop) {
            (Limit::Bytes(_), _) => "bfifo",
            (Limit::Packets(_), false) => "pfifo",
            (Limit::Packets(_), true) => "pfifo_head_drop",
        }
    }

    fn unmanaged_buffer(&self, frame: Bytes) -> Option<Bytes> {
        let limit = match self.limit {
            Limit::Packets(packets) => Bytes(frame.0.saturating_mul(packets as u64)),
            Limit::Bytes(bytes) => bytes,
        };
        self.ce_threshold.is_none().then_some(limit)
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> DropTail<P> {
        DropTail::new(*self)
    }

    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Keeps)
    }

    /// As in Linux, packets above a lower limit stay.
    fn change<P: Packet>(
        &self,
        queue: &mut DropTail<P>,
        _now: Instant,
        _link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.params = *self;
    }
}

/// A FIFO that drops what does not fit.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    params: DropTailParams,
    fifo: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    /// An empty queue.
    pub const fn new(params: DropTailParams) -> Self {
        Self {
            params,
            fifo: Fifo::new(),
        }
    }

    /// Marks the oldest packet if it waited longer than `threshold`.
    fn mark_late(&mut self, now: Instant, threshold: Duration, obs: &mut dyn Observer<P>) {
        if let Some((pkt, arrived)) = self.fifo.oldest_mut()
            && now.since(arrived) > threshold
            && pkt.mark_ce()
        {
            obs.on_mark(now, pkt, MarkReason::CeThreshold);
        }
    }

    fn fits(&self, pkt: &P) -> bool {
        let backlog = self.fifo.backlog();
        match self.params.limit {
            Limit::Packets(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes + pkt.size() <= limit,
        }
    }
}

impl<P: Packet> Qdisc<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        while !self.fits(&pkt) {
            // A packet larger than the whole buffer finds nothing to displace.
            let oldest = if self.params.headdrop {
                self.fifo.pop(now)
            } else {
                None
            };
            match oldest {
                Some((oldest, _)) => obs.on_drop(now, oldest, DropReason::Overlimit),
                None => return obs.on_drop(now, pkt, DropReason::Overlimit),
            }
        }
        self.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        if let Some(threshold) = self.params.ce_threshold {
            self.mark_late(now, threshold, obs);
        }
        self.fifo.pop_stamped().map(|(pkt, _)| pkt)
    }

    fn peek(&self) -> Peek {
        self.fifo.peek()
    }

    /// A packet that did not wait is not marked either, whatever `ce_threshold` is.
    #[inline]
    fn passes_unchanged(&self, pkt: &P) -> bool {
        self.fifo.backlog().packets == 0 && self.fits(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, TestPacket};
    use sojourn_net::Ecn;

    fn packet(id: u64, size: u64) -> TestPacket {
        TestPacket {
            size,
            ..TestPacket::mtu(id)
        }
    }

    /// Offers packets of these sizes; what is dropped, by order of arrival.
    fn dropped(limit: Limit, headdrop: bool, sizes: &[u64]) -> Vec<u64> {
        let mut queue = DropTail::new(DropTailParams {
            limit,
            headdrop,
            ..DropTailParams::PFIFO
        });
        let mut seen = Recorder::default();
        for (id, &size) in (0..).zip(sizes) {
            queue.enqueue(Instant::ZERO, packet(id, size), &mut seen);
        }
        seen.drops.iter().map(|d| d.1.id).collect()
    }

    #[test]
    fn a_full_buffer_drops_the_newest_or_the_oldest() {
        assert_eq!(dropped(Limit::Packets(2), false, &[64; 4]), [2, 3]);
        assert_eq!(dropped(Limit::Packets(2), true, &[64; 4]), [0, 1]);
    }

    #[test]
    fn a_limit_in_bytes_may_be_filled_to_the_last() {
        let limit = Limit::Bytes(Bytes(3_000));
        assert_eq!(dropped(limit, false, &[1_500, 1_500, 1]), [2]);
        assert_eq!(dropped(limit, false, &[1_500, 1_501, 1_500]), [1]);
    }

    #[test]
    fn a_packet_larger_than_the_buffer_displaces_all_and_is_dropped() {
        let limit = Limit::Bytes(Bytes(1_000));
        assert_eq!(dropped(limit, true, &[400, 400, 1_500]), [0, 1, 2]);
        assert_eq!(dropped(limit, false, &[400, 400, 1_500]), [2]);
    }

    #[test]
    fn an_empty_buffer_passes_what_fits_and_says_so() {
        let passes = |params, waiting: u64, size| {
            let mut queue = DropTail::new(params);
            let mut seen = Recorder::default();
            for id in 0..waiting {
                queue.enqueue(Instant::ZERO, packet(id, 64), &mut seen);
            }
            let offered = packet(waiting, size);
            let passes = queue.passes_unchanged(&offered);
            queue.enqueue(Instant::ZERO, offered, &mut seen);
            let left = queue.dequeue(Instant::ZERO, &mut seen);
            let unchanged = left.is_some_and(|left| left.id == waiting && left.ecn == offered.ecn);
            let unseen = seen.drops.is_empty() && seen.marks.is_empty();
            assert_eq!(passes, unchanged && unseen && queue.backlog().packets == 0);
            passes
        };
        let bytes = |limit| DropTailParams {
            limit: Limit::Bytes(Bytes(limit)),
            ..DropTailParams::BFIFO
        };
        let marking = DropTailParams {
            ce_threshold: Some(Duration::ZERO),
            ..DropTailParams::PFIFO
        };
        assert!(passes(DropTailParams::PFIFO, 0, 1_500));
        assert!(passes(marking, 0, 1_500));
        assert!(passes(bytes(1_500), 0, 1_500));
        assert!(!passes(bytes(1_499), 0, 1_500));
        assert!(!passes(DropTailParams::PFIFO, 1, 1_500));
    }

    #[test]
    fn what_waited_longer_than_the_threshold_is_marked() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut queue = DropTail::new(DropTailParams {
            ce_threshold: Some(Duration::from_millis(5)),
            ..DropTailParams::PFIFO
        });
        let mut seen = Recorder::default();
        for (id, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect0), (2, Ecn::NotEct)] {
            let pkt = TestPacket {
                ecn,
                ..TestPacket::mtu(id)
            };
            queue.enqueue(ms(0), pkt, &mut seen);
        }
        for at in [5, 6, 7] {
            queue.dequeue(ms(at), &mut seen);
        }
        let marked: Vec<_> = seen.marks.iter().map(|mark| (mark.1.id, mark.2)).collect();
        assert_eq!(marked, [(1, MarkReason::CeThreshold)]);
        assert!(seen.drops.is_empty());
    }
}
