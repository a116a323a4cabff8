//! Prague: DCTCP adapted to Internet paths and L4S queues.
//!
//! # Source
//!
//! TCP Prague version 0.7: `tcp_prague` of L4STeam/linux, commit 893e1479793e. RFC 9331 §4 (what L4S asks of a sender).
//! The algorithm began as draft-briscoe-iccrg-prague-congestion-control, which describes earlier rules.
//!
//! # Law
//!
//! ```text
//! RTT_virt = max(srtt, 25 ms)
//! round            until what was sent at its start is acknowledged, from the fourth after slow start
//!                  at least 25 ms: then the flow is independent of its RTT
//! slow start       cwnd += delivered - marked, until the window first falls
//! first mark       cwnd = cwnd / 2, once; alpha starts at 0
//! end of a round   alpha += (marked / delivered - alpha) / 16, after the first mark
//! mark             cwnd -= cwnd alpha / 2     then none until what is sent now is acknowledged,
//!                                             nor, once independent, before 25 ms have passed
//! growth           cwnd += (delivered - marked) a / cwnd     a = 1; once independent
//!                                                            (srtt / 25 ms)^2 below 25 ms
//!                  none unless the window limits sending, none while a loss is repaired
//! loss             cwnd -= cwnd / 2
//! sending          at most the window in flight: it follows ceil(cwnd), at least 2, by one segment
//!                  per acknowledgement
//! pacing           max(floor(cwnd), in flight) / srtt, twice that below half the slow-start threshold
//!                  units of 0.25 ms
//! ```
//!
//! A flow that is independent of its RTT and whose window is at most 4 segments is governed by a rate, which
//! neither the window's minimum nor its whole segments limit:
//!
//! ```text
//! mark             rate -= rate alpha / 2
//! growth           rate += (delivered - marked) / (RTT_virt ceil(rate RTT_virt))
//! cwnd             rate times the average of srtt over 128 rounds
//! pacing           33/32 rate in the first half of an RTT_virt after alpha changed, then 31/32 rate
//! ```
//!
//! In growth and `cwnd`, a second has 2^23 / 8 µs, 4.9 % more than elsewhere, as in Linux: a window that a rate governs
//! is 4.6 % smaller than the window of that rate.
//!
//! Rates count segments of the length of the packet, as in Linux: pacing sends 3.6 % more payload than the
//! window for a round trip has.
//!
//! Packets of both ends are ECT(1); the peer counts marks (RFC 9768). A peer that cannot gets no
//! ECN at all, since ECT(1) says that each mark is answered a little.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | segments keep their length | below 1 Mbit/s they become shorter, so that two are in flight | a flow that has fallen to the least rate, 100 kbit/s, has one segment in flight, counts as not limited by its window, and may stay there for tens of seconds: seen with `dualpi2 queue_protection` |
//! | real numbers | integers with 20 to 24 binary places | – |
//! | `alpha_on_init` is any fraction | 0, or 1 without the halving at the first mark | – |
//! | over QUIC, pacing also counts as the window's limit (RFC 9002 §7.8) | – | – |
//!
//! A classic AQM is not distinguished from one for L4S.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};
use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, BurstSize, Episode, ModelBased, Progress, Reduction, Start, Threshold, Window};
use crate::segment::headers;

parameters! {
    /// Parameters of [`Prague`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PragueParams {
        /// RTT floor: once independent of its RTT, a flow with a shorter RTT behaves as with this one.
        pub rtt_virt_min: u32 = 25_000 => micros(0, 1_000_000),
            "tcp_prague 0.7, prague_rtt_target";
        /// Number of rounds after slow start until a flow is independent of its RTT.
        pub rtt_transition: u16 = 4 => count(0, 10_000).of("rounds"),
            "tcp_prague 0.7, prague_rtt_transition";
        /// Largest window that is governed by a rate; 0: none.
        pub cwnd_transit: u16 = 4 => count(0, 10_000).of("segments"),
            "tcp_prague 0.7, prague_cwnd_transit";
        /// Gain of the moving average of the fraction of marked segments.
        pub g: u16 = 64 => ratio(1_024, 1, 1_024),
            "tcp_prague 0.7, PRAGUE_SHIFT_G: 1/16";
        /// Alpha at the start of a connection. At 0, the first mark halves the window.
        pub alpha_on_init: u16 = 0 => ratio(1_024, 0, 1_024),
            "tcp_prague 0.7, prague_alpha_mode";
        /// Fraction of the window kept after a loss.
        pub beta: u16 = 512 => ratio(1_024, 1, 1_023),
            "RFC 5681 section 3.1: 1/2";
        /// Exponent n of the duration 2^-n s of a burst over TCP.
        pub burst_shift: u8 = 12 => count(4, 20),
            "tcp_prague 0.7, prague_burst_shift";
    }
}

