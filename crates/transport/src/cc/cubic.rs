//! CUBIC with HyStart.
//!
//! # Source
//!
//! RFC 8312 and RFC 9438, in the arithmetic of Linux 6.1 (its behaviour specified from
//! measurements and facts, see `docs/explanation/tcp.md`); HyStart: Ha and Rhee, `PFLDnet` 2008, as Linux.
//!
//! # Law
//!
//! ```text
//! congestion at W     W_max = W, or 0.85 W if W is below the last W_max (fast convergence)
//!                     ssthresh = 0.7 W
//! avoidance           W(t) = W_max + 0.4 (t - K)^3,  K = cbrt(W_max 0.3 / 0.4)   t in s
//!                     one segment for each cwnd / (W(t + RTT) - cwnd) acknowledged
//!                     never slower than Reno with the same average: 0.53 segments a round
//! slow start ends     when ACKs of one round have come, 2 ms apart at most, for more than half
//!                     (minimum RTT + 1 ms), with pacing the whole of it, or when the smallest of 8 RTTs of a round exceeds
//!                     the minimum RTT by an eighth (4 to 16 ms)
//! ```
//!
//! # Differences from RFC 9438
//!
//! | here, as Linux | RFC 9438 | effect |
//! |---|---|---|
//! | β = 717/1024, C = 410/1024 | 0.7, 0.4 | 0.03 %, 0.1 % |
//! | W_max counts the window, not the flight | flight size allowed | none when window-limited |
//! | before the first loss at least 5 % a round | – | faster after a HyStart exit |
//! | HyStart; HyStart++ is an option ([`SlowStart`](super::SlowStart)) | HyStart++ (RFC 9406) SHOULD | an ACK train ends slow start early on fast paths |

use libm::cbrt;
use sojourn_net::{Duration, Instant};

use super::{Ack, Resume, Timeout, Window, WindowBased};

/// Multiplicative decrease, in 1024ths.
const BETA: u32 = 717;
/// HyStart is silent below this window.
const HYSTART_LOW_WINDOW: u32 = 16;
/// ACKs at most this far apart belong to one train.
const TRAIN_GAP: Duration = Duration::from_micros(2_000);
/// How many RTT samples of a round make its minimum.
const ROUND_SAMPLES: u32 = 8;

/// The CUBIC congestion controller.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// Tick at which the present curve began.
    epoch_start: Option<u64>,
    /// Window before the last reduction.
    w_max: u32,
    /// The plateau of the present curve.
    origin: u32,
    /// Time from the start of the curve to its plateau, in 1/1024 s.
    k: u64,
    /// Smallest RTT seen, in µs; 0 before the first.
    delay_min: u32,
    last_cwnd: u32,
    last_tick: u64,
    /// Segments acknowledged towards the next one of the Reno estimate.
    ack_cnt: u32,
    /// What Reno's window would be.
    tcp_cwnd: u32,
    /// Segments to be acknowledged for one of growth.
    cnt: u32,
    hystart: HyStart,
}

#[derive(Clone, Debug)]
struct HyStart {
    enabled: bool,
    found: bool,
    /// Transmissions are spread, and so are their acknowledgements, over half a round trip.
    paced: bool,
    /// The round ends when this segment is acknowledged.
    end_seq: u32,
    round_start: Instant,
    last_ack: Instant,
    /// Smallest RTT of this round, in µs.
    curr_rtt: u32,
    samples: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            enabled: true,
            found: false,
            paced: false,
            end_seq: 0,
            round_start: Instant::ZERO,
            last_ack: Instant::ZERO,
            curr_rtt: u32::MAX,
            samples: 0,
        }
    }
}

