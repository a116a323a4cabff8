//! Answers to an echo of CE.
//!
//! # Source
//!
//! RFC 3168 §6.1.2: as to a loss, once a window. RFC 8511 (ABE): a smaller decrease in congestion
//! avoidance. That slow start ends without a decrease is the end host's part in Predict (Järvinen and
//! Kojo, ICCRG at IETF 97): a queue that foretells when the path will be full leaves nothing to be
//! taken back.

use std::fmt;

use super::{Phase, Sender};
use crate::cc::Threshold;

/// What a sender does when it hears that a packet was CE-marked, once for each window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnCe {
    /// What it does at a loss (RFC 3168).
    #[default]
    Reduce,
    /// End slow start at the window reached; in congestion avoidance reduce it to 0.8 (RFC 8511).
    EndSlowStart,
    /// End slow start at the window reached; ignore CE in congestion avoidance.
    EndSlowStartOnly,
}

impl OnCe {
    /// Every answer.
    pub const ALL: [Self; 3] = [Self::Reduce, Self::EndSlowStart, Self::EndSlowStartOnly];

    /// What a scenario calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::EndSlowStart => "end-slow-start",
            Self::EndSlowStartOnly => "end-slow-start-only",
        }
    }
}

impl fmt::Display for OnCe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sender {
    /// An acknowledgement echoes CE while nothing is lost.
    pub(super) fn answer_echo(&mut self) {
        if self.on_ce == OnCe::Reduce {
            self.enter_cwr();
            return;
        }
        // The echo goes on until the peer has CWR, which no older segment carried.
        if self.board.una <= self.ce_answered {
            return;
        }
        if self.window.in_slow_start() {
            self.window.end_slow_start();
        } else if self.on_ce == OnCe::EndSlowStart && self.phase < Phase::Cwr {
            let gentle = u64::from(self.window.cwnd) * 4 / 5;
            self.enter_cwr();
            let gentle = u32::try_from(gentle).unwrap_or(u32::MAX).max(2);
            self.window.ssthresh = Threshold::of_segments(gentle);
        }
        self.ce_answered = self.board.next();
        self.cwr_pending = true;
    }
}
