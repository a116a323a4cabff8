//! Asking a peer whose window is closed.
//!
//! # Source
//!
//! RFC 9293 §3.8.6.1, as Linux: after the time-out, doubling, a segment without data whose number
//! has been acknowledged; the peer answers what it does not expect with an acknowledgement.

use sojourn_net::Instant;

use super::timers::{Kind, MAX_TIMEOUTS};
use super::{Sender, State};
use crate::segment::{Flags, Segment};

impl Sender {
    /// Nothing is in flight and no timer runs: if the peer's window forbids to send, a timer shall
    /// ask for it, since the acknowledgement that opens it may be lost.
    pub(super) fn watch_closed_window(&mut self, now: Instant) {
        let waits = self.unsent > 0 && !self.may_send_bytes() && self.board.outstanding() == 0;
        if waits && self.state == State::Established {
            self.arm(now, Kind::Persist, self.current_rto_ms());
        }
    }

    /// An acknowledgement arrived while the window was watched.
    pub(super) fn on_window_answer(&mut self) {
        self.timeouts_in_row = 0;
        if self.may_send_bytes() || self.board.outstanding() > 0 {
            self.backoff = 0;
            if self.timer_is(Kind::Persist) {
                self.timer.cancel();
            }
        }
    }

    pub(super) fn on_persist_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.timeouts_in_row == MAX_TIMEOUTS {
            self.abort();
            return;
        }
        self.timeouts_in_row += 1;
        self.backoff = self.backoff.saturating_add(1);
        out.push(Segment {
            seq: self.board.una.wrapping_sub(1),
            flags: Flags::ACK | self.ect_if_always() | self.own_count,
            ..self.blank(now)
        });
        self.watch_closed_window(now);
    }
}
