//! Illinois: the queueing delay sets growth and reduction, losses set when to reduce.
//!
//! # Source
//!
//! Liu, Başar and Srikant, "TCP-Illinois: A loss- and delay-based congestion control algorithm for high-speed
//! networks", Performance Evaluation 65(6-7), 2008; the arithmetic of Linux 6.1 `tcp_illinois`.
//!
//! # Law
//!
//! Once per round trip, with the mean queueing delay *da* of the round and the largest ever, *dm*:
//!
//! ```text
//! alpha        10                                     while da has never been above dm / 100, or theta rounds after it
//!                                                     last was
//!              (dm - d1) / (dm - d1 + (da - d1) (10 - 0.3) / 0.3) 10      d1 = dm / 100: from 10 down to 0.3
//! beta         1/8                                    da <= dm / 10
//!              1/2                                    da >= 8 dm / 10
//!              linear in between
//! avoidance    cwnd += alpha                          per round trip
//! congestion   ssthresh = max(cwnd - beta cwnd, 2)
//! ```
//!
//! Below `win_thresh` segments and after a time-out alpha is 1 and beta 1/2, as Reno. alpha is in 128ths, so 0.3 is
//! 38/128; beta is in 64ths. Delays are RTTs in µs less the smallest RTT ever.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | the largest delay is never forgotten | – | after a rise of the base RTT alpha stays small |
//! | growth counts what the last acknowledgement covered, once | each segment | none while the window limits sending |

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, Phase, SlowStart, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`Illinois`]: those of the module `tcp_illinois`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct IllinoisParams {
        /// Window from which growth and reduction follow the delay.
        pub win_thresh: u32 = 15 => count(0, 1_000_000).of("segments"),
            "Linux tcp_illinois, win_thresh";
        /// Rounds with a small delay before growth is at its maximum again.
        pub theta: u8 = 5 => count(0, 255).of("rounds"),
            "Linux tcp_illinois, theta; Liu et al. 2008: 5";
    }
}

impl Control for IllinoisParams {
    type Controller = Illinois;

    const DECLARATION: Declaration = Declaration {
        name: "illinois",
        summary: "Grows faster and reduces less the shorter the queueing delay is",
        source: "Liu, Başar and Srikant 2008; Linux 6.1 tcp_illinois",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Illinois {
        Illinois {
            params: *self,
            sum: 0,
            samples: 0,
            base_rtt: u32::MAX,
            max_rtt: 0,
            round_end: 0,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            acked: 0,
            was_above: false,
            low_rounds: 0,
        }
    }
}

/// 1 as alpha is kept, and as beta is kept.
const ALPHA_ONE: u32 = 128;
const BETA_ONE: u32 = 64;
const ALPHA_MIN: u32 = 3 * ALPHA_ONE / 10;
const ALPHA_MAX: u32 = 10 * ALPHA_ONE;
const BETA_MIN: u32 = BETA_ONE / 8;
const BETA_MAX: u32 = BETA_ONE / 2;
/// Longer RTTs count as this, in µs, so that 32 bits suffice for alpha.
const RTT_MAX: u32 = u32::MAX / ALPHA_MAX;

/// The Illinois congestion controller. RTTs are in µs.
#[derive(Clone, Copy, Debug)]
pub struct Illinois {
    params: IllinoisParams,
    /// Of the RTTs of this round.
    sum: u64,
    samples: u32,
    /// Smallest and largest RTT ever.
    base_rtt: u32,
    max_rtt: u32,
    /// The round ends when a segment from this one on is acknowledged.
    round_end: u32,
    alpha: u32,
    beta: u32,
    /// Segments that the last acknowledgement covered, until they have counted.
    acked: u32,
    /// The delay has been above its first threshold.
    was_above: bool,
    /// Rounds below it since.
    low_rounds: u8,
}

impl WindowBased for Illinois {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.acked = ack.acked;
        if let Some(rtt) = ack.rtt_micros {
            let rtt = rtt.min(RTT_MAX);
            self.base_rtt = self.base_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
            self.samples += 1;
            self.sum += u64::from(rtt);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        self.end_round(window, ack);
        if window.in_slow_start() {
            window.slow_start(window.segments_of(acked));
            return;
        }
        window.cnt += self.acked;
        self.acked = 1;
        let earned = window.cnt.wrapping_mul(self.alpha) / ALPHA_ONE;
        if earned >= window.cwnd {
            window.cwnd += earned / window.cwnd;
            window.cnt = 0;
        }
    }

