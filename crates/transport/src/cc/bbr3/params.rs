//! The parameters of BBR version 3.

use sojourn_schema::{gcd, parameters};

use super::state::State;
use crate::cc::RateSample;
use crate::cc::bbr_common::BBR_UNIT;

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
        let beta = u64::from(self.beta);
        let divisor = gcd(beta, 1_000);
        bw / (1_000 / divisor) * (beta / divisor)
    }

    /// Whether more than `loss_thresh` of what was in flight when the newest segment delivered was sent is
    /// lost.
    pub(super) fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        sample.lost_since * 1_000 > u64::from(self.loss_thresh) * u64::from(sample.in_flight_then)
    }
}
