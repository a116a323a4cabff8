//! BBR version 1: window and rate follow a model of the path.
//!
//! # Source
//!
//! Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and
//! draft-cardwell-iccrg-bbr-congestion-control-00, as Linux 6.1 has it (its behaviour specified from
//! measurements and facts, see `docs/explanation/tcp.md`).
//!
//! # Law
//!
//! ```text
//! bw       largest delivery rate of 10 rounds          BDP = bw min_rtt
//! min_rtt  smallest RTT of 10 s
//! rate     0.99 gain bw
//! cwnd     gain BDP + extra_acked + 3 bursts
//!
//! STARTUP    gains 2.89, until three rounds brought less than 25 % more bandwidth
//! DRAIN      rate gain 0.35, until a BDP is in flight
//! PROBE_BW   rate gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, about a min_rtt each; window gain 2
//! PROBE_RTT  when min_rtt is 10 s old: a window of 4 for 200 ms and a round
//! ```
//!
//! A loss takes what was lost from the window for one round; afterwards the window is restored. ECN marks
//! are ignored, as in Linux. Names are those of `tcp_bbr.c`.

mod ack_aggregation;
mod lt_bw;

use sojourn_net::{Instant, Rng};
use sojourn_schema::parameters;

use super::bbr_common::{BBR_UNIT, BW_SCALE, MaxFilter, PriorCwnd};
use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::MinRtt;
use super::{
    Ack, BurstSize, Episode, ModelBased, Progress, Reduction, Resume, Start, Threshold, Window,
    bbr_common,
};
use crate::segment::MSS;
use ack_aggregation::{AckAggregation, Acked};
use lt_bw::{LongTermBandwidth, Signals};

/// Phases of `PROBE_BW`.
const CYCLE_LEN: u8 = 8;
/// Most segments in one burst.
const MAX_TSO_SEGS: u64 = 127;
/// The bandwidth-delay product in segments while there is no RTT; deliveries up to which the window only grows.
const TCP_INIT_CWND: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The BBR congestion controller, version 1.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Bbr {
    params: BbrParams,
    rng: Rng,
    mode: Mode,
    bw: MaxFilter,
    min_rtt: MinRtt,
    /// Tick at which it was taken.
    min_rtt_stamp: u64,
    rtt_cnt: u32,
    /// The round ends when a segment sent after this number of deliveries is delivered.
    next_rtt_delivered: u64,
    round_start: bool,
    full_bw: u64,
    full_bw_cnt: u8,
    full_bw_reached: bool,
    cycle_idx: u8,
    cycle_mstamp: Instant,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// In bytes/s.
    pacing_rate: u64,
    /// Bytes of a full-sized segment at the last acknowledgement.
    mss: u32,
    prior_cwnd: PriorCwnd,
    ssthresh: Threshold,
    prev_episode: Episode,
    /// In the first round of a recovery no more is sent than was delivered.
    packet_conservation: bool,
    timed_out: bool,
    undone: bool,
    idle_restart: bool,
    /// Tick after which `PROBE_RTT` may end.
    probe_rtt_done_stamp: Option<u64>,
    probe_rtt_round_done: bool,
    extra_acked: AckAggregation,
    lt_bw: LongTermBandwidth,
}

impl Bbr {
    /// The controller of a connection whose choices of phase come from `seed`.
    pub fn new(params: BbrParams, seed: u64) -> Self {
        Self {
            params,
            rng: Rng::new(seed).fork("bbr"),
            mode: Mode::Startup,
            bw: MaxFilter::new(params.bw_rtts.into()),
            min_rtt: MinRtt::NONE,
            min_rtt_stamp: 0,
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            round_start: false,
            full_bw: 0,
            full_bw_cnt: 0,
            full_bw_reached: false,
            cycle_idx: 0,
            cycle_mstamp: Instant::ZERO,
            pacing_gain: params.high_gain.into(),
            cwnd_gain: params.high_gain.into(),
            pacing_rate: 0,
            mss: MSS.into(),
            prior_cwnd: PriorCwnd::default(),
            ssthresh: Threshold::UNSET,
            prev_episode: Episode::None,
            packet_conservation: false,
            timed_out: false,
            undone: false,
            idle_restart: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            extra_acked: AckAggregation::default(),
            lt_bw: LongTermBandwidth::default(),
        }
    }

