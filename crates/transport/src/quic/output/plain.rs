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
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    pub(in super::super) fn flush_app(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.pacing_due = None;
        let left = self.send_plain(now, out);
        self.congestion.limited = left.unwrap_or_else(|| self.send_app_datagrams(now, out));
        self.note_idle_window();
        self.set_app_timer();
    }

    /// Sends datagrams with whatever frames are due; returns whether data is left that may not be sent now.
    #[inline(never)]
    fn send_app_datagrams(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        while let Some(datagram) = self.next_app_datagram(now) {
            out.push(datagram);
        }
        self.outgoing.has_pending()
    }

    /// Sends datagrams with one frame, as long as no other is due. Returns whether data is left that may not be sent
    /// now; `None`: other datagrams may be due.
    #[inline]
    fn send_plain(&mut self, now: Instant, out: &mut Vec<Datagram>) -> Option<bool> {
        let app = &self.spaces[APP];
        if app.probes > 0
            || self.done_pending
            || self.incoming.has_due()
            || self.outgoing.has_notice()
        {
            return None;
        }
        if self.outgoing.has_pending() {
            let only_data = !app.received.is_pending();
            return (only_data && self.send_full(now, out)).then_some(true);
        }
        if app.received.is_due(now)
            && let Some(datagram) = self.next_ack(now)
        {
            out.push(datagram);
        }
        Some(false)
    }

    /// Sends datagrams that a STREAM frame fills. Returns whether no more may be sent now.
    #[inline]
    fn send_full(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        if self.congestion.is_full() {
            return true;
        }
        let mut rate = self.congestion.fill_pacer(now, self.rtt.smoothed());
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
            if self.delivery.is_some() {
                self.note_rate(now);
                rate = self.congestion.fill_pacer(now, self.rtt.smoothed());
            }
            let space = &mut self.spaces[APP];
            if space.eliciting == 0
                && let Some(last) = space.last_eliciting
            {
                self.congestion.on_resume(now, last);
            }
            space.push(Sent {
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
        let (ecn, ect) = (self.ect != Flags::NONE, self.ect);
        let space = &mut self.spaces[APP];
        let pn = space.next();
        let size = SHORT_HEADER + TAG + packet_number(pn, space.largest_acked);
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
        if space.eliciting == 0 && self.delivery.is_none() {
            space.skip();
            self.bytes_sent += u64::from(datagram.payload());
            self.counters.datagrams += 1;
            return Some(datagram);
        }
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
