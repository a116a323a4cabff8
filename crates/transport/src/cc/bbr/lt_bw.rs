//! `lt_bw`: the long-term bandwidth of a path with a policer.

use sojourn_net::Instant;

use super::BbrParams;
use crate::cc::Progress;
use crate::cc::bbr_common::{BBR_UNIT, BW_SCALE};

/// Detects a policer by two intervals in a row, each ended by a loss and with a fifth of it lost, that
/// delivered at about the same rate: the token bucket is empty, and sending at its rate loses nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct LongTermBandwidth {
    sampling: bool,
    use_bw: bool,
    rounds: u32,
    bw: u64,
    since: Instant,
    delivered: u64,
    lost: u64,
}

/// What an acknowledgement says about a policer, beside its [`Progress`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Signals {
    pub(super) lost: bool,
    /// It begins a round.
    pub(super) round: bool,
    pub(super) probing_bw: bool,
    /// Bytes of a segment: [`BbrParams::lt_bw_diff`] is a bit rate.
    pub(super) mss: u32,
}

impl LongTermBandwidth {
    /// The policed bandwidth while it is in use.
    pub(super) fn bw(&self) -> Option<u64> {
        self.use_bw.then_some(self.bw)
    }

    pub(super) fn reset(&mut self, p: &Progress) {
        *self = Self::default();
        self.begin_interval(p);
    }

    fn begin_interval(&mut self, p: &Progress) {
        self.since = p.delivered_at;
        self.delivered = p.delivered;
        self.lost = p.lost;
        self.rounds = 0;
    }

    /// One acknowledgement. Returns whether the found rate has been used long enough.
    pub(super) fn update(&mut self, params: &BbrParams, p: &Progress, signals: Signals) -> bool {
        let Signals {
            lost,
            round,
            probing_bw,
            mss,
        } = signals;
        if self.use_bw {
            if probing_bw && round {
                self.rounds += 1;
                if self.rounds >= params.lt_bw_max_rtts.into() {
                    self.reset(p);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            if !lost {
                return false;
            }
            self.begin_interval(p);
            self.sampling = true;
        }
        if p.sample.is_some_and(|s| s.app_limited) {
            self.reset(p);
            return false;
        }
        self.rounds += u32::from(round);
        let min_rtts = u32::from(params.lt_intvl_min_rtts);
        if self.rounds < min_rtts {
            return false;
        }
        if self.rounds > 4 * min_rtts {
            self.reset(p);
            return false;
        }
        if lost {
            self.end_interval(params, p, mss);
        }
        false
    }

    fn end_interval(&mut self, params: &BbrParams, p: &Progress, mss: u32) {
        let lost = p.lost - self.lost;
        let delivered = p.delivered - self.delivered;
        let ms = p.delivered_at.since(self.since).as_micros() / 1_000;
        if delivered == 0
            || lost * BBR_UNIT < u64::from(params.lt_loss_thresh) * delivered
            || ms == 0
        {
            return;
        }
        let bw = (delivered << BW_SCALE) / (ms * 1_000);
        if self.bw > 0 {
            let apart = bw.abs_diff(self.bw);
            let bytes = (apart * u64::from(mss) * 1_000_000) >> BW_SCALE;
            let part = u64::from(params.lt_bw_ratio) * self.bw;
            if apart * BBR_UNIT <= part || bytes <= u64::from(params.lt_bw_diff) / 8 {
                self.bw = u64::midpoint(bw, self.bw);
                self.use_bw = true;
                self.rounds = 0;
                return;
            }
        }
        self.bw = bw;
        self.begin_interval(p);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn signals(lost: bool) -> Signals {
        Signals {
            lost,
            round: true,
            probing_bw: true,
            mss: 1_448,
        }
    }

    /// Rounds of 100 ms with `delivered` and `lost` segments each, until a rate is found.
    fn rounds_until_found(delivered: u64, lost: u64) -> Option<u64> {
        let mut policer = LongTermBandwidth::default();
        let mut p = Progress::at(Instant::ZERO);
        (1..=40).find(|&n| {
            p.delivered_at = Instant::from_millis(100 * n);
            p.delivered = delivered * n;
            p.lost = lost * n;
            policer.update(&BbrParams::default(), &p, signals(lost > 0));
            policer.bw().is_some()
        })
    }

    #[test]
    fn two_intervals_of_steady_loss_reveal_a_policer() {
        // The first loss begins an interval of four rounds, the second ends with the eighth.
        assert_eq!(rounds_until_found(80, 20), Some(8));
        let mut policer = LongTermBandwidth::default();
        let mut p = Progress::at(Instant::ZERO);
        for n in 1..=8 {
            p.delivered_at = Instant::from_millis(100 * n);
            (p.delivered, p.lost) = (80 * n, 20 * n);
            policer.update(&BbrParams::default(), &p, signals(true));
        }
        let found = (policer.bw().unwrap() * 1_000_000) >> BW_SCALE;
        assert!(found.abs_diff(800) <= 1, "{found} segments/s");
    }

    #[test]
    fn little_loss_is_no_policer() {
        assert_eq!(rounds_until_found(90, 10), None);
    }

    #[test]
    fn the_rate_is_dropped_after_48_rounds() {
        let mut policer = LongTermBandwidth {
            use_bw: true,
            ..LongTermBandwidth::default()
        };
        let p = Progress::at(Instant::ZERO);
        let used = (1..100).find(|_| policer.update(&BbrParams::default(), &p, signals(false)));
        assert_eq!(used, Some(48));
        assert_eq!(policer.bw(), None);
    }

    /// Rounds of 100 ms, 80 segments delivered and 20 lost in each, until a rate is found and dropped again.
    fn found_and_dropped(params: &BbrParams, rates: [u64; 2]) -> (Option<u64>, Option<u64>) {
        let mut policer = LongTermBandwidth::default();
        let mut p = Progress::at(Instant::ZERO);
        let found = (1..=60).find(|&n| {
            p.delivered_at = Instant::from_millis(100 * n);
            p.delivered += rates[usize::from(n > 4)];
            p.lost += 20;
            policer.update(params, &p, signals(true));
            policer.bw().is_some()
        });
        let dropped = (1..1_000).find(|_| policer.update(params, &p, signals(false)));
        (found, dropped.filter(|_| found.is_some()))
    }

    #[test]
    fn each_parameter_has_its_effect() {
        let default = BbrParams::default();
        assert_eq!(found_and_dropped(&default, [80, 80]), (Some(8), Some(48)));
        let long = BbrParams {
            lt_intvl_min_rtts: 6,
            lt_bw_max_rtts: 10,
            ..default
        };
        assert_eq!(found_and_dropped(&long, [80, 80]), (Some(12), Some(10)));
        let strict = BbrParams {
            lt_loss_thresh: 128,
            ..default
        };
        assert_eq!(found_and_dropped(&strict, [80, 80]).0, None);
        // The second interval is a quarter faster.
        assert_eq!(found_and_dropped(&default, [80, 60]).0, Some(12));
        let loose = BbrParams {
            lt_bw_ratio: 128,
            ..default
        };
        assert_eq!(found_and_dropped(&loose, [80, 60]).0, Some(8));
        // 200 segments/s apart: 2.3 Mbit/s.
        let coarse = BbrParams {
            lt_bw_diff: 10_000_000,
            ..default
        };
        assert_eq!(found_and_dropped(&coarse, [80, 60]).0, Some(8));
    }
}