impl WindowBased for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.rtt_micros else { return };
        // Samples of the first second of an epoch may carry the queue of the recovery.
        if self
            .epoch_start
            .is_some_and(|start| ack.tick < start + 1_000)
        {
            return;
        }
        let rtt = rtt.max(1);
        if self.delay_min == 0 || rtt < self.delay_min {
            self.delay_min = rtt;
        }
        if self.hystart.enabled && !self.hystart.found && window.in_slow_start() {
            self.hystart.on_acked(window, ack, rtt, self.delay_min);
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        let left = if window.in_slow_start() {
            window.slow_start(acked)
        } else {
            acked
        };
        if left > 0 {
            self.update(window.cwnd, ack.tick, left);
            window.additive_increase(self.cnt, left);
        }
    }

    fn ssthresh(&mut self, window: &Window) -> u64 {
        let cwnd = window.cwnd;
        self.epoch_start = None;
        self.w_max = if cwnd < self.w_max {
            cwnd * (1_024 + BETA) / 2_048
        } else {
            cwnd
        };
        window.bytes_of((cwnd * BETA / 1_024).max(2))
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let HyStart { enabled, paced, .. } = self.hystart;
        *self = Self::default();
        self.hystart.enabled = enabled;
        self.hystart.paced = paced;
        self.hystart.begin_round(timeout.now, timeout.snd_nxt);
    }

    fn on_resume(&mut self, resume: &Resume) {
        if let Some(start) = &mut self.epoch_start {
            let pause = resume.tick.saturating_sub(resume.last_sent_tick);
            *start = (*start + pause).min(resume.tick);
        }
    }
}

impl Cubic {
    /// Transmissions are paced: a train counts as long from the whole of the threshold on.
    pub(crate) const fn expect_pacing(&mut self) {
        self.hystart.paced = true;
    }

    /// Whether slow start may end by HyStart.
    pub(crate) const fn use_hystart(&mut self, enabled: bool) {
        self.hystart.enabled = enabled;
    }

