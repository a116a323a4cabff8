//! Congestion window after an idle period.
//!
//! # Source
//!
//! RFC 2861 as in Linux; RFC 5681 §4.1.
//!
//! # Law
//!
//! ```text
//! decay     nothing in flight for longer than the time-out: cwnd halves for each that passed, to no
//!           less than the initial window; used in part for a time-out: half way to what was used
//!           ssthresh = max(ssthresh, 3/4 cwnd)
//! restart   nothing in flight for longer than the time-out: cwnd = min(cwnd, initial window)
//! keep      cwnd stays
//! validate  cwnd stays for five minutes without being validated: see `validate`
//! ```
//!
//! None of them lowers the threshold: a connection that knew its share of the path before the pause
//! returns to it by slow start, and one that has met no congestion keeps its infinite threshold. (An
//! implementation that resets the threshold at a pause either grows by one segment per round trip or
//! overshoots; a published comparison was withdrawn over it.)

use sojourn_net::{Duration, Instant};

use super::Sender;
use super::params::AfterIdle;
use super::state::recovery::Phase;

impl Sender {
    /// Notes after sending whether the window, not the application, `limited` it.
    pub(super) fn note_window_use(&mut self, now: Instant, limited: bool) {
        let outstanding = self.board.outstanding();
        self.usage.on_sent(self.board.una(), outstanding, limited);
        if self.usage.is_full(&self.window) {
            self.usage.restart(now);
            return;
        }
        let rto = Duration::from_millis(self.current_rto_ms());
        if let Some(used) = self.usage.on_partial(now, outstanding, rto) {
            self.shrink_unused(used);
            self.usage.restart(now);
        }
    }

    /// At most `used` segments of the window were used for a time-out.
    fn shrink_unused(&mut self, used: u32) {
        let decays = self.usage.policy() == AfterIdle::Decay;
        if decays && self.recovery.phase() == Phase::Open && !self.is_model_based() {
            let used = used.max(self.usage.initial_window().min(10));
            if used < self.window.cwnd {
                self.window.remember_three_quarters();
                self.window.cwnd = u32::midpoint(self.window.cwnd, used);
            }
        }
    }

    /// The application writes, perhaps after a pause.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        if self.board.outstanding() > 0 || self.counters.sent == 0 || self.is_model_based() {
            return;
        }
        let rto = Duration::from_millis(self.current_rto_ms());
        let mut idle = now.since(self.buffer.last_sent());
        if idle <= rto {
            return;
        }
        let floor = self.usage.initial_window().min(self.window.cwnd);
        match self.usage.policy() {
            AfterIdle::Decay => {
                self.window.remember_three_quarters();
                while idle > rto && self.window.cwnd > floor {
                    self.window.cwnd /= 2;
                    idle -= rto;
                }
                self.window.cwnd = self.window.cwnd.max(floor);
            }
            AfterIdle::Restart => self.window.cwnd = floor,
            AfterIdle::Keep => {}
            AfterIdle::Validate => self.shrink_unvalidated(now),
        }
        self.usage.restart(now);
    }
}
