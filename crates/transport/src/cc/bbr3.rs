//! BBR version 3: a model of the path with bounds from losses and marks.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 (6 July 2026), §5. Where it leaves open what a sender counts as in flight, that of Google for
//! Linux. `docs/validation/parity.md` compares the two; no released kernel has this version.
//!
//! # Law
//!
//! ```text
//! max_bw   largest delivery rate of this and the previous probing cycle
//! bw       min(max_bw, bw_shortterm)                          BDP = bw min_rtt
//! min_rtt  smallest RTT of 10 s
//! rate     0.99 gain bw          cwnd   gain BDP + extra_acked, at most the bounds
//!
//! STARTUP  rate 2.77, window 2, until three rounds brought less than 25 % more bandwidth, or a
//!          round of recovery lost more than 2 % in six places, or two rounds had marks
//! DRAIN    rate 0.5, until a BDP is in flight, three rounds at most
//! DOWN     rate 0.9, until no more than a BDP and 0.85 inflight_longterm is in flight
//! CRUISE   rate 1, until 2 to 3 s or min(BDP, 62 or 63) rounds after DOWN began
//! REFILL   rate 1, one round, the short-term bounds forgotten
//! UP       rate 1.25, window 2.25, until bandwidth grows no more, more than 2 % is lost or one is
//!          marked, or the bound of a probe that lost too much is in flight: before the acknowledgement, with
//!          the burst that leaves next
//! PROBE_RTT  when the smallest RTT of 5 s is 5 s old: half a BDP for 200 ms and a round
//!
//! probe lost > 2 % or was marked  inflight_longterm = flight when it did, 0.7 of the target at least:
//!                                 the flight with the lost segment, when that was sent
//! round with a loss or mark, no probe
//!                                 bw_shortterm, inflight_shortterm = the round's, 0.7 at least
//! ```
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | what is in flight counts before an acknowledgement, with the next burst of an accelerating probe, less what arrives until that leaves | not specified (`C.inflight`) | as in Linux: a probe stops at its bound; without this it exceeds the bound each time |
//! | a BDP is rounded up to whole segments, and what should be in flight has the budget for bursts | without budget | as in Linux: at 10 Mbit/s and 40 ms up to a segment more |
//! | a budget of three bursts for aggregation on the hosts, over QUIC too | there one (§5.5.8.2) | over QUIC at least 6 segments, or 3 ms of the rate, may be in flight, not 4 or 1 ms |
//! | loss events: acknowledgements that reported losses | discontiguous ranges | fewer, so STARTUP ends by loss a little later |
//! | a round with a mark is one with a loss, a mark in a probe is as more than 2 % lost, two rounds in a row with marks end STARTUP | a mark MUST be treated as congestion (§3.7), how is left open | ours: an AQM marks a standing queue, so that no part of marks is tolerated |

mod bounds;
mod cycle;
mod model;

use sojourn_net::Instant;
use sojourn_schema::{gcd, parameters};

use super::bbr_common::{BBR_UNIT, BW_SCALE, MaxFilter};
use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::MinRtt;
use super::{
    Ack, Episode, LostSegment, ModelBased, Progress, RateSample, Reduction, Resume, Start,
    Threshold, Window, bbr_common,
};
use bounds::Bound;
use model::{FullBw, StampedMinRtt};

pub use model::Bbr3;

/// The largest window.
const MAX_CWND: u32 = Threshold::UNSET.limit();

impl Bbr3 {
    fn min_pipe_cwnd(&self) -> u32 {
        self.params.min_pipe_cwnd.into()
    }

    fn max_bw(&self) -> u64 {
        self.max_bw_filter[0].max(self.max_bw_filter[1])
    }

    fn bw(&self) -> u64 {
        self.bounds.bw_shortterm.limit(self.max_bw())
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        let margin = self.params.pacing_margin_percent;
        let rate = bbr_common::pacing_rate(self.bw(), gain, margin, self.mss);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        let Some(min_rtt) = self.min_rtt.rtt.micros() else {
            return self.initial_cwnd;
        };
        let bdp = bbr_common::segments_of_bdp(bw, min_rtt, gain);
        u32::try_from(bdp).unwrap_or(MAX_CWND)
    }

