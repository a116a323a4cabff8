//! Congestion window validation (New-CWV, RFC 7661).
//!
//! # Source
//!
//! RFC 7661 (New-CWV).
//!
//! # Law
//!
//! ```text
//! validated       pipeACK undefined or at least cwnd / 2: no change
//! non-validated   cwnd grows only while it limits sending
//!   congestion    cwnd = (max(pipeACK, flight) - R) / 2 after it, R what was retransmitted
//!   each 5 min    ssthresh = max(ssthresh, 3/4 cwnd), cwnd = max(cwnd / 2, initial window)
//! ```
//!
//! # Differences from RFC 7661
//!
//! | here | RFC 7661 | effect |
//! |---|---|---|
//! | bursts of a non-validated window are not paced unless the connection is | SHOULD control them | a burst of one window after a pause |
//! | the window after congestion is at least 2 segments | 1 | – |

use sojourn_net::Instant;

use super::Sender;
use super::state::recovery::Phase;
use crate::cc::Threshold;

impl Sender {
    /// `acked` segments were acknowledged in order.
    pub(super) fn measure_pipe(&mut self, now: Instant, acked: u32) {
        let Some(pipe_ack) = self.usage.pipe_ack_mut() else {
            return;
        };
        pipe_ack.expire(now, self.rtt.srtt().unwrap_or_default());
        if self.recovery.phase() >= Phase::Recovery {
            pipe_ack.discard_sample();
            return;
        }
        pipe_ack.on_acked(acked, self.board.una(), self.board.next());
        pipe_ack.update_validity(now, self.window.cwnd);
    }

    /// The application writes after a pause.
    pub(super) fn shrink_unvalidated(&mut self, now: Instant) {
        let initial_window = self.usage.initial_window();
        let Some(pipe_ack) = self.usage.pipe_ack_mut() else {
            return;
        };
        pipe_ack.expire(now, self.rtt.srtt().unwrap_or_default());
        pipe_ack.restart_sample();
        if pipe_ack.is_validated(self.window.cwnd) {
            return;
        }
        for _ in 0..pipe_ack.expired_periods(now, self.buffer.last_sent()) {
            self.window.remember_three_quarters();
            let floor = initial_window.min(self.window.cwnd);
            self.window.cwnd = (self.window.cwnd / 2).max(floor);
        }
    }

    /// Congestion begins: if the window is not validated, the part that was used is reduced.
    pub(super) fn reduce_unvalidated(&mut self) {
        let (cwnd, resent) = (self.window.cwnd, self.counters.resent);
        let flight = self.board.outstanding();
        let pipe_ack = self.usage.pipe_ack_mut();
        if let Some(used) = pipe_ack.and_then(|p| p.on_congestion(cwnd, flight, resent)) {
            self.recovery.set_prior_cwnd(used);
            self.window.ssthresh.lower_to((used / 2).max(2));
        }
    }

    /// The reduction ends.
    pub(super) fn end_unvalidated_reduction(&mut self) {
        let resent = self.counters.resent;
        let pipe_ack = self.usage.pipe_ack_mut();
        if let Some(ssthresh) = pipe_ack.and_then(|p| p.on_reduced(resent)) {
            self.window.ssthresh = Threshold::of_segments(ssthresh);
        }
    }
}
