//! H-TCP: growth by the time since the last congestion, reduction by the ratio of the RTTs.
//!
//! # Source
//!
//! Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", `PFLDnet` 2004; the arithmetic of Linux 6.1
//! `tcp_htcp`.
//!
//! # Law
//!
//! With Δ the time in s since the last congestion ended:
//!
//! ```text
//! factor       1                                      while Δ <= 1 s
//!              1 + 10 (Δ - 1) + ((Δ - 1) / 2)^2       after that
//!              factor / (100 ms / RTTmin)             with use_rtt_scaling; the quotient is 0.5 to 10, factor >= 1
//! alpha        2 factor (1 - beta)                    computed when the window grows, and at congestion
//! avoidance    cwnd += alpha                          per round trip
//! beta         RTTmin / RTTmax, from 0.5 to 0.8       if RTTmin is above 10 ms and it is not the first congestion
//!              0.5                                    otherwise; and if, with use_bandwidth_switch, the largest
//!                                                     bandwidth has changed by more than a fifth since the last one
//! congestion   ssthresh = max(beta cwnd, 2)
//! ```
//!
//! The maximum RTT rises by 20 ms at most, only without congestion, and loses a twentieth of its distance to the
//! minimum at each congestion. The bandwidth is measured per window of acknowledged segments, over a minimum RTT at
//! least, and smoothed by a quarter. Times are in whole ms, RTTs rounded up; alpha and beta are in 128ths.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | the window grows by one segment at a time, and alpha has to reach the window anew | alpha / cwnd per acknowledgement | slower by up to an acknowledgement per segment |
//! | while losses of a time-out are repaired an acknowledgement counts as one segment | what it covers | slower then |
//! | the square has 32 bits | – | alpha falls back to small values 131 s after a congestion |

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, Phase, SlowStart, Start, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`HTcp`]: those of the module `tcp_htcp`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct HTcpParams {
        /// Grow by a number of segments per time rather than per round trip.
        pub use_rtt_scaling: bool = true => flag(),
            "Linux tcp_htcp, use_rtt_scaling";
        /// Keep half of the window if the bandwidth has changed by more than a fifth since the last reduction.
        pub use_bandwidth_switch: bool = true => flag(),
            "Linux tcp_htcp, use_bandwidth_switch";
    }
}

impl Control for HTcpParams {
    type Controller = HTcp;

    const DECLARATION: Declaration = Declaration {
        name: "htcp",
        summary: "Grows faster the longer there has been no congestion; reduces by the ratio of the RTTs",
        source: "Leith and Shorten 2004; Linux 6.1 tcp_htcp",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> HTcp {
        HTcp {
            params: *self,
            phase: Phase::Open,
            is_adaptive: false,
            alpha: ONE,
            beta: BETA_MIN,
            acked: 1,
            min_rtt: 0,
            since: Since::default(),
            before: None,
            segments: 0,
            measured_at: None,
            bandwidth: 0,
            max_bandwidth: 0,
        }
    }
}

/// 1, as alpha and beta are kept.
const ONE: u32 = 128;
const BETA_MIN: u32 = 64;
const BETA_MAX: u32 = 102;
/// A second of ticks.
const SECOND: u32 = 1_000;
/// By how much the maximum RTT may rise per sample, and from which minimum RTT on beta adapts, in ms.
const MAX_RISE: u32 = 20;
const SHORT_RTT: u32 = 10;
/// Round trips after a congestion in which the bandwidth is taken as it is.
const SETTLING: u32 = 3;

/// What a congestion changes, and its undoing restores.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    /// Tick at which the last congestion ended or, while it lasts, began.
    congestion: u32,
    max_rtt: u32,
    /// Largest bandwidth at the congestion before.
    old_max_bandwidth: u32,
}

/// The H-TCP congestion controller. Times are in ms, ticks are 32 bits of the host's, and bandwidths in segments per s.
#[derive(Clone, Copy, Debug)]
pub struct HTcp {
    params: HTcpParams,
    phase: Phase,
    /// Beta follows the RTTs: since the first congestion, and since the one after a change of bandwidth.
    is_adaptive: bool,
    alpha: u32,
    beta: u32,
    /// Segments that the last acknowledgement covered, until they have counted.
    acked: u32,
    /// 0 before the first sample.
    min_rtt: u32,
    since: Since,
    /// The same before the congestion under way.
    before: Option<Since>,
    /// Segments acknowledged since the last measurement of the bandwidth.
    segments: u32,
    measured_at: Option<u32>,
    bandwidth: u32,
    max_bandwidth: u32,
}

