//! TCP-LP: Reno that yields as soon as the one-way delay rises.
//!
//! # Source
//!
//! Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control", IEEE/ACM Transactions on
//! Networking 14(4), 2006; the arithmetic of Linux 6.1 `tcp_lp`.
//!
//! # Law
//!
//! ```text
//! delay        one-way, of the timestamps (RFC 7323), smoothed by 1/8
//! indication   delay >= min + 0.15 (max - min)
//!              within 3 round trips of the last one:  cwnd = 1
//!              else                                   cwnd = max(cwnd / 2, 1)
//!              min = delay, max = 2 delay
//! growth       as Reno; none within 3 round trips of an indication
//! congestion   ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! The maximum is the largest but one. The peer's clock rate in Hz is measured, with a weight of 1/64 for each
//! acknowledgement, from its timestamps and those it echoes: 1000 / rate, rounded down, is the length of its tick in ms.
//!
//! Without timestamps, as over QUIC, no delay is known and the control is Reno.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | each indication resets minimum and maximum | they are kept | the next one comes sooner or later than the path warrants |
//! | the clock rate is rounded down in each step, and is often below 1000 Hz; above, the tick is taken as 0 ms | known | delays are wrong while the rate is above 1000 Hz |
//! | all in 32 bits, and a delay of more than 2^29 ms is never an indication | – | hosts whose timestamps have a random offset, as those of Linux have by default, are Reno in seven of eight connections |
//!
//! Simulated hosts have no such offset.

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::Echo;
use super::window::half;
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`Lp`]: the constants of the module `tcp_lp`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct LpParams {
        /// Part of the range of delays above which the delay indicates congestion, in percent.
        pub threshold: u8 = 15 => count(0, 100),
            "Linux tcp_lp; Kuzmanovic and Knightly 2006: delta = 0.15";
        /// Round trips after an indication in which the window does not grow.
        pub inference: u8 = 3 => count(1, 100).of("round trips"),
            "Linux tcp_lp; Kuzmanovic and Knightly 2006: itt = 3";
    }
}

impl Control for LpParams {
    type Controller = Lp;

    const DECLARATION: Declaration = Declaration {
        name: "lp",
        summary: "Scavenger that yields as soon as the one-way delay rises",
        source: "Kuzmanovic and Knightly 2006; Linux 6.1 tcp_lp",
        slow_starts: &[SlowStart::Standard],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Lp {
        Lp {
            params: *self,
            smoothed8: 0,
            min: u32::MAX,
            max: 0,
            largest: 0,
            remote_hz: 0,
            last: None,
            dropped_at: None,
            inference: 0,
            is_inferring: false,
        }
    }
}

/// Ticks of a timestamp per second.
const HZ: u32 = 1_000;

/// The TCP-LP congestion controller. Times are in ms.
#[derive(Clone, Copy, Debug)]
pub struct Lp {
    params: LpParams,
    /// Eight times the smoothed delay.
    smoothed8: u32,
    min: u32,
    /// The largest delay but one.
    max: u32,
    largest: u32,
    /// The rate of the peer's clock; 0 before it was measured.
    remote_hz: u32,
    /// The timestamps of the last acknowledgement with an RTT.
    last: Option<Echo>,
    /// Tick of the last indication.
    dropped_at: Option<u32>,
    /// How long the window does not grow after an indication.
    inference: u32,
    /// The last indication was that short ago.
    is_inferring: bool,
}

impl WindowBased for Lp {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let Some(echo) = ack.echo else { return };
        if ack.rtt_micros.is_some() {
            self.take_delay(echo);
        }
        let now = low(ack.tick);
        let round_trip = now.wrapping_sub(echo.ts_ecr).cast_signed();
        if let Ok(round_trip @ 1..) = u32::try_from(round_trip) {
            self.inference = round_trip.saturating_mul(self.params.inference.into());
        }
        let passed = self.dropped_at.map(|at| now.wrapping_sub(at));
        self.is_inferring = passed.is_some_and(|passed| passed < self.inference);
        if self.is_delayed() {
            self.yield_to_others(window, now);
        }
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        if !self.is_inferring {
            window.grow_as_reno(window.segments_of(acked));
        }
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        window.bytes_of(half(window))
    }
}

