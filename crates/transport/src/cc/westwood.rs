//! Westwood+: after a loss the window is what the measured bandwidth needs at the minimum RTT.
//!
//! # Source
//!
//! Grieco and Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion
//! Control", ACM CCR 34(2), 2004; the arithmetic of Linux 6.1 `tcp_westwood` (6.1.192: the RTT of an acknowledgement is
//! taken before its bytes are counted).
//!
//! # Law
//!
//! ```text
//! growth       as Reno
//! sample       bytes acknowledged / time, over the last RTT, 50 ms at least
//! bandwidth    two filters in a row: b = 7/8 b + 1/8 sample, bwe = 7/8 bwe + 1/8 b; the first sample sets both
//! congestion   ssthresh = max(cwnd / 2, 2)
//! its end      cwnd = ssthresh = max(bwe RTTmin / MSS, 2)
//! time-out     ssthresh = max(bwe RTTmin / MSS, 2); the next acknowledgement resets RTTmin
//! ```
//!
//! A duplicate acknowledgement counts as a segment acknowledged, which the acknowledgements after it take off again.
//! (Linux does not take off in its fast path, for acknowledgements without SACK blocks and with the same window. The one
//! that ends a repair is not of these: what waited above the gap has not been read, and the window is smaller.) Times are in whole ms, RTTs rounded up; the bandwidth is in whole bytes per ms.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | window halves first, and is set when the loss is repaired | set at the loss | less is sent during the repair |
//! | `7/8` and `1/8` | coefficients 0.9 and 0.1 | faster |
//! | nothing is taken off for one segment alone | segments count once | samples during repairs are a little too large |
//!
//! Over QUIC an acknowledgement of packets above a gap counts them once, and the window is set when a packet sent since
//! the loss is acknowledged. Persistent congestion keeps the threshold.

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::window::half;
use super::{Ack, SlowStart, Start, Window, WindowBased};

parameters! {
    /// Parameters of [`Westwood`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct WestwoodParams {
        /// Shortest time over which the bandwidth is measured.
        pub rtt_min: u32 = 50 => millis(1, 10_000),
            "Linux tcp_westwood, TCP_WESTWOOD_RTT_MIN";
    }
}

impl Control for WestwoodParams {
    type Controller = Westwood;

    const DECLARATION: Declaration = Declaration {
        name: "westwood",
        summary: "Reno that sets the window after a loss from the measured bandwidth",
        source: "Grieco and Mascolo 2004; Linux 6.1 tcp_westwood",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Westwood {
        Westwood {
            params: *self,
            sampled_at: 0,
            acked: 0,
            accounted: 0,
            filtered: 0,
            bandwidth: 0,
            rtt: INITIAL_RTT,
            min_rtt: INITIAL_RTT,
            resets_min_rtt: true,
            has_acked: false,
        }
    }
}

/// The RTT before the first sample, in ms.
const INITIAL_RTT: u32 = 20_000;

/// The Westwood+ congestion controller. Times are in ms.
#[derive(Clone, Copy, Debug)]
pub struct Westwood {
    params: WestwoodParams,
    /// Tick at which the present sample began.
    sampled_at: u64,
    /// Segments acknowledged since.
    acked: u32,
    /// Segments counted for duplicate acknowledgements, and not taken off yet.
    accounted: u32,
    /// Bandwidth after the first filter, and after both, in bytes per ms.
    filtered: u32,
    bandwidth: u32,
    rtt: u32,
    min_rtt: u32,
    /// The next acknowledgement sets the minimum RTT.
    resets_min_rtt: bool,
    /// Data was acknowledged.
    has_acked: bool,
}

impl WindowBased for Westwood {
    fn on_start(&mut self, _window: &mut Window, start: &Start) {
        self.sampled_at = start.tick;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt_micros {
            self.rtt = rtt.div_ceil(1_000);
        }
        // What the first acknowledgement covers does not count: it is taken for a duplicate.
        let advanced = if self.has_acked { ack.acked } else { 0 };
        self.has_acked = true;
        self.end_sample(window, ack.tick);
        self.acked += self.accounted_for(advanced);
        self.min_rtt = if self.resets_min_rtt {
            self.rtt
        } else {
            self.min_rtt.min(self.rtt)
        };
        self.resets_min_rtt = false;
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        window.grow_as_reno(acked);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        window.bytes_of(half(window))
    }

    fn ssthresh_after_timeout(&mut self, window: &Window) -> Option<u64> {
        self.resets_min_rtt = true;
        Some(window.bytes_of(self.needed(window)))
    }

    fn on_reduced(&mut self, window: &mut Window) {
        window.cwnd = self.needed(window);
        window.end_slow_start();
    }
}

impl Westwood {
    /// The window that the bandwidth needs at the minimum RTT, in segments.
    fn needed(&self, window: &Window) -> u32 {
        let bytes = u64::from(self.bandwidth) * u64::from(self.min_rtt);
        window.segments_of(bytes).max(2)
    }

