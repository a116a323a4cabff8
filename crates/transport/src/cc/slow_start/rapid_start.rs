//! Rapid Start: slow start that triples the window while the queue is empty.
//!
//! # Source
//!
//! draft-kazuho-ccwg-rapid-start; the text of its repository between revisions 01 (23 February 2026) and 02 (16 March
//! 2026).
//!
//! # Law
//!
//! ```text
//! growth            cwnd += 2 per segment acknowledged while the smallest RTT of the round is at most
//!                   min(min_rtt + 4 ms, 1.1 min_rtt); else 1
//! first recovery    beta = what the control would keep of the window; K = 2/3
//!                   cwnd *= beta + K (1 - beta)
//!                   cwnd -= K (1 - beta) per segment acknowledged, beta + K (1 - beta) per segment lost
//!                   cwnd >= beta / 3 of the window before
//! its end           ssthresh = cwnd
//! ```
//!
//! If losses come from overflow alone, the window ends at beta times what the path and its queue hold.
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | QUIC only | over TCP, left to implementations | – |
//! | the initial window leaves in a burst, as with the other heuristics | SHOULD be paced over an RTT | a queue shorter than the burst loses some of it |

use super::SlowStartParams;
use crate::cc::progress::MinRtt;
use crate::cc::{Ack, Window};

/// Rapid Start in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct RapidStart {
    /// In µs.
    rtt_increase: u32,
    /// In hundredths.
    rtt_factor: u16,
    min_rtt: MinRtt,
    /// The smallest RTT of this round.
    floor: MinRtt,
    /// The round ends when this segment is acknowledged.
    round_end: u32,
    recovery: Recovery,
}

/// The first recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recovery {
    Before,
    During {
        /// The window in segments, with its fraction, and its bound.
        cwnd: f64,
        least: f64,
        /// What the control keeps of a window.
        beta: f64,
        /// It ends when this segment is acknowledged; `None` until the next acknowledgement.
        end: Option<u32>,
    },
    After,
}

/// How a reduction is split between the pause and the acknowledgements: K of the draft.
const K: f64 = 2.0 / 3.0;

impl RapidStart {
    /// A connection that has sent nothing.
    pub(super) const fn new(params: &SlowStartParams) -> Self {
        Self {
            rtt_increase: params.rapid_rtt_increase,
            rtt_factor: params.rapid_rtt_factor,
            min_rtt: MinRtt::NONE,
            floor: MinRtt::NONE,
            round_end: 0,
            recovery: Recovery::Before,
        }
    }