impl Lp {
    /// Whether the smoothed delay indicates congestion.
    const fn is_delayed(&self) -> bool {
        let range = self.max.wrapping_sub(self.min);
        let part = range.wrapping_mul(self.params.threshold as u32) / 100;
        self.smoothed8 / 8 >= self.min.wrapping_add(part)
    }

    fn yield_to_others(&mut self, window: &mut Window, now: u32) {
        self.min = self.smoothed8 / 8;
        self.max = self.smoothed8 / 4;
        self.largest = self.max;
        window.cwnd = if self.is_inferring {
            1
        } else {
            (window.cwnd / 2).max(1)
        };
        self.dropped_at = Some(now);
    }

    /// Takes the delay that the timestamps of an acknowledgement show.
    fn take_delay(&mut self, echo: Echo) {
        self.remote_hz = self.measure_clock(echo);
        let Some(tick) = HZ.checked_div(self.remote_hz) else {
            return;
        };
        let delay = echo.ts_val.wrapping_mul(tick).wrapping_sub(echo.ts_ecr);
        if delay == 0 {
            return;
        }
        self.min = self.min.min(delay);
        if delay > self.largest {
            self.max = if self.largest == 0 {
                delay
            } else {
                self.largest
            };
            self.largest = delay;
        } else {
            self.max = self.max.max(delay);
        }
        self.smoothed8 = if self.smoothed8 == 0 {
            delay.wrapping_mul(8)
        } else {
            let error = delay.wrapping_sub(self.smoothed8 / 8);
            self.smoothed8.wrapping_add(error)
        };
    }

    /// The rate of the peer's clock, with the ticks since the last acknowledgement.
    fn measure_clock(&mut self, echo: Echo) -> u32 {
        let Some(last) = self.last.replace(echo) else {
            return self.remote_hz;
        };
        let theirs = echo.ts_val.wrapping_sub(last.ts_val);
        let ours = echo.ts_ecr.wrapping_sub(last.ts_ecr);
        if theirs == 0 || ours == 0 {
            return self.remote_hz;
        }
        let measured = HZ.wrapping_mul(theirs) / ours;
        if self.remote_hz == 0 {
            return measured;
        }
        let sum = 63 * u64::from(self.remote_hz) + u64::from(measured);
        u32::try_from(sum / 64).expect("no more than the larger")
    }
}