impl Control for PragueParams {
    type Controller = Prague;

    const DECLARATION: Declaration = Declaration {
        name: "prague",
        summary: "Scalable control for L4S: DCTCP for the Internet",
        source: "tcp_prague 0.7 of L4STeam/linux; RFC 9331",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Accurate,
        fills_buffers: false,
        comparison: Comparison::With("TCP Prague 0.7 on Linux 7.3"),
    };

    fn build(&self, setup: &Setup) -> Prague {
        Prague {
            params: *self,
            headers: headers(setup.ip).into(),
            cwnd: f64::from(MIN_CWND),
            rate: 0.0,
            rate_based: false,
            alpha: parts(self.alpha_on_init),
            saw_ce: false,
            delivered: 0,
            marked: 0,
            round: 0,
            round_end: 0,
            alpha_at: Instant::ZERO,
            cwr_end: None,
            answered_at: None,
            pacing: 0.0,
            loss: None,
            undone: false,
            srtt8: None,
            slow_srtt: 0.0,
        }
    }

    fn reduces_by_steps(&self) -> bool {
        true
    }
}

/// A number kept in 1024ths.
fn parts(of_1024: u16) -> f64 {
    f64::from(of_1024) / 1_024.0
}

/// The least window for sending, in segments.
const MIN_CWND: u32 = 2;
/// The least rate, in bytes/s.
const MIN_RATE: f64 = 12_500.0;
/// How much faster, then slower than its rate a rate-based flow is paced.
const SWING: f64 = 1.0 / 32.0;
/// The second of rates that become windows, in seconds: 2^23 eighths of a microsecond.
const LONG_SECOND: f64 = 1.048_576;
/// Rounds of the average RTT that converts a rate to a window.
const SLOW_ROUNDS: f64 = 128.0;

/// The Prague congestion controller. Windows are in segments, with their fraction, rates in segments/s.
#[derive(Clone, Debug)]
pub struct Prague {
    params: PragueParams,
    /// Bytes of the headers of a segment, which count in rates.
    headers: u32,
    cwnd: f64,
    rate: f64,
    /// The window is small enough for the rate to govern a flow that is independent of its RTT.
    rate_based: bool,
    /// Part of the segments marked.
    alpha: f64,
    /// A mark was seen: the path has an AQM.
    saw_ce: bool,
    /// Segments delivered and marked in this round.
    delivered: u32,
    marked: u32,
    /// Rounds since slow start.
    round: u32,
    /// The round ends when all segments below this are acknowledged.
    round_end: u32,
    /// When alpha was last updated.
    alpha_at: Instant,
    /// Marks are not answered until more than all segments below this are acknowledged.
    cwr_end: Option<u32>,
    /// When a mark was last answered.
    answered_at: Option<Instant>,
    /// The pacing rate.
    pacing: f64,
    /// Window and rate before the loss that is being repaired.
    loss: Option<(u32, f64)>,
    /// The loss was spurious.
    undone: bool,
    /// 8 times the smoothed RTT, in µs; `None` before the first sample.
    srtt8: Option<NonZeroU32>,
    /// The average of the smoothed RTT over many rounds, in seconds.
    slow_srtt: f64,
}

impl Default for Prague {
    fn default() -> Self {
        PragueParams::default().build(&Setup::default())
    }
}

impl Prague {
    fn sample(&mut self, rtt: u32) {
        self.srtt8 = NonZeroU32::new(match self.srtt8.map(NonZeroU32::get) {
            None => rtt.saturating_mul(8),
            Some(srtt8) => srtt8 - srtt8 / 8 + rtt,
        });
    }

    /// The smoothed RTT in seconds; `None` before the first sample.
    fn srtt(&self) -> Option<f64> {
        self.srtt8.map(|srtt8| f64::from(srtt8.get()) / 8e6)
    }

    /// The virtual RTT in seconds: before the first sample its floor.
    fn rtt_virt(&self) -> f64 {
        let floor = f64::from(self.params.rtt_virt_min) / 1e6;
        self.srtt().map_or(floor, |srtt| srtt.max(floor))
    }

    fn is_rtt_independent(&self, window: &Window) -> bool {
        !window.in_slow_start() && self.round >= self.params.rtt_transition.into()
    }

