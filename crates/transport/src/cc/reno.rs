//! Reno: additive increase, multiplicative decrease.
//!
//! # Source
//!
//! RFC 5681 §3, counted in segments as Linux does; ECN: RFC 3168 §6.1.2.
//!
//! # Law
//!
//! ```text
//! slow start             cwnd += acked           while cwnd < ssthresh
//! congestion avoidance   cwnd += 1               for each cwnd / alpha segments acknowledged
//! congestion             ssthresh = max(beta cwnd, 2)
//! ```
//!
//! How the window comes down to the threshold (proportional rate reduction, time-outs) is the
//! sender's business, the same for every controller.
//!
//! # Differences from RFC 5681
//!
//! `ssthresh` halves the window, not the flight (RFC 5681 §3.1 says flight size): the sender
//! only lets the window grow while it limits sending, which is what that rule guards.

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`Reno`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct RenoParams {
        /// Segments by which the window grows per round trip in congestion avoidance.
        pub alpha: u32 = 1_000 => decimal(3, 1, 1_000_000),
            "RFC 5681 section 3.1: 1";
        /// Fraction of the window kept after a reduction.
        pub beta: u16 = 512 => ratio(1_024, 1, 1_023),
            "RFC 5681 section 3.1: 1/2";
    }
}

impl Control for RenoParams {
    type Controller = Reno;

    const DECLARATION: Declaration = Declaration {
        name: "reno",
        summary: "Additive increase, multiplicative decrease",
        source: "RFC 5681; over QUIC, NewReno of RFC 9002",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Reno {
        Reno(*self)
    }
}

/// The Reno congestion controller; its state is in the [`Window`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno(RenoParams);

impl WindowBased for Reno {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        let left = if window.in_slow_start() {
            window.slow_start(acked)
        } else {
            acked
        };
        if left > 0 {
            let per = u64::from(window.cwnd) * 1_000 / u64::from(self.0.alpha);
            let per = u32::try_from(per).unwrap_or(u32::MAX);
            window.additive_increase(per.max(1), left);
        }
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let left = u64::from(window.cwnd) * u64::from(self.0.beta) / 1_024;
        window.bytes_of(u32::try_from(left).unwrap_or(u32::MAX).max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Threshold;
    use sojourn_net::Instant;

    const ACK: Ack = Ack {
        now: Instant::ZERO,
        tick: 0,
        rtt_micros: None,
        echo: None,
        acked: 0,
        srtt8: 0,
        snd_una: 0,
        snd_nxt: 0,
        prior_in_flight: 0,
        pacing_rate: 0,
    };

    /// Window of a controller in congestion avoidance after ten segments were acknowledged ten times.
    fn after_ten_rounds(spec: RenoParams) -> u32 {
        let (mut reno, mut window) = (Reno(spec), Window::new(10, 1_000));
        window.end_slow_start();
        for _ in 0..10 {
            reno.grow(&mut window, &ACK, 10_000);
        }
        window.cwnd
    }

    #[test]
    fn the_window_doubles_in_slow_start_and_then_grows_by_one_a_round() {
        let mut reno = Reno::default();
        let mut w = Window::new(10, 1_000);
        w.ssthresh = Threshold::of_segments(20);
        reno.grow(&mut w, &ACK, 10_000);
        assert_eq!(w.cwnd, 20);
        for _ in 0..20 {
            reno.grow(&mut w, &ACK, 1_000);
        }
        assert_eq!(w.cwnd, 21);
        reno.grow(&mut w, &ACK, 21_000);
        assert_eq!(w.cwnd, 22);
    }

    #[test]
    fn alpha_is_the_growth_per_round() {
        let growth = [500, 1_000, 3_000].map(|alpha| {
            after_ten_rounds(RenoParams {
                alpha,
                ..RenoParams::default()
            })
        });
        assert_eq!(growth, [14, 17, 27]);
    }

    #[test]
    fn congestion_leaves_beta_of_the_window_and_two_segments_at_least() {
        let left = |beta, segments| {
            let mut reno = Reno(RenoParams {
                beta,
                ..RenoParams::default()
            });
            reno.ssthresh(&Window::new(segments, 1_000), 0) / 1_000
        };
        assert_eq!([left(512, 21), left(512, 1)], [10, 2]);
        assert_eq!([left(819, 100), left(102, 100)], [79, 9]);
    }
}
