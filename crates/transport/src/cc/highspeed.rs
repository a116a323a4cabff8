//! `HighSpeed` TCP: larger increase and smaller decrease for larger windows.
//!
//! # Source
//!
//! RFC 3649 §5, §7 and Appendix B; the arithmetic of Linux 6.1 `tcp_highspeed`.
//!
//! # Law
//!
//! Up to 38 segments as Reno. Above, the window shall follow `w = 0.12 / p^0.835` of the loss rate
//! p, for which it needs an increase `a(w)` and a decrease `b(w)`:
//!
//! ```text
//! b(w) = 0.5 - 0.4 (ln w - ln 38) / (ln 83000 - ln 38)
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w)),   p(w) = 1 / (12.8 w^1.2)
//! acknowledgement   cwnd += a / cwnd
//! congestion        ssthresh = max(cwnd (1 - b), 2)
//! ```
//!
//! They come from the module's table of the windows at which `a` has grown by one; `b` is in 256ths. With
//! other parameters than the defaults they come from the formula of RFC 3649 §5, `a` rounded down.
//!
//! # Differences of Linux from the RFC
//!
//! | here, as Linux | RFC 3649 | effect |
//! |---|---|---|
//! | between two rows, the upper | the formula, so at most the upper | up to one more segment per round trip: 4360, not 3601, after 500 round trips from 1 |
//! | `a` for an acknowledgement, whatever it covers | the same | delayed acknowledgements halve the growth |
//! | at most 72 | the table goes on to 73 | above 89053 segments |
//! | the row of the last increase decides the decrease | the window's | none unless the window fell since |

use libm::{log, pow};
use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`HighSpeed`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct HighSpeedParams {
        /// Window up to which the control behaves like Reno.
        pub low_window: u32 = 38 => count(2, 1_000_000).of("segments"),
            "RFC 3649 section 5, Low_Window";
        /// Window at the loss rate high_p.
        pub high_window: u32 = 83_000 => count(3, 10_000_000).of("segments"),
            "RFC 3649 section 5, High_Window";
        /// Loss rate at which the window is high_window.
        pub high_p: u32 = 100 => decimal(9, 1, 1_000_000),
            "RFC 3649 section 5, High_P";
        /// Fraction of the window removed by a reduction at high_window.
        pub high_decrease: u16 = 100 => decimal(3, 1, 500),
            "RFC 3649 section 7, High_Decrease";
    }
}

impl Control for HighSpeedParams {
    type Controller = HighSpeed;

    const DECLARATION: Declaration = Declaration {
        name: "highspeed",
        summary: "Reno that grows faster and reduces less as its window grows",
        source: "RFC 3649; Linux 6.1 tcp_highspeed",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> HighSpeed {
        let params = (*self != Self::default()).then(|| Box::new(*self));
        HighSpeed { row: 0, params }
    }

    fn conflict(&self) -> Option<String> {
        let (low, high) = (self.low_window, self.high_window);
        if low >= high {
            return Some(format!(
                "low_window {low} is not below high_window {high}; expected low_window < high_window"
            ));
        }
        let low_p = self.low_p();
        (self.high_p() >= low_p).then(|| {
            format!(
                "high_p {} is not below {low_p}, the loss rate at low_window; expected a smaller value",
                self.high_p()
            )
        })
    }
}

impl HighSpeedParams {
    fn high_p(&self) -> f64 {
        f64::from(self.high_p) / 1e9
    }

    /// The loss rate at which Reno's window is `low_window`.
    fn low_p(&self) -> f64 {
        1.5 / f64::from(self.low_window).powi(2)
    }

    /// How far `window` lies between `low_window` (0) and `high_window` (1), in logarithms.
    fn place(&self, window: f64) -> f64 {
        let low = log(f64::from(self.low_window));
        (log(window) - low) / (log(f64::from(self.high_window)) - low)
    }

