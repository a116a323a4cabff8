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

use std::num::{NonZeroU32, NonZeroU64};

use libm::cbrt;
use sojourn_net::{Duration, Instant};
use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::MinRtt;
use super::{Ack, Resume, SlowStart, Threshold, Timeout, Window, WindowBased};
use crate::profile::{CubicRules, SenderProfile};

parameters! {
    /// Parameters of [`Cubic`]: those of the module `tcp_cubic`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CubicParams {
        /// Fraction of the window kept after a reduction.
        pub beta: u16 = 717 => ratio(1_024, 1, 1_023),
            "Linux tcp_cubic, beta; RFC 9438 section 4.6: 0.7";
        /// Constant C of the cubic function, in units of 10/1024.
        pub bic_scale: u16 = 41 => count(1, 10_000),
            "Linux tcp_cubic, bic_scale; RFC 9438 section 5.1: 0.4";
        /// Reduce the window further when it is below the last maximum.
        pub fast_convergence: bool = true => flag(),
            "Linux tcp_cubic, fast_convergence; RFC 9438 section 4.7";
        /// Never grow more slowly than Reno (Reno-friendly region).
        pub tcp_friendliness: bool = true => flag(),
            "Linux tcp_cubic, tcp_friendliness; RFC 9438 section 4.3";
        /// In the Reno-friendly region, count acknowledgements instead of acknowledged segments.
        pub count_acks: bool = false => flag(),
            "Linux tcp_cubic before 4.0, ack_cnt";
        /// Initial slow-start threshold, unless an exit heuristic is on.
        pub initial_ssthresh: Option<NonZeroU32> = None => count_or_off("segments", 0, 1_000_000),
            "Linux tcp_cubic, initial_ssthresh";
        /// Exit slow start with HyStart, unless slow_start is set.
        pub hystart: bool = true => flag(),
            "Linux tcp_cubic, hystart";
        /// Signals that HyStart uses: 1 for ACK trains, 2 for delays, 3 for both.
        pub hystart_detect: u8 = 3 => count(1, 3),
            "Linux tcp_cubic, hystart_detect";
        /// HyStart is inactive below this window.
        pub hystart_low_window: u16 = 16 => count(0, 65_535).of("segments"),
            "Linux tcp_cubic, hystart_low_window";
        /// ACKs at most this far apart belong to one train.
        pub hystart_ack_delta_us: u16 = 2_000 => count(0, 65_535).of("microseconds"),
            "Linux tcp_cubic, hystart_ack_delta_us";
    }
}

impl Control for CubicParams {
    type Controller = Cubic;

    const DECLARATION: Declaration = Declaration {
        name: "cubic",
        summary: "Window as a cubic function of the time since the last reduction; the default in Linux",
        source: "RFC 9438; Linux 6.1 tcp_cubic",
        slow_starts: &[
            SlowStart::HyStart,
            SlowStart::Standard,
            SlowStart::HyStartPlusPlus,
            SlowStart::Search,
            SlowStart::CarefulResume,
            SlowStart::RapidStart,
        ],
        // RFC 9438 §4.10; pacing determines the length of the ACK trains that HyStart looks at.
        quic_slow_start: Some(SlowStart::HyStartPlusPlus),
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, setup: &Setup) -> Cubic {
        let mut params = *self;
        if let Some(chosen) = setup.slow_start {
            params.hystart = chosen == SlowStart::HyStart;
        }
        params.count_acks |= setup.profile.rules().cubic.count_acks;
        let mut cubic = Cubic::new(params, setup.paced);
        cubic.hystart.profile = setup.profile;
        cubic
    }

    fn usual_slow_start(&self) -> Option<SlowStart> {
        Some(if self.hystart {
            SlowStart::HyStart
        } else {
            SlowStart::Standard
        })
    }

    /// Without an exit heuristic `initial_ssthresh`, as `cubictcp_init`.
    fn initial_ssthresh(&self, setup: &Setup) -> Threshold {
        let heuristic = match setup.slow_start {
            None => self.hystart,
            Some(chosen) => chosen != SlowStart::Standard,
        };
        match self.initial_ssthresh {
            Some(segments) if !heuristic => Threshold::of_segments(segments.get()),
            _ => Threshold::UNSET,
        }
    }
}

/// How many RTT samples of a round make its minimum.
const ROUND_SAMPLES: u8 = 8;
/// Bits of `hystart_detect`.
const DETECT_TRAIN: u8 = 1;
const DETECT_DELAY: u8 = 2;

/// The CUBIC congestion controller.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    /// Tick at which the present curve began, plus 1: connections are many, and this takes 8 bytes.
    epoch: Option<NonZeroU64>,
    /// Window before the last reduction; `None` before the first.
    w_max: Option<NonZeroU32>,
    /// The plateau of the present curve.
    origin: u32,
    /// Time from the start of the curve to its plateau, in 1/1024 s.
    k: u32,
    /// Smallest RTT seen.
    delay_min: MinRtt,
    last_cwnd: u32,
    last_tick: u64,
    /// Segments, or acknowledgements, towards the next segment of the Reno estimate.
    ack_cnt: u32,
    /// What Reno's window would be.
    tcp_cwnd: u32,
    /// Segments to be acknowledged for one of growth.
    cnt: u32,
    /// The round of HyStart ends when this segment is acknowledged. Here, since `HyStart` would be padded.
    round_end: u32,
    hystart: HyStart,
}