    fn on_unused(&mut self, window: &Window, ack: &Ack) {
        self.end_round(window, ack);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let given = u64::from(window.cwnd) * u64::from(self.beta) / u64::from(BETA_ONE);
        let left = u64::from(window.cwnd) - given;
        window.bytes_of(u32::try_from(left).expect("less than cwnd").max(2))
    }

    fn on_phase(&mut self, transition: &Transition) {
        if transition.to == Phase::Loss {
            self.alpha = ALPHA_ONE;
            self.beta = BETA_MAX;
            self.low_rounds = 0;
            self.was_above = false;
            self.begin_round(transition.snd_nxt);
        }
    }
}

impl Illinois {
    const fn begin_round(&mut self, snd_nxt: u32) {
        self.round_end = snd_nxt;
        self.samples = 0;
        self.sum = 0;
    }

    /// Computes growth and reduction if the round is over.
    fn end_round(&mut self, window: &Window, ack: &Ack) {
        if ack.snd_una <= self.round_end {
            return;
        }
        if window.cwnd < self.params.win_thresh {
            self.alpha = ALPHA_ONE;
            self.beta = BETA_MAX;
        } else if let Some(mean) = self.sum.checked_div(self.samples.into()) {
            let mean = u32::try_from(mean).expect("no more than RTT_MAX");
            let (delay, largest) = (mean - self.base_rtt, self.max_rtt - self.base_rtt);
            self.alpha = self.growth(delay, largest);
            self.beta = reduction(delay, largest);
        }
        self.begin_round(ack.snd_nxt);
    }