    /// An acknowledgement showed this number of segments to be delivered and lost.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack, delivered: u32, lost: u32) {
        if ack.snd_una > self.round_end {
            self.round_end = ack.snd_nxt;
            self.floor = MinRtt::NONE;
        }
        if let Some(rtt) = ack.rtt_micros {
            self.min_rtt.sample(rtt);
            self.floor.sample(rtt);
        }
        match &mut self.recovery {
            Recovery::Before if window.ssthresh.is_set() => self.recovery = Recovery::After,
            Recovery::Before | Recovery::After => {}
            Recovery::During {
                cwnd,
                least,
                beta,
                end,
            } => {
                let of_acked = K * (1.0 - *beta);
                let of_lost = *beta + of_acked;
                let less = of_acked * f64::from(delivered) + of_lost * f64::from(lost);
                *cwnd = (*cwnd - less).max(*least);
                window.cwnd = whole(*cwnd);
                if ack.snd_una > *end.get_or_insert(ack.snd_nxt) {
                    window.end_slow_start();
                    self.recovery = Recovery::After;
                }
            }
        }
    }

    /// A loss or mark; the control has set the threshold. Returns the window with which recovery begins.
    pub(super) fn on_congestion(&mut self, window: &Window) -> Option<u32> {
        if let Recovery::Before = self.recovery {
            let before = f64::from(window.cwnd.max(1));
            let beta = (f64::from(window.ssthresh.limit()) / before).min(1.0);
            self.recovery = Recovery::During {
                cwnd: before * (beta + K * (1.0 - beta)),
                least: (before * beta / 3.0).max(2.0),
                beta,
                end: None,
            };
        }
        match self.recovery {
            Recovery::During { cwnd, .. } => Some(whole(cwnd)),
            Recovery::Before | Recovery::After => None,
        }
    }

    /// How many of `acked` segments count for growth.
    pub(super) fn counts(&self, acked: u32) -> u32 {
        match self.recovery {
            Recovery::Before if self.is_queue_empty() => 2 * acked,
            Recovery::Before | Recovery::After => acked,
            Recovery::During { .. } => 0,
        }
    }

    /// Whether the rest is left to the control.
    pub(super) fn is_done(&self) -> bool {
        self.recovery == Recovery::After
    }

    fn is_queue_empty(&self) -> bool {
        let (Some(min), Some(floor)) = (self.min_rtt.micros(), self.floor.micros()) else {
            return true;
        };
        let (min, floor) = (u64::from(min), u64::from(floor));
        let increased = min + u64::from(self.rtt_increase);
        floor <= increased && 100 * floor <= min * u64::from(self.rtt_factor)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is positive, and a float saturates"
)]
const fn whole(window: f64) -> u32 {
    // Sums of thirds may lie a little below a whole number.
    (window + 1e-6) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Threshold;
    use sojourn_net::Instant;

    fn ack(snd_una: u32, snd_nxt: u32, rtt_micros: u32) -> Ack {
        Ack {
            now: Instant::ZERO,
            tick: 0,
            rtt_micros: Some(rtt_micros),
            snd_una,
            snd_nxt,
            prior_in_flight: 0,
            ..Ack::at(0)
        }
    }

    fn rapid() -> RapidStart {
        RapidStart::new(&SlowStartParams::default())
    }

    #[test]
    fn two_segments_per_acknowledged_one_count_while_the_rtt_stays() {
        // min(20 + 4, 22) = 22 ms; min(100 + 4, 110) = 104 ms.
        for (base, at_most) in [(20_000, 22_000), (100_000, 104_000)] {
            for (rtt, counted) in [(at_most, 6), (at_most + 1, 3)] {
                let (mut rapid, mut window) = (rapid(), Window::new(10, 1_200));
                rapid.on_ack(&mut window, &ack(1, 11, base), 1, 0);
                rapid.on_ack(&mut window, &ack(12, 30, rtt), 11, 0);
                assert_eq!(rapid.counts(3), counted, "{base} {rtt}");
                // The smallest of the round counts.
                rapid.on_ack(&mut window, &ack(13, 30, base), 1, 0);
                assert_eq!(rapid.counts(3), 6);
            }
        }
    }

    /// The window after a first recovery in which `acked` and `lost` segments of 1,200 were reported, with this
    /// threshold of the control.
    fn after_recovery(ssthresh: u32, acked: u32, lost: u32) -> (u32, u32) {
        let (mut rapid, mut window) = (rapid(), Window::new(1_200, 1_200));
        window.ssthresh = Threshold::of_segments(ssthresh);
        let begins = rapid.on_congestion(&window).unwrap();
        window.cwnd = begins;
        rapid.on_ack(&mut window, &ack(100, 1_300, 50_000), acked, lost);
        assert!(!rapid.is_done() && rapid.counts(9) == 0);
        rapid.on_ack(&mut window, &ack(1_301, 1_400, 50_000), 0, 0);
        assert!(rapid.is_done());
        assert_eq!(window.ssthresh.segments(), Some(window.cwnd));
        (begins, window.cwnd)
    }

    #[test]
    fn recovery_ends_at_beta_times_what_was_delivered() {
        // The factors of the draft: 5/6, 1/3 and 5/6 for 0.5; 9/10, 1/5 and 9/10 for 0.7.
        assert_eq!(after_recovery(600, 900, 300), (1_000, 450));
        assert_eq!(after_recovery(600, 600, 600), (1_000, 300));
        assert_eq!(after_recovery(840, 800, 400), (1_080, 560));
        // A third of what the control would keep, at least.
        assert_eq!(after_recovery(600, 100, 1_100), (1_000, 200));
    }

    #[test]
    fn another_end_of_slow_start_ends_it() {
        let (mut rapid, mut window) = (rapid(), Window::new(10, 1_200));
        window.end_slow_start();
        rapid.on_ack(&mut window, &ack(1, 11, 1_000), 1, 0);
        assert!(rapid.is_done());
    }
}
