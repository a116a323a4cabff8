//! Loss detection by time.
//!
//! # Source
//!
//! RFC 8985 §6 (RACK), with Linux's rule that without any sign of reordering the window for it
//! is zero once three segments are sacked.
//!
//! # Law
//!
//! A segment is lost when one sent after it has been delivered and `rtt + reo_wnd` has passed
//! since its last transmission, `rtt` being that of the delivered one.

use sojourn_net::Instant;

use super::connection::Sender;
use super::findings::Findings;
use super::state::recovery::Phase;
use super::state::timer::Kind;
use crate::clock::ticks_of_micros;

impl Sender {
    /// How much later than its successors a segment may arrive, in µs.
    fn reordering_window(&self) -> u32 {
        let enough_sacked = self.board.sacked() >= self.rack.reordering();
        let expects_loss = self.recovery.phase() >= Phase::Recovery || enough_sacked;
        let srtt = self.rtt.srtt_micros();
        self.rack
            .reordering_window(expects_loss, self.rtt.min_micros(), srtt)
    }

    /// Marks what is lost by now; arms the reordering timer for what may become so.
    pub(super) fn detect_losses(&mut self, now: Instant, found: &mut Findings) {
        if !self.rack.take_advanced() {
            return;
        }
        let resent_before = self.board.resent();
        if let Some(rest) = self.mark_overdue(now) {
            let ticks = ticks_of_micros(u64::from(rest) + 2_000);
            self.timer.arm(now, Kind::Reordering, ticks);
            found.rearm = false;
        }
        found.resend_lost |= self.board.resent() < resent_before;
    }

    /// Marks every segment overdue at `now`; returns how long, in µs, until the last of the
    /// others that were sent before the newest delivered one is.
    pub(super) fn mark_overdue(&mut self, now: Instant) -> Option<u32> {
        if self.board.outstanding() == 0 {
            return None;
        }
        let patience = self.rack.rtt_micros() + self.reordering_window();
        self.board.mark_overdue(now, self.rack.newest(), patience)
    }
}
