//! Datagrams with one 1-RTT packet and nothing else, as most are.

use sojourn_net::Instant;

use super::super::endpoint::Endpoint;
use super::super::sizes::LENGTH_FIELD;
use super::super::space::APP;
use super::super::wire::{Datagram, most_ranges};
use super::{MIN_FRAME, narrow};
use crate::segment::Flags;

impl Endpoint {
    /// The next datagram once nothing but 1-RTT packets is left. Most hold one frame, data or an ACK, and are
    /// written without a draft.
    #[inline]
    pub(super) fn next_app_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let turn = self.app_turn(now, false)?;
        let size = self.app_header(false);
        let space = &mut self.spaces[APP];
        let pn = space.next();
        let mut first = None;
        if !turn.may_send {
            let ecn = self.ect != Flags::NONE;
            let ack = space.received.acknowledge(now, most_ranges(ecn), ecn)?;
            let size = narrow(size + ack.size());
            return Some(self.send_app(now, Datagram::of_ack(pn, &ack, size, self.ect)));
        }
        let only_data = turn.has_data && !turn.limits && !turn.probe && !self.done_pending;
        if only_data && !space.received.is_pending() {
            let room = self.allowance() - size;
            let (frame, again) = self.outgoing.next(room)?;
            let used = (frame.size() + LENGTH_FIELD).min(room);
            // No other frame follows.
            if room - used < MIN_FRAME && !self.outgoing.has_notice() {
                self.counters.sent += 1;
                self.counters.resent += u64::from(again);
                let size = narrow(size + used);
                return Some(self.send_app(now, Datagram::of_frame(pn, &frame, size, self.ect)));
            }
            first = Some((frame, again));
        }
        let mut draft = self.draft();
        self.fill_app(now, &turn, first, &mut draft);
        (draft.size() > 0).then(|| {
            let datagram = draft.content.encode(narrow(draft.size()), self.ect);
            self.send_app(now, datagram)
        })
    }

    /// Records a datagram with a 1-RTT packet only as sent.
    #[inline]
    fn send_app(&mut self, now: Instant, datagram: Datagram) -> Datagram {
        self.bytes_sent += u64::from(datagram.payload());
        self.counters.datagrams += 1;
        let eliciting = datagram.is_eliciting();
        self.record_sent(now, APP, eliciting, datagram, datagram.payload());
        datagram
    }
}
