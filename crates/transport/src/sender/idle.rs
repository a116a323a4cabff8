//! What becomes of a window that was not used.
//!
//! # Source
//!
//! RFC 2861 as Linux does it; RFC 5681 §4.1.
//!
//! # Law
//!
//! ```text
//! decay     nothing in flight for longer than the time-out: cwnd halves for each that passed, to no
//!           less than the initial window; used in part for a time-out: half way to what was used
//!           ssthresh = max(ssthresh, 3/4 cwnd)
//! restart   nothing in flight for longer than the time-out: cwnd = min(cwnd, initial window)
//! keep      cwnd stays
//! validate  cwnd stays for five minutes, and is not believed: `validate`
//! ```
//!
//! None of them lowers the threshold: a connection that had found its share before the pause returns
//! to it by slow start, and one that had met no congestion still has not. (An implementation that
//! resets the threshold at a pause either crawls back a segment a round trip or overshoots; a
//! published comparison was withdrawn over it.)

use std::fmt;

use sojourn_net::{Duration, Instant};

use super::{Phase, Sender};

/// What becomes of the window in a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterIdle {
    /// It halves for each time-out that passes (RFC 2861), as in Linux.
    #[default]
    Decay,
    /// It is the initial window after a time-out (RFC 5681).
    Restart,
    /// It stays, as in Linux with `tcp_slow_start_after_idle` off.
    Keep,
    /// It stays for five minutes, and is not believed (RFC 7661).
    Validate,
}

impl AfterIdle {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Decay, Self::Restart, Self::Keep, Self::Validate];

    /// What a scenario calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decay => "decay",
            Self::Restart => "restart",
            Self::Keep => "keep",
            Self::Validate => "validate",
        }
    }
}

impl fmt::Display for AfterIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sender {
    /// A window long unused says nothing of the path.
    pub(super) fn shrink_unused(&mut self) {
        if self.after_idle == AfterIdle::Decay
            && self.phase == Phase::Open
            && !self.is_model_based()
        {
            let used = self.used.max(self.initial_window.min(10));
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
        let mut idle = now.since(self.last_sent);
        if idle <= rto {
            return;
        }
        let floor = self.initial_window.min(self.window.cwnd);
        match self.after_idle {
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
            AfterIdle::Validate => self.give_up_unvalidated(now),
        }
        self.used_at = now;
        self.used = 0;
    }
}
