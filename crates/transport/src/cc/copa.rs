//! Copa: a rate of 1 / (δ d) for a queueing delay of d.
//!
//! # Source
//!
//! Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, §2. [R]: the
//! steps were written from memory of the paper and checked against summaries and the authors' program.
//!
//! # Law
//!
//! ```text
//! RTT_standing   smallest RTT of the last srtt / 2
//! RTT_min        smallest RTT of the last 10 s
//! target rate    1 / (delta (RTT_standing - RTT_min)), in segments/s
//! rate           cwnd / RTT_standing
//! slow start     cwnd += 1 per segment acknowledged, until the rate exceeds the target
//! afterwards     cwnd += v / (delta cwnd) per segment acknowledged while the rate is at most the target, else
//!                cwnd -= v / (delta cwnd)
//! velocity v     compared once per round: 1 after a change of direction; once the direction was the same in three
//!                rounds, v doubles in each further one
//! pacing         2 cwnd / RTT_standing
//! mode           default while the queue was nearly empty (RTT - RTT_min at most a tenth of RTT_max - RTT_min, RTT_max
//!                of 4 RTTs) in the last 5 RTTs, else competitive
//! competitive    1 / delta += 1 per round without a loss or mark, halves with one; delta at most its default
//! ```
//!
//! A flow alone keeps between 0 and 2.5 / δ segments in the queue, on average 1.25 / δ, and empties it every 5 RTTs (§3
//! of the paper). Several Copa flows add 1 / δ of each.
//!
//! # Differences from the paper
//!
//! | here | paper | effect |
//! |---|---|---|
//! | v / δ is at most the window | no bound; the authors' program has this one | no more than a doubling per round |
//! | the window does not grow while the application limits sending | not stated | the window of a slow application stays |
//! | a time-out sets the window to 2 and starts slow start | not stated; the program ignores time-outs | a path that lost its capacity is left at once |
//! | default mode ignores losses | same; the program reduces to 0.7 at high loss rates | – |

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};
use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, BurstSize, ModelBased, Progress, Reduction, Start, Threshold, Window};

parameters! {
    /// Parameters of [`Copa`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CopaParams {
        /// Weight of delay against throughput: a flow keeps about 1/delta segments queued.
        pub delta: u32 = 500 => decimal(3, 1, 100_000),
            "NSDI 2018 paper, section 2.2: 0.5";
        /// Switch to competitive mode beside flows that fill the queue.
        pub competitive: bool = true => flag(),
            "NSDI 2018 paper, section 2.2";
        /// Time over which the smallest RTT counts as the RTT of the path.
        pub rtt_min_window: u32 = 10_000_000 => micros(100_000, 1_000_000_000),
            "NSDI 2018 paper, section 2: 10 s";
        /// Fraction of the RTT's variation up to which the queue counts as nearly empty.
        pub nearly_empty: u8 = 10 => decimal(2, 0, 100),
            "NSDI 2018 paper, section 2.2: 10 %";
        /// Number of RTTs without a nearly empty queue after which competitive mode starts.
        pub empty_rtts: u16 = 5 => count(1, 1_000).of("RTTs"),
            "NSDI 2018 paper, section 2.2: 5";
    }
}

impl Control for CopaParams {
    type Controller = Copa;

