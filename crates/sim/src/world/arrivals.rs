//! Packets that arrive at one instant: those that have left links without a wire, and which of all are followed by more
//! of their flow.
//!
//! A receiver of TCP reads the data of one instant together, so it needs to know whether more of it follows. Mostly,
//! few packets arrive at one instant, and each is compared with the others. If many do, the answer is determined for
//! all at once, because the number of comparisons is quadratic.

use std::collections::{HashSet, VecDeque};

use sojourn_net::Instant;
use sojourn_path::links::Carried;

use crate::packet::Packet;

/// Packets that have reached the end of their path without a wire, at one instant. They are delivered after those on
/// wires.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The first one, if there is any. Mostly, it is the only one.
    first: Packet,
    any: bool,
    others: Vec<Packet>,
    /// Empty between deliveries: the memory of those that are being delivered.
    spare: Vec<Packet>,
}

impl Arrivals {
    pub(super) const fn new() -> Self {
        Self {
            first: Packet::NONE,
            any: false,
            others: Vec::new(),
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        !self.any
    }

    #[inline]
    pub(super) fn push(&mut self, pkt: &Packet) {
        if self.any {
            self.others.push(*pkt);
        } else {
            self.first = *pkt;
            self.any = true;
        }
    }

    /// Removes the only packet; `None`: there are several. Call it when there is one.
    #[inline]
    pub(super) fn take_only(&mut self) -> Option<Packet> {
        debug_assert!(self.any, "there is an arrival");
        if !self.others.is_empty() {
            return None;
        }
        self.any = false;
        Some(self.first)
    }

    /// Removes all packets, in the order of their arrival.
    pub(super) fn take_all(&mut self) -> Vec<Packet> {
        let mut all = std::mem::take(&mut self.spare);
        if std::mem::take(&mut self.any) {
            all.push(self.first);
        }
        all.append(&mut self.others);
        all
    }

    /// Returns the memory of packets that have been delivered.
    pub(super) fn reuse(&mut self, mut delivered: Vec<Packet>) {
        delivered.clear();
        self.spare = delivered;
    }
}

/// How many packets are searched one by one.
const FEW: usize = 64;

/// Where packets arrive: at this instant on this wire, or, for `None`, from links.
pub(super) type Place = (Instant, Option<u32>);

/// Of the packets that arrive at one place, whether another one of the same flow and direction comes after them.
///
/// Their number does not grow: what is put on a wire arrives later, and what has left links is delivered at once.
#[derive(Debug)]
pub(super) struct Following {
    place: Place,
    /// Of those that are left, the next one first.
    flags: VecDeque<bool>,
}

impl Following {
    pub(super) const fn new() -> Self {
        Self {
            place: (Instant::ZERO, None),
            flags: VecDeque::new(),
        }
    }

    /// Whether `pkt` is followed by one of the same flow and direction among `others`, which arrive at the same place
    /// after it, the next one first.
    pub(super) fn follows<'p, I>(&mut self, place: Place, pkt: &'p Packet, others: I) -> bool
    where
        I: DoubleEndedIterator<Item = &'p Packet> + ExactSizeIterator,
    {
        if others.len() < FEW {
            return others.into_iter().any(|other| other.is_of_same_stream(pkt));
        }
        let left = others.len() + 1;
        if place == self.place && self.flags.len() >= left {
            // Nothing was asked about those that have come since.
            self.flags.drain(..self.flags.len() - left);
        } else {
            let mut streams = HashSet::new();
            self.place = place;
            self.flags.clear();
            for pkt in others.rev().chain([pkt]) {
                self.flags.push_front(!streams.insert(pkt.stream()));
            }
        }
        self.flags.pop_front().unwrap_or(false)
    }

    /// Forgets packets that have been delivered: others may arrive at the same place.
    pub(super) fn forget(&mut self) {
        self.flags.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Owner};
    use sojourn_net::{IpVersion, Rng};

    fn packet(flow: u32, kind: Kind) -> Packet {
        Packet::empty(Owner::new(flow, None, IpVersion::V4), kind)
    }

    #[test]
    fn the_flags_of_many_packets_are_those_of_a_search() {
        let mut rng = Rng::new(1);
        let mut following = Following::new();
        let mut found = [0, 0];
        for (run, flows) in (0..).zip([1, 3, 50, 400, 400, 3]) {
            let packets: Vec<Packet> = (0..300)
                .map(|_| {
                    let flow = u32::try_from(rng.below(flows)).unwrap();
                    let kinds = [Kind::Data, Kind::Ack];
                    packet(flow, kinds[usize::from(rng.below(4) == 0)])
                })
                .collect();
            let place = (Instant::from_millis(run), (run % 2 == 0).then_some(7));
            for (n, pkt) in packets.iter().enumerate() {
                let others = &packets[n + 1..];
                if pkt.is_of(Kind::Data) {
                    let follows = following.follows(place, pkt, others.iter());
                    let want = others.iter().any(|other| other.is_of_same_stream(pkt));
                    assert_eq!(follows, want, "packet {n} of run {run}");
                    found[usize::from(want)] += 1;
                }
            }
        }
        assert!(found.iter().all(|&n| n > 100), "{found:?}");
    }

    #[test]
    fn packets_that_arrive_after_a_delivery_are_searched_anew() {
        let mut following = Following::new();
        let place = (Instant::ZERO, None);
        let same = [packet(7, Kind::Data); 200];
        let different: Vec<Packet> = (0..100).map(|flow| packet(flow, Kind::Data)).collect();
        assert!(following.follows(place, &same[0], same[1..].iter()));
        following.forget();
        assert!(!following.follows(place, &different[0], different[1..].iter()));
    }

    #[test]
    fn few_packets_need_no_memory() {
        let mut following = Following::new();
        let packets = [0, 1, 0].map(|flow| packet(flow, Kind::Data));
        let [first, others @ ..] = &packets;
        assert!(following.follows((Instant::ZERO, None), first, others.iter()));
        assert_eq!(following.flags.capacity(), 0);
    }
}