    /// Whether the rate, not the window, governs the flow.
    fn is_rate_governed(&self, window: &Window) -> bool {
        self.rate_based && self.is_rtt_independent(window)
    }

    /// Whether a virtual RTT has passed since `then` where that is to be waited for.
    fn target_elapsed(&self, window: &Window, now: Instant, then: Instant) -> bool {
        let target = Duration::from_micros(self.params.rtt_virt_min.into());
        !self.is_rtt_independent(window) || now.saturating_since(then) >= target
    }

    /// The rate of the window.
    fn rate_of_cwnd(&self, window: &Window) -> f64 {
        let rate = self.srtt().map_or(0.0, |srtt| self.cwnd / srtt);
        rate.max(self.min_rate(window))
    }

    /// The window of the rate.
    fn cwnd_of_rate(&self) -> f64 {
        self.rate * self.slow_srtt / LONG_SECOND
    }

    fn start_round(&mut self, window: &Window, snd_nxt: u32) {
        self.round_end = snd_nxt;
        self.delivered = 0;
        self.marked = 0;
        if !window.in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
    }

    fn end_round(&mut self, window: &Window, ack: &Ack) {
        if self.saw_ce {
            let part = f64::from(self.marked) / f64::from(self.delivered.max(1));
            self.alpha += (part.min(1.0) - self.alpha) * parts(self.params.g);
            self.alpha_at = ack.now;
        }
        if let Some(srtt) = self.srtt() {
            self.slow_srtt += (srtt - self.slow_srtt) / SLOW_ROUNDS;
        }
        self.start_round(window, ack.snd_nxt);
    }

    /// Once per round trip, and once per virtual RTT.
    fn answer_marks(&mut self, window: &Window, ack: &Ack) {
        if self.cwr_end.is_some() {
            return;
        }
        self.cwr_end = Some(ack.snd_nxt);
        let answered = self.answered_at;
        if answered.is_some_and(|then| !self.target_elapsed(window, ack.now, then)) {
            return;
        }
        self.answered_at = Some(ack.now);
        let kept = 1.0 - self.alpha / 2.0;
        self.reduce(window, kept);
    }

    /// Keeps a part of the rate or of the window.
    fn reduce(&mut self, window: &Window, kept: f64) {
        if self.is_rate_governed(window) {
            self.rate = (self.rate * kept).max(self.min_rate(window));
            self.cwnd = self.cwnd_of_rate();
        } else {
            self.cwnd *= kept;
            self.rate = self.rate_of_cwnd(window);
        }
    }

    /// What `unmarked` segments add.
    fn grow(&mut self, window: &mut Window, mut unmarked: u32) {
        if window.in_slow_start() {
            let grown = window.cwnd.saturating_add(unmarked);
            let cwnd = grown.min(window.ssthresh.limit());
            unmarked -= cwnd - window.cwnd;
            window.cwnd = cwnd;
            self.cwnd = cwnd.into();
            if unmarked == 0 {
                return;
            }
        }
        let unmarked = f64::from(unmarked);
        if self.is_rate_governed(window) {
            let rtt_virt = self.rtt_virt() / LONG_SECOND;
            let segments = f64::from(whole(self.rate * rtt_virt)).max(1.0);
            self.rate += unmarked / (rtt_virt * segments);
            self.cwnd = self.cwnd.max(self.cwnd_of_rate());
        } else {
            let slow = match self.srtt() {
                Some(srtt) if self.round >= self.params.rtt_transition.into() => {
                    srtt / self.rtt_virt()
                }
                _ => 1.0,
            };
            self.cwnd += unmarked * slow * slow / self.cwnd;
            self.rate = self.rate.max(self.rate_of_cwnd(window));
        }
    }

    /// The window for sending follows by a segment.
    fn step(&self, window: &mut Window) {
        let aim = whole(self.cwnd).max(MIN_CWND);
        if window.cwnd > aim {
            window.cwnd -= 1;
            window.ssthresh = Threshold::of_segments(window.cwnd);
        } else if window.cwnd < aim {
            window.cwnd += 1;
        }
    }

    fn set_pacing_rate(&mut self, window: &Window, now: Instant, in_flight: u32) {
        self.pacing = if self.is_rate_governed(window) {
            let elapsed = now.saturating_since(self.alpha_at).as_secs_f64();
            let swing = if elapsed >= self.rtt_virt() / 2.0 {
                -SWING
            } else {
                SWING
            };
            self.rate * (1.0 + swing)
        } else {
            let segments = f64::from(below(self.cwnd).max(in_flight));
            let rate = self.srtt().map_or(0.0, |srtt| segments / srtt);
            self.rate = rate.max(self.min_rate(window));
            self.rate
        };
        if window.cwnd < window.ssthresh.limit() / 2 {
            self.pacing *= 2.0;
        }
    }