    /// Segments that leave together.
    fn burst_segments(&self) -> u32 {
        let burst = bbr_common::burst_segments(self.pacing_rate / 1_000, self.mss);
        u32::try_from(burst.max(2)).unwrap_or(2)
    }

    fn quantization_budget(&self, segments: u32) -> u32 {
        let probing = if self.state == State::Up { 2 } else { 0 };
        segments
            .max(3 * self.burst_segments())
            .max(self.min_pipe_cwnd())
            + probing
    }

    /// Segments in the network when the next burst leaves, if `in_flight` are now. One that raises the flight
    /// counts. Pacing has decided on what leaves until then.
    fn in_net_at_departure(&self, now: Instant, p: &Progress, in_flight: u32) -> u32 {
        let wait = p.next_departure.saturating_since(now).as_micros();
        let delivered = (u128::from(self.bw()) * u128::from(wait)) >> BW_SCALE;
        let (gain, _) = self.params.gains(self.state);
        let burst = if gain > BBR_UNIT {
            self.burst_segments()
        } else {
            0
        };
        in_flight
            .saturating_add(burst)
            .saturating_sub(u32::try_from(delivered).unwrap_or(u32::MAX))
    }

    fn inflight(&self, bw: u64) -> u32 {
        self.quantization_budget(self.bdp(bw, BBR_UNIT))
    }

    /// What should be in flight: a BDP, or what bursts need, unless congestion reduced the window.
    fn target_inflight(&self, cwnd: u32) -> u32 {
        self.inflight(self.bw()).min(cwnd)
    }

    const fn start_round(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// A loss or a mark after `delivered` deliveries. Where congestion begins, saves what undoing it restores.
    fn note_congestion(&mut self, cwnd: u32, delivered: u64, together: bool) {
        if self.bounds.note_congestion(delivered, together) {
            self.save_cwnd(cwnd);
            self.undo_state = None;
        }
    }

    fn update_round(&mut self, p: &Progress, sample: Option<&RateSample>) {
        self.round_start = sample.is_some_and(|s| s.prior_delivered >= self.next_round_delivered);
        if self.round_start {
            self.start_round(p.delivered);
            self.round_count += 1;
            self.cycle.rounds_since_bw_probe += 1;
        }
    }

    fn update_bw(&mut self, bw: u64, sample: &RateSample) {
        if bw >= self.max_bw() || !sample.app_limited {
            self.max_bw_filter[1] = self.max_bw_filter[1].max(bw);
        }
    }

    fn update_ack_aggregation(&mut self, p: &Progress, cwnd: u32) {
        let micros = p
            .delivered_at
            .saturating_since(self.extra_acked_interval_start)
            .as_micros();
        let mut expected = (u128::from(self.bw()) * u128::from(micros)) >> BW_SCALE;
        if u128::from(self.extra_acked_delivered) <= expected {
            self.extra_acked_delivered = 0;
            self.extra_acked_interval_start = p.delivered_at;
            expected = 0;
        }
        self.extra_acked_delivered += u64::from(p.newly_delivered);
        let extra = u128::from(self.extra_acked_delivered).saturating_sub(expected);
        let extra = u64::try_from(extra)
            .unwrap_or(u64::MAX)
            .min(u64::from(cwnd));
        if !self.full_bw_reached && self.round_start {
            // In STARTUP the window is one round.
            self.extra_acked_filter = MaxFilter::new(self.params.extra_acked_filter_len.into());
        }
        self.extra_acked_filter.update(self.round_count, extra);
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let probing_rtt = self.state == State::ProbeRtt;
        self.prior_cwnd.save(cwnd, self.prev_episode, probing_rtt);
    }

    fn set_cwnd(&mut self, window: &mut Window, p: &Progress) {
        let before = std::mem::replace(&mut self.prev_episode, p.episode);
        if before != Episode::None && p.episode == Episode::None {
            window.cwnd = self.prior_cwnd.restore(window.cwnd);
        }
        if p.newly_delivered == 0 {
            return;
        }
        let extra_acked = u32::try_from(self.extra_acked_filter.get()).unwrap_or(MAX_CWND);
        let (_, gain) = self.params.gains(self.state);
        let most = self.quantization_budget(self.bdp(self.bw(), gain).saturating_add(extra_acked));
        let grown = window.cwnd.saturating_add(p.newly_delivered);
        if self.full_bw_reached {
            window.cwnd = grown.min(most);
        } else if window.cwnd < most || p.delivered < self.initial_cwnd.into() {
            window.cwnd = grown;
        }
        window.cwnd = window.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.bounds.inflight_with_headroom(&self.params),
            State::Startup | State::Drain => Bound::NONE,
        };
        let bound = bound
            .min(self.bounds.inflight_shortterm)
            .max(Bound::at(self.min_pipe_cwnd()));
        window.cwnd = bound.limit(window.cwnd);
    }

