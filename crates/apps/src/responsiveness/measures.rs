//! Conversion of probe times to round trips per minute, and the test for a stable series.

use sojourn_net::{Duration, Instant};

use crate::report::RoundTrips;

/// What is measured of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// `tcp_f`: the handshake of TCP on a connection of its own.
    Tcp,
    /// `tls_f`: that of TLS, which is one round trip in version 1.3.
    Tls,
    /// `http_f`: from its request to the whole response.
    Http,
    /// `http_l`: the same over a load-generating connection.
    Own,
}

/// Part of the samples, the longest, that a trimmed mean leaves out: 100 less TMP.
const TRIMMED_PERCENT: usize = 5;
/// Standard deviation of a settled series, as a part of its latest value (SDT).
const TOLERANCE: f64 = 0.05;

/// Times of probes: when each was known, which it is, and how long it took.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<(Instant, Time, Duration)>);

impl Samples {
    pub(super) fn add(&mut self, now: Instant, time: Time, took: Duration) {
        self.0.push((now, time, took));
    }

    /// Forgets what was known before `from`.
    pub(super) fn forget_before(&mut self, from: Instant) {
        self.0.retain(|&(at, ..)| at >= from);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The means, if there is a sample of each that is needed.
    pub(super) fn means(&self, tls: bool) -> Option<RoundTrips> {
        Some(RoundTrips {
            tcp: self.trimmed_mean(Time::Tcp)?,
            tls: if tls {
                Some(self.trimmed_mean(Time::Tls)?)
            } else {
                None
            },
            http: self.trimmed_mean(Time::Http)?,
            own: self.trimmed_mean(Time::Own)?,
        })
    }

    /// Probes whose response is there, of both kinds.
    pub(super) fn probes(&self) -> u64 {
        let whole = |time: Time| matches!(time, Time::Http | Time::Own);
        self.0.iter().filter(|&&(_, time, _)| whole(time)).count() as u64
    }

    fn trimmed_mean(&self, which: Time) -> Option<Duration> {
        let of_it = self.0.iter().filter(|&&(_, time, _)| time == which);
        let mut took: Vec<u64> = of_it.map(|(.., took)| took.as_nanos()).collect();
        took.sort_unstable();
        took.truncate(took.len() - took.len() * TRIMMED_PERCENT / 100);
        let sum: u64 = took.iter().sum();
        sum.checked_div(took.len() as u64).map(Duration::from_nanos)
    }
}

/// Whether the last values of a series, `window` of them, deviate little from the latest.
pub(super) fn settled(series: &[f64], window: usize) -> bool {
    let Some(from) = series.len().checked_sub(window) else {
        return false;
    };
    let last = &series[from..];
    let n = f64::from(u32::try_from(window).unwrap_or(u32::MAX));
    let mean = last.iter().sum::<f64>() / n;
    let variance = last.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    last.last()
        .is_some_and(|&latest| variance.sqrt() < TOLERANCE * latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_formulae_are_those_of_the_draft() {
        let times = RoundTrips {
            tcp: ms(60),
            tls: Some(ms(90)),
            http: ms(150),
            own: ms(300),
        };
        // 60,000 / ((60 + 90 + 150) / 3), 60,000 / 300 and the mean of both.
        assert!((times.foreign_rpm() - 600.0).abs() < 1e-9);
        assert!((times.loaded_rpm() - 200.0).abs() < 1e-9);
        assert!((times.rpm() - 400.0).abs() < 1e-9);
        // Without TLS its time is not 0, it is not there.
        let plain = RoundTrips { tls: None, ..times };
        assert!((plain.foreign_rpm() - 60_000.0 / 105.0).abs() < 1e-9);
    }

    #[test]
    fn the_longest_twentieth_is_left_out() {
        let mut samples = Samples::default();
        for n in 1..=40 {
            let took = if n > 38 { ms(10_000) } else { ms(n) };
            for time in [Time::Tcp, Time::Http, Time::Own] {
                samples.add(Instant::from_millis(n), time, took);
            }
        }
        // The mean of 1 to 38 ms.
        let means = samples.means(false).expect("all are there");
        assert_eq!(means.tcp, Duration::from_micros(19_500));
        assert_eq!(samples.means(true), None);
        assert_eq!(samples.probes(), 80);
        samples.forget_before(Instant::from_millis(39));
        assert_eq!(samples.means(false).map(|m| m.own), Some(ms(10_000)));
    }

    #[test]
    fn a_series_settles_when_it_deviates_by_less_than_a_twentieth() {
        assert!(!settled(&[100.0, 100.0, 100.0], 4));
        assert!(settled(&[1.0, 100.0, 100.0, 100.0, 100.0], 4));
        // Deviations of 5 and 4, of a latest value of 95 and 96.
        assert!(!settled(&[105.0, 95.0, 105.0, 95.0], 4));
        assert!(settled(&[104.0, 96.0, 104.0, 96.0], 4));
        assert!(!settled(&[0.0; 4], 4));
    }
}
