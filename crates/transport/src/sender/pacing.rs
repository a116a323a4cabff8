//! Pacing of transmissions.
//!
//! # Source
//!
//! Linux 6.1's internal pacing (its facts; what `sch_fq` does for a socket that asks for a rate):
//! an exact timer, not the timer wheel.

use sojourn_net::Instant;

use super::connection::Sender;
use crate::segment::Segment;

impl Sender {
    /// Whether pacing forbids sending now; if so the timer will expire when it does not.
    #[inline]
    pub(super) fn pacing_blocks(&mut self, now: Instant) -> bool {
        match self.pacing.pacer_mut() {
            Some(pacer) => pacer.blocks(now),
            None => false,
        }
    }

    /// When the pacing timer is due.
    #[inline]
    pub(super) fn departure(&self) -> Option<Instant> {
        self.pacing.pacer()?.due()
    }

    /// When this connection last sent, or, if paced, could have sent again.
    pub(super) fn last_departure(&self) -> Instant {
        match self.pacing.pacer() {
            Some(pacer) => pacer.next(),
            None => self.buffer.last_sent(),
        }
    }

    pub(super) fn on_departure(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(pacer) = self.pacing.pacer_mut() {
            pacer.stop_waiting();
        }
        if self.board.has_lost_to_resend() {
            self.resend_lost(now, out);
        }
        self.send_new(now, out);
    }
}
