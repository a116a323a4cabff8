//! The parameters of BBR version 1.

use crate::cc::parameter::{Unit, parameters};

parameters! {
    /// Parameters of [`Bbr`](super::Bbr): the constants of the module `tcp_bbr`, without their prefix.
    pub struct BbrParams {
        high_gain: u16 = 739, Unit::Ratio(256), (257, 2_560),
            "Pacing gain and congestion window gain in STARTUP",
            "Linux tcp_bbr, bbr_high_gain: 2 / ln 2";
        drain_gain: u16 = 88, Unit::Ratio(256), (1, 256),
            "Pacing gain in DRAIN",
            "Linux tcp_bbr, bbr_drain_gain: ln 2 / 2";
        cwnd_gain: u16 = 512, Unit::Ratio(256), (256, 2_560),
            "Congestion window gain in PROBE_BW",
            "Linux tcp_bbr, bbr_cwnd_gain";
        pacing_gain: [u16; 8] = [320, 192, 256, 256, 256, 256, 256, 256], Unit::Ratios(256), (1, 2_560),
            "Pacing gains in the phases of PROBE_BW",
            "Linux tcp_bbr, bbr_pacing_gain";
        bw_rtts: u16 = 10, Unit::Count("rounds"), (1, 10_000),
            "Length of the max filter for bandwidth",
            "Linux tcp_bbr, bbr_bw_rtts";
        min_rtt_win_sec: u16 = 10, Unit::Count("seconds"), (1, 10_000),
            "Lifetime of a minimum RTT sample",
            "Linux tcp_bbr, bbr_min_rtt_win_sec";
        probe_rtt_mode_ms: u16 = 200, Unit::Count("milliseconds"), (0, 60_000),
            "Minimum duration of PROBE_RTT",
            "Linux tcp_bbr, bbr_probe_rtt_mode_ms";
        cwnd_min_target: u16 = 4, Unit::Count("segments"), (1, 10_000),
            "Minimum congestion window",
            "Linux tcp_bbr, bbr_cwnd_min_target";
        pacing_margin_percent: u8 = 1, Unit::Count("percent"), (0, 50),
            "Margin of the pacing rate below the bandwidth",
            "Linux tcp_bbr, bbr_pacing_margin_percent";
        full_bw_thresh: u16 = 320, Unit::Ratio(256), (257, 2_560),
            "Minimum bandwidth growth factor per round to stay in STARTUP",
            "Linux tcp_bbr, bbr_full_bw_thresh";
        full_bw_cnt: u8 = 3, Unit::Count("rounds"), (1, 100),
            "Number of rounds below full_bw_thresh after which the pipe is considered full",
            "Linux tcp_bbr, bbr_full_bw_cnt";
        min_tso_rate: u32 = 1_200_000, Unit::Count("bit/s"), (0, 1_000_000_000),
            "Pacing rate at or above which bursts have at least two segments",
            "Linux tcp_bbr, bbr_min_tso_rate";
        extra_acked_gain: u16 = 256, Unit::Ratio(256), (0, 2_560),
            "Gain of the congestion window increment for ACK aggregation",
            "Linux tcp_bbr, bbr_extra_acked_gain";
        extra_acked_win_rtts: u16 = 5, Unit::Count("rounds"), (1, 10_000),
            "Length of each half of the max filter for aggregation",
            "Linux tcp_bbr, bbr_extra_acked_win_rtts";
        extra_acked_max_us: u32 = 100_000, Unit::Count("microseconds"), (0, 10_000_000),
            "Maximum congestion window increment for ACK aggregation, as time at the estimated bandwidth",
            "Linux tcp_bbr, bbr_extra_acked_max_us";
        lt_intvl_min_rtts: u8 = 4, Unit::Count("rounds"), (1, 60),
            "Minimum interval of policer detection; the maximum is four times as long",
            "Linux tcp_bbr, bbr_lt_intvl_min_rtts";
        lt_loss_thresh: u16 = 50, Unit::Ratio(256), (1, 256),
            "Minimum loss ratio of a policed interval",
            "Linux tcp_bbr, bbr_lt_loss_thresh";
        lt_bw_ratio: u16 = 32, Unit::Ratio(256), (0, 256),
            "Two intervals agree if their rates differ by at most this fraction",
            "Linux tcp_bbr, bbr_lt_bw_ratio";
        lt_bw_diff: u32 = 4_000, Unit::Count("bit/s"), (0, 1_000_000_000),
            "Two intervals agree if their rates differ by at most this rate",
            "Linux tcp_bbr, bbr_lt_bw_diff";
        lt_bw_max_rtts: u16 = 48, Unit::Count("rounds"), (1, 10_000),
            "Duration for which the rate of a policer is used",
            "Linux tcp_bbr, bbr_lt_bw_max_rtts";
    }
}
