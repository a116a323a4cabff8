//! Hybla: growth as over a short path, whatever the RTT.
//!
//! # Source
//!
//! Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of Satellite
//! Communications and Networking 22(5), 2004; the arithmetic of Linux 6.1 `tcp_hybla`.
//!
//! # Law
//!
//! ```text
//! rho            RTT / rtt0, 1 at least; RTT is the smallest smoothed one
//! first window   rho
//! slow start     cwnd += 2^rho - 1        per acknowledgement, up to ssthresh
//! avoidance      cwnd += rho^2 / cwnd     per acknowledgement
//! congestion     ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! rho is in 8ths, the growth in 128ths. While something is repaired the window grows as Reno's.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | no larger initial threshold, no pacing, and the first window is rho, not 2 rho segments | all three | over short paths the connection begins with one segment |
//! | an acknowledgement, whatever it covers | the same | delayed acknowledgements halve the growth |
//! | at most 65535 segments | – | on very long fast paths |

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::window::half;
use super::{Ack, Phase, Start, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`Hybla`]: that of the module `tcp_hybla`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct HyblaParams {
        /// Round-trip time of the path whose growth is imitated.
        pub rtt0: u32 = 25 => millis(1, 10_000),
            "Linux tcp_hybla, rtt0; Caini and Firrincieli 2004: 25 ms";
    }
}

impl Control for HyblaParams {
    type Controller = Hybla;

    const DECLARATION: Declaration = Declaration {
        name: "hybla",
        summary: "Reno that grows on long paths as fast as on short ones, for satellites",
        source: "Caini and Firrincieli 2004; Linux 6.1 tcp_hybla",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Hybla {
        Hybla {
            params: *self,
            is_open: true,
            rho8: 8,
            min_srtt8: u32::MAX,
            rest: 0,
        }
    }
}

/// A segment, as growth is kept.
const ONE: u32 = 128;
/// The largest window, in segments.
const MOST: u32 = 65_535;
/// 2 to the power of a number of eighths, in 128ths.
const POWERS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// The largest power of 2 that a growth in slow start is computed of.
const LARGEST_POWER: u32 = 16;

/// The Hybla congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    params: HyblaParams,
    is_open: bool,
    /// rho in eighths.
    rho8: u32,
    /// Eight times the smallest smoothed RTT, in µs.
    min_srtt8: u32,
    /// Growth that is not a whole segment yet.
    rest: u32,
}

impl WindowBased for Hybla {
    fn on_start(&mut self, window: &mut Window, start: &Start) {
        self.min_srtt8 = start.rtt_micros.saturating_mul(8);
        self.update_rho(self.min_srtt8);
        window.cwnd = (self.rho8 / 8).min(MOST);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        self.follow_rtt(ack);
        if self.is_open {
            self.grow_by_rho(window);
        } else {
            window.grow_as_reno(window.segments_of(acked));
        }
        window.cwnd = window.cwnd.min(MOST);
    }

    fn on_unused(&mut self, _window: &Window, ack: &Ack) {
        self.follow_rtt(ack);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        window.bytes_of(half(window))
    }

    fn on_phase(&mut self, transition: &Transition) {
        self.is_open = transition.to == Phase::Open;
    }
}

impl Hybla {
    /// Computes rho again if the smoothed RTT is a new minimum.
    fn follow_rtt(&mut self, ack: &Ack) {
        if ack.srtt8 < self.min_srtt8 {
            self.update_rho(ack.srtt8);
            self.min_srtt8 = ack.srtt8;
        }
    }

    fn update_rho(&mut self, srtt8: u32) {
        self.rho8 = (srtt8 / (1_000 * self.params.rtt0)).max(8);
    }

