//! Voice quality: the E-model of ITU-T G.107, for the impairments that a network causes.
//!
//! # Law
//!
//! ```text
//! R     = 93.2 - Id - Ie,eff                          all else at G.107's defaults
//! Id    = 0.024 d + 0.11 max(0, d - 177.3)            d: mouth to ear, in ms
//! Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl)  Ppl: loss in percent
//! MOS   = 1 + 0.035 R + R (R - 60) (100 - R) 7e-6     1 below R = 0, 4.5 above 100
//! ```
//!
//! `Id` is the approximation of Cole and Rosenbluth, "Voice over IP Performance Monitoring" (CCR 2001).
//! For G.711 with packet loss concealment G.113 Appendix I gives Ie = 0 and Bpl = 25.1. `BurstR` is
//! the mean length of a run of losses over what it would be were they independent, 1 / (1 - p). A call of
//! which nothing arrived has MOS 1.

use sojourn_apps::CallRecord;

const BEST: f64 = 93.2;
const IE: f64 = 0.0;
const BPL: f64 = 25.1;

/// Quality of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice {
    pub(super) mos: Option<f64>,
    pub(super) delay_ms: Option<f64>,
    /// Packets that the listener did not get, in percent of those spoken.
    pub(super) loss_percent: Option<f64>,
    pub(super) runs: u64,
    pub(super) longest_run: u64,
    /// Packets sent per loss period (RFC 3357).
    pub(super) interval: Option<f64>,
}

impl Voice {
    #[expect(clippy::cast_precision_loss, reason = "a call has few packets")]
    pub(super) fn of(call: &CallRecord) -> Self {
        let missing = (call.lost + call.late) as f64;
        let (spoken, runs) = (call.spoken as f64, call.runs as f64);
        let share = (call.spoken > 0).then(|| missing / spoken);
        let delay_ms = call.delay.map(sojourn_net::Duration::as_millis_f64);
        let burst = share.map_or(1.0, |p| {
            let mean_run = if runs > 0.0 { missing / runs } else { 1.0 };
            (mean_run * (1.0 - p)).max(1.0)
        });
        Self {
            // Of silence the model says nothing: it is the worst there is.
            mos: share.map(|p| match delay_ms {
                Some(delay) if p < 1.0 => mos(rating(delay, 100.0 * p, burst)),
                _ => 1.0,
            }),
            delay_ms,
            loss_percent: share.map(|p| 100.0 * p),
            runs: call.runs,
            longest_run: call.longest_run,
            interval: (call.runs > 0).then(|| spoken / runs),
        }
    }
}

fn rating(delay_ms: f64, loss_percent: f64, burst: f64) -> f64 {
    let delay = 0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0);
    let loss = IE + (95.0 - IE) * loss_percent / (loss_percent / burst + BPL);
    BEST - delay - loss
}

fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Duration;

    fn call(delay_ms: u64, lost: u64, runs: u64) -> f64 {
        let call = CallRecord {
            spoken: 1_000,
            lost,
            late: 0,
            runs,
            longest_run: 1,
            delay: Some(Duration::from_millis(delay_ms)),
        };
        Voice::of(&call).mos.unwrap()
    }

    #[test]
    fn mos_follows_its_cubic() {
        // 93.2, with everything at its default, is the best there is: 4.41. The others by hand.
        for (r, wanted) in [(93.2, 4.409), (80.0, 4.024), (70.0, 3.597), (50.0, 2.575)] {
            let got = mos(r);
            assert!((got - wanted).abs() < 0.001, "R {r}: {got}");
        }
        assert!((mos(-5.0) - 1.0).abs() < 1e-12 && (mos(101.0) - 4.5).abs() < 1e-12);
    }

    #[test]
    fn delay_and_loss_take_from_it() {
        // 100 ms: Id 2.4. 300 ms: 7.2 + 13.5. 2 % of single losses: 95 * 2 / 27.1 = 7.0.
        let near = |got: f64, r: f64| assert!((got - mos(r)).abs() < 0.01, "{got} {}", mos(r));
        near(call(100, 0, 0), 90.8);
        near(call(300, 0, 0), 72.5);
        near(call(100, 20, 20), 83.8);
        // In runs of ten they take more: 95 * 2 / (2 / 9.8 + 25.1) = 7.51.
        near(call(100, 20, 2), 83.29);
    }

    #[test]
    fn a_call_of_which_nothing_arrived_is_rated_worst() {
        let silent = CallRecord {
            spoken: 500,
            lost: 500,
            runs: 1,
            longest_run: 500,
            ..CallRecord::default()
        };
        let voice = Voice::of(&silent);
        assert_eq!((voice.mos, voice.loss_percent), (Some(1.0), Some(100.0)));
        assert_eq!(voice.delay_ms, None);
    }

    #[test]
    fn a_call_of_which_nothing_is_known_has_no_rating() {
        let voice = Voice::of(&CallRecord::default());
        assert!(voice.mos.is_none() && voice.loss_percent.is_none() && voice.interval.is_none());
    }
}
