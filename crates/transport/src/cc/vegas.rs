//! Vegas: as much as keeps a few segments queued.
//!
//! # Source
//!
//! Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE
//! JSAC 13(8), 1995, as Linux does it (its parameters and steps, from facts).
//!
//! # Law
//!
//! Once a round trip, with the smallest RTT of the round and the smallest ever, *base*:
//!
//! ```text
//! diff = cwnd (RTT - base) / base               segments queued on the way
//! slow start   diff > 1:   leave it: cwnd = min(cwnd, cwnd base / RTT + 1), ssthresh = cwnd - 1
//! avoidance    diff < 2:   cwnd += 1
//!              diff > 4:   cwnd -= 1, ssthresh = min(ssthresh, cwnd - 1)
//! congestion   ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! A round with fewer than three samples grows as Reno does.
//!
//! # Differences from Linux and from the paper
//!
//! | here | elsewhere | effect |
//! |---|---|---|
//! | asked while the window limits sending and nothing is repaired | Linux: also when not limited; off until time-outs are repaired | the window of a slow application stays |
//! | doubles each round trip | paper: each second one | slow start is as fast as Reno's, and ends by delay |
//! | α 2, β 4, γ 1, as Linux | paper: 2 and 4, or 1 and 3 | – |
//! | loss as Reno | paper: its own finer time-outs | the sender's RACK finds losses sooner than either |

use super::reno::half;
use super::{Ack, Resume, Window, WindowBased};

/// Fewer segments queued than this: the window grows.
const ALPHA: u32 = 2;
/// More segments queued than this: it shrinks.
const BETA: u32 = 4;
/// More segments queued than this end slow start.
const GAMMA: u32 = 1;
/// With at most so many samples a round is left to Reno: one or two may be delayed ACKs.
const TOO_FEW: u32 = 2;

/// The Vegas congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    /// Smallest RTT since the connection was last idle, in µs.
    base_rtt: u32,
    /// Smallest RTT of this round, in µs.
    min_rtt: u32,
    samples: u32,
    /// The round ends when this segment is acknowledged; `None`: none has begun since congestion.
    round_end: Option<u32>,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            base_rtt: u32::MAX,
            min_rtt: u32::MAX,
            samples: 0,
            round_end: None,
        }
    }
}

impl WindowBased for Vegas {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt_micros {
            let rtt = rtt.max(1);
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples += 1;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        match self.round_end {
            Some(end) if ack.snd_una <= end => {
                if window.in_slow_start() {
                    window.slow_start(acked);
                }
            }
            Some(_) if self.samples > TOO_FEW => {
                self.adjust(window, acked);
                self.begin_round(ack.snd_nxt);
            }
            Some(_) | None => {
                window.grow_as_reno(acked);
                self.begin_round(ack.snd_nxt);
            }
        }
    }

    fn ssthresh(&mut self, window: &Window) -> u64 {
        self.round_end = None;
        window.bytes_of(half(window))
    }

    fn on_resume(&mut self, _resume: &Resume) {
        // The path may be another one after a pause.
        *self = Self::default();
    }
}

impl Vegas {
    const fn begin_round(&mut self, snd_nxt: u32) {
        self.round_end = Some(snd_nxt);
        self.min_rtt = u32::MAX;
        self.samples = 0;
    }

    /// The decision of a round.
    fn adjust(&self, window: &mut Window, acked: u32) {
        let (rtt, base) = (u64::from(self.min_rtt), u64::from(self.base_rtt));
        let cwnd = u64::from(window.cwnd);
        let fits = u32::try_from(cwnd * base / rtt).expect("no more than cwnd");
        let diff = u32::try_from(cwnd * (rtt - base) / base).unwrap_or(u32::MAX);
        if window.in_slow_start() {
            if diff > GAMMA {
                window.cwnd = window.cwnd.min(fits + 1);
                lower_threshold(window);
            } else {
                window.slow_start(acked);
            }
        } else if diff > BETA {
            window.cwnd -= 1;
            lower_threshold(window);
        } else if diff < ALPHA {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2);
        // As after any other growth, the threshold does not fall far behind the window.
        if !window.in_slow_start() {
            window.remember_three_quarters();
        }
    }
}