    fn grow_by_rho(&mut self, window: &mut Window) {
        let in_slow_start = window.in_slow_start();
        let increment = if in_slow_start {
            let (whole, eighths) = (self.rho8 / 8, self.rho8 % 8);
            (1 << whole.min(LARGEST_POWER)) * POWERS[eighths as usize] - ONE
        } else {
            let squared = self.rho8 * self.rho8 * 2;
            let increment = squared / window.cwnd;
            if increment < ONE {
                window.cnt += 1;
            }
            increment
        };
        window.cwnd += increment / ONE;
        self.rest += increment % ONE;
        if self.rest >= ONE {
            self.rest -= ONE;
            window.cwnd += 1;
            window.cnt = 0;
        }
        // In windows so large that an acknowledgement earns nothing.
        if increment == 0 && window.cnt >= window.cwnd {
            window.cwnd += 1;
            window.cnt = 0;
        }
        if in_slow_start {
            window.cwnd = window.cwnd.min(window.ssthresh.limit());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Threshold;
    use sojourn_net::Instant;

    /// A connection over a path of `rtt` ms.
    fn hybla(rtt: u32) -> (Hybla, Window) {
        let mut cc = HyblaParams::default().build(&Setup::default());
        let mut window = Window::new(10, 1);
        let start = Start {
            now: Instant::ZERO,
            tick: 0,
            rtt_micros: 1_000 * rtt,
            measured: true,
            delivered: 1,
        };
        cc.on_start(&mut window, &start);
        (cc, window)
    }

    #[test]
    fn the_first_window_is_rho() {
        let first = |rtt| hybla(rtt).1.cwnd;
        assert_eq!([10, 25, 49, 50, 100, 600].map(first), [1, 1, 1, 2, 4, 24]);
        assert_eq!(hybla(30).0.rho8, 9);
    }

    #[test]
    fn slow_start_grows_by_a_power_of_two_per_acknowledgement() {
        let grown = |rtt| {
            let (mut cc, mut window) = hybla(rtt);
            window.cwnd = 10;
            cc.grow(
                &mut window,
                &Ack {
                    srtt8: u32::MAX,
                    ..Ack::at(0)
                },
                1,
            );
            (window.cwnd, cc.rest)
        };
        // 2^1 - 1, 2^2 - 1, 2^4 - 1; 2^1.125 - 1 = 278/128 - 1 is 150/128.
        assert_eq!(
            [25, 50, 100, 30].map(grown),
            [(11, 0), (13, 0), (25, 0), (11, 22)]
        );
        let (mut cc, mut window) = hybla(100);
        window.ssthresh = Threshold::of_segments(12);
        cc.grow(
            &mut window,
            &Ack {
                srtt8: u32::MAX,
                ..Ack::at(0)
            },
            1,
        );
        assert_eq!(window.cwnd, 12);
    }

    #[test]
    fn avoidance_grows_by_rho_squared_per_window_of_acknowledgements() {
        let grown = |rtt| {
            let (mut cc, mut window) = hybla(rtt);
            window.cwnd = 100;
            window.end_slow_start();
            for _ in 0..100 {
                cc.grow(
                    &mut window,
                    &Ack {
                        srtt8: u32::MAX,
                        ..Ack::at(0)
                    },
                    1,
                );
            }
            window.cwnd
        };
        // rho 1: 128 / 100 is 1/128 each; rho 4: 2048 / 100 is 20/128, a segment each 7, 19/128 from 103 on.
        assert_eq!([25, 100].map(grown), [100, 114]);
    }

    #[test]
    fn windows_that_earn_nothing_grow_by_a_segment_per_window() {
        let (mut cc, mut window) = hybla(25);
        window.cwnd = 200;
        window.end_slow_start();
        for _ in 0..200 {
            cc.grow(
                &mut window,
                &Ack {
                    srtt8: u32::MAX,
                    ..Ack::at(0)
                },
                1,
            );
        }
        assert_eq!((window.cwnd, window.cnt), (201, 0));
    }

    #[test]
    fn rho_follows_the_smallest_smoothed_rtt() {
        let (mut cc, window) = hybla(100);
        let ack = |srtt_ms: u32| Ack {
            srtt8: 8_000 * srtt_ms,
            ..Ack::at(0)
        };
        cc.on_unused(&window, &ack(200));
        assert_eq!(cc.rho8, 32);
        cc.on_unused(&window, &ack(75));
        cc.on_unused(&window, &ack(90));
        assert_eq!(cc.rho8, 24);
    }

    #[test]
    fn repairs_are_left_to_reno() {
        let (mut cc, mut window) = hybla(100);
        window.cwnd = 10;
        cc.on_phase(&Transition {
            to: Phase::Disorder,
            tick: 0,
            snd_nxt: 0,
        });
        cc.grow(
            &mut window,
            &Ack {
                srtt8: u32::MAX,
                ..Ack::at(0)
            },
            2,
        );
        assert_eq!(window.cwnd, 12);
    }
}