    fn bandwidth(&self) -> u64 {
        self.lt_bw.bw().unwrap_or_else(|| self.bw.get())
    }

    fn set_pacing_rate(&mut self, bw: u64, gain: u64) {
        let margin = self.params.pacing_margin_percent;
        let rate = bbr_common::pacing_rate(bw, gain, margin, self.mss);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Least number of segments in a burst.
    fn min_tso_segs(&self) -> u32 {
        let bytes_per_sec = u64::from(self.params.min_tso_rate) / 8;
        if self.pacing_rate < bytes_per_sec {
            1
        } else {
            2
        }
    }

    /// Segments in a burst.
    fn tso_segs_goal(&self) -> u64 {
        let by_rate = bbr_common::burst_segments(self.pacing_rate >> 10, self.mss);
        by_rate.max(self.min_tso_segs().into()).min(MAX_TSO_SEGS)
    }

    /// `gain` times what the path holds at bandwidth `bw`, rounded up.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt.micros() else {
            return TCP_INIT_CWND;
        };
        bbr_common::segments_of_bdp(bw, min_rtt, gain)
    }

    /// `segments` and an allowance for bursts on both hosts; an even number, for delayed acknowledgements.
    fn quantization_budget(&self, segments: u64) -> u64 {
        let even = (segments + 3 * self.tso_segs_goal()).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBw && self.cycle_idx == 0;
        even + if probing { 2 } else { 0 }
    }

    fn inflight(&self, gain: u64) -> u64 {
        self.quantization_budget(self.bdp(self.bw.get(), gain))
    }

    /// Segments in the network at the earliest departure time of the next burst.
    fn packets_in_net_at_edt(&self, now: Instant, p: &Progress, in_flight: u32) -> u64 {
        let wait = p.next_departure.since(now).as_micros();
        let delivered = (self.bandwidth() * wait) >> BW_SCALE;
        let burst = if self.pacing_gain > BBR_UNIT {
            self.tso_segs_goal()
        } else {
            0
        };
        (u64::from(in_flight) + burst).saturating_sub(delivered)
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let probing_rtt = self.mode == Mode::ProbeRtt;
        self.prior_cwnd.save(cwnd, self.prev_episode, probing_rtt);
    }

    fn enter_probe_bw(&mut self, delivered_at: Instant) {
        self.mode = Mode::ProbeBw;
        // Any phase but the draining one.
        let drawn = u8::try_from(self.rng.below(7)).expect("below 7");
        self.cycle_idx = (CYCLE_LEN - drawn) % CYCLE_LEN;
        self.cycle_mstamp = delivered_at;
    }

    fn update_bw(&mut self, p: &Progress) {
        self.round_start = false;
        let Some(sample) = p.sample else { return };
        if sample.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = p.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_lt_bw(p, p.newly_lost > 0);
        let bw = bbr_common::bandwidth(&sample);
        if !sample.app_limited || bw >= self.bw.get() {
            self.bw.update(self.rtt_cnt, bw);
        }
    }

    fn sample_lt_bw(&mut self, p: &Progress, lost: bool) {
        let signals = Signals {
            lost,
            round: self.round_start,
            probing_bw: self.mode == Mode::ProbeBw,
            mss: self.mss,
        };
        if self.lt_bw.update(&self.params, p, signals) {
            self.enter_probe_bw(p.delivered_at);
        }
    }

    fn update_cycle_phase(&mut self, ack: &Ack, p: &Progress) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let passed = p.delivered_at.since(self.cycle_mstamp).as_micros();
        let min_rtt = self.min_rtt.micros();
        let long = min_rtt.is_some_and(|min_rtt| passed > u64::from(min_rtt));
        let over = if self.pacing_gain == BBR_UNIT {
            long
        } else {
            let in_flight = self.packets_in_net_at_edt(ack.now, p, ack.prior_in_flight);
            if self.pacing_gain > BBR_UNIT {
                long && (p.newly_lost > 0 || in_flight >= self.inflight(self.pacing_gain))
            } else {
                long || in_flight <= self.inflight(BBR_UNIT)
            }
        };
        if over {
            self.cycle_idx = (self.cycle_idx + 1) % CYCLE_LEN;
            self.cycle_mstamp = p.delivered_at;
        }
    }

    fn check_full_bw_reached(&mut self, p: &Progress) {
        let app_limited = p.sample.is_some_and(|s| s.app_limited);
        if self.full_bw_reached || !self.round_start || app_limited {
            return;
        }
        let bw = self.bw.get();
        if bw >= self.full_bw * u64::from(self.params.full_bw_thresh) / BBR_UNIT {
            self.full_bw = bw;
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= self.params.full_bw_cnt;
    }

    fn check_drain(&mut self, now: Instant, p: &Progress) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            let bdp = self.inflight(BBR_UNIT);
            self.ssthresh = threshold(bdp);
        }
        if self.mode == Mode::Drain
            && self.packets_in_net_at_edt(now, p, p.in_flight) <= self.inflight(BBR_UNIT)
        {
            self.enter_probe_bw(p.delivered_at);
        }
    }

    /// Returns whether sending is held down on purpose, for `PROBE_RTT`.
    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        let valid_ms = 1_000 * u64::from(self.params.min_rtt_win_sec);
        let expired = ack.tick > self.min_rtt_stamp + valid_ms;
        if let Some(rtt) = ack.rtt_micros
            && (self.min_rtt.is_above(rtt) || (expired && !p.ack_delayed))
        {
            self.min_rtt = MinRtt::of(rtt);
            self.min_rtt_stamp = ack.tick;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(window.cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done_stamp = None;
        }
        let probing = self.mode == Mode::ProbeRtt;
        if probing {
            if self.probe_rtt_done_stamp.is_none() {
                if p.in_flight <= self.cwnd_min_target() {
                    self.probe_rtt_done_stamp =
                        Some(ack.tick + u64::from(self.params.probe_rtt_mode_ms));
                    self.probe_rtt_round_done = false;
                    self.next_rtt_delivered = p.delivered;
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(window, ack.tick, p.delivered_at);
                }
            }
        }
        if p.newly_delivered > 0 {
            self.idle_restart = false;
        }
        probing
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, tick: u64, delivered_at: Instant) {
        if self.probe_rtt_done_stamp.is_none_or(|until| tick <= until) {
            return;
        }
        self.min_rtt_stamp = tick;
        window.cwnd = self.prior_cwnd.restore(window.cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(delivered_at);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        let p = &self.params;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (p.high_gain.into(), p.high_gain.into()),
            Mode::Drain => (p.drain_gain.into(), p.high_gain.into()),
            Mode::ProbeBw if self.lt_bw.bw().is_some() => (BBR_UNIT, p.cwnd_gain.into()),
            Mode::ProbeBw => {
                let gain = p.pacing_gain[usize::from(self.cycle_idx)];
                (gain.into(), p.cwnd_gain.into())
            }
            Mode::ProbeRtt => (BBR_UNIT, BBR_UNIT),
        };
    }

    fn cwnd_min_target(&self) -> u32 {
        self.params.cwnd_min_target.into()
    }

    fn set_cwnd(&mut self, window: &mut Window, p: &Progress) {
        if p.newly_delivered > 0 {
            window.cwnd = self.next_cwnd(window.cwnd, p);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.cwnd_min_target());
        }
    }

    fn next_cwnd(&mut self, cwnd: u32, p: &Progress) -> u32 {
        let mut cwnd = cwnd;
        if p.newly_lost > 0 {
            cwnd = cwnd.saturating_sub(p.newly_lost).max(1);
        }
        let delivered = p.in_flight + p.newly_delivered;
        let before = std::mem::replace(&mut self.prev_episode, p.episode);
        if p.episode == Episode::Recovery && before != Episode::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = p.delivered;
            cwnd = delivered;
        } else if before != Episode::None && p.episode == Episode::None {
            cwnd = self.prior_cwnd.restore(cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            return cwnd.max(delivered).max(self.cwnd_min_target());
        }
        let bw = self.bandwidth();
        let mut target = self.bdp(bw, self.cwnd_gain);
        if self.full_bw_reached {
            let max = (bw * u64::from(self.params.extra_acked_max_us)) >> BW_SCALE;
            let gain = u64::from(self.params.extra_acked_gain);
            let extra = u64::from(self.extra_acked.get()) * gain / BBR_UNIT;
            target += extra.min(max);
        }
        let target = threshold(self.quantization_budget(target)).limit();
        if self.full_bw_reached {
            cwnd = (cwnd + p.newly_delivered).min(target);
        } else if cwnd < target || p.delivered < TCP_INIT_CWND {
            cwnd += p.newly_delivered;
        }
        cwnd.max(self.cwnd_min_target())
    }
}