/// The low 32 bits of a tick: a timestamp.
#[expect(clippy::cast_possible_truncation, reason = "timestamps wrap")]
const fn low(tick: u64) -> u32 {
    tick as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lp() -> Lp {
        LpParams::default().build(&Setup::default())
    }

    /// An acknowledgement at `tick` of a segment that took `delay` ms there and 20 ms back.
    fn ack(tick: u32, delay: u32) -> Ack {
        Ack {
            rtt_micros: Some(1_000 * (20 + delay)),
            echo: Some(Echo {
                ts_val: tick - 20,
                ts_ecr: tick - 20 - delay,
            }),
            ..Ack::at(tick.into())
        }
    }

    /// A control that has seen delays of 30 ms, then up to 130 ms.
    fn settled() -> (Lp, Window) {
        let (mut cc, mut window) = (lp(), Window::new(40, 1));
        for n in 0..40 {
            cc.on_ack(&mut window, &ack(1_000 + 10 * n, 30));
        }
        (cc.max, cc.largest, cc.dropped_at) = (130, 130, None);
        window.cwnd = 40;
        (cc, window)
    }

    #[test]
    fn the_delay_is_measured_with_the_clocks_of_both_hosts() {
        let (cc, _) = settled();
        assert_eq!((cc.remote_hz, cc.min, cc.smoothed8), (1_000, 30, 240));
    }

    #[test]
    fn the_first_delay_is_an_indication() {
        let (mut cc, mut window) = (lp(), Window::new(40, 1));
        cc.on_ack(&mut window, &ack(1_000, 30));
        assert_eq!(window.cwnd, 40);
        cc.on_ack(&mut window, &ack(1_010, 30));
        cc.on_ack(&mut window, &ack(1_020, 30));
        assert_eq!((window.cwnd, cc.min, cc.max), (20, 30, 60));
    }

    #[test]
    fn a_smoothed_delay_above_the_threshold_halves_the_window_then_leaves_one_segment() {
        let (mut cc, mut window) = settled();
        // 240 + 60 - 30 = 270, + 60 - 33 = 297, 320, 340, 358, 374: 374 / 8 = 46 is above 30 + 15.
        for (n, cwnd) in (0..6).zip([40, 40, 40, 40, 40, 20]) {
            cc.on_ack(&mut window, &ack(2_000 + 10 * n, 60));
            assert_eq!(window.cwnd, cwnd, "{n}");
        }
        assert_eq!((cc.min, cc.max, cc.largest), (46, 93, 93));
        // Three round trips of 80 ms: the window does not grow. 46 + 0.15 * 47 is 53.
        cc.on_ack(&mut window, &ack(2_100, 60));
        cc.grow(&mut window, &ack(2_100, 60), 20);
        assert_eq!((window.cwnd, cc.is_inferring), (20, true));
        cc.smoothed8 = 8 * 60;
        cc.on_ack(&mut window, &ack(2_200, 60));
        assert_eq!(window.cwnd, 1);
        cc.on_ack(&mut window, &ack(2_439, 60));
        assert!(cc.is_inferring);
        cc.on_ack(&mut window, &ack(2_440, 60));
        assert!(!cc.is_inferring);
    }

    #[test]
    fn the_maximum_is_the_largest_but_one() {
        let mut cc = lp();
        for (n, delay) in (0..4).zip([30, 30, 50, 40]) {
            cc.take_delay(ack(1_000 + 10 * n, delay).echo.unwrap());
        }
        // The first one gives no clock rate; 30 is the first maximum, 50 makes the one before it the maximum.
        assert_eq!((cc.min, cc.max, cc.largest), (30, 40, 50));
    }

    #[test]
    fn a_faster_clock_is_learnt_slowly_and_rounded_down() {
        let mut cc = lp();
        let at = |ts_val, ts_ecr| Echo { ts_val, ts_ecr };
        cc.take_delay(at(1_000, 900));
        assert_eq!(cc.remote_hz, 0);
        cc.take_delay(at(1_010, 910));
        assert_eq!(cc.remote_hz, 1_000);
        // 3 ticks in 2: (63 * 1000 + 1500) / 64 = 1007.
        cc.take_delay(at(1_013, 912));
        assert_eq!(cc.remote_hz, 1_007);
        // No tick of the echo, so no measurement.
        cc.take_delay(at(1_020, 912));
        assert_eq!(cc.remote_hz, 1_007);
        // 2 in 3: (63 * 1007 + 666) / 64 = 1001.6.
        cc.take_delay(at(1_022, 915));
        assert_eq!(cc.remote_hz, 1_001);
    }

    #[test]
    fn without_timestamps_it_is_reno() {
        let (mut cc, mut window) = (lp(), Window::new(10, 1));
        window.end_slow_start();
        let plain = Ack {
            rtt_micros: Some(500_000),
            ..Ack::at(1_000)
        };
        for _ in 0..10 {
            cc.on_ack(&mut window, &plain);
            cc.grow(&mut window, &plain, 1);
        }
        assert_eq!(window.cwnd, 11);
        assert_eq!(cc.ssthresh(&window, 0), 5);
    }
}