    /// Ends the bandwidth sample if it is long enough.
    fn end_sample(&mut self, window: &Window, tick: u64) {
        let took = tick - self.sampled_at;
        if self.rtt == 0 || took <= self.rtt.max(self.params.rtt_min).into() {
            return;
        }
        let sample = window.bytes_of(self.acked) / took;
        let sample = u32::try_from(sample).unwrap_or(u32::MAX);
        if (self.filtered, self.bandwidth) == (0, 0) {
            (self.filtered, self.bandwidth) = (sample, sample);
        } else {
            self.filtered = smooth(self.filtered, sample);
            self.bandwidth = smooth(self.bandwidth, self.filtered);
        }
        self.acked = 0;
        self.sampled_at = tick;
    }

    /// Segments to count for an acknowledgement of `advanced` segments.
    fn accounted_for(&mut self, advanced: u32) -> u32 {
        if advanced == 0 {
            self.accounted += 1;
            return 1;
        }
        if advanced == 1 {
            return 1;
        }
        if self.accounted >= advanced {
            self.accounted -= advanced;
            return 1;
        }
        advanced - std::mem::take(&mut self.accounted)
    }
}

/// Seven eighths of `old` and one of `new`.
fn smooth(old: u32, new: u32) -> u32 {
    let sum = 7 * u64::from(old) + u64::from(new);
    u32::try_from(sum / 8).expect("no more than the larger")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn westwood() -> Westwood {
        WestwoodParams::default().build(&Setup::default())
    }

    /// An acknowledgement of `acked` segments at `tick` with an RTT of 60 ms.
    fn ack(tick: u64, acked: u32) -> Ack {
        Ack {
            rtt_micros: Some(59_500),
            acked,
            ..Ack::at(tick)
        }
    }

    #[test]
    fn the_first_sample_sets_the_bandwidth_and_later_ones_are_filtered_twice() {
        let (mut cc, mut window) = (westwood(), Window::new(10, 1_000));
        // Counts as one duplicate.
        cc.on_ack(&mut window, &ack(0, 2));
        for tick in 1..=60 {
            cc.on_ack(&mut window, &ack(tick, 1));
        }
        assert_eq!((cc.bandwidth, cc.acked), (0, 61));
        // 61,000 B in 61 ms.
        cc.on_ack(&mut window, &ack(61, 1));
        assert_eq!((cc.filtered, cc.bandwidth, cc.acked), (1_000, 1_000, 1));
        // 120,000 B in 61 ms: 1967 B/ms. (7 * 1000 + 1967) / 8 = 1120; (7 * 1000 + 1120) / 8 = 1015.
        cc.on_ack(&mut window, &ack(100, 120));
        cc.on_ack(&mut window, &ack(122, 1));
        assert_eq!((cc.filtered, cc.bandwidth), (1_120, 1_015));
    }

    #[test]
    fn samples_take_longer_than_an_rtt_and_50_ms() {
        let ends = |rtt_ms: u32| {
            let (mut cc, mut window) = (westwood(), Window::new(10, 1_000));
            cc.on_ack(&mut window, &ack(0, 1));
            let mut at = |tick| {
                let rtt_micros = Some(1_000 * rtt_ms);
                cc.on_ack(
                    &mut window,
                    &Ack {
                        rtt_micros,
                        ..ack(tick, 1)
                    },
                );
                cc.sampled_at == tick
            };
            (1..1_000).find(|&tick| at(tick))
        };
        assert_eq!([1, 50, 51, 200].map(ends), [51, 51, 52, 201].map(Some));
    }

    #[test]
    fn the_window_after_a_loss_is_the_bandwidth_delay_product() {
        let (mut cc, mut window) = (westwood(), Window::new(100, 1_000));
        (cc.bandwidth, cc.min_rtt) = (1_250, 40);
        assert_eq!(cc.ssthresh(&window, 0), 50_000);
        cc.on_reduced(&mut window);
        assert_eq!((window.cwnd, window.ssthresh.segments()), (50, Some(50)));
        assert_eq!(cc.ssthresh_after_timeout(&window), Some(50_000));
        cc.bandwidth = 1;
        cc.on_reduced(&mut window);
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn a_time_out_resets_the_minimum_rtt() {
        let (mut cc, mut window) = (westwood(), Window::new(10, 1_000));
        let sample = |rtt_micros| Ack {
            rtt_micros: Some(rtt_micros),
            ..ack(1, 1)
        };
        cc.on_ack(&mut window, &sample(30_000));
        cc.on_ack(&mut window, &sample(80_000));
        assert_eq!(cc.min_rtt, 30);
        cc.ssthresh_after_timeout(&window);
        cc.on_ack(&mut window, &sample(90_001));
        cc.on_ack(&mut window, &sample(95_000));
        assert_eq!(cc.min_rtt, 91);
    }

    #[test]
    fn duplicates_count_once() {
        let (mut cc, mut window) = (westwood(), Window::new(10, 1_000));
        cc.on_ack(&mut window, &ack(0, 1));
        cc.accounted = 0;
        let mut counted = |acked| {
            let before = cc.acked;
            cc.on_ack(&mut window, &ack(1, acked));
            cc.acked - before
        };
        assert_eq!([0, 0, 0, 0].map(&mut counted), [1; 4]);
        // Three are taken off the four, then the last one; nothing off one alone.
        assert_eq!([3, 1, 5, 5].map(&mut counted), [1, 1, 4, 5]);
    }
}