    /// Finds `cnt`, how many acknowledged segments earn one.
    fn update(&mut self, cwnd: u32, tick: u64, acked: u32) {
        self.ack_cnt += acked;
        if cwnd == self.last_cwnd && tick - self.last_tick <= 31 {
            return;
        }
        // The curve is a function of the tick: one look a tick is enough.
        if self.epoch_start.is_none() || tick != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.follow_the_curve(cwnd, tick, acked);
        }
        self.not_below_reno(cwnd);
        self.cnt = self.cnt.max(2);
    }

    fn follow_the_curve(&mut self, cwnd: u32, tick: u64, acked: u32) {
        let start = match self.epoch_start {
            Some(start) => start,
            None => self.begin_epoch(cwnd, tick, acked),
        };
        let ahead_ms = tick - start + u64::from(self.delay_min).div_ceil(1_000);
        let t = ahead_ms * 1_024 / 1_000;
        let target = self.target(t);
        self.cnt = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.w_max == 0 {
            self.cnt = self.cnt.min(20);
        }
    }

    fn begin_epoch(&mut self, cwnd: u32, tick: u64, acked: u32) -> u64 {
        self.epoch_start = Some(tick);
        self.ack_cnt = acked;
        self.tcp_cwnd = cwnd;
        if self.w_max <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            self.k = time_to_plateau(self.w_max - cwnd);
            self.origin = self.w_max;
        }
        tick
    }

    /// W at `t`, in 1/1024 s since the epoch began.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturated to 32 bits first"
    )]
    fn target(&self, t: u64) -> u32 {
        let away = u128::from(t.abs_diff(self.k));
        // 410 / 1024 of a cube in (1/1024 s)^3.
        let delta = ((410 * away * away * away) >> 40).min(u128::from(u32::MAX / 2)) as u32;
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// Raises growth to that of Reno with CUBIC's decrease (RFC 9438 §4.3).
    fn not_below_reno(&mut self, cwnd: u32) {
        let per = ((cwnd * 15) >> 3).max(1);
        if self.ack_cnt > per {
            let steps = (self.ack_cnt - 1) / per;
            self.ack_cnt -= steps * per;
            self.tcp_cwnd += steps;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

/// K for a plateau `segments` above the window, in 1/1024 s.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the cube root of a 63-bit number is a 21-bit number"
)]
fn time_to_plateau(segments: u32) -> u64 {
    /// 2^40 / 410: the inverse of C in the units of K cubed.
    const PER_SEGMENT: u64 = 2_681_735_677;
    let cube = PER_SEGMENT * u64::from(segments);
    let mut root = cbrt(cube as f64) as u64;
    // The root of the rounded cube may be one off the integer root.
    while root.pow(3) > cube {
        root -= 1;
    }
    while (root + 1).pow(3) <= cube {
        root += 1;
    }
    root
}

impl HyStart {
    fn begin_round(&mut self, now: Instant, snd_nxt: u32) {
        self.round_start = now;
        self.last_ack = now;
        self.end_seq = snd_nxt;
        self.curr_rtt = u32::MAX;
        self.samples = 0;
    }

    fn on_acked(&mut self, window: &mut Window, ack: &Ack, rtt: u32, delay_min: u32) {
        if ack.snd_una > self.end_seq {
            self.begin_round(ack.now, ack.snd_nxt);
        }
        if window.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        if self.train_is_long(ack, delay_min) || self.delay_has_grown(rtt, delay_min) {
            self.found = true;
            window.end_slow_start();
        }
    }

    fn train_is_long(&mut self, ack: &Ack, delay_min: u32) -> bool {
        if ack.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        // What pacing of TSO bursts may add to a train: four of them, 1 ms at most.
        let slack = (4 * 65_536 * 1_000_000_u64)
            .checked_div(ack.pacing_rate)
            .map_or(1_000, |micros| micros.min(1_000));
        let whole = u64::from(delay_min) + slack;
        let threshold = if self.paced { whole } else { whole / 2 };
        ack.now.since(self.round_start).as_micros() > threshold
    }

    fn delay_has_grown(&mut self, rtt: u32, delay_min: u32) -> bool {
        self.curr_rtt = self.curr_rtt.min(rtt);
        if self.samples < ROUND_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.curr_rtt > delay_min + (delay_min >> 3).clamp(4_000, 16_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_the_cube_root_of_the_gap_over_c() {
        // cbrt((W - floor(0.7 W)) / 0.4); the windows are whole segments.
        for (w, seconds) in [(870_u32, 8.67), (77, 3.91), (14, 2.32)] {
            let k = time_to_plateau(w - w * BETA / 1_024);
            let k = f64::from(u32::try_from(k).unwrap()) / 1_024.0;
            assert!((k - seconds).abs() < 0.02, "W {w}: K {k}");
        }
        assert_eq!(time_to_plateau(0), 0);
    }

    #[test]
    fn the_window_follows_the_cubic_curve() {
        let mut cubic = Cubic {
            delay_min: 100_000,
            ..Cubic::default()
        };
        let mut w = Window::new(1_000, 1);
        w.cwnd = w.segments_of(cubic.ssthresh(&w));
        w.end_slow_start();
        // 100 ACKs of 1 % of the window each, every round trip of 100 ms.
        for tick in 0..20_000_u64 {
            let ack = Ack {
                now: Instant::from_millis(tick),
                tick: 50_000 + tick,
                rtt_micros: Some(100_000),
                one_way_ms: None,
                snd_una: 0,
                snd_nxt: 0,
                pacing_rate: 1_000_000,
            };
            let acked = w.cwnd / 100;
            cubic.grow(&mut w, &ack, acked.into());
            // W(t + RTT): the curve of RFC 9438 one round trip ahead, checked where it moves.
            let t = f64::from(u32::try_from(tick).unwrap()) / 1_000.0;
            let k = (300.0_f64 / 0.4).cbrt();
            let curve = 1_000.0 + 0.4 * (t - k).powi(3);
            if tick > 500 {
                let error = f64::from(w.cwnd) - curve;
                assert!(error.abs() < 0.02 * curve, "t {t}: {} for {curve}", w.cwnd);
            }
        }
    }

    #[test]
    fn fast_convergence_gives_way_to_newcomers() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.ssthresh(&Window::new(279, 1)), 195);
        assert_eq!(cubic.w_max, 279);
        assert_eq!(cubic.ssthresh(&Window::new(268, 1)), 187);
        assert_eq!(cubic.w_max, 227); // as measured on the kernel
    }
}