    /// A loss was spurious: restores bounds and state.
    fn undo(&mut self, p: &Progress) {
        self.bounds.restore();
        self.full_bw = FullBw::default();
        match self.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_probe_bw_refill(p.delivered);
            }
            _ => {}
        }
    }
}

impl ModelBased for Bbr3 {
    fn on_start(&mut self, window: &Window, start: &Start) {
        self.initial_cwnd = window.cwnd;
        self.min_rtt = StampedMinRtt {
            rtt: if start.measured {
                MinRtt::of(start.rtt_micros)
            } else {
                MinRtt::NONE
            },
            stamp: start.tick,
        };
        self.probe_rtt_min = self.min_rtt;
        self.next_round_delivered = start.delivered;
        self.extra_acked_interval_start = start.now;
        self.mss = window.mss();
        let bw = bbr_common::initial_bandwidth(window, start);
        let (gain, margin) = (
            self.params.startup_pacing_gain,
            self.params.pacing_margin_percent,
        );
        self.pacing_rate = bbr_common::pacing_rate(bw, gain.into(), margin, self.mss);
    }

    fn update(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        self.mss = window.mss();
        self.marked = p.ecn.is_some_and(|feedback| feedback.marked > 0);
        if std::mem::take(&mut self.undone) {
            window.cwnd = self.prior_cwnd.restore(window.cwnd);
            self.undo(p);
        }
        let sample = p.sample.as_ref();
        let bw = sample.map_or(0, bbr_common::bandwidth);
        let lost = std::mem::take(&mut self.lost);
        if self.marked {
            self.note_congestion(window.cwnd, p.delivered, lost);
            self.bounds.ce_in_round = true;
        }
        self.bounds.update_latest_delivery_signals(p, bw);
        self.update_round(p, sample);
        self.cwnd_limited
            .update(self.round_start, window, ack.prior_in_flight);
        if let Some(sample) = sample {
            self.update_bw(bw, sample);
            self.check_startup_marks();
            if self.bounds.loss_round_start {
                let probing = self.state.accelerates();
                let (max_bw, cwnd) = (self.max_bw(), window.cwnd);
                self.bounds
                    .adapt_lower_bounds(&self.params, probing, max_bw, cwnd);
            }
            self.update_ack_aggregation(p, window.cwnd);
            self.check_full_bw_reached(bw, sample);
        }
        self.check_startup_high_loss(p, lost);
        self.check_drain(ack.now, p);
        if self.full_bw_reached {
            let in_net = self.in_net_at_departure(ack.now, p, ack.prior_in_flight);
            self.update_probe_bw_cycle(window, ack.now, p, bw, in_net);
        }
        let expired = self.update_min_rtt(ack);
        let held_down = self.check_probe_rtt(window, ack, p, expired);
        self.bounds.advance_latest_delivery_signals(p, bw);
        let (gain, _) = self.params.gains(self.state);
        self.set_pacing_rate(gain);
        self.set_cwnd(window, p);
        held_down
    }

    fn on_lost(&mut self, window: &Window, lost: &LostSegment) {
        let together = std::mem::replace(&mut self.lost, true);
        self.note_congestion(window.cwnd, lost.delivered, together);
        self.handle_lost_segment(window.cwnd, lost);
    }

    fn on_reduction(&mut self, window: &Window, reduction: Reduction) -> Option<Threshold> {
        if reduction == Reduction::Loss {
            return None;
        }
        self.save_cwnd(window.cwnd);
        Some(Threshold::UNSET)
    }

    fn on_timeout(&mut self) {
        self.prev_episode = Episode::Loss;
    }

