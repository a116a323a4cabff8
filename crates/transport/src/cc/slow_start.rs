//! Slow-start exit heuristics; HyStart++.
//!
//! # Source
//!
//! RFC 9406 §4.2 and §4.3, with its recommended constants.
//!
//! # Law
//!
//! ```text
//! slow start        when 8 samples of a round are in and the least exceeds that of the round before
//!                   by an eighth of it (4 to 16 ms): conservative slow start
//! conservative      growth is a quarter;
//!                   back to slow start if 8 samples of a round are all below those that began it;
//!                   after 5 rounds ssthresh = cwnd
//! both              without pacing, at most 8 segments per acknowledgement count
//! ```
//!
//! After the first congestion slow start is the standard one.
//!
//! # Differences from RFC 9406
//!
//! | here | RFC 9406 | effect |
//! |---|---|---|
//! | whole segments, with a remainder | bytes | – |

use std::fmt;

use super::{Ack, Window};

/// Slow-start exit heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlowStart {
    /// None: slow start ends by congestion (RFC 5681).
    Standard,
    /// A long ACK train or a grown delay, as in Linux's CUBIC.
    HyStart,
    /// A grown delay that persists (RFC 9406).
    HyStartPlusPlus,
}

impl SlowStart {
    /// Every heuristic.
    pub const ALL: [Self; 3] = [Self::Standard, Self::HyStart, Self::HyStartPlusPlus];

    /// The name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::HyStart => "hystart",
            Self::HyStartPlusPlus => "hystart++",
        }
    }
}

impl fmt::Display for SlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Least and greatest threshold of the growth of the delay, in µs.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
/// The threshold is this part of the RTT.
const MIN_RTT_DIVISOR: u32 = 8;
/// RTT samples of a round from which its minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// Conservative slow start grows slower by this factor.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;
/// Most segments of an acknowledgement that count (`L`), without pacing.
const LIMIT: u32 = 8;

/// HyStart++ in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct HyStartPlusPlus {
    /// Most segments of an acknowledgement that count.
    limit: u32,
    /// The round ends when this segment is acknowledged.
    window_end: u32,
    /// Smallest RTTs, in µs; `None` without a sample.
    last_round_min_rtt: Option<u32>,
    current_round_min_rtt: Option<u32>,
    rtt_sample_count: u32,
    /// Conservative slow start, if it has begun.
    css: Option<Css>,
    /// Segments acknowledged towards the next one of conservative slow start.
    remainder: u32,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    baseline_min_rtt: u32,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// A connection that has sent nothing. With pacing an acknowledgement causes no burst, however much it
    /// covers, so that all of it counts.
    pub(crate) const fn new(paced: bool) -> Self {
        Self {
            limit: if paced { u32::MAX } else { LIMIT },
            window_end: 0,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
            css: None,
            remainder: 0,
        }
    }

    /// An acknowledgement arrived in slow start, which may end here.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.snd_una > self.window_end {
            self.begin_round(ack.snd_nxt);
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds > CSS_ROUNDS {
                    window.end_slow_start();
                    return;
                }
            }
        }
        let Some(rtt) = ack.rtt_micros else { return };
        let current = self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt));
        self.current_round_min_rtt = Some(current);
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < N_RTT_SAMPLE {
            return;
        }
        match (self.css, self.last_round_min_rtt) {
            (Some(css), _) if current < css.baseline_min_rtt => self.css = None,
            (None, Some(last)) => {
                let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + thresh {
                    self.css = Some(Css {
                        baseline_min_rtt: current,
                        rounds: 1,
                    });
                    self.remainder = 0;
                }
            }
            _ => {}
        }
    }

    const fn begin_round(&mut self, snd_nxt: u32) {
        self.window_end = snd_nxt;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = None;
        self.rtt_sample_count = 0;
    }

    /// How many of `acked` segments count for growth.
    pub(crate) fn counts(&mut self, acked: u32) -> u32 {
        let acked = acked.min(self.limit);
        if self.css.is_none() {
            return acked;
        }
        let sum = self.remainder + acked;
        self.remainder = sum % CSS_GROWTH_DIVISOR;
        sum / CSS_GROWTH_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Instant;

    /// A connection in slow start, a round at a time.
    struct Rounds {
        hystart: HyStartPlusPlus,
        window: Window,
        una: u32,
    }

    impl Rounds {
        fn new() -> Self {
            Self {
                hystart: HyStartPlusPlus::new(false),
                window: Window::new(16, 1_448),
                una: 0,
            }
        }

        /// A round whose acknowledgements each cover one segment and have this RTT in ms; by how
        /// much the window grew, in hundredths.
        fn pass(&mut self, rtt_ms: u32) -> u32 {
            let before = self.window.cwnd;
            for _ in 0..before {
                self.una += 1;
                let ack = Ack {
                    now: Instant::ZERO,
                    tick: 0,
                    rtt_micros: Some(1_000 * rtt_ms),
                    one_way_ms: None,
                    snd_una: self.una,
                    snd_nxt: self.una + self.window.cwnd,
                    pacing_rate: 0,
                };
                if self.window.in_slow_start() {
                    self.hystart.on_ack(&mut self.window, &ack);
                }
                if self.window.in_slow_start() {
                    self.window.cwnd += self.hystart.counts(1);
                }
            }
            100 * self.window.cwnd / before - 100
        }
    }

    #[test]
    fn growth_of_an_eighth_that_lasts_ends_slow_start_after_five_rounds() {
        let mut rounds = Rounds::new();
        assert_eq!([40, 40, 44].map(|ms| rounds.pass(ms)), [100; 3]);
        // 44 is less than 40 + 5, 50 more than 44 + 5.5: from its 8th sample on a quarter.
        assert!((25..=35).contains(&rounds.pass(50)));
        let rest = [50; 5].map(|ms| rounds.pass(ms));
        assert!(rest[..4].iter().all(|n| (24..=25).contains(n)), "{rest:?}");
        assert!(rest[4] <= 2, "{rest:?}");
        assert_eq!(rounds.window.ssthresh.segments(), Some(rounds.window.cwnd));
    }

    #[test]
    fn growth_that_does_not_last_is_forgotten() {
        let mut rounds = Rounds::new();
        for (rtt, slow) in [(40, false), (60, true), (41, false)] {
            let grown = rounds.pass(rtt);
            assert_eq!(grown < 99, slow, "{grown} % at {rtt} ms");
        }
        assert!(!rounds.window.ssthresh.is_set());
    }

    #[test]
    fn the_threshold_is_4_to_16_ms() {
        for (base, enough) in [(8, 4), (80, 10), (400, 16)] {
            for (more, conservative) in [(enough - 1, false), (enough, true)] {
                let mut rounds = Rounds::new();
                rounds.pass(base);
                rounds.pass(base + more);
                assert_eq!(
                    rounds.hystart.css.is_some(),
                    conservative,
                    "{base} + {more}"
                );
            }
        }
    }

    #[test]
    fn at_most_eight_segments_of_an_acknowledgement_count_unless_they_are_paced() {
        assert_eq!(HyStartPlusPlus::new(false).counts(44), 8);
        assert_eq!(HyStartPlusPlus::new(true).counts(44), 44);
    }
}