impl WindowBased for HTcp {
    fn on_start(&mut self, _window: &mut Window, start: &Start) {
        self.since.congestion = low(start.tick);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if self.phase == Phase::Open {
            self.acked = ack.acked;
        }
        if let Some(micros) = ack.rtt_micros {
            self.take_rtt(micros.div_ceil(1_000));
        }
        if self.params.use_bandwidth_switch {
            self.measure_bandwidth(window.cwnd, low(ack.tick), ack.acked);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        if window.in_slow_start() {
            window.slow_start(window.segments_of(acked));
            return;
        }
        if window.cnt.wrapping_mul(self.alpha) / ONE >= window.cwnd {
            window.cwnd += 1;
            window.cnt = 0;
            self.update_alpha(low(ack.tick));
        } else {
            window.cnt += self.acked;
        }
        self.acked = 1;
    }

    fn ssthresh(&mut self, window: &Window, tick: u64) -> u64 {
        let (min, max) = (self.min_rtt, self.since.max_rtt);
        self.update_beta();
        self.update_alpha(low(tick));
        if min > 0 && max > min {
            self.since.max_rtt = min + (max - min) * 95 / 100;
        }
        let left = u64::from(window.cwnd) * u64::from(self.beta) / u64::from(ONE);
        window.bytes_of(u32::try_from(left).expect("less than cwnd").max(2))
    }

    fn on_phase(&mut self, transition: &Transition) {
        self.phase = transition.to;
        match transition.to {
            Phase::Open => {
                if self.before.take().is_some() {
                    self.since.congestion = low(transition.tick);
                }
            }
            Phase::Disorder => {}
            Phase::Cwr | Phase::Recovery | Phase::Loss => {
                self.before = Some(self.since);
                self.since.congestion = low(transition.tick);
            }
        }
    }

    fn on_undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.since = before;
        }
    }
}

impl HTcp {
    fn take_rtt(&mut self, rtt: u32) {
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if self.phase == Phase::Open {
            let max = self.since.max_rtt.max(self.min_rtt);
            self.since.max_rtt = if max < rtt && rtt <= max + MAX_RISE {
                rtt
            } else {
                max
            };
        }
    }

    /// Counts `acked` segments; measures when they fill a window.
    fn measure_bandwidth(&mut self, cwnd: u32, now: u32, acked: u32) {
        if self.phase > Phase::Disorder {
            self.segments = 0;
            self.measured_at = Some(now);
            return;
        }
        self.segments += acked;
        // Before the first measurement the time is that since the host started, which says nothing of the bandwidth.
        let took = self.measured_at.map_or(u32::MAX, |at| now.wrapping_sub(at));
        let growth = (self.alpha / ONE).max(1);
        if self.segments < cwnd.wrapping_sub(growth) || self.min_rtt == 0 || took < self.min_rtt {
            return;
        }
        let measured = u64::from(self.segments) * u64::from(SECOND) / u64::from(took);
        let measured = u32::try_from(measured).unwrap_or(u32::MAX);
        let round_trips = now.wrapping_sub(self.since.congestion) / self.min_rtt;
        if round_trips <= SETTLING {
            self.bandwidth = measured;
            self.max_bandwidth = measured;
        } else {
            self.bandwidth = (3 * self.bandwidth + measured) / 4;
            self.max_bandwidth = self.max_bandwidth.max(self.bandwidth);
        }
        self.segments = 0;
        self.measured_at = Some(now);
    }

    /// Computes the part of the window that a reduction keeps.
    fn update_beta(&mut self) {
        if self.params.use_bandwidth_switch {
            let (new, old) = (self.max_bandwidth, self.since.old_max_bandwidth);
            self.since.old_max_bandwidth = new;
            if !(4 * old..=6 * old).contains(&(5 * new)) {
                self.beta = BETA_MIN;
                self.is_adaptive = false;
                return;
            }
        }
        let max = self.since.max_rtt;
        if self.is_adaptive && self.min_rtt > SHORT_RTT && max > 0 {
            self.beta = (self.min_rtt * ONE / max).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.is_adaptive = true;
        }
    }

    /// Computes the growth per round trip at tick `now`.
    fn update_alpha(&mut self, now: u32) {
        let mut factor = 1;
        let passed = now.wrapping_sub(self.since.congestion);
        if passed > SECOND {
            let more = passed - SECOND;
            let square = (more / 2).wrapping_mul(more / 2) / SECOND;
            factor = 1 + more.wrapping_mul(10).wrapping_add(square) / SECOND;
        }
        if self.params.use_rtt_scaling && self.min_rtt > 0 {
            // 100 ms / RTTmin, in eighths.
            let scale = (8 * SECOND / (10 * self.min_rtt)).clamp(4, 80);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

/// The low 32 bits of a tick, with which the kernel computes.
#[expect(clippy::cast_possible_truncation, reason = "the ticks wrap")]
const fn low(tick: u64) -> u32 {
    tick as u32
}

#[cfg(test)]
mod tests;
