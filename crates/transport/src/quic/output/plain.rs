//! Datagrams with one 1-RTT packet and nothing else, as most are.

use sojourn_net::Instant;

use super::super::endpoint::Endpoint;
use super::super::sizes::{LENGTH_FIELD, packet_number};
use super::super::space::{APP, IN_FLIGHT, Sent};
use super::super::wire::{Datagram, most_ranges};
use super::{MIN_FRAME, SHORT_HEADER, TAG, narrow};
use crate::segment::Flags;

impl Endpoint {
    /// Sends everything that may be sent now, once nothing but 1-RTT packets is left.
    pub(in super::super) fn flush_app(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.pacing_due = None;
        if !self.send_plain(now, out) {
            while let Some(datagram) = self.next_app_datagram(now) {
                out.push(datagram);
            }
        }
        self.note_idle_window();
        self.congestion.limited = self.outgoing.has_pending();
        self.set_app_timer();
    }

    /// Sends datagrams with one frame, as long as no other is due. Returns whether nothing is left to send now.
    #[inline]
    fn send_plain(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        let app = &self.spaces[APP];
        if app.probes > 0
            || self.done_pending
            || self.incoming.has_due()
            || self.outgoing.has_notice()
        {
            return false;
        }
        if self.outgoing.has_pending() {
            return !app.received.is_pending()
                && self.delivery.is_none()
                && self.send_full(now, out);
        }
        if app.received.is_due(now) {
            let datagram = self.next_ack(now);
            out.extend(datagram);
        }
        true
    }

    /// Sends datagrams that a STREAM frame fills. Returns whether nothing is left to send now.
    #[inline]
    fn send_full(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        if self.congestion.is_full() {
            return true;
        }
        let rate = self.congestion.fill_pacer(now, self.rtt.smoothed());
        let payload = self.params.max_datagram;
        let header = SHORT_HEADER + TAG;
        loop {
            self.pacing_due = self.congestion.pacing_wait(now, rate);
            if self.pacing_due.is_some() {
                return true;
            }
            let space = &mut self.spaces[APP];
            let pn = space.next();
            let size = header + packet_number(pn, space.largest_acked);
            let Some(frame) = self.outgoing.next_full(usize::from(payload) - size) else {
                return false;
            };
            let datagram = Datagram::of_frame(pn, &frame, payload, self.ect);
            if space.eliciting == 0
                && let Some(last) = space.last_eliciting
            {
                self.congestion.on_resume(now, last);
            }
            self.spaces[APP].push(Sent {
                at: now,
                datagram,
                size: payload,
                flags: IN_FLIGHT,
            });
            out.push(datagram);
            self.congestion.on_sent(payload.into());
            if std::mem::take(&mut self.idle_restarts_on_send) {
                self.idle_since = now;
            }
            self.counters.sent += 1;
            self.counters.datagrams += 1;
            self.bytes_sent += u64::from(payload);
            if self.congestion.is_full() {
                return true;
            }
        }
    }

    /// A datagram with an ACK and nothing else.
    #[inline]
    fn next_ack(&mut self, now: Instant) -> Option<Datagram> {
        let size = self.app_header(false);
        let (ecn, ect) = (self.ect != Flags::NONE, self.ect);
        let space = &mut self.spaces[APP];
        let pn = space.next();
        let run = if ecn {
            None
        } else {
            space.received.acknowledge_run(now)
        };
        let datagram = if let Some(ack) = run {
            Datagram::of_run_ack(pn, &ack, narrow(size + ack.size()), ect)
        } else {
            let ack = space.received.acknowledge(now, most_ranges(ecn), ecn)?;
            Datagram::of_ack(pn, &ack, narrow(size + ack.size()), ect)
        };
        Some(self.send_app(now, datagram))
    }

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
            return self.next_ack(now);
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
