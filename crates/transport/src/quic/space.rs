//! A packet-number space: packets sent, packets received, and CRYPTO data.

use std::collections::VecDeque;

use sojourn_net::Instant;

use super::received::Received;
use super::wire::Datagram;
use crate::ranges::RangeSet;

/// Initial packets.
pub(super) const INITIAL: usize = 0;
/// Handshake packets.
pub(super) const HANDSHAKE: usize = 1;
/// 0-RTT and 1-RTT packets.
pub(super) const APP: usize = 2;

/// It is ack-eliciting, and neither acknowledged nor lost.
pub(super) const IN_FLIGHT: u8 = 1;
/// It has been acknowledged.
pub(super) const ACKED: u8 = 2;
/// Its content was sent again in a probe.
pub(super) const REQUEUED: u8 = 4;

/// A packet sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// The datagram that carried it, which has its content.
    pub(super) datagram: Datagram,
    /// Its bytes of the datagram.
    pub(super) size: u16,
    pub(super) flags: u8,
}

impl Sent {
    pub(super) const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One of the three spaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    /// Packets from this number on are in `sent`; those before are settled.
    pub(super) base: u32,
    pub(super) sent: VecDeque<Sent>,
    pub(super) largest_acked: Option<u32>,
    /// Packets from `base` on that are acknowledged.
    pub(super) acked: RangeSet,
    /// When the next packet is declared lost by time.
    pub(super) loss_time: Option<Instant>,
    /// When the last ack-eliciting packet was sent.
    pub(super) last_eliciting: Option<Instant>,
    /// Ack-eliciting packets in flight.
    pub(super) eliciting: u32,
    /// Send time of the first packet lost since the last acknowledged one.
    pub(super) lost_since: Option<Instant>,
    /// Probes to send regardless of the window.
    pub(super) probes: u8,
    pub(super) received: Received,
    pub(super) crypto: Crypto,
}

impl Space {
    /// The number of the next packet.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "numbers are 32-bit")]
    pub(super) fn next(&self) -> u32 {
        self.base + self.sent.len() as u32
    }

    /// Packet `pn`, unless it is settled or was never sent.
    pub(super) fn get(&self, pn: u32) -> Option<&Sent> {
        self.sent.get(pn.checked_sub(self.base)? as usize)
    }

    pub(super) fn get_mut(&mut self, pn: u32) -> Option<&mut Sent> {
        self.sent.get_mut(pn.checked_sub(self.base)? as usize)
    }

    /// Records a packet; one that is not ack-eliciting only if earlier ones are still recorded.
    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        if sent.is(IN_FLIGHT) {
            self.last_eliciting = Some(sent.at);
            self.eliciting += 1;
        } else if self.sent.is_empty() {
            self.base += 1;
            return;
        }
        self.sent.push_back(sent);
    }

    /// Skips the record of a packet that is not ack-eliciting, and removes all records. Requires that no ack-eliciting
    /// packet is in flight.
    #[inline]
    pub(super) fn skip(&mut self) {
        debug_assert!(self.eliciting == 0, "a packet is in flight");
        if !self.sent.is_empty() {
            self.base = self.next();
            self.sent.clear();
            self.acked.remove_below(self.base);
        }
        self.base += 1;
    }

    /// The oldest packet in flight whose content was not sent again.
    pub(super) fn oldest_to_probe(&self) -> Option<u32> {
        let old = self
            .sent
            .iter()
            .position(|sent| sent.is(IN_FLIGHT) && !sent.is(REQUEUED))?;
        u32::try_from(old).ok().map(|old| self.base + old)
    }
}

/// The CRYPTO data of a space, in both directions.
#[derive(Clone, Debug, Default)]
pub(super) struct Crypto {
    /// Bytes to send in all.
    pub(super) total: u32,
    sent: u32,
    lost: RangeSet,
    arrived: RangeSet,
}

impl Crypto {
    pub(super) fn has_pending(&self) -> bool {
        self.sent < self.total || !self.lost.is_empty()
    }

    /// The next bytes to send, at most `room`, and whether they are a retransmission.
    pub(super) fn next(&mut self, room: usize) -> Option<((u32, u32), bool)> {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        if room == 0 {
            return None;
        }
        if let Some((from, to)) = self.lost.first() {
            let to = to.min(from.saturating_add(room));
            self.lost.remove_below(to);
            return Some(((from, to), true));
        }
        let from = self.sent;
        self.sent = self.total.min(from.saturating_add(room));
        (from < self.sent).then_some(((from, self.sent), false))
    }

    pub(super) fn on_lost(&mut self, (from, to): (u32, u32)) {
        self.lost.insert(from, to, |_, _| {});
    }

    pub(super) fn on_arrived(&mut self, (from, to): (u32, u32)) {
        self.arrived.insert(from, to, |_, _| {});
    }

    /// Bytes that have arrived without a gap.
    pub(super) fn arrived(&self) -> u32 {
        self.arrived
            .first()
            .map_or(0, |(from, to)| if from == 0 { to } else { 0 })
    }
}
