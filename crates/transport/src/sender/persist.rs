//! Zero-window probes.
//!
//! # Source
//!
//! RFC 9293 §3.8.6.1, as Linux: after the time-out, doubling, a segment without data whose number
//! has been acknowledged; the peer acknowledges what it does not expect.

use sojourn_net::Instant;

use super::connection::{Sender, State};
use super::state::timer::Kind;
use crate::segment::{Flags, Segment};

impl Sender {
    /// Nothing is in flight and no timer runs: if the peer's window forbids sending, arms a timer,
    /// since the acknowledgement that opens the window may be lost.
    pub(super) fn watch_closed_window(&mut self, now: Instant) {
        let waits =
            self.buffer.unsent() > 0 && !self.buffer.may_send() && self.board.outstanding() == 0;
        if waits && self.state == State::Established {
            self.timer.arm(now, Kind::Persist, self.current_rto_ms());
        }
    }

    /// An acknowledgement arrived while the window was closed.
    pub(super) fn on_window_answer(&mut self) {
        self.timer.reset_timeouts();
        if self.buffer.may_send() || self.board.outstanding() > 0 {
            self.timer.reset_backoff();
            if self.timer.is(Kind::Persist) {
                self.timer.cancel();
            }
        }
    }

    pub(super) fn on_persist_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.timer.is_exhausted() {
            self.abort();
            return;
        }
        self.timer.count_timeout();
        self.timer.back_off();
        out.push(Segment {
            seq: self.board.una().wrapping_sub(1),
            flags: Flags::ACK | self.ecn.ect_if_always() | self.ecn.own_count(),
            ..self.blank(now)
        });
        self.watch_closed_window(now);
    }
}
