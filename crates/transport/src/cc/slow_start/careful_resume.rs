//! Careful Resume: a connection starts with half of the window that an earlier one reached.
//!
//! # Source
//!
//! RFC 9959 (May 2026). [R]: written from quotations of §3 and §4 of the RFC and from comments in implementations that
//! quote its drafts; the whole text was not at hand.
//!
//! # Law
//!
//! ```text
//! Reconnaissance   slow start. When the initial data is acknowledged: Unvalidated, if half of saved_cwnd is more than
//!                  the window, and the smallest RTT is more than saved_rtt / 2 and at most 10 saved_rtt
//! Unvalidated      PipeSize = flight; cwnd = saved_cwnd / 2, which does not grow; PipeSize += acknowledged
//!                  ends when the flight fills the window, the first segment sent in it is acknowledged, or an RTT
//!                  has passed: Validating with cwnd = flight; if the flight is at most PipeSize, normal with
//!                  cwnd = PipeSize, at least the initial window
//! Validating       slow start; PipeSize += acknowledged; normal when all segments of Unvalidated are acknowledged
//! Safe Retreat     after a loss, mark or time-out in these two: cwnd at most PipeSize / 2, which does not grow, until
//!                  all segments of Unvalidated are acknowledged; then ssthresh at most PipeSize / 2
//! ```
//!
//! # Differences from the RFC
//!
//! | here | RFC | effect |
//! |---|---|---|
//! | the saved parameters are configured | measured by an earlier connection, with a lifetime | – |
//! | over TCP, proportional rate reduction brings the window to `PipeSize` / 2 within a round | at once | no pause in sending |
//! | paced at the rate of the window in slow start: 2 windows per RTT over TCP, 1.25 over QUIC | 1 window per RTT | the jump takes half a round trip over TCP |
//! | jumps also if the application has little data | may wait until there is data | a small transfer has a window that it does not use |

use sojourn_net::{Duration, Instant};

use super::SlowStartParams;
use crate::cc::progress::MinRtt;
use crate::cc::{Ack, Threshold, Window};

/// Careful Resume in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct CarefulResume {
    /// Half of the saved window, in segments.
    jump: u32,
    /// In µs.
    saved_rtt: u32,
    min_rtt: MinRtt,
    initial_window: u32,
    /// Segments that the path is known to hold.
    pipe_size: u32,
    phase: Phase,
}

/// The phases, with the end of what each waits for: the first segment after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `None` before the first acknowledgement.
    Reconnaissance {
        initial_end: Option<u32>,
    },
    Unvalidated {
        first: u32,
        since: Instant,
    },
    Validating {
        end: u32,
    },
    /// `None` until the next acknowledgement.
    SafeRetreat {
        end: Option<u32>,
    },
    Normal,
}

/// The least window after congestion, in segments.
const LEAST: u32 = 2;

impl CarefulResume {
    /// A connection that has sent nothing.
    pub(super) fn new(params: &SlowStartParams) -> Self {
        Self {
            jump: params.saved_cwnd.map_or(0, |cwnd| cwnd.get() / 2),
            saved_rtt: params.saved_rtt,
            min_rtt: MinRtt::NONE,
            initial_window: 0,
            pipe_size: 0,
            phase: Phase::Reconnaissance { initial_end: None },
        }
    }