    const DECLARATION: Declaration = Declaration {
        name: "copa",
        summary: "Sends 1/delta segments per queueing delay; loss-based beside flows that fill the queue",
        source: "Arun and Balakrishnan 2018",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Copa {
        Copa {
            params: *self,
            cwnd: f64::from(MIN_CWND),
            slow_start: true,
            velocity: 1.0,
            direction: None,
            same_direction: 0,
            round_end: 0,
            round_cwnd: f64::from(MIN_CWND),
            inverse_delta: self.inverse_delta(),
            is_competitive: false,
            congested: false,
            emptied_at: Instant::ZERO,
            rtts: None,
        }
    }
}

impl CopaParams {
    /// The default of 1 / δ.
    fn inverse_delta(&self) -> f64 {
        1_000.0 / f64::from(self.delta)
    }
}

/// The least window, in segments.
const MIN_CWND: u32 = 2;
/// Rounds in one direction before the velocity doubles.
const STEADY_ROUNDS: u32 = 3;
/// RTTs over which the largest RTT counts.
const RTT_MAX_RTTS: f64 = 4.0;

/// The Copa congestion controller. Windows are in segments, with their fraction.
#[derive(Clone, Debug)]
pub struct Copa {
    params: CopaParams,
    cwnd: f64,
    slow_start: bool,
    velocity: f64,
    /// The window grew in the last round; `None` before the first one after slow start.
    direction: Option<bool>,
    /// Rounds since the direction changed.
    same_direction: u32,
    /// The round ends when this segment is acknowledged.
    round_end: u32,
    /// The window when the round began.
    round_cwnd: f64,
    inverse_delta: f64,
    is_competitive: bool,
    /// A loss or mark in this round.
    congested: bool,
    /// When the queue was last nearly empty.
    emptied_at: Instant,
    rtts: Option<Rtts>,
}

impl Default for Copa {
    fn default() -> Self {
        CopaParams::default().build(&Setup::default())
    }
}

/// RTTs in µs.
#[derive(Clone, Debug)]
struct Rtts {
    smoothed: f64,
    standing: WindowedMin,
    min: WindowedMin,
    /// Of `u32::MAX` minus the RTT.
    max: WindowedMin,
}

impl Rtts {
    fn new(now: Instant, rtt: u32) -> Self {
        Self {
            smoothed: rtt.into(),
            standing: WindowedMin::new(now, rtt),
            min: WindowedMin::new(now, rtt),
            max: WindowedMin::new(now, u32::MAX - rtt),
        }
    }

    fn sample(&mut self, now: Instant, rtt: u32, min_window: Duration) {
        self.smoothed += (f64::from(rtt) - self.smoothed) / 8.0;
        let window = |rtts: f64| Duration::from_micros(micros(rtts * self.smoothed));
        self.standing.update(now, rtt, window(0.5));
        self.max.update(now, u32::MAX - rtt, window(RTT_MAX_RTTS));
        self.min.update(now, rtt, min_window);
    }

    /// `RTT_max`.
    fn largest(&self) -> u32 {
        u32::MAX - self.max.get()
    }

    /// `RTT_standing` − `RTT_min`.
    fn queueing(&self) -> u32 {
        self.standing.get().saturating_sub(self.min.get())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few RTTs are positive and far below 2^64 µs"
)]
const fn micros(span: f64) -> u64 {
    span as u64
}

/// The smallest value of a window of time.
#[derive(Clone, Debug)]
struct WindowedMin {
    /// Each value is larger than those before it.
    values: VecDeque<(Instant, u32)>,
}

impl WindowedMin {
    /// Values this part of the window apart are kept; of closer ones, only the smaller.
    const PARTS: u64 = 256;

    fn new(now: Instant, value: u32) -> Self {
        Self {
            values: VecDeque::from([(now, value)]),
        }
    }

    fn get(&self) -> u32 {
        self.values[0].1
    }

    fn update(&mut self, now: Instant, value: u32, window: Duration) {
        while self.values.back().is_some_and(|&(_, kept)| kept >= value) {
            self.values.pop_back();
        }
        while self
            .values
            .front()
            .is_some_and(|&(at, _)| now.saturating_since(at) > window)
        {
            self.values.pop_front();
        }
        let apart = window.as_nanos() / Self::PARTS;
        let is_close = |&(at, _): &(Instant, u32)| now.saturating_since(at).as_nanos() < apart;
        if !self.values.back().is_some_and(is_close) {
            self.values.push_back((now, value));
        }
    }
}

impl Copa {
    fn sample(&mut self, now: Instant, rtt: u32) {
        let rtt = rtt.max(1);
        let min_window = Duration::from_micros(self.params.rtt_min_window.into());
        let rtts = self.rtts.get_or_insert_with(|| Rtts::new(now, rtt));
        rtts.sample(now, rtt, min_window);
        let min = rtts.min.get();
        let (delay, range) = (rtt - min.min(rtt), rtts.largest().saturating_sub(min));
        let nearly_empty = u64::from(self.params.nearly_empty) * u64::from(range);
        if 100 * u64::from(delay) <= nearly_empty {
            self.emptied_at = now;
        }
        let patience = micros(rtts.smoothed * f64::from(self.params.empty_rtts));
        let waited = now.saturating_since(self.emptied_at);
        let competes = self.params.competitive && waited > Duration::from_micros(patience);
        if self.is_competitive && !competes {
            self.inverse_delta = self.params.inverse_delta();
        }
        self.is_competitive = competes;
    }

