//! SCReAMv2: Self-Clocked Rate Adaptation for Multimedia, version 2.
//!
//! # Source
//!
//! draft-ietf-ccwg-rfc8298bis-screamv2-01, which continues draft-johansson-ccwg-rfc8298bis-screamv2. Names are the
//! draft's; `_t` at the end of a name means that it is temporary there. Queue delay: RFC 6817; smoothed RTT: RFC 6298.
//!
//! # Law
//!
//! The reference window follows losses, CE marks and the queue delay:
//!
//! ```text
//! loss          ref_wnd × 0.7
//! classic ECN   ref_wnd × 0.8
//! L4S           ref_wnd × (1 - l4s_alpha / 2), reduced for long RTTs and close to the last maximum
//! queue delay   ref_wnd × (1 - l4s_alpha_v / 2): 0 at qdelay_target / 2, 1 at qdelay_target
//! ```
//!
//! at most once per min(25 ms, RTT). It grows by about one segment per RTT, less close to the last maximum, and by
//! a share of itself long after the last congestion. The target bit rate is `ref_wnd / s_rtt`, divided by 1.2 or more.
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | `MSS` 1,200 B, the largest RTP packet of the source | 1,000 B | larger increments |
//! | shared clock of sender and receiver | clock drift compensation, section 4.5.1 | none: clocks do not drift |
//! | not implemented | optional parts: `REDUCE_JITTER`, sections 4.5.2 to 4.5.4 | no limit by policers; no compensation for competing flows |
//! | the RTT includes the time until the report | undefined | less than a frame period |
//! | at the start, `ref_wnd` is that of the start rate at an RTT of 100 ms \[R\] | `MIN_REF_WND` | the start rate is one of the scenario |
//! | packets at 50 kbit/s if the window is closed | "a minimum send rate" without a value | a flow without feedback goes on |

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

use super::control::{Feedback, PACING_HEADROOM, RateControl, Rates};

const QDELAY_TARGET: f64 = 0.06;
const MIN_REF_WND: f64 = 3_000.0;
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
/// The largest RTP packet of the source.
const MSS: f64 = 1_200.0;
const POST_CONGESTION_DELAY_RTTS: f64 = 100.0;
const MUL_INCREASE_FACTOR: f64 = 0.02;
const VIRTUAL_RTT: f64 = 0.025;
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
/// `REF_WND_OVERHEAD_MAX`, which holds without `REDUCE_JITTER`.
const REF_WND_OVERHEAD: f64 = 3.0;
const RATE_PACE_MIN: f64 = 50_000.0;
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
const PACKET_OVERHEAD: f64 = 20.0;
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;
/// Of the smoothed RTT (RFC 6298).
const RTT_GAIN: f64 = 1.0 / 8.0;
/// The RTT before the first sample \[R\].
const INITIAL_RTT: f64 = 0.1;
/// `BASE_HISTORY` of RFC 6817, in minutes.
const BASE_HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// How packets are marked and how marks are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScreamMode {
    /// ECT(0) or no ECN: a mark is a congestion event.
    #[default]
    Classic,
    /// ECT(1): the share of marked packets counts.
    L4s,
}

/// The shortest one-way delay of the last ten minutes.
#[derive(Debug, Default)]
struct BaseDelay {
    /// The shortest delay of each minute, the last one last.
    minutes: VecDeque<Duration>,
    minute: Option<Instant>,
}

impl BaseDelay {
    /// The queue delay of a packet with this one-way delay.
    fn qdelay(&mut self, now: Instant, delay: Duration) -> Duration {
        let begins = *self.minute.get_or_insert(now);
        if self.minutes.is_empty() || now >= begins + MINUTE {
            self.minute = Some(now);
            self.minutes.push_back(delay);
            if self.minutes.len() > BASE_HISTORY {
                self.minutes.pop_front();
            }
        }
        if let Some(last) = self.minutes.back_mut() {
            *last = delay.min(*last);
        }
        let base = self.minutes.iter().min().copied().unwrap_or(delay);
        delay.saturating_sub(base)
    }
}

