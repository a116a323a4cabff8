//! Prague: DCTCP adapted to Internet paths and L4S queues.
//!
//! # Source
//!
//! draft-briscoe-iccrg-prague-congestion-control; RFC 9331 §4 (what L4S asks of a sender).
//!
//! # Law
//!
//! ```text
//! RTT_virt = max(srtt, 25 ms)              shorter round trips behave as one of 25 ms
//! once an RTT_virt, from the first mark on:
//!              alpha += (marked / delivered - alpha) / 16                      alpha starts at 1
//! mark         cwnd = cwnd (1 - alpha / 2)     once an RTT_virt
//! growth       cwnd += (delivered - marked) (srtt / RTT_virt)^2 / cwnd         in segments
//!              slow start: cwnd += delivered - marked, until the first mark or loss
//!              none unless the window limits sending, none while a loss is repaired
//! loss         cwnd = cwnd / 2                 time-out: 1 segment and slow start to half
//! sending      at most ceil(cwnd) in flight
//! pacing       cwnd / srtt, twice that below half the slow-start threshold; units of 0.25 ms
//! ```
//!
//! The window is fractional. It is rounded up, so that pacing determines the rate. Rounded down, it would limit the
//! rate, on average by a tenth with a window of five segments.
//!
//! Packets of both ends are ECT(1); the peer counts marks (RFC 9768). A peer that cannot gets no
//! ECN at all, since ECT(1) says that each mark is answered a little.
//!
//! # Differences from the draft
//!
//! | here | draft, Linux | effect |
//! |---|---|---|
//! | independence of the RTT from the start | after 500 round trips | shorter flows on short paths are slower |
//! | growth divides by the window with its fraction | by the window rounded up | – |
//! | over QUIC, pacing also counts as the window's limit (RFC 9002 §7.8) | in flight up to the window | – |
//! | a loss halves | as CUBIC or Reno, less what a mark just took | – |
//! | a classic AQM is not distinguished from one for L4S | distinguished, in the draft as future work | yields too little where one marks ECT(1) |
//! | the window changes at once | spread over a round trip | pacing spreads it |

use std::num::NonZeroU32;

use sojourn_net::Instant;
use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, BurstSize, Episode, ModelBased, Progress, Reduction, Start, Threshold, Window};

parameters! {
    /// Parameters of [`Prague`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PragueParams {
        /// RTT floor: at a shorter RTT, the window grows as slowly as at this one.
        pub rtt_virt_min: u32 = 25_000 => micros(0, 1_000_000),
            "draft-briscoe-iccrg-prague-congestion-control section 2.4.4";
        /// Gain of the moving average of the fraction of marked segments.
        pub g: u16 = 64 => ratio(1_024, 1, 1_024),
            "draft-briscoe-iccrg-prague-congestion-control section 2.3.2: 1/16";
        /// Alpha at the start of a connection.
        pub alpha_on_init: u16 = 1_024 => ratio(1_024, 0, 1_024),
            "tcp_prague of L4STeam/linux, prague_alpha_on_init";
        /// Fraction of the window kept after a loss.
        pub beta: u16 = 512 => ratio(1_024, 1, 1_023),
            "RFC 5681 section 3.1: 1/2";
        /// Exponent n of the duration 2^-n s of a burst over TCP.
        pub burst_shift: u8 = 12 => count(4, 20),
            "tcp_prague of L4STeam/linux, prague_burst_shift";
    }
}

impl Control for PragueParams {
    type Controller = Prague;

    const DECLARATION: Declaration = Declaration {
        name: "prague",
        summary: "Scalable control for L4S: DCTCP for the Internet",
        source: "draft-briscoe-iccrg-prague-congestion-control; RFC 9331",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Accurate,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Prague {
        Prague {
            params: *self,
            cwnd: MIN_CWND,
            ssthresh: f64::INFINITY,
            prior_cwnd: 0.0,
            alpha: parts(self.alpha_on_init),
            saw_ce: false,
            delivered: 0,
            marked: 0,
            round_end: Instant::ZERO,
            answered_until: Instant::ZERO,
            srtt8: None,
        }
    }
}

/// A number kept in 1024ths.
fn parts(of_1024: u16) -> f64 {
    f64::from(of_1024) / 1_024.0
}

/// The window falls no lower.
const MIN_CWND: f64 = 2.0;

/// The Prague congestion controller. Windows are in segments, with their fraction.
#[derive(Clone, Debug)]
pub struct Prague {
    params: PragueParams,
    cwnd: f64,
    ssthresh: f64,
    /// The window before the last loss.
    prior_cwnd: f64,
    /// Part of the segments marked.
    alpha: f64,
    /// A mark was seen: the path has an AQM, and alpha is meaningful.
    saw_ce: bool,
    /// Segments delivered and marked in this virtual round trip.
    delivered: u32,
    marked: u32,
    round_end: Instant,
    /// Marks before this have been answered.
    answered_until: Instant,
    /// 8 times the smoothed RTT, in µs; `None` before the first sample.
    srtt8: Option<NonZeroU32>,
}

impl Default for Prague {
    fn default() -> Self {
        PragueParams::default().build(&Setup::default())
    }
}

impl Prague {
    /// The smoothed RTT in µs; `None` before the first sample.
    fn srtt(&self) -> Option<u32> {
        self.srtt8.map(|srtt8| srtt8.get() / 8)
    }

