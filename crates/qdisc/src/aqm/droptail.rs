//! Drop-tail and head-drop FIFOs: `pfifo`, `bfifo`, `pfifo_head_drop`.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_fifo.c`.
//!
//! # Law
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

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc};
use crate::link::LinkFacts;
use crate::parameters::{Field, Params};
use crate::parts::fifo::Fifo;

/// Parameters of [`DropTail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTailParams {
    /// What the buffer holds at most.
    pub limit: Limit,
    /// Make room by dropping the oldest packet rather than the arriving one.
    pub head_drop: bool,
    /// Mark every packet that waited longer than this.
    pub ce_threshold: Option<Duration>,
}

/// The size of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(usize),
    /// So many bytes.
    Bytes(Bytes),
}

impl DropTailParams {
    /// `pfifo` at its default: a Linux interface's transmit queue length.
    pub const PFIFO: Self = Self {
        limit: Limit::Packets(1_000),
        head_drop: false,
        ce_threshold: None,
    };

    /// `bfifo` at its default: as many bytes as 1000 Ethernet frames.
    pub const BFIFO: Self = Self {
        limit: Limit::Bytes(Bytes(1_514_000)),
        ..Self::PFIFO
    };

    /// `pfifo_head_drop` at its default.
    pub const PFIFO_HEAD_DROP: Self = Self {
        head_drop: true,
        ..Self::PFIFO
    };
}

impl Params for DropTailParams {
    type Queue<P: Packet> = DropTail<P>;

    fn kind(&self) -> &'static str {
        match (self.limit, self.head_drop) {
            (Limit::Bytes(_), _) => "bfifo",
            (Limit::Packets(_), false) => "pfifo",
            (Limit::Packets(_), true) => "pfifo_head_drop",
        }
    }

    fn field(&mut self, key: &str) -> Option<Field<'_>> {
        match (key, &mut self.limit) {
            ("limit", Limit::Packets(packets)) => Some(Field::Packets(packets)),
            ("limit", Limit::Bytes(bytes)) => Some(Field::Size(bytes)),
            ("ce_threshold", _) => Some(Field::OptionalTime(&mut self.ce_threshold)),
            ("headdrop", _) => Some(Field::Flag(&mut self.head_drop)),
            _ => None,
        }
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> DropTail<P> {
        DropTail::new(*self)
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
            let oldest = if self.params.head_drop {
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
    fn dropped(limit: Limit, head_drop: bool, sizes: &[u64]) -> Vec<u64> {
        let mut queue = DropTail::new(DropTailParams {
            limit,
            head_drop,
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