#[derive(Clone, Debug)]
struct HyStart {
    found: bool,
    /// Transmissions are spread, and so are their acknowledgements, over half a round trip.
    paced: bool,
    round_start: Instant,
    last_ack: Instant,
    /// Smallest RTT of this round.
    curr_rtt: MinRtt,
    samples: u8,
    profile: SenderProfile,
}

impl HyStart {
    const fn new(paced: bool) -> Self {
        Self {
            found: false,
            paced,
            round_start: Instant::ZERO,
            last_ack: Instant::ZERO,
            curr_rtt: MinRtt::NONE,
            samples: 0,
            profile: SenderProfile::Linux,
        }
    }
}

impl WindowBased for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.rtt_micros else { return };
        // Samples of the first second of an epoch may carry the queue of the recovery.
        if self
            .epoch_start()
            .is_some_and(|start| ack.tick < start + 1_000)
        {
            return;
        }
        let delay_min = self.delay_min.sample(rtt);
        if self.params.hystart && !self.hystart.found && window.in_slow_start() {
            if ack.snd_una > self.round_end {
                self.begin_round(ack.now, ack.snd_nxt);
            }
            self.hystart
                .on_ack(&self.params, window, ack, rtt, delay_min);
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
            let counted = if self.params.count_acks { 1 } else { left };
            self.update(window.cwnd, ack.tick, counted);
            window.additive_increase(self.cnt, left);
        }
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let (cwnd, beta) = (window.cwnd, u32::from(self.params.beta));
        self.epoch = None;
        let below = self.w_max.is_some_and(|w_max| cwnd < w_max.get());
        self.w_max = NonZeroU32::new(if below && self.params.fast_convergence {
            cwnd * (1_024 + beta) / 2_048
        } else {
            cwnd
        });
        window.bytes_of((cwnd * beta / 1_024).max(2))
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let HyStart { paced, profile, .. } = self.hystart;
        *self = Self::new(self.params, paced);
        self.hystart.profile = profile;
        self.begin_round(timeout.now, timeout.snd_nxt);
    }

    fn on_resume(&mut self, resume: &Resume) {
        if let Some(start) = self.epoch_start()
            && self.rules().skips_idle
        {
            let pause = resume.tick.saturating_sub(resume.last_sent_tick);
            self.start_epoch((start + pause).min(resume.tick));
        }
    }
}

impl Cubic {
    /// A controller that has met no congestion. With pacing a train is long from the whole of the
    /// threshold on.
    const fn new(params: CubicParams, paced: bool) -> Self {
        Self {
            params,
            epoch: None,
            w_max: None,
            origin: 0,
            k: 0,
            delay_min: MinRtt::NONE,
            last_cwnd: 0,
            last_tick: 0,
            ack_cnt: 0,
            tcp_cwnd: 0,
            cnt: 0,
            round_end: 0,
            hystart: HyStart::new(paced),
        }
    }

