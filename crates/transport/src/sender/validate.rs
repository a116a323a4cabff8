//! A window that is kept while it is not used, and not believed.
//!
//! # Source
//!
//! RFC 7661 (New-CWV).
//!
//! # Law
//!
//! *pipeACK* is the most that was acknowledged in a round trip of the last max(3 RTT, 1 s); it is
//! undefined until the first round trip after the start or a recovery.
//!
//! ```text
//! validated       pipeACK undefined or at least cwnd / 2: as ever
//! non-validated   cwnd grows only while it limits
//!   congestion    cwnd = (max(pipeACK, flight) - R) / 2 after it, R what was retransmitted
//!   each 5 min    ssthresh = max(ssthresh, 3/4 cwnd), cwnd = max(cwnd / 2, initial window)
//! ```
//!
//! # Differences from RFC 7661
//!
//! | here | RFC 7661 | effect |
//! |---|---|---|
//! | bursts of a non-validated window are not held back, unless the connection is paced | SHOULD control them | a burst of a window after a pause |
//! | what is left is at least 2 segments | 1 | – |

use sojourn_net::{Duration, Instant};

use super::{AfterIdle, Phase, Sender};
use crate::cc::Threshold;

/// How long a window is kept.
const PERIOD: Duration = Duration::from_secs(300);
/// The sampling period is at least this.
const LEAST_SAMPLING: Duration = Duration::from_secs(1);
/// The sampling period has so many parts, which are forgotten one by one.
const PARTS: usize = 3;

/// What New-CWV remembers.
#[derive(Clone, Debug, Default)]
pub(super) struct Validation {
    /// The largest sample of each part of the period, the running one first.
    samples: [u32; PARTS],
    part_began: Instant,
    /// A sample was taken since the start or the last recovery.
    defined: bool,
    /// The sample under way: what was acknowledged, until this segment is.
    acked: u32,
    round_end: Option<u32>,
    /// Since when the window has not been validated.
    unvalidated_since: Option<Instant>,
    /// Of the congestion being answered: the window to halve, and retransmissions before it.
    congestion: Option<(u32, u64)>,
}

impl Validation {
    fn pipe_ack(&self) -> Option<u32> {
        self.defined
            .then(|| self.samples.into_iter().max().unwrap_or(0))
    }

    fn is_validated(&self, cwnd: u32) -> bool {
        self.pipe_ack().is_none_or(|pipe| pipe >= cwnd.div_ceil(2))
    }

    /// Forgets what is older than the sampling period of a round trip of `srtt`.
    fn forget(&mut self, now: Instant, srtt: Duration) {
        let part = Duration::from_nanos(srtt.times(3).max(LEAST_SAMPLING).as_nanos() / 3);
        for _ in 0..PARTS {
            if now.saturating_since(self.part_began) < part {
                return;
            }
            self.samples.rotate_right(1);
            self.samples[0] = 0;
            self.part_began += part;
        }
        self.part_began = now;
    }
}

impl Sender {
    /// `acked` segments were acknowledged in order.
    pub(super) fn measure_pipe(&mut self, now: Instant, acked: u32) {
        let srtt = self.rtt.srtt().unwrap_or_default();
        let (una, next, cwnd) = (self.board.una, self.board.next(), self.window.cwnd);
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let Some(v) = &mut self.validation else {
            return;
        };
        v.forget(now, srtt);
        if repairing {
            v.acked = 0;
            return;
        }
        v.acked += acked;
        if v.defined {
            v.samples[0] = v.samples[0].max(v.acked);
        }
        if una >= *v.round_end.get_or_insert(next) {
            v.samples[0] = v.samples[0].max(v.acked);
            v.defined = true;
            v.acked = 0;
            v.round_end = Some(next);
        }
        if v.is_validated(cwnd) {
            v.unvalidated_since = None;
        } else {
            v.unvalidated_since.get_or_insert(now);
        }
    }

    /// Whether the window is believed.
    #[inline]
    pub(super) fn is_validated(&self) -> bool {
        match &self.validation {
            Some(v) => v.is_validated(self.window.cwnd),
            None => true,
        }
    }

    /// The application writes after a pause.
    pub(super) fn give_up_unvalidated(&mut self, now: Instant) {
        let srtt = self.rtt.srtt().unwrap_or_default();
        let (last_sent, floor) = (self.last_sent, self.initial_window);
        let Some(v) = &mut self.validation else {
            return;
        };
        v.forget(now, srtt);
        v.acked = 0;
        v.round_end = None;
        if v.is_validated(self.window.cwnd) {
            return;
        }
        let since = v.unvalidated_since.get_or_insert(last_sent);
        while now.saturating_since(*since) >= PERIOD {
            *since += PERIOD;
            self.window.remember_three_quarters();
            self.window.cwnd = (self.window.cwnd / 2).max(floor.min(self.window.cwnd));
        }
    }

    /// Congestion begins: of a window that is not believed, what was used counts.
    pub(super) fn note_unvalidated_congestion(&mut self) {
        let flight = self.board.outstanding();
        let (cwnd, resent) = (self.window.cwnd, self.counters.resent);
        let Some(v) = &mut self.validation else {
            return;
        };
        v.congestion = None;
        if !v.is_validated(cwnd) {
            let used = v.pipe_ack().unwrap_or(0).max(flight).min(cwnd);
            v.congestion = Some((used, resent));
            self.prior_cwnd = used;
            self.window.ssthresh.lower_to((used / 2).max(2));
        }
    }

    /// The window after recovery.
    pub(super) fn end_unvalidated_congestion(&mut self) {
        let resent = self.counters.resent;
        let Some(v) = &mut self.validation else {
            return;
        };
        v.defined = false;
        v.samples = [0; PARTS];
        v.round_end = None;
        v.acked = 0;
        v.unvalidated_since = None;
        if let Some((used, before)) = v.congestion.take() {
            let lost = u32::try_from(resent - before).unwrap_or(u32::MAX);
            let half = (used.saturating_sub(lost) / 2).max(2);
            self.window.ssthresh = Threshold::of_segments(half);
        }
    }

    /// New-CWV, if it is asked for.
    pub(super) fn validation_of(after_idle: AfterIdle) -> Option<Box<Validation>> {
        (after_idle == AfterIdle::Validate).then(Box::default)
    }
}