/// A threshold of `segments`, at most the unset one.
fn threshold(segments: u64) -> Threshold {
    u32::try_from(segments).map_or(Threshold::UNSET, Threshold::of_segments)
}

impl ModelBased for Bbr {
    fn on_start(&mut self, window: &Window, start: &Start) {
        self.min_rtt = MinRtt::of(start.rtt_micros);
        self.min_rtt_stamp = start.tick;
        self.next_rtt_delivered = start.delivered;
        self.extra_acked.begin(start.now);
        self.mss = window.mss();
        let bw = bbr_common::initial_bandwidth(window, start);
        let margin = self.params.pacing_margin_percent;
        self.pacing_rate =
            bbr_common::pacing_rate(bw, self.params.high_gain.into(), margin, self.mss);
    }

    fn update(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        self.mss = window.mss();
        if std::mem::take(&mut self.timed_out) {
            self.round_start = true;
            self.sample_lt_bw(p, true);
        }
        if std::mem::take(&mut self.undone) {
            self.lt_bw.reset(p);
        }
        self.update_bw(p);
        if p.sample.is_some() && p.newly_delivered > 0 {
            let bw = self.bandwidth();
            let round = self.round_start;
            let acked = Acked {
                now: p.delivered_at,
                newly: p.newly_delivered,
                bw,
                round,
                cwnd: window.cwnd,
            };
            let rounds = self.params.extra_acked_win_rtts.into();
            self.extra_acked.update(rounds, &acked);
        }
        self.update_cycle_phase(ack, p);
        self.check_full_bw_reached(p);
        self.check_drain(ack.now, p);
        let held_down = self.update_min_rtt(window, ack, p);
        self.update_gains();
        self.set_pacing_rate(self.bandwidth(), self.pacing_gain);
        self.set_cwnd(window, p);
        held_down
    }