    /// RFC 3649 section 5: increase per round trip and part given up, of a window of `segments`.
    fn response(&self, segments: u32) -> (f64, f64) {
        if segments <= self.low_window {
            return (1.0, 0.5);
        }
        let window = f64::from(segments);
        let place = self.place(window);
        let decrease = f64::from(self.high_decrease) / 1e3;
        let decrease = ((decrease - 0.5) * place + 0.5).max(0.01);
        let loss_rate = self.low_p() * pow(self.high_p() / self.low_p(), place);
        let increase = window * window * loss_rate * 2.0 * decrease / (2.0 - decrease);
        (increase.max(1.0), decrease)
    }
}

/// The `HighSpeed` congestion controller.
#[derive(Clone, Debug, Default)]
pub struct HighSpeed {
    /// The row of the last increase, or with parameters the window.
    row: usize,
    /// Parameters that are not the defaults: the formula takes the place of the module's table.
    params: Option<Box<HighSpeedParams>>,
}

impl WindowBased for HighSpeed {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        if window.in_slow_start() {
            window.slow_start(window.segments_of(acked));
            return;
        }
        window.cnt += self.increase(window.cwnd);
        if window.cnt >= window.cwnd {
            window.cnt -= window.cwnd;
            window.cwnd += 1;
        }
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let given = u64::from(window.cwnd) * u64::from(self.decrease()) / 256;
        let left = u64::from(window.cwnd) - given;
        window.bytes_of(u32::try_from(left).expect("less than cwnd").max(2))
    }
}

impl HighSpeed {
    /// Segments per round trip that a window of `cwnd` grows by.
    fn increase(&mut self, cwnd: u32) -> u32 {
        if let Some(params) = &self.params {
            self.row = cwnd as usize;
            return whole(params.response(cwnd).0);
        }
        let above = ROWS.partition_point(|&(window, _)| window < cwnd);
        self.row = above.min(ROWS.len() - 1);
        u32::try_from(self.row + 1).expect("72 rows")
    }

    /// The part given up, in 256ths, at the window of the last increase.
    fn decrease(&self) -> u32 {
        match &self.params {
            Some(params) => {
                let cwnd = u32::try_from(self.row).unwrap_or(u32::MAX);
                whole(256.0 * params.response(cwnd).1)
            }
            None => ROWS[self.row].1,
        }
    }
}

/// The whole part of a small positive number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and below the window"
)]
const fn whole(number: f64) -> u32 {
    number as u32
}

