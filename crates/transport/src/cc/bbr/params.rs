//! The parameters of BBR version 1.

use sojourn_schema::parameters;

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