    fn on_undo(&mut self) {
        self.undone = true;
    }

    fn on_restart(&mut self, window: &mut Window, resume: &Resume) {
        self.idle_restart = true;
        self.extra_acked_interval_start = resume.now;
        self.extra_acked_delivered = 0;
        if self.state.probes_bw() {
            self.set_pacing_rate(BBR_UNIT);
        } else if self.state == State::ProbeRtt {
            let delivered = self.next_round_delivered;
            self.check_probe_rtt_done(window, resume.now, resume.tick, delivered);
        }
    }

    fn pacing_rate(&self, _mss: u32) -> Option<u64> {
        Some(self.pacing_rate)
    }
}

impl Control for Bbr3Params {
    type Controller = Bbr3;

    const DECLARATION: Declaration = Declaration {
        name: "bbr3",
        summary: "BBR version 3: bounds the data in flight using the losses and marks seen while probing",
        source: "draft-ietf-ccwg-bbr-06",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::With("Google's BBRv3 on Linux 6.12"),
    };

    fn build(&self, setup: &Setup) -> Bbr3 {
        Bbr3::new(*self, setup.seed)
    }

    fn least_window(&self) -> u32 {
        self.min_pipe_cwnd.into()
    }
}

parameters! {
    /// Parameters of [`Bbr3`](super::Bbr3): the constants of draft-ietf-ccwg-bbr-06 except `MaxBwFilterLen`, which is 2, the
    /// number of places in the filter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Bbr3Params {
        /// Pacing gain in Startup.
        pub startup_pacing_gain: u16 = 710 => ratio(256, 257, 2_560),
            "draft-ietf-ccwg-bbr-06 section 2.5, StartupPacingGain: 4 ln 2";
        /// Pacing gain in Drain.
        pub drain_pacing_gain: u16 = 128 => ratio(256, 1, 256),
            "draft-ietf-ccwg-bbr-06 section 2.5, DrainPacingGain";
        /// Congestion window gain.
        pub default_cwnd_gain: u16 = 512 => ratio(256, 256, 2_560),
            "draft-ietf-ccwg-bbr-06 section 2.6, DefaultCwndGain";
        /// Pacing gain in ProbeBW_DOWN.
        pub probe_bw_down_pacing_gain: u16 = 230 => ratio(256, 1, 256),
            "draft-ietf-ccwg-bbr-06 section 5.3.3.1: 0.9";
        /// Pacing gain in ProbeBW_UP.
        pub probe_bw_up_pacing_gain: u16 = 320 => ratio(256, 257, 2_560),
            "draft-ietf-ccwg-bbr-06 section 5.3.3.5: 1.25";
        /// Congestion window gain in ProbeBW_UP.
        pub probe_bw_up_cwnd_gain: u16 = 576 => ratio(256, 256, 2_560),
            "draft-ietf-ccwg-bbr-06 section 5.3.3.5: 2.25";
        /// Congestion window gain in ProbeRTT.
        pub probe_rtt_cwnd_gain: u16 = 128 => ratio(256, 1, 256),
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTCwndGain";
        /// Margin of the pacing rate below the bandwidth.
        pub pacing_margin_percent: u8 = 1 => count(0, 50).of("percent"),
            "draft-ietf-ccwg-bbr-06 section 2.5, PacingMarginPercent";
        /// Loss ratio tolerated while probing.
        pub loss_thresh: u16 = 20 => decimal(3, 0, 1_000),
            "draft-ietf-ccwg-bbr-06 section 2.8, LossThresh";
        /// Minimum fraction of a bound that remains after congestion.
        pub beta: u16 = 700 => decimal(3, 1, 1_000),
            "draft-ietf-ccwg-bbr-06 section 2.8, Beta";
        /// Fraction of the long-term bound left to other flows.
        pub headroom: u16 = 150 => decimal(3, 0, 900),
            "draft-ietf-ccwg-bbr-06 section 2.8, Headroom";
        /// Minimum congestion window.
        pub min_pipe_cwnd: u16 = 4 => count(1, 10_000).of("segments"),
            "draft-ietf-ccwg-bbr-06 section 2.8, MinPipeCwnd";
        /// Minimum bandwidth growth factor per round to stay in Startup.
        pub full_bw_thresh: u16 = 320 => ratio(256, 257, 2_560),
            "draft-ietf-ccwg-bbr-06 section 5.3.1.2: 1.25";
        /// Number of rounds below full_bw_thresh after which the pipe is considered full.
        pub full_bw_count: u8 = 3 => count(1, 100).of("rounds"),
            "draft-ietf-ccwg-bbr-06 section 5.3.1.2: 3";
        /// Loss events per round that end Startup.
        pub full_loss_count: u16 = 6 => count(1, 10_000).of("loss events"),
            "draft-ietf-ccwg-bbr-06 section 5.3.1.3, BBRStartupFullLossCnt";
        /// Length of the max filter for aggregation.
        pub extra_acked_filter_len: u16 = 10 => count(1, 10_000).of("rounds"),
            "draft-ietf-ccwg-bbr-06 section 2.12, ExtraAckedFilterLen";
        /// Lifetime of a minimum RTT sample.
        pub min_rtt_filter_len: u32 = 10_000 => millis(1, 10_000_000),
            "draft-ietf-ccwg-bbr-06 section 2.16.1, MinRTTFilterLen";
        /// Interval between probes for the minimum RTT.
        pub probe_rtt_interval: u32 = 5_000 => millis(1, 10_000_000),
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTInterval";
        /// Minimum duration of ProbeRTT.
        pub probe_rtt_duration: u32 = 200 => millis(0, 60_000),
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTDuration";
        /// Minimum wait between bandwidth probes; a random time up to 1 s is added.
        pub bw_probe_wait_base: u32 = 2_000 => millis(1, 10_000_000),
            "draft-ietf-ccwg-bbr-06 section 5.3.3.8, bw_probe_wait";
        /// Maximum number of rounds between bandwidth probes.
        pub bw_probe_max_rounds: u16 = 63 => count(1, 10_000).of("rounds"),
            "draft-ietf-ccwg-bbr-06 section 5.3.3.8, T_reno";
    }
}