/// A running control; times in seconds, sizes in bytes, rates in bit/s.
#[derive(Debug)]
pub(super) struct Scream {
    rates: Rates,
    mode: ScreamMode,
    base: BaseDelay,
    s_rtt: Option<f64>,
    qdelay_avg: f64,
    last_update_qdelay_avg_time: f64,
    l4s_alpha: f64,
    last_update_l4s_alpha_time: f64,
    data_units_delivered_this_rtt: f64,
    data_units_marked_this_rtt: f64,
    ref_wnd: f64,
    ref_wnd_i: f64,
    ref_wnd_i_update_allowed: bool,
    /// Losses and marks since the last reaction.
    loss_detected: bool,
    data_units_marked: bool,
    last_congestion_detected_time: f64,
    last_reaction_to_congestion_time: f64,
    max_bytes_in_flight: f64,
    max_bytes_in_flight_prev: f64,
    round_started: f64,
    target_bitrate: f64,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
}

impl Scream {
    pub(super) fn new(rates: Rates, mode: ScreamMode) -> Self {
        Self {
            rates,
            mode,
            base: BaseDelay::default(),
            s_rtt: None,
            qdelay_avg: 0.0,
            last_update_qdelay_avg_time: 0.0,
            l4s_alpha: 0.0,
            last_update_l4s_alpha_time: 0.0,
            data_units_delivered_this_rtt: 0.0,
            data_units_marked_this_rtt: 0.0,
            ref_wnd: (rates.start / 8.0 * INITIAL_RTT).max(MIN_REF_WND),
            ref_wnd_i: 1.0,
            ref_wnd_i_update_allowed: true,
            loss_detected: false,
            data_units_marked: false,
            last_congestion_detected_time: 0.0,
            last_reaction_to_congestion_time: 0.0,
            max_bytes_in_flight: 0.0,
            max_bytes_in_flight_prev: 0.0,
            round_started: 0.0,
            target_bitrate: rates.start,
            rate_adjust_factor: 0.0,
            frame_size_dev: 0.0,
        }
    }

    fn rtt(&self) -> f64 {
        self.s_rtt.unwrap_or(INITIAL_RTT)
    }

    /// Section 4.2.1.3.
    fn update_l4s_alpha(&mut self, now: f64, feedback: &Feedback) {
        let marked = feedback.acked.iter().filter(|acked| acked.marked).count();
        self.data_units_delivered_this_rtt += count(feedback.acked.len());
        self.data_units_marked_this_rtt += count(marked);
        if now - self.last_update_l4s_alpha_time < self.rtt().min(0.01)
            || self.data_units_delivered_this_rtt == 0.0
        {
            return;
        }
        let fraction_marked_t =
            self.data_units_marked_this_rtt / self.data_units_delivered_this_rtt;
        if fraction_marked_t >= self.l4s_alpha {
            self.l4s_alpha =
                L4S_AVG_G_UP * fraction_marked_t + (1.0 - L4S_AVG_G_UP) * self.l4s_alpha;
        } else {
            self.l4s_alpha *= 1.0 - L4S_AVG_G_DOWN;
        }
        self.last_update_l4s_alpha_time = now;
        self.data_units_delivered_this_rtt = 0.0;
        self.data_units_marked_this_rtt = 0.0;
    }

    /// Section 4.2.1.4.
    fn update_qdelay_avg(&mut self, now: f64, qdelay: f64) {
        if now - self.last_update_qdelay_avg_time < self.rtt().min(VIRTUAL_RTT) {
            return;
        }
        self.qdelay_avg = if qdelay < self.qdelay_avg {
            qdelay
        } else {
            QDELAY_AVG_G * qdelay + (1.0 - QDELAY_AVG_G) * self.qdelay_avg
        };
        self.last_update_qdelay_avg_time = now;
    }