    fn on_reduction(&mut self, window: &Window, reduction: Reduction) -> Option<Threshold> {
        if reduction == Reduction::Loss {
            return None;
        }
        self.save_cwnd(window.cwnd);
        Some(self.ssthresh)
    }

    fn on_timeout(&mut self) {
        self.prev_episode = Episode::Loss;
        self.full_bw = 0;
        self.timed_out = true;
    }

    fn on_undo(&mut self) {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.undone = true;
    }

    fn on_restart(&mut self, window: &mut Window, resume: &Resume) {
        self.idle_restart = true;
        self.extra_acked.begin(resume.now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(self.bandwidth(), BBR_UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(window, resume.tick, resume.now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn pacing_rate(&self, _mss: u32) -> Option<u64> {
        Some(self.pacing_rate)
    }

    fn needs_round_without_loss(&self) -> bool {
        true
    }

    fn burst_size(&self) -> BurstSize {
        BurstSize {
            min_tso_segs: self.min_tso_segs(),
            ..BurstSize::DEFAULT
        }
    }
}

impl Control for BbrParams {
    type Controller = Bbr;

    const DECLARATION: Declaration = Declaration {
        name: "bbr",
        summary: "BBR version 1: paces at the measured bandwidth and ignores most losses",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.1 tcp_bbr",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, setup: &Setup) -> Bbr {
        Bbr::new(*self, setup.seed)
    }

    fn least_window(&self) -> u32 {
        self.cwnd_min_target.into()
    }
}

parameters! {
    /// Parameters of [`Bbr`](super::Bbr): the constants of the module `tcp_bbr`, without their prefix.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct BbrParams {
        /// Pacing gain and congestion window gain in STARTUP.
        pub high_gain: u16 = 739 => ratio(256, 257, 2_560),
            "Linux tcp_bbr, bbr_high_gain: 2 / ln 2";
        /// Pacing gain in DRAIN.
        pub drain_gain: u16 = 88 => ratio(256, 1, 256),
            "Linux tcp_bbr, bbr_drain_gain: ln 2 / 2";
        /// Congestion window gain in PROBE_BW.
        pub cwnd_gain: u16 = 512 => ratio(256, 256, 2_560),
            "Linux tcp_bbr, bbr_cwnd_gain";
        /// Pacing gains in the phases of PROBE_BW.
        pub pacing_gain: [u16; 8] = [320, 192, 256, 256, 256, 256, 256, 256] => ratios(256, 1, 2_560),
            "Linux tcp_bbr, bbr_pacing_gain";
        /// Length of the max filter for bandwidth.
        pub bw_rtts: u16 = 10 => count(1, 10_000).of("rounds"),
            "Linux tcp_bbr, bbr_bw_rtts";
        /// Lifetime of a minimum RTT sample.
        pub min_rtt_win_sec: u16 = 10 => count(1, 10_000).of("seconds"),
            "Linux tcp_bbr, bbr_min_rtt_win_sec";
        /// Minimum duration of PROBE_RTT.
        pub probe_rtt_mode_ms: u16 = 200 => count(0, 60_000).of("milliseconds"),
            "Linux tcp_bbr, bbr_probe_rtt_mode_ms";
        /// Minimum congestion window.
        pub cwnd_min_target: u16 = 4 => count(1, 10_000).of("segments"),
            "Linux tcp_bbr, bbr_cwnd_min_target";
        /// Margin of the pacing rate below the bandwidth.
        pub pacing_margin_percent: u8 = 1 => count(0, 50).of("percent"),
            "Linux tcp_bbr, bbr_pacing_margin_percent";
        /// Minimum bandwidth growth factor per round to stay in STARTUP.
        pub full_bw_thresh: u16 = 320 => ratio(256, 257, 2_560),
            "Linux tcp_bbr, bbr_full_bw_thresh";
        /// Number of rounds below full_bw_thresh after which the pipe is considered full.
        pub full_bw_cnt: u8 = 3 => count(1, 100).of("rounds"),
            "Linux tcp_bbr, bbr_full_bw_cnt";
        /// Pacing rate at or above which bursts have at least two segments.
        pub min_tso_rate: u32 = 1_200_000 => count(0, 1_000_000_000).of("bit/s"),
            "Linux tcp_bbr, bbr_min_tso_rate";
        /// Gain of the congestion window increment for ACK aggregation.
        pub extra_acked_gain: u16 = 256 => ratio(256, 0, 2_560),
            "Linux tcp_bbr, bbr_extra_acked_gain";
        /// Length of each half of the max filter for aggregation.
        pub extra_acked_win_rtts: u16 = 5 => count(1, 10_000).of("rounds"),
            "Linux tcp_bbr, bbr_extra_acked_win_rtts";
        /// Maximum congestion window increment for ACK aggregation, as time at the estimated bandwidth.
        pub extra_acked_max_us: u32 = 100_000 => count(0, 10_000_000).of("microseconds"),
            "Linux tcp_bbr, bbr_extra_acked_max_us";
        /// Minimum interval of policer detection; the maximum is four times as long.
        pub lt_intvl_min_rtts: u8 = 4 => count(1, 60).of("rounds"),
            "Linux tcp_bbr, bbr_lt_intvl_min_rtts";
        /// Minimum loss ratio of a policed interval.
        pub lt_loss_thresh: u16 = 50 => ratio(256, 1, 256),
            "Linux tcp_bbr, bbr_lt_loss_thresh";
        /// Two intervals agree if their rates differ by at most this fraction.
        pub lt_bw_ratio: u16 = 32 => ratio(256, 0, 256),
            "Linux tcp_bbr, bbr_lt_bw_ratio";
        /// Two intervals agree if their rates differ by at most this rate.
        pub lt_bw_diff: u32 = 4_000 => count(0, 1_000_000_000).of("bit/s"),
            "Linux tcp_bbr, bbr_lt_bw_diff";
        /// Duration for which the rate of a policer is used.
        pub lt_bw_max_rtts: u16 = 48 => count(1, 10_000).of("rounds"),
            "Linux tcp_bbr, bbr_lt_bw_max_rtts";
    }
}

#[cfg(test)]
mod tests;