    /// An acknowledgement delivered this number of segments.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack, delivered: u32) {
        if let Some(rtt) = ack.rtt_micros {
            self.min_rtt.sample(rtt);
        }
        self.pipe_size += delivered;
        self.phase = match self.phase {
            Phase::Reconnaissance { .. } if window.ssthresh.is_set() => Phase::Normal,
            Phase::Reconnaissance { initial_end: None } => {
                self.initial_window = window.cwnd;
                self.reconnoitre(window, ack, ack.snd_nxt)
            }
            Phase::Reconnaissance {
                initial_end: Some(end),
            } => self.reconnoitre(window, ack, end),
            Phase::Unvalidated { first, since } => {
                let rtt = self.min_rtt.micros().unwrap_or(0);
                let passed = ack.now.since(since) > Duration::from_micros(rtt.into());
                if ack.snd_una > first || passed || flight(ack) + delivered >= window.cwnd {
                    self.validate(window, ack)
                } else {
                    self.phase
                }
            }
            Phase::Validating { end } if ack.snd_una >= end => Phase::Normal,
            Phase::SafeRetreat { end } => {
                let end = end.unwrap_or(ack.snd_nxt);
                if ack.snd_una < end {
                    Phase::SafeRetreat { end: Some(end) }
                } else {
                    window.ssthresh = Threshold::of_segments((self.pipe_size / 2).max(LEAST));
                    Phase::Normal
                }
            }
            waiting => waiting,
        };
    }

    /// A loss, mark or time-out; the control has set the threshold.
    pub(super) fn on_congestion(&mut self, window: &mut Window) {
        let end = match self.phase {
            Phase::Unvalidated { .. } => None,
            Phase::Validating { end } => Some(end),
            Phase::SafeRetreat { end } => end,
            Phase::Reconnaissance { .. } | Phase::Normal => {
                self.phase = Phase::Normal;
                return;
            }
        };
        self.phase = Phase::SafeRetreat { end };
        window.ssthresh.lower_to((self.pipe_size / 2).max(LEAST));
    }

    /// How many of `acked` segments count for growth.
    pub(super) const fn counts(&self, acked: u32) -> u32 {
        match self.phase {
            Phase::Unvalidated { .. } | Phase::SafeRetreat { .. } => 0,
            Phase::Reconnaissance { .. } | Phase::Validating { .. } | Phase::Normal => acked,
        }
    }

    /// Whether the rest is left to the control.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Normal
    }

    fn reconnoitre(&mut self, window: &mut Window, ack: &Ack, initial_end: u32) -> Phase {
        if ack.snd_una < initial_end {
            return Phase::Reconnaissance {
                initial_end: Some(initial_end),
            };
        }
        let saved = u64::from(self.saved_rtt);
        let same_path = self.min_rtt.micros().is_some_and(|rtt| {
            let rtt = u64::from(rtt);
            2 * rtt > saved && rtt <= 10 * saved
        });
        if !same_path || self.jump <= window.cwnd {
            return Phase::Normal;
        }
        self.pipe_size = flight(ack);
        window.cwnd = self.jump;
        Phase::Unvalidated {
            first: ack.snd_nxt,
            since: ack.now,
        }
    }

    fn validate(&self, window: &mut Window, ack: &Ack) -> Phase {
        let flight = flight(ack);
        if flight <= self.pipe_size || flight < self.initial_window {
            window.cwnd = self.pipe_size.max(self.initial_window);
            return Phase::Normal;
        }
        window.cwnd = flight;
        Phase::Validating { end: ack.snd_nxt }
    }
}