    /// Alpha at a mean queueing delay of `delay` where the largest was `largest`.
    fn growth(&mut self, delay: u32, largest: u32) -> u32 {
        let small = largest / 100;
        if delay <= small {
            if !self.was_above {
                return ALPHA_MAX;
            }
            self.low_rounds = self.low_rounds.wrapping_add(1);
            if self.low_rounds < self.params.theta {
                return self.alpha;
            }
            self.low_rounds = 0;
            self.was_above = false;
            return ALPHA_MAX;
        }
        self.was_above = true;
        let (largest, delay) = (largest - small, delay - small);
        let steepness = delay * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN;
        largest * ALPHA_MAX / (largest + steepness)
    }
}

/// Beta at a mean queueing delay of `delay` where the largest was `largest`.
const fn reduction(delay: u32, largest: u32) -> u32 {
    let (low, high) = (largest / 10, 8 * largest / 10);
    if delay <= low {
        BETA_MIN
    } else if delay >= high || high <= low {
        BETA_MAX
    } else {
        (BETA_MIN * high - BETA_MAX * low + (BETA_MAX - BETA_MIN) * delay) / (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn illinois() -> Illinois {
        IllinoisParams::default().build(&Setup::default())
    }

    /// A round of one acknowledgement, of `acked` segments before `snd_una`, with this RTT.
    fn round(cc: &mut Illinois, window: &mut Window, snd_una: u32, rtt_micros: u32) {
        let ack = Ack {
            rtt_micros: Some(rtt_micros),
            snd_una,
            snd_nxt: snd_una,
            acked: 1,
            ..Ack::at(0)
        };
        cc.on_ack(window, &ack);
        cc.grow(window, &ack, 1);
    }

    #[test]
    fn growth_falls_from_10_to_about_0_3_as_the_delay_rises() {
        // Of 100 ms: d1 = 1 ms; 99 / (99 + (da - 1) 1242/38) 1280.
        let of = |delay| illinois().growth(delay, 100_000);
        assert_eq!([0, 1_000].map(of), [1_280, 1_280]);
        assert_eq!([2_000, 10_000, 50_000, 100_000].map(of), [962, 322, 74, 38]);
    }

    #[test]
    fn growth_waits_for_theta_rounds_of_small_delay() {
        let mut cc = illinois();
        cc.alpha = cc.growth(50_000, 100_000);
        let rounds: Vec<_> = (0..6)
            .map(|_| {
                cc.alpha = cc.growth(500, 100_000);
                cc.alpha
            })
            .collect();
        assert_eq!(rounds, [74, 74, 74, 74, 1_280, 1_280]);
    }

    #[test]
    fn the_reduction_rises_from_an_eighth_to_a_half() {
        let of = |delay| reduction(delay, 100_000);
        assert_eq!(
            [0, 10_000, 45_000, 79_000, 80_000, 100_000].map(of),
            [8, 8, 20, 31, 32, 32]
        );
        assert_eq!(reduction(1, 1), 32);
        let mut cc = illinois();
        cc.beta = 8;
        assert_eq!(cc.ssthresh(&Window::new(100, 1), 0), 88);
        cc.beta = 32;
        assert_eq!(cc.ssthresh(&Window::new(3, 1), 0), 2);
    }

    #[test]
    fn a_round_is_judged_by_its_mean_delay() {
        let (mut cc, mut window) = (illinois(), Window::new(100, 1));
        window.end_slow_start();
        round(&mut cc, &mut window, 1, 50_000);
        assert_eq!((cc.alpha, cc.beta), (1_280, 8));
        round(&mut cc, &mut window, 2, 150_000);
        // da = dm.
        assert_eq!((cc.alpha, cc.beta), (38, 32));
        // The mean of 50 and 150 ms.
        let mut ack = Ack {
            rtt_micros: Some(50_000),
            snd_una: 2,
            ..Ack::at(0)
        };
        cc.on_ack(&mut window, &ack);
        assert_eq!(cc.samples, 1);
        ack.snd_una = 3;
        ack.rtt_micros = Some(150_000);
        cc.on_ack(&mut window, &ack);
        cc.on_unused(&window, &ack);
        assert_eq!((cc.alpha, cc.beta, cc.samples), (74, 21, 0));
    }

    #[test]
    fn small_windows_and_time_outs_are_renos() {
        let (mut cc, mut window) = (illinois(), Window::new(14, 1));
        window.end_slow_start();
        round(&mut cc, &mut window, 1, 50_000);
        assert_eq!((cc.alpha, cc.beta), (128, 32));
        window.cwnd = 15;
        round(&mut cc, &mut window, 2, 50_000);
        assert_eq!((cc.alpha, cc.beta), (1_280, 8));
        cc.on_phase(&Transition {
            to: Phase::Loss,
            tick: 0,
            snd_nxt: 9,
        });
        assert_eq!((cc.alpha, cc.beta, cc.round_end), (128, 32, 9));
    }

    #[test]
    fn the_window_grows_by_alpha_per_round_trip() {
        let grown = |alpha| {
            let (mut cc, mut window) = (illinois(), Window::new(100, 1));
            window.end_slow_start();
            cc.alpha = alpha;
            cc.round_end = u32::MAX;
            for _ in 0..50 {
                cc.on_ack(
                    &mut window,
                    &Ack {
                        acked: 2,
                        ..Ack::at(0)
                    },
                );
                cc.grow(&mut window, &Ack::at(0), 2);
            }
            (window.cwnd, window.cnt)
        };
        // Ten segments, then twelve for each of seven windows above 100, and six are left.
        assert_eq!(grown(128), (101, 0));
        assert_eq!(grown(1_280), (108, 6));
        assert_eq!(grown(38), (100, 100));
    }
}