    /// The rules of the implementation that it belongs to.
    const fn rules(&self) -> &'static CubicRules {
        self.hystart.rules()
    }

    fn begin_round(&mut self, now: Instant, snd_nxt: u32) {
        self.round_end = snd_nxt;
        self.hystart.begin_round(now);
    }

    /// Computes `cnt`, the number of acknowledged segments per segment of growth.
    #[inline]
    fn update(&mut self, cwnd: u32, tick: u64, acked: u32) {
        self.ack_cnt = self.ack_cnt.wrapping_add(acked);
        if cwnd != self.last_cwnd || tick - self.last_tick > 31 {
            self.recompute(cwnd, tick, acked);
        }
    }

    /// The rare part of [`Cubic::update`]. Not inlined, so that the other acknowledgements save no
    /// registers for it.
    #[inline(never)]
    fn recompute(&mut self, cwnd: u32, tick: u64, acked: u32) {
        // The curve is a function of the tick: once per tick is enough.
        if self.epoch.is_none() || tick != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.follow_the_curve(cwnd, tick, acked);
        }
        if self.params.tcp_friendliness {
            self.not_below_reno(cwnd);
        }
        self.cnt = self.cnt.max(2);
    }

    fn follow_the_curve(&mut self, cwnd: u32, tick: u64, acked: u32) {
        let start = match self.epoch_start() {
            Some(start) => start,
            None => self.begin_epoch(cwnd, tick, acked),
        };
        let rtt_ms = self.delay_min.micros().unwrap_or(0).div_ceil(1_000);
        let ahead_ms = tick - start + u64::from(rtt_ms);
        let t = ahead_ms * 1_024 / 1_000;
        let target = self.target(t);
        self.cnt = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.w_max.is_none() && self.rules().least_growth {
            self.cnt = self.cnt.min(20);
        }
    }

    fn begin_epoch(&mut self, cwnd: u32, tick: u64, acked: u32) -> u64 {
        self.start_epoch(tick);
        self.ack_cnt = acked;
        self.tcp_cwnd = cwnd;
        match self.w_max.map(NonZeroU32::get) {
            Some(w_max) if w_max > cwnd => {
                self.k = time_to_plateau(w_max - cwnd, self.c());
                self.origin = w_max;
            }
            _ => {
                self.k = 0;
                self.origin = cwnd;
            }
        }
        tick
    }

    const fn start_epoch(&mut self, tick: u64) {
        self.epoch = NonZeroU64::new(tick + 1);
    }

    /// Tick at which the present curve began.
    #[inline]
    fn epoch_start(&self) -> Option<u64> {
        self.epoch.map(|tick| tick.get() - 1)
    }

    /// C, in 1024ths.
    fn c(&self) -> u64 {
        10 * u64::from(self.params.bic_scale)
    }

    /// W at `t`, in 1/1024 s since the epoch began.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturated to 32 bits first"
    )]
    fn target(&self, t: u64) -> u32 {
        let away = u128::from(t.abs_diff(self.k.into()));
        // C of a cube in (1/1024 s)^3.
        let delta = ((u128::from(self.c()) * away * away * away) >> 40)
            .min(u128::from(u32::MAX / 2)) as u32;
        if t < u64::from(self.k) {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// Raises growth to that of Reno with CUBIC's decrease (RFC 9438 §4.3).
    fn not_below_reno(&mut self, cwnd: u32) {
        let beta = u32::from(self.params.beta);
        // Segments acknowledged per segment of Reno's growth, in eighths of the window.
        let scale = 8 * (1_024 + beta) / 3 / (1_024 - beta);
        let per = (u64::from(cwnd) * u64::from(scale)) >> 3;
        let per = u32::try_from(per).unwrap_or(u32::MAX).max(1);
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

/// K for a plateau `segments` above the window, in 1/1024 s; `c` in 1024ths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the cube root of a 63-bit number is a 21-bit number"
)]
fn time_to_plateau(segments: u32, c: u64) -> u32 {
    // The inverse of C in the units of K cubed.
    let per_segment = (1_u64 << 40) / c;
    let cube = u64::saturating_mul(per_segment, segments.into()).min(1 << 62);
    let mut root = cbrt(cube as f64) as u64;
    // The root of the rounded cube may be one off the integer root.
    while root.pow(3) > cube {
        root -= 1;
    }
    while (root + 1).pow(3) <= cube {
        root += 1;
    }
    u32::try_from(root).expect("a 21-bit number")
}

impl HyStart {
    fn begin_round(&mut self, now: Instant) {
        self.round_start = now;
        self.last_ack = now;
        self.curr_rtt = MinRtt::NONE;
        self.samples = 0;
    }

    /// Not inlined: most acknowledgements arrive after slow start.
    #[inline(never)]
    fn on_ack(
        &mut self,
        params: &CubicParams,
        window: &mut Window,
        ack: &Ack,
        rtt: u32,
        delay_min: u32,
    ) {
        if window.cwnd < params.hystart_low_window.into() {
            return;
        }
        let detect = |bit| params.hystart_detect & bit != 0;
        let gap = Duration::from_micros(params.hystart_ack_delta_us.into());
        if (detect(DETECT_TRAIN) && self.train_is_long(ack, delay_min, gap))
            || (detect(DETECT_DELAY) && self.delay_has_grown(rtt, delay_min))
        {
            self.found = true;
            window.end_slow_start();
        }
    }

    fn train_is_long(&mut self, ack: &Ack, delay_min: u32, gap: Duration) -> bool {
        if !self.profile.is_default() && self.rules().whole_ms {
            return self.train_is_long_in_ms(ack, delay_min, gap);
        }
        if ack.now.since(self.last_ack) > gap {
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

    /// The same in whole ms of the host's clock, without slack.
    fn train_is_long_in_ms(&mut self, ack: &Ack, delay_min: u32, gap: Duration) -> bool {
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        if Duration::from_millis(ms(ack.now) - ms(self.last_ack)) > gap {
            return false;
        }
        self.last_ack = ack.now;
        1_000 * (ms(ack.now) - ms(self.round_start)) > u64::from(delay_min) / 2
    }

    const fn rules(&self) -> &'static CubicRules {
        &self.profile.rules().cubic
    }

    fn delay_has_grown(&mut self, rtt: u32, delay_min: u32) -> bool {
        let curr_rtt = self.curr_rtt.sample(rtt);
        if self.samples < ROUND_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rules = self.rules();
        let least = 1_000 * u32::from(rules.delay_least_ms);
        curr_rtt > delay_min + (delay_min >> rules.delay_shift).clamp(least, 16_000)
    }
}

#[cfg(test)]
mod tests;
