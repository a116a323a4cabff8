//! Packets that have reached the end of their path without a wire.

use sojourn_link::Carried;

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