/// Up to which window a row holds, and how many 256ths of it are given up. The n-th row's increase
/// is n.
const ROWS: [(u32, u32); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

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

    fn in_avoidance(cwnd: u32) -> Window {
        let mut window = Window::new(cwnd, 1);
        window.ssthresh = Threshold::of_segments(2);
        window
    }

    /// `b(w)` of RFC 3649 §7.
    fn decrease(w: f64) -> f64 {
        0.5 - 0.4 * (w.ln() - 38_f64.ln()) / (83_000_f64.ln() - 38_f64.ln())
    }

    /// `a(w)` as the program of Appendix B has it.
    fn increase(w: f64) -> f64 {
        let b = decrease(w);
        w.powi(2) * 2.0 * b / ((2.0 - b) * w.powf(1.2) * 12.8)
    }

    #[test]
    fn the_table_is_that_of_the_program_of_appendix_b() {
        let mut rows = vec![(38, 128)];
        let mut last = 1.0;
        for w in 38..90_000 {
            let a = increase(f64::from(w));
            if a > last + 1.0 {
                let mut given = 0;
                while f64::from(given + 1) <= 256.0 * decrease(f64::from(w)) {
                    given += 1;
                }
                rows.push((w, given));
                last = a;
            }
        }
        assert_eq!(rows, ROWS);
    }

    #[test]
    fn the_table_is_table_12_but_for_its_last_row() {
        let published = include_str!("../../tests/rfc3649_table_12.txt").lines();
        for (n, line) in published.clone().take(ROWS.len()).enumerate() {
            let fields: Vec<&str> = line.split(' ').collect();
            let (w, given) = ROWS[n];
            assert_eq!(fields[0], w.to_string());
            assert_eq!(fields[1], (n + 1).to_string());
            // Printed to the nearest hundredth, kept as 256ths rounded down.
            let b: f64 = fields[2].parse().unwrap();
            let short = b - f64::from(given) / 256.0;
            assert!((-0.005..0.005 + 1.0 / 256.0).contains(&short), "{line}");
        }
        assert_eq!(published.count(), ROWS.len() + 1);
    }

    #[test]
    fn up_to_38_segments_it_is_reno() {
        let (mut cc, mut w) = (HighSpeed::default(), in_avoidance(38));
        for _ in 0..38 {
            cc.grow(&mut w, &ACK, 1);
        }
        assert_eq!((w.cwnd, cc.ssthresh(&Window::new(38, 1), 0)), (39, 19));
    }

    #[test]
    fn an_acknowledgement_adds_the_upper_row_of_the_table() {
        let added = |cwnd| {
            let mut w = in_avoidance(cwnd);
            HighSpeed::default().grow(&mut w, &ACK, 2);
            w.cnt
        };
        assert_eq!([38, 39, 118, 119, 12_834].map(added), [1, 2, 2, 3, 33]);
        assert_eq!([83_000, 89_053, 200_000].map(added), [71, 72, 72]);
    }

    #[test]
    fn the_larger_the_window_the_smaller_the_part_it_gives() {
        let left = |cwnd| {
            let (mut cc, mut w) = (HighSpeed::default(), in_avoidance(cwnd));
            cc.grow(&mut w, &ACK, 1);
            cc.ssthresh(&Window::new(cwnd, 1), 0)
        };
        // 112/256, 52/256 (row 30) and 24/256 (row 72) of it.
        assert_eq!([100, 10_661, 100_000].map(left), [57, 8_496, 90_625]);
        assert_eq!(left(2), 2);
    }

    #[test]
    fn the_formula_gives_the_windows_of_table_6_and_upper_rows_larger_ones() {
        // RFC 3649, table 6: after these numbers of round trips in congestion avoidance from 1 segment.
        let published = [
            (100, 131.0),
            (200, 475.0),
            (500, 3_601.0),
            (1_000, 17_409.0),
            (2_000, 72_754.0),
        ];
        for (trips, segments) in published {
            let w = (1..trips).fold(1.0, |w, _| w + f64::max(increase(w), 1.0));
            assert!((w - segments).abs() < 1.0, "{w} after {trips}");
        }
        let mut cc = HighSpeed::default();
        let mut w = in_avoidance(1);
        for _ in 1..500 {
            for _ in 0..w.cwnd {
                cc.grow(&mut w, &ACK, 1);
            }
        }
        assert_eq!(w.cwnd, 4_360);
    }

    #[test]
    fn parameters_change_the_response() {
        let build = |params: HighSpeedParams| params.build(&Setup::default());
        let response = |params: HighSpeedParams, cwnd| {
            let (mut cc, mut w) = (build(params), in_avoidance(cwnd));
            cc.grow(&mut w, &ACK, 2);
            (w.cnt, cc.ssthresh(&Window::new(cwnd, 1), 0))
        };
        let default = HighSpeedParams::default();
        let low = HighSpeedParams {
            low_window: 200,
            ..default
        };
        assert_eq!(response(default, 150), (3, 90));
        assert_eq!(response(low, 150), (1, 75));
        let high = HighSpeedParams {
            high_window: 20_000,
            ..default
        };
        assert!(response(high, 20_000).0 < response(default, 20_000).0);
        let rare = HighSpeedParams {
            high_p: 10,
            ..default
        };
        assert!(response(rare, 20_000).0 < response(default, 20_000).0);
        let yielding = HighSpeedParams {
            high_decrease: 400,
            ..default
        };
        assert!(response(yielding, 83_000).1 < 52_000 && response(default, 83_000).1 > 74_000);
    }

    #[test]
    fn the_formula_agrees_with_the_table() {
        for w in [100, 1_000, 10_000, 80_000] {
            let (a, b) = HighSpeedParams::default().response(w);
            let w = f64::from(w);
            assert!((a / increase(w) - 1.0).abs() < 0.06, "{a} at {w}");
            assert!((b - decrease(w)).abs() < 0.001, "{b} at {w}");
        }
    }

    #[test]
    fn contradicting_parameters_are_refused() {
        let wrong = HighSpeedParams {
            low_window: 90_000,
            ..HighSpeedParams::default()
        };
        let why = wrong.conflict().unwrap();
        assert!(why.starts_with("low_window 90000 is not below"), "{why}");
        let wrong = HighSpeedParams {
            low_window: 50_000,
            ..HighSpeedParams::default()
        };
        let why = wrong.conflict().unwrap();
        assert!(why.starts_with("high_p 0.0000001 is not below"), "{why}");
    }
}