/// Segments sent and not acknowledged.
const fn flight(ack: &Ack) -> u32 {
    ack.snd_nxt - ack.snd_una
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    const RTT_MS: u64 = 100;

    /// A connection with these saved parameters.
    struct Path {
        resume: CarefulResume,
        window: Window,
        una: u32,
        nxt: u32,
    }

    impl Path {
        fn new(saved_cwnd: u32, saved_rtt_ms: u32) -> Self {
            let params = SlowStartParams {
                saved_cwnd: NonZeroU32::new(saved_cwnd),
                saved_rtt: 1_000 * saved_rtt_ms,
                ..SlowStartParams::default()
            };
            Self {
                resume: CarefulResume::new(&params),
                window: Window::new(10, 1_448),
                una: 0,
                nxt: 10,
            }
        }

        fn ack(&mut self, ms: u64, acked: u32) {
            self.una += acked;
            let ack = Ack {
                now: Instant::from_millis(ms),
                tick: ms,
                rtt_micros: Some(100_000),
                snd_una: self.una,
                snd_nxt: self.nxt,
                prior_in_flight: 0,
                ..Ack::at(0)
            };
            self.resume.on_ack(&mut self.window, &ack, acked);
            if !self.window.ssthresh.is_set() {
                self.window.cwnd += self.resume.counts(acked);
            }
        }

        /// The initial data has been acknowledged in two parts, and slow start has sent for the first.
        fn reconnoitred(saved_cwnd: u32, saved_rtt_ms: u32) -> Self {
            let mut path = Self::new(saved_cwnd, saved_rtt_ms);
            path.ack(RTT_MS, 6);
            assert_eq!(path.window.cwnd, 16);
            path.nxt = 22;
            path.ack(RTT_MS, 4);
            path
        }
    }

    #[test]
    fn the_window_jumps_to_half_of_the_saved_one_when_the_initial_data_is_acknowledged() {
        let path = Path::reconnoitred(200, 90);
        assert_eq!((path.window.cwnd, path.resume.pipe_size), (100, 12));
        let first = 22;
        let since = Instant::from_millis(RTT_MS);
        assert_eq!(path.resume.phase, Phase::Unvalidated { first, since });
        assert_eq!(path.resume.counts(4), 0);
    }

    #[test]
    fn another_rtt_or_a_small_saved_window_does_not_resume() {
        // 100 ms is half of 200 ms, and more than ten times 9 ms.
        for (saved_cwnd, saved_rtt_ms, jumps) in [
            (200, 199, true),
            (200, 200, false),
            (200, 10, true),
            (200, 9, false),
            (34, 100, true),
            (32, 100, false),
            (0, 100, false),
        ] {
            let path = Path::reconnoitred(saved_cwnd, saved_rtt_ms);
            assert_eq!(path.resume.is_done(), !jumps, "{saved_cwnd} {saved_rtt_ms}");
            let grown = if jumps { saved_cwnd / 2 } else { 20 };
            assert_eq!(path.window.cwnd, grown);
        }
    }

    #[test]
    fn a_full_flight_is_validated_and_leaves_the_rest_to_the_control() {
        let mut path = Path::reconnoitred(200, 100);
        // 78 segments fill the jump; then the acknowledgements of slow start's 12 come.
        path.nxt = 110;
        path.ack(200, 2);
        assert_eq!(path.resume.phase, Phase::Validating { end: 110 });
        // 98 in flight, and 2 counted.
        assert_eq!((path.window.cwnd, path.resume.pipe_size), (100, 14));
        path.nxt = 130;
        path.ack(250, 97);
        assert!(!path.resume.is_done());
        path.ack(251, 1);
        assert!(path.resume.is_done());
        assert_eq!(path.window.cwnd, 198);
        assert!(!path.window.ssthresh.is_set());
    }

    #[test]
    fn a_flight_that_does_not_use_the_jump_goes_back_to_what_is_known() {
        let mut path = Path::reconnoitred(200, 100);
        path.ack(201, 12);
        assert!(path.resume.is_done());
        assert_eq!(path.window.cwnd, 24 + 12);
    }

    #[test]
    fn congestion_after_the_jump_retreats_to_half_of_what_is_known() {
        let mut path = Path::reconnoitred(200, 100);
        path.nxt = 110;
        path.ack(200, 2);
        path.ack(210, 10);
        assert_eq!(path.resume.pipe_size, 24);
        // The control would keep half of the window.
        path.window.ssthresh = Threshold::of_segments(55);
        path.resume.on_congestion(&mut path.window);
        assert_eq!(path.window.ssthresh.segments(), Some(12));
        assert_eq!(path.resume.counts(1), 0);
        path.ack(220, 80);
        assert_eq!(path.window.ssthresh.segments(), Some(12));
        path.ack(230, 8);
        // 112 segments were delivered in all after the jump, 12 of them from slow start.
        assert!(path.resume.is_done());
        assert_eq!(path.window.ssthresh.segments(), Some(112 / 2));
    }

    #[test]
    fn congestion_before_the_jump_is_left_to_the_control() {
        let mut path = Path::new(200, 100);
        path.ack(RTT_MS, 6);
        path.window.ssthresh = Threshold::of_segments(8);
        path.resume.on_congestion(&mut path.window);
        assert!(path.resume.is_done());
        assert_eq!(path.window.ssthresh.segments(), Some(8));
    }
}