    /// The least rate in segments/s.
    fn min_rate(&self, window: &Window) -> f64 {
        MIN_RATE / f64::from(window.mss() + self.headers)
    }

    /// Small windows leave the control to the rate.
    fn choose_mode(&mut self, window: &Window) {
        self.rate_based = self.saw_ce && window.cwnd <= self.params.cwnd_transit.into();
        if self.rate_based {
            self.cwnd = self.cwnd_of_rate();
        } else {
            self.rate = self.rate_of_cwnd(window);
        }
    }
}

/// Segments of a window, rounded down.
// The x86-64 baseline has no instruction for rounding: `floor` would call the C library.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is positive, and capped"
)]
fn below(window: f64) -> u32 {
    window.min(1e9) as u32
}

/// Segments of a window, rounded up.
fn whole(window: f64) -> u32 {
    let below = below(window);
    below + u32::from(f64::from(below) < window.min(1e9))
}

/// Bytes per second of a pacing rate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a float saturates; a rate is not negative; it is whole from 2^53 on"
)]
fn whole_rate(rate: f64) -> u64 {
    // As above. The difference is exact.
    let below = rate as u64;
    below.saturating_add(u64::from(rate - below as f64 >= 0.5))
}

impl ModelBased for Prague {
    fn on_start(&mut self, window: &Window, start: &Start) {
        self.cwnd = f64::from(window.cwnd);
        if start.measured {
            self.sample(start.rtt_micros);
        }
        self.slow_srtt = self.srtt().unwrap_or(1e-6);
        self.alpha_at = start.now;
        self.set_pacing_rate(window, start.now, 0);
    }

    fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        if let Some(rtt) = ack.rtt_micros {
            self.sample(rtt.clamp(1, 60_000_000));
        }
        if std::mem::take(&mut self.undone)
            && let Some((cwnd, _)) = self.loss.take()
        {
            window.cwnd = window.cwnd.max(cwnd);
        }
        let (delivered, marked) = match progress.ecn {
            Some(feedback) => (feedback.delivered, feedback.marked),
            None => (progress.newly_delivered, 0),
        };
        self.delivered += delivered;
        self.marked += marked;
        if progress.episode == Episode::None {
            self.loss = None;
            if self.cwr_end.is_some_and(|end| ack.snd_una > end) {
                self.cwr_end = None;
            }
            if marked > 0 {
                self.answer_marks(window, ack);
            }
        } else {
            self.cwr_end = None;
        }
        if marked > 0 && !self.saw_ce {
            self.saw_ce = true;
            if self.params.alpha_on_init == 0 {
                self.cwnd /= 2.0;
            }
        }
        let unmarked = delivered.saturating_sub(marked);
        let repairs = self.loss.is_some();
        if unmarked > 0 && !repairs && progress.cwnd_limited {
            self.grow(window, unmarked);
        }
        self.step(window);
        if ack.snd_una >= self.round_end && self.target_elapsed(window, ack.now, self.alpha_at) {
            self.end_round(window, ack);
        }
        self.set_pacing_rate(window, ack.now, progress.in_flight);
        self.choose_mode(window);
        false
    }

    fn on_reduction(&mut self, window: &Window, reduction: Reduction) -> Option<Threshold> {
        // `update` answers marks.
        if reduction == Reduction::Loss {
            self.loss = Some((window.cwnd, self.rate));
            self.reduce(window, parts(self.params.beta));
        }
        None
    }

    fn on_timeout(&mut self) {}

    fn on_undo(&mut self) {
        if let Some((_, rate)) = self.loss {
            self.rate = self.rate.max(rate);
            self.cwnd = self.cwnd_of_rate();
            self.undone = true;
        }
    }

    fn pacing_rate(&self, mss: u32) -> Option<u64> {
        self.srtt8?;
        Some(whole_rate(self.pacing * f64::from(mss + self.headers)))
    }

    fn needs_delivery_rates(&self) -> bool {
        false
    }

    fn burst_size(&self) -> BurstSize {
        BurstSize {
            pacing_shift: self.params.burst_shift.into(),
            min_tso_segs: 1,
            headers: self.headers,
        }
    }
}

#[cfg(test)]
mod tests;