    /// How close the window is to its last maximum: 0.1 at it, 1 far from it.
    fn scl_t(&self) -> f64 {
        let scl_t = (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i * 8.0;
        (scl_t * scl_t).clamp(0.1, 1.0)
    }

    /// Section 4.2.2.1.
    fn reduce(&mut self, now: f64, qdelay: f64, scl_t: f64) {
        let s_rtt = self.rtt();
        if self.loss_detected || self.data_units_marked {
            self.last_congestion_detected_time = now;
        }
        let since_reaction = now - self.last_reaction_to_congestion_time;
        if since_reaction < s_rtt.min(VIRTUAL_RTT) {
            return;
        }
        let is_loss_t = self.loss_detected;
        let is_ce_t = !is_loss_t && self.data_units_marked;
        let is_virtual_ce_t = !is_loss_t && !is_ce_t && self.qdelay_avg > QDELAY_TARGET / 2.0;
        if !is_loss_t && !is_ce_t && !is_virtual_ce_t {
            return;
        }
        if self.ref_wnd_i_update_allowed {
            self.ref_wnd_i = self.ref_wnd;
            self.ref_wnd_i_update_allowed = false;
        }
        let long_rtt_t = (s_rtt / VIRTUAL_RTT).max(1.0);
        if is_loss_t {
            self.ref_wnd *= BETA_LOSS;
        } else if is_ce_t {
            match self.mode {
                ScreamMode::Classic => self.ref_wnd *= BETA_ECN,
                ScreamMode::L4s => {
                    let mut backoff_t = self.l4s_alpha / 2.0 / long_rtt_t;
                    if qdelay < QDELAY_TARGET * 0.25 {
                        backoff_t *= scl_t.max(0.25);
                    }
                    if since_reaction > 100.0 * s_rtt.max(VIRTUAL_RTT) {
                        self.ref_wnd = self.ref_wnd.min(self.max_bytes_in_flight_prev);
                    }
                    self.ref_wnd *= 1.0 - backoff_t;
                }
            }
        } else {
            let l4s_alpha_v_t =
                ((self.qdelay_avg - QDELAY_TARGET / 2.0) / (QDELAY_TARGET / 2.0)).clamp(0.0, 1.0);
            self.ref_wnd *= 1.0 - l4s_alpha_v_t / 2.0 / long_rtt_t;
        }
        self.ref_wnd = self.ref_wnd.max(MIN_REF_WND);
        self.last_reaction_to_congestion_time = now;
        self.loss_detected = false;
        self.data_units_marked = false;
    }

    /// Section 4.2.2.2.
    fn increase(&mut self, now: f64, feedback: &Feedback, scl_t: f64) {
        let s_rtt = self.rtt();
        let ref_wnd_ratio = (MSS / self.ref_wnd).min(1.0);
        let post_congestion_scale_t = ((now - self.last_congestion_detected_time)
            / (POST_CONGESTION_DELAY_RTTS * s_rtt.max(VIRTUAL_RTT)))
        .clamp(0.0, 1.0);
        let bytes_newly_acked_minus_ce_t = feedback.newly_acked - feedback.newly_acked_ce;
        let mut increment_t = bytes(bytes_newly_acked_minus_ce_t) * ref_wnd_ratio;
        increment_t *= (s_rtt / VIRTUAL_RTT).min(1.0);
        increment_t *= scl_t.max(0.25);
        increment_t *=
            1.0 + MUL_INCREASE_FACTOR * self.ref_wnd / MSS * post_congestion_scale_t * scl_t;
        let max_allowed_t = MSS
            + self.max_bytes_in_flight.max(self.max_bytes_in_flight_prev)
                * BYTES_IN_FLIGHT_HEAD_ROOM;
        let ref_wnd_t = self.ref_wnd + increment_t;
        if increment_t > 0.0 && ref_wnd_t <= max_allowed_t && self.target_bitrate < self.rates.max {
            self.ref_wnd = ref_wnd_t;
            self.ref_wnd_i_update_allowed = true;
        }
    }

    /// Section 4.4.
    fn update_target(&mut self) {
        let ref_wnd_ratio = (MSS / self.ref_wnd).min(1.0);
        let mut tmp_t = 1.0 - (ref_wnd_ratio - 0.1).clamp(0.0, 0.2);
        tmp_t *= MSS / (MSS + PACKET_OVERHEAD);
        tmp_t /= 1.2 + self.rate_adjust_factor + self.frame_size_dev;
        let target = tmp_t * 8.0 * self.ref_wnd / self.rtt();
        self.target_bitrate = target.clamp(self.rates.min, self.rates.max);
    }
}

impl RateControl for Scream {
    fn on_sent(&mut self, in_flight: u64) {
        self.max_bytes_in_flight = self.max_bytes_in_flight.max(bytes(in_flight));
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let Some(last) = feedback.acked.last() else {
            return;
        };
        let rtt = now.since(last.sent).as_secs_f64();
        let s_rtt = self
            .s_rtt
            .map_or(rtt, |s_rtt| s_rtt + RTT_GAIN * (rtt - s_rtt));
        self.s_rtt = Some(s_rtt);
        let delay = last.arrived.since(last.sent);
        let qdelay = self.base.qdelay(now, delay).as_secs_f64();
        let now = now.as_secs_f64();
        self.update_l4s_alpha(now, feedback);
        self.update_qdelay_avg(now, qdelay);
        self.loss_detected |= feedback.lost > 0;
        self.data_units_marked |= feedback.newly_acked_ce > 0;
        let scl_t = self.scl_t();
        self.reduce(now, qdelay, scl_t);
        self.increase(now, feedback, scl_t);
        self.update_target();
        if now - self.round_started >= s_rtt {
            self.round_started = now;
            self.max_bytes_in_flight_prev = self.max_bytes_in_flight;
            self.max_bytes_in_flight = bytes(feedback.in_flight);
        }
    }