    /// Whether the rate is at most the target.
    fn is_below_target(&self) -> bool {
        let Some(rtts) = &self.rtts else { return true };
        let (queueing, standing) = (rtts.queueing(), rtts.standing.get());
        self.cwnd * f64::from(queueing) <= f64::from(standing) * self.inverse_delta
    }

    fn adjust(&mut self, acked: u32, may_grow: bool) {
        let below = self.is_below_target();
        let acked = f64::from(acked);
        if self.slow_start {
            if below {
                self.cwnd += if may_grow { acked } else { 0.0 };
                return;
            }
            self.slow_start = false;
            self.direction = None;
        }
        let step = acked * self.velocity * self.inverse_delta / self.cwnd;
        if !below {
            self.cwnd = (self.cwnd - step).max(MIN_CWND.into());
        } else if may_grow {
            self.cwnd += step;
        }
    }

    fn end_round(&mut self, snd_nxt: u32) {
        if self.is_competitive && !self.congested {
            self.inverse_delta += 1.0;
        }
        self.congested = false;
        let grew = self.cwnd > self.round_cwnd;
        if self.slow_start || self.direction != Some(grew) {
            self.velocity = 1.0;
            self.same_direction = 0;
        } else {
            self.same_direction += 1;
            if self.same_direction >= STEADY_ROUNDS {
                self.velocity *= 2.0;
            }
        }
        let most = self.cwnd / self.inverse_delta;
        self.velocity = self.velocity.min(most).max(1.0);
        self.direction = (!self.slow_start).then_some(grew);
        self.round_end = snd_nxt;
        self.round_cwnd = self.cwnd;
    }
}

impl ModelBased for Copa {
    fn on_start(&mut self, window: &Window, start: &Start) {
        self.cwnd = window.cwnd.into();
        self.round_cwnd = self.cwnd;
        self.emptied_at = start.now;
        if start.measured {
            self.sample(start.now, start.rtt_micros);
        }
    }

    fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        if let Some(rtt) = ack.rtt_micros {
            self.sample(ack.now, rtt);
        }
        if progress.newly_delivered > 0 {
            self.adjust(progress.newly_delivered, progress.cwnd_limited);
        }
        if ack.snd_una > self.round_end {
            self.end_round(ack.snd_nxt);
        }
        window.cwnd = whole(self.cwnd);
        false
    }

    fn on_reduction(&mut self, _window: &Window, reduction: Reduction) -> Option<Threshold> {
        if reduction == Reduction::Begins {
            self.congested = true;
            if self.is_competitive {
                let least = self.params.inverse_delta();
                self.inverse_delta = (self.inverse_delta / 2.0).max(least);
            }
        }
        None
    }

    fn on_timeout(&mut self) {
        self.cwnd = MIN_CWND.into();
        self.slow_start = true;
        self.velocity = 1.0;
    }

    fn on_undo(&mut self) {}

    fn pacing_rate(&self, mss: u32) -> Option<u64> {
        let standing = self.rtts.as_ref()?.standing.get();
        let bytes = 2.0 * self.cwnd * f64::from(mss);
        Some(micros(bytes * 1e6 / f64::from(standing)))
    }

    fn needs_delivery_rates(&self) -> bool {
        false
    }

    /// Each segment by itself.
    fn burst_size(&self) -> BurstSize {
        BurstSize {
            pacing_shift: 20,
            min_tso_segs: 1,
            headers: 0,
        }
    }
}

/// Whole segments of a window.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is positive, and a float saturates"
)]
const fn whole(window: f64) -> u32 {
    window as u32
}

#[cfg(test)]
mod tests;
