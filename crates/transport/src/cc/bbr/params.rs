//! The parameters of BBR version 1.

use super::Bbr;
use crate::cc::declaration::{Control, Declaration, EcnNeed, Setup};
use crate::cc::parameter::{Unit, parameters};

parameters! {
    /// Parameters of [`Bbr`]: the constants of the module `tcp_bbr`, without their prefix.
    pub struct BbrParams {
        high_gain: u16 = 739, Unit::Ratio(256), (257, 2_560),
            "pacing gain and congestion window gain in STARTUP",
            "Linux tcp_bbr, bbr_high_gain: 2 / ln 2";
        drain_gain: u16 = 88, Unit::Ratio(256), (1, 256),
            "pacing gain in DRAIN",
            "Linux tcp_bbr, bbr_drain_gain: ln 2 / 2";
        cwnd_gain: u16 = 512, Unit::Ratio(256), (256, 2_560),
            "congestion window gain in PROBE_BW",
            "Linux tcp_bbr, bbr_cwnd_gain";
        pacing_gain: [u16; 8] = [320, 192, 256, 256, 256, 256, 256, 256], Unit::Ratios(256), (1, 2_560),
            "pacing gains in the phases of PROBE_BW",
            "Linux tcp_bbr, bbr_pacing_gain";
        bw_rtts: u16 = 10, Unit::Count("rounds"), (1, 10_000),
            "length of the max filter for bandwidth",
            "Linux tcp_bbr, bbr_bw_rtts";
        min_rtt_win_sec: u16 = 10, Unit::Count("seconds"), (1, 10_000),
            "lifetime of a minimum RTT sample",
            "Linux tcp_bbr, bbr_min_rtt_win_sec";
        probe_rtt_mode_ms: u16 = 200, Unit::Count("milliseconds"), (0, 60_000),
            "minimum duration of PROBE_RTT",
            "Linux tcp_bbr, bbr_probe_rtt_mode_ms";
        cwnd_min_target: u16 = 4, Unit::Count("segments"), (1, 10_000),
            "minimum congestion window",
            "Linux tcp_bbr, bbr_cwnd_min_target";
        pacing_margin_percent: u8 = 1, Unit::Count("percent"), (0, 50),
            "margin of the pacing rate below the bandwidth",
            "Linux tcp_bbr, bbr_pacing_margin_percent";
        full_bw_thresh: u16 = 320, Unit::Ratio(256), (257, 2_560),
            "bandwidth growth per round that continues STARTUP",
            "Linux tcp_bbr, bbr_full_bw_thresh";
        full_bw_cnt: u8 = 3, Unit::Count("rounds"), (1, 100),
            "rounds without that growth after which the pipe is full",
            "Linux tcp_bbr, bbr_full_bw_cnt";
        min_tso_rate: u32 = 1_200_000, Unit::Count("bit/s"), (0, 1_000_000_000),
            "minimum rate for bursts of at least two segments",
            "Linux tcp_bbr, bbr_min_tso_rate";
        extra_acked_gain: u16 = 256, Unit::Ratio(256), (0, 2_560),
            "gain of the congestion window increment for ACK aggregation",
            "Linux tcp_bbr, bbr_extra_acked_gain";
        extra_acked_win_rtts: u16 = 5, Unit::Count("rounds"), (1, 10_000),
            "length of each half of the max filter for aggregation",
            "Linux tcp_bbr, bbr_extra_acked_win_rtts";
        extra_acked_max_us: u32 = 100_000, Unit::Count("microseconds"), (0, 10_000_000),
            "maximum congestion window increment for ACK aggregation, as time at the estimated bandwidth",
            "Linux tcp_bbr, bbr_extra_acked_max_us";
        lt_intvl_min_rtts: u8 = 4, Unit::Count("rounds"), (1, 60),
            "minimum interval of policer detection; the maximum is four times as long",
            "Linux tcp_bbr, bbr_lt_intvl_min_rtts";
        lt_loss_thresh: u16 = 50, Unit::Ratio(256), (1, 256),
            "minimum loss ratio of a policed interval",
            "Linux tcp_bbr, bbr_lt_loss_thresh";
        lt_bw_ratio: u16 = 32, Unit::Ratio(256), (0, 256),
            "two intervals agree if their rates differ by at most this fraction",
            "Linux tcp_bbr, bbr_lt_bw_ratio";
        lt_bw_diff: u32 = 4_000, Unit::Count("bit/s"), (0, 1_000_000_000),
            "two intervals agree if their rates differ by at most this rate",
            "Linux tcp_bbr, bbr_lt_bw_diff";
        lt_bw_max_rtts: u16 = 48, Unit::Count("rounds"), (1, 10_000),
            "duration for which the rate of a policer is used",
            "Linux tcp_bbr, bbr_lt_bw_max_rtts";
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
    };

    fn build(&self, setup: &Setup) -> Bbr {
        Bbr::new(*self, setup.seed)
    }
}
