//! The response to CE.
//!
//! # Source
//!
//! RFC 3168 §6.1.2: as to a loss, once per window. RFC 8511 (ABE): a smaller decrease in congestion
//! avoidance. Ending slow start without a decrease is the end host's part of Predict (Järvinen and
//! Kojo, ICCRG at IETF 97): its queue marks before the path is full, so no decrease is needed.

use super::connection::Sender;
use super::params::OnCe;
use super::state::recovery::Phase;
use crate::cc::Threshold;

impl Sender {
    /// An acknowledgement echoes CE while no segment is lost.
    pub(super) fn answer_echo(&mut self) {
        let on_ce = self.ecn.on_ce();
        if on_ce == OnCe::Reduce {
            self.enter_cwr();
            return;
        }
        // The echo repeats until the peer receives CWR, which no older segment carried.
        if self.ecn.is_answered(self.board.una()) {
            return;
        }
        if self.window.in_slow_start() {
            self.window.end_slow_start();
        } else if on_ce == OnCe::EndSlowStart && self.recovery.phase() < Phase::Cwr {
            let gentle = u64::from(self.window.cwnd) * 4 / 5;
            self.enter_cwr();
            let gentle = u32::try_from(gentle).unwrap_or(u32::MAX).max(2);
            self.window.ssthresh = Threshold::of_segments(gentle);
        }
        self.ecn.answer_through(self.board.next());
    }
}
