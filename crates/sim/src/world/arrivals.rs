//! Packets that have reached the end of their path without a wire.

use sojourn_link::Carried;

use super::network::World;
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
    delivered: Vec<Packet>,
}

impl Arrivals {
    pub(super) const fn new() -> Self {
        Self {
            first: Packet::NONE,
            any: false,
            others: Vec::new(),
            delivered: Vec::new(),
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
}

impl World<'_> {
    /// Delivers the packets that have reached the end of their path without a wire.
    #[inline]
    pub(super) fn deliver_arrivals(&mut self) {
        if self.arrivals.others.is_empty() {
            let pkt = self.arrivals.first;
            self.arrivals.any = false;
            self.deliver(&pkt, false);
        } else {
            self.deliver_several();
        }
    }

    #[inline(never)]
    fn deliver_several(&mut self) {
        let Arrivals {
            first,
            any,
            others,
            delivered,
        } = &mut self.arrivals;
        *any = false;
        delivered.push(*first);
        delivered.append(others);
        let mut arrived = std::mem::take(delivered);
        for (n, pkt) in arrived.iter().enumerate() {
            let others = arrived.get(n + 1..).unwrap_or_default();
            let follows =
                !others.is_empty() && self.following.follows((self.now, None), pkt, others.iter());
            self.deliver(pkt, follows);
        }
        arrived.clear();
        self.arrivals.delivered = arrived;
    }
}
