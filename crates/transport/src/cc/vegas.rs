//! Vegas: keeps a few segments queued, by the measured delay.
//!
//! # Source
//!
//! Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE
//! JSAC 13(8), 1995, as Linux does it (its parameters and steps, from facts).
//!
//! # Law
//!
//! Once per round trip, with the smallest RTT of the round and the smallest ever, *base*:
//!
//! ```text
//! diff = cwnd (RTT - base) / base               segments queued on the way
//! slow start   diff > gamma:  leave it: cwnd = min(cwnd, cwnd base / RTT + 1), ssthresh = cwnd
//! avoidance    diff < alpha:  cwnd += 1
//!              diff > beta:   cwnd -= 1, ssthresh = min(ssthresh, cwnd)
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

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::MinRtt;
use super::window::half;
use super::{Ack, Resume, Window, WindowBased};

parameters! {
    /// Parameters of [`Vegas`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct VegasParams {
        /// Number of queued segments below which the window grows.
        pub alpha: u16 = 2 => count(0, 10_000).of("segments"),
            "Linux tcp_vegas, alpha";
        /// Number of queued segments above which the window shrinks.
        pub beta: u16 = 4 => count(0, 10_000).of("segments"),
            "Linux tcp_vegas, beta";
        /// Number of queued segments above which slow start ends.
        pub gamma: u16 = 1 => count(0, 10_000).of("segments"),
            "Linux tcp_vegas, gamma";
    }
}

impl Control for VegasParams {
    type Controller = Vegas;

    const DECLARATION: Declaration = Declaration {
        name: "vegas",
        summary: "Keeps a few segments queued, as estimated from the RTT",
        source: "Brakmo and Peterson 1995; Linux 6.1 tcp_vegas",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Vegas {
        Vegas {
            params: *self,
            base_rtt: MinRtt::NONE,
            min_rtt: MinRtt::NONE,
            samples: 0,
            round_end: None,
        }
    }

    fn conflict(&self) -> Option<String> {
        let Self { alpha, beta, .. } = self;
        (alpha > beta).then(|| format!("alpha {alpha} exceeds beta {beta}; expected alpha <= beta"))
    }
}

/// A round with at most this number of samples is left to Reno: one or two may be delayed ACKs.
const TOO_FEW: u32 = 2;

/// The Vegas congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    params: VegasParams,
    /// Smallest RTT since the connection was last idle.
    base_rtt: MinRtt,
    /// Smallest RTT of this round.
    min_rtt: MinRtt,
    samples: u32,
    /// The round ends when this segment is acknowledged; `None`: none has begun since congestion.
    round_end: Option<u32>,
}

impl Default for Vegas {
    fn default() -> Self {
        VegasParams::default().build(&Setup::default())
    }
}

impl WindowBased for Vegas {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt_micros {
            self.base_rtt.sample(rtt);
            self.min_rtt.sample(rtt);
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

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        self.round_end = None;
        window.bytes_of(half(window))
    }

    fn on_resume(&mut self, _resume: &Resume) {
        // The path may be another one after a pause.
        *self = self.params.build(&Setup::default());
    }
}

impl Vegas {
    const fn begin_round(&mut self, snd_nxt: u32) {
        self.round_end = Some(snd_nxt);
        self.min_rtt = MinRtt::NONE;
        self.samples = 0;
    }

    /// The decision of a round.
    fn adjust(&self, window: &mut Window, acked: u32) {
        let (Some(rtt), Some(base)) = (self.min_rtt.micros(), self.base_rtt.micros()) else {
            return;
        };
        let (rtt, base) = (u64::from(rtt), u64::from(base));
        let cwnd = u64::from(window.cwnd);
        let fits = u32::try_from(cwnd * base / rtt).expect("no more than cwnd");
        let diff = u32::try_from(cwnd * (rtt - base) / base).unwrap_or(u32::MAX);
        if window.in_slow_start() {
            if diff > u32::from(self.params.gamma) {
                window.cwnd = window.cwnd.min(fits + 1);
                lower_threshold(window);
            } else {
                window.slow_start(acked);
            }
        } else if diff > u32::from(self.params.beta) {
            window.cwnd -= 1;
            lower_threshold(window);
        } else if diff < u32::from(self.params.alpha) {
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
    window.ssthresh.lower_to(window.cwnd.max(2));
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
                echo: None,
                acked: 0,
                srtt8: 0,
                snd_una: *una,
                snd_nxt: *una + window.cwnd,
                prior_in_flight: 0,
                pacing_rate: 0,
            };
            vegas.on_ack(window, &ack);
            vegas.grow(window, &ack, 2);
            largest = largest.max(window.cwnd);
        }
        largest
    }

    fn after_ten_rounds(tenths: u32) -> u32 {
        window_after_ten_rounds(VegasParams::default(), tenths)
    }

    /// The window after ten rounds in avoidance with this many tenths of a segment queued, from 100.
    fn window_after_ten_rounds(params: VegasParams, tenths: u32) -> u32 {
        let (mut vegas, mut una) = (params.build(&Setup::default()), 0);
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
            (largest / 2 + 1, Some(largest / 2 + 1))
        );
    }

    #[test]
    fn congestion_halves_and_idleness_forgets_the_path() {
        let (mut vegas, mut una) = (Vegas::default(), 0);
        let mut window = Window::new(40, 1);
        window.ssthresh = Threshold::of_segments(20);
        round(&mut vegas, &mut window, &mut una, BASE);
        assert_eq!(vegas.ssthresh(&Window::new(40, 1), 0), 20);
        assert_eq!(vegas.round_end, None);
        assert_eq!(vegas.base_rtt, MinRtt::of(BASE));
        vegas.on_resume(&Resume {
            now: Instant::ZERO,
            tick: 0,
            last_sent_tick: 0,
            snd_nxt: 0,
        });
        assert_eq!(vegas.base_rtt, MinRtt::NONE);
    }

    #[test]
    fn alpha_and_beta_bound_what_is_queued_and_gamma_ends_slow_start() {
        let params = |alpha, beta| VegasParams {
            alpha,
            beta,
            ..VegasParams::default()
        };
        assert_eq!(window_after_ten_rounds(params(2, 4), 65), 92);
        assert!(window_after_ten_rounds(params(8, 10), 65) > 105);
        assert!(window_after_ten_rounds(params(0, 1), 25) < 95);
        let conflict = params(5, 4).conflict().unwrap();
        assert_eq!(conflict, "alpha 5 exceeds beta 4; expected alpha <= beta");

        let window_at_exit = |gamma| {
            let params = VegasParams {
                gamma,
                ..VegasParams::default()
            };
            let (mut vegas, mut una) = (params.build(&Setup::default()), 0);
            let mut window = Window::new(10, 1);
            for _ in 0..3 {
                round(&mut vegas, &mut window, &mut una, BASE);
            }
            round(&mut vegas, &mut window, &mut una, BASE + BASE / 20);
            round(&mut vegas, &mut window, &mut una, BASE + BASE / 20);
            window.in_slow_start()
        };
        assert_eq!([1, 50].map(window_at_exit), [false, true]);
    }
}