    /// The virtual RTT in µs: before the first sample its floor.
    fn rtt_virt_micros(&self) -> u32 {
        let floor = self.params.rtt_virt_min;
        self.srtt().map_or(floor, |srtt| srtt.max(floor))
    }

    fn rtt_virt(&self) -> sojourn_net::Duration {
        sojourn_net::Duration::from_micros(self.rtt_virt_micros().into())
    }

    fn sample(&mut self, rtt: u32) {
        self.srtt8 = NonZeroU32::new(match self.srtt8.map(NonZeroU32::get) {
            None => rtt.saturating_mul(8),
            Some(srtt8) => srtt8 - srtt8 / 8 + rtt,
        });
    }

    /// The average of a virtual round trip that is over.
    fn end_round(&mut self, now: Instant) {
        if self.saw_ce && self.delivered > 0 {
            let part = f64::from(self.marked) / f64::from(self.delivered);
            self.alpha += (part.min(1.0) - self.alpha) * parts(self.params.g);
        }
        self.delivered = 0;
        self.marked = 0;
        self.round_end = now + self.rtt_virt();
    }

    fn grow_by(&mut self, unmarked: u32) {
        let unmarked = f64::from(unmarked);
        if self.cwnd < self.ssthresh {
            self.cwnd = (self.cwnd + unmarked).min(self.ssthresh.max(self.cwnd));
            return;
        }
        // In congestion avoidance an RTT is known, unless all samples were of retransmissions.
        let slow = self.srtt().map_or(0.0, |srtt| {
            f64::from(srtt) / f64::from(self.rtt_virt_micros())
        });
        self.cwnd += unmarked * slow * slow / self.cwnd;
    }

    fn reduce_to(&mut self, cwnd: f64, now: Instant) {
        self.cwnd = cwnd.max(MIN_CWND);
        self.ssthresh = self.cwnd;
        self.answered_until = now + self.rtt_virt();
    }

    fn whole(&self) -> u32 {
        whole(self.cwnd)
    }
}

/// Segments of a window, rounded up.
// The x86-64 baseline has no instruction for rounding: `ceil` would call the C library.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is positive, and capped"
)]
fn whole(window: f64) -> u32 {
    let window = window.min(1e9);
    let below = window as u32;
    below + u32::from(f64::from(below) < window)
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
        self.round_end = start.now + self.rtt_virt();
    }

    fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        if let Some(rtt) = ack.rtt_micros {
            self.sample(rtt.clamp(1, 60_000_000));
        }
        let (delivered, marked) = match progress.ecn {
            Some(feedback) => (feedback.delivered, feedback.marked),
            None => (progress.newly_delivered, 0),
        };
        self.delivered += delivered;
        self.marked += marked;
        self.saw_ce |= marked > 0;
        if ack.now >= self.round_end {
            self.end_round(ack.now);
        }
        if progress.cwnd_limited && progress.episode != Episode::Recovery {
            self.grow_by(delivered.saturating_sub(marked));
        }
        if marked > 0 && ack.now >= self.answered_until {
            self.reduce_to(self.cwnd * (1.0 - self.alpha / 2.0), ack.now);
        }
        window.cwnd = self.whole();
        if self.ssthresh.is_finite() {
            window.ssthresh = Threshold::of_segments(whole(self.ssthresh));
        }
        false
    }

    fn on_reduction(&mut self, _window: &Window, reduction: Reduction) -> Option<Threshold> {
        let segments = match reduction {
            // `update` answers marks.
            Reduction::Begins => self.whole().max(2),
            Reduction::Loss => {
                self.prior_cwnd = self.cwnd;
                self.cwnd = (self.cwnd * parts(self.params.beta)).max(MIN_CWND);
                self.ssthresh = self.cwnd;
                self.whole()
            }
        };
        Some(Threshold::of_segments(segments))
    }

    fn on_timeout(&mut self) {
        self.cwnd = 1.0;
    }

    fn on_undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.ssthresh = self.ssthresh.max(self.cwnd);
    }

    fn pacing_rate(&self, mss: u32) -> Option<u64> {
        self.srtt8?;
        let doubling = if self.cwnd < self.ssthresh / 2.0 {
            2.0
        } else {
            1.0
        };
        let srtt = f64::from(self.srtt().map_or(1, |srtt| srtt.max(1)));
        let rate = self.cwnd * f64::from(mss) * 1e6 * doubling / srtt;
        Some(whole_rate(rate))
    }

    fn needs_delivery_rates(&self) -> bool {
        false
    }

    fn burst_size(&self) -> BurstSize {
        BurstSize {
            pacing_shift: self.params.burst_shift.into(),
            min_tso_segs: 1,
        }
    }
}

#[cfg(test)]
mod tests;