impl Bbr3Params {
    /// Gains of rate and window.
    fn gains(&self, state: State) -> (u64, u64) {
        let cwnd = self.default_cwnd_gain.into();
        match state {
            State::Startup => (self.startup_pacing_gain.into(), cwnd),
            State::Drain => (self.drain_pacing_gain.into(), cwnd),
            State::Down => (self.probe_bw_down_pacing_gain.into(), cwnd),
            State::Cruise | State::Refill => (BBR_UNIT, cwnd),
            State::Up => (
                self.probe_bw_up_pacing_gain.into(),
                self.probe_bw_up_cwnd_gain.into(),
            ),
            State::ProbeRtt => (BBR_UNIT, self.probe_rtt_cwnd_gain.into()),
        }
    }

    /// `beta` of a number of segments.
    fn beta_of(&self, segments: u32) -> u32 {
        let part = u64::from(segments) * u64::from(self.beta) / 1_000;
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// `beta` of a bandwidth; without overflow, so divided first.
    fn beta_of_bw(&self, bw: u64) -> u64 {
        let beta = u64::from(self.beta);
        let divisor = gcd(beta, 1_000);
        bw / (1_000 / divisor) * (beta / divisor)
    }

    /// Whether more than `loss_thresh` of what was in flight when a segment was sent was lost since.
    fn is_inflight_too_high(&self, lost_since: u64, in_flight_then: u32) -> bool {
        lost_since * 1_000 > u64::from(self.loss_thresh) * u64::from(in_flight_then)
    }

    /// What was in flight when the losses exceeded `loss_thresh`, by a lost segment with which they do. A part of the
    /// segment may have fitted still (`BBRInflightAtLoss`).
    fn inflight_at_loss(&self, lost: &LostSegment) -> u32 {
        let before = lost.in_flight_then.saturating_sub(1);
        let tolerated = u64::from(self.loss_thresh) * u64::from(before);
        let lost_before = lost.lost_since.saturating_sub(1) * 1_000;
        let intolerable = 1_000 - u64::from(self.loss_thresh);
        let part = tolerated
            .saturating_sub(lost_before)
            .checked_div(intolerable);
        before + u32::try_from(part.unwrap_or(1)).unwrap_or(1).min(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    const fn probes_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

#[cfg(test)]
mod tests;
