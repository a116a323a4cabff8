//! The parameters of BBR version 3.

use super::state::State;
use crate::cc::RateSample;
use crate::cc::bbr_common::BBR_UNIT;
use crate::cc::parameter::{Unit, gcd, parameters};

parameters! {
    /// Parameters of [`Bbr3`](super::Bbr3): the constants of draft-ietf-ccwg-bbr-06 except `MaxBwFilterLen`, which is 2, the
    /// number of places in the filter.
    pub struct Bbr3Params {
        startup_pacing_gain: u16 = 710, Unit::Ratio(256), (257, 2_560),
            "Pacing gain in Startup",
            "draft-ietf-ccwg-bbr-06 section 2.5, StartupPacingGain: 4 ln 2";
        drain_pacing_gain: u16 = 128, Unit::Ratio(256), (1, 256),
            "Pacing gain in Drain",
            "draft-ietf-ccwg-bbr-06 section 2.5, DrainPacingGain";
        default_cwnd_gain: u16 = 512, Unit::Ratio(256), (256, 2_560),
            "Congestion window gain",
            "draft-ietf-ccwg-bbr-06 section 2.6, DefaultCwndGain";
        probe_bw_down_pacing_gain: u16 = 230, Unit::Ratio(256), (1, 256),
            "Pacing gain in ProbeBW_DOWN",
            "draft-ietf-ccwg-bbr-06 section 5.3.3.1: 0.9";
        probe_bw_up_pacing_gain: u16 = 320, Unit::Ratio(256), (257, 2_560),
            "Pacing gain in ProbeBW_UP",
            "draft-ietf-ccwg-bbr-06 section 5.3.3.5: 1.25";
        probe_bw_up_cwnd_gain: u16 = 576, Unit::Ratio(256), (256, 2_560),
            "Congestion window gain in ProbeBW_UP",
            "draft-ietf-ccwg-bbr-06 section 5.3.3.5: 2.25";
        probe_rtt_cwnd_gain: u16 = 128, Unit::Ratio(256), (1, 256),
            "Congestion window gain in ProbeRTT",
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTCwndGain";
        pacing_margin_percent: u8 = 1, Unit::Count("percent"), (0, 50),
            "Margin of the pacing rate below the bandwidth",
            "draft-ietf-ccwg-bbr-06 section 2.5, PacingMarginPercent";
        loss_thresh: u16 = 20, Unit::Decimal(3), (0, 1_000),
            "Loss ratio tolerated while probing",
            "draft-ietf-ccwg-bbr-06 section 2.8, LossThresh";
        beta: u16 = 700, Unit::Decimal(3), (1, 1_000),
            "Minimum fraction of a bound that remains after congestion",
            "draft-ietf-ccwg-bbr-06 section 2.8, Beta";
        headroom: u16 = 150, Unit::Decimal(3), (0, 900),
            "Fraction of the long-term bound left to other flows",
            "draft-ietf-ccwg-bbr-06 section 2.8, Headroom";
        min_pipe_cwnd: u16 = 4, Unit::Count("segments"), (1, 10_000),
            "Minimum congestion window",
            "draft-ietf-ccwg-bbr-06 section 2.8, MinPipeCwnd";
        full_bw_thresh: u16 = 320, Unit::Ratio(256), (257, 2_560),
            "Minimum bandwidth growth factor per round to stay in Startup",
            "draft-ietf-ccwg-bbr-06 section 5.3.1.2: 1.25";
        full_bw_count: u8 = 3, Unit::Count("rounds"), (1, 100),
            "Number of rounds below full_bw_thresh after which the pipe is considered full",
            "draft-ietf-ccwg-bbr-06 section 5.3.1.2: 3";
        full_loss_count: u16 = 6, Unit::Count("loss events"), (1, 10_000),
            "Loss events per round that end Startup",
            "draft-ietf-ccwg-bbr-06 section 5.3.1.3, BBRStartupFullLossCnt";
        extra_acked_filter_len: u16 = 10, Unit::Count("rounds"), (1, 10_000),
            "Length of the max filter for aggregation",
            "draft-ietf-ccwg-bbr-06 section 2.12, ExtraAckedFilterLen";
        min_rtt_filter_len: u32 = 10_000, Unit::Millis, (1, 10_000_000),
            "Lifetime of a minimum RTT sample",
            "draft-ietf-ccwg-bbr-06 section 2.16.1, MinRTTFilterLen";
        probe_rtt_interval: u32 = 5_000, Unit::Millis, (1, 10_000_000),
            "Interval between probes for the minimum RTT",
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTInterval";
        probe_rtt_duration: u32 = 200, Unit::Millis, (0, 60_000),
            "Minimum duration of ProbeRTT",
            "draft-ietf-ccwg-bbr-06 section 2.16.2, ProbeRTTDuration";
        bw_probe_wait_base: u32 = 2_000, Unit::Millis, (1, 10_000_000),
            "Minimum wait between bandwidth probes; a random time up to 1 s is added",
            "draft-ietf-ccwg-bbr-06 section 5.3.3.8, bw_probe_wait";
        bw_probe_max_rounds: u16 = 63, Unit::Count("rounds"), (1, 10_000),
            "Maximum number of rounds between bandwidth probes",
            "draft-ietf-ccwg-bbr-06 section 5.3.3.8, T_reno";
    }
}

impl Bbr3Params {
    /// Gains of rate and window.
    pub(super) fn gains(&self, state: State) -> (u64, u64) {
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
    pub(super) fn beta_of(&self, segments: u32) -> u32 {
        let part = u64::from(segments) * u64::from(self.beta) / 1_000;
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// `beta` of a bandwidth; without overflow, so divided first.
    pub(super) fn beta_of_bw(&self, bw: u64) -> u64 {
        let beta = u32::from(self.beta);
        let divisor = gcd(beta, 1_000);
        bw / u64::from(1_000 / divisor) * u64::from(beta / divisor)
    }

    /// Whether more than `loss_thresh` of what was in flight when the newest segment delivered was sent is
    /// lost.
    pub(super) fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        sample.lost_since * 1_000 > u64::from(self.loss_thresh) * u64::from(sample.in_flight_then)
    }
}