    fn on_frame(&mut self, frame_size: u64, media_qdelay: Duration) {
        let frame_period = self.rates.frame_period.as_secs_f64();
        let error = (media_qdelay.as_secs_f64() - frame_period / 4.0) / frame_period;
        self.rate_adjust_factor =
            (self.rate_adjust_factor + error * RATE_ADJUST_GAIN).clamp(0.0, 0.5);
        let framesize_nom = self.target_bitrate * frame_period / 8.0;
        let deviation = ((bytes(frame_size) - framesize_nom) / framesize_nom).max(0.0);
        let filtered = (1.0 - FRAME_SIZE_DEV_ALPHA) * self.frame_size_dev;
        self.frame_size_dev = (filtered + FRAME_SIZE_DEV_ALPHA * deviation).min(0.2);
    }

    fn target(&self) -> f64 {
        self.target_bitrate
    }

    /// Section 4.3.2.
    fn pacing_rate(&self) -> f64 {
        let nominal_rate_t = self.target_bitrate / self.rates.max;
        let above_t =
            (nominal_rate_t - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW);
        let pace_rate_scale_t =
            (1.0 - above_t.min(1.0)).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0);
        self.target_bitrate.max(RATE_PACE_MIN) * PACING_HEADROOM / pace_rate_scale_t
    }

    fn send_window(&self) -> u64 {
        whole(self.ref_wnd * REF_WND_OVERHEAD)
    }

    fn window(&self) -> Option<u64> {
        Some(whole(self.ref_wnd))
    }

    fn srtt(&self) -> Option<Duration> {
        let s_rtt = self.s_rtt?;
        Some(Duration::from_secs(1).scaled(s_rtt))
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes")]
const fn bytes(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(clippy::cast_precision_loss, reason = "a few packets")]
const fn count(packets: usize) -> f64 {
    packets as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window in bytes, > 0"
)]
const fn whole(window: f64) -> u64 {
    window as u64
}

#[cfg(test)]
mod tests;