/// Leaves slow start, or stays out of it.
fn lower_threshold(window: &mut Window) {
    window.ssthresh.lower_to(window.cwnd.max(3) - 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Threshold;
    use sojourn_net::Instant;

    const BASE: u32 = 50_000;

    /// One round: `window` segments are acknowledged in pairs, each with this RTT in µs.
    /// Returns the largest window.
    fn round(vegas: &mut Vegas, window: &mut Window, una: &mut u32, rtt: u32) -> u32 {
        let (flight, mut largest) = (window.cwnd, window.cwnd);
        for _ in 0..flight / 2 {
            *una += 2;
            let ack = Ack {
                now: Instant::ZERO,
                tick: 0,
                rtt_micros: Some(rtt),
                one_way_ms: None,
                snd_una: *una,
                snd_nxt: *una + window.cwnd,
                pacing_rate: 0,
            };
            vegas.on_ack(window, &ack);
            vegas.grow(window, &ack, 2);
            largest = largest.max(window.cwnd);
        }
        largest
    }

    /// The window after ten rounds in avoidance with so many tenths of a segment queued, from 100.
    fn after_ten_rounds(tenths: u32) -> u32 {
        let (mut vegas, mut una) = (Vegas::default(), 0);
        let mut window = Window::new(100, 1);
        window.ssthresh = Threshold::of_segments(50);
        round(&mut vegas, &mut window, &mut una, BASE);
        window.cwnd = 100;
        for _ in 0..10 {
            // What makes cwnd (rtt - base) / base the number queued.
            let rtt = BASE + BASE * tenths / (10 * window.cwnd);
            round(&mut vegas, &mut window, &mut una, rtt);
        }
        window.cwnd
    }

    #[test]
    fn the_window_holds_two_to_four_segments_in_the_queue() {
        let moved = [5, 15, 25, 45, 55, 200].map(after_ten_rounds);
        assert!((108..=110).contains(&moved[0]), "{moved:?}");
        assert_eq!(moved[0], moved[1]);
        // The first round, at the base, earned one.
        assert_eq!(&moved[2..4], &[101, 101], "{moved:?}");
        assert!((90..=92).contains(&moved[4]), "{moved:?}");
        assert_eq!(moved[4], moved[5]);
    }

    #[test]
    fn slow_start_ends_at_what_fits_the_path() {
        let (mut vegas, mut una) = (Vegas::default(), 0);
        let mut window = Window::new(10, 1);
        for _ in 0..4 {
            round(&mut vegas, &mut window, &mut una, BASE);
        }
        assert!(window.in_slow_start() && window.cwnd > 80, "{window:?}");
        let mut largest = 0;
        while window.in_slow_start() {
            largest = largest.max(round(&mut vegas, &mut window, &mut una, 2 * BASE));
        }
        assert_eq!(
            (window.cwnd, window.ssthresh.segments()),
            (largest / 2 + 1, Some(largest / 2))
        );
    }

    #[test]
    fn congestion_halves_and_idleness_forgets_the_path() {
        let (mut vegas, mut una) = (Vegas::default(), 0);
        let mut window = Window::new(40, 1);
        window.ssthresh = Threshold::of_segments(20);
        round(&mut vegas, &mut window, &mut una, BASE);
        assert_eq!(vegas.ssthresh(&Window::new(40, 1)), 20);
        assert_eq!(vegas.round_end, None);
        assert_eq!(vegas.base_rtt, BASE);
        vegas.on_resume(&Resume {
            now: Instant::ZERO,
            tick: 0,
            last_sent_tick: 0,
        });
        assert_eq!(vegas.base_rtt, u32::MAX);
    }
}
