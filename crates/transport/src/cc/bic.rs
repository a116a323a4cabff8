//! BIC: binary search for the window at which losses occurred.
//!
//! # Source
//!
//! Xu, Harfoush and Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks", IEEE INFOCOM
//! 2004; the arithmetic of Linux 6.1 `tcp_bic`.
//!
//! # Law
//!
//! ```text
//! congestion at W    Wmax = W, or 0.9 W if W is below the last Wmax (fast convergence)
//!                    ssthresh = 0.8 W, or W / 2 up to low_window; 2 at least
//! avoidance          the window grows per round trip by
//!   up to low_window                     1
//!   below Wmax, d = (Wmax - cwnd) / 4    max_increment if d is above that, d if d is above 1, else 4 / smooth_part
//!   less than 4 above Wmax               4 / smooth_part
//!   then                                 (cwnd - Wmax) / 3, at most max_increment
//!   before the first congestion          5 % of the window at least
//! ```
//!
//! All but the first are multiplied by the number of segments that an acknowledgement covers, over 2 when the connection
//! begins: a running mean in 16ths, with a weight of 1/16 for each acknowledgement without trouble. A time-out forgets
//! all of this. The growth is computed when the window has changed, or 1/32 s later.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | a quarter of the distance | half | the search is slower |
//! | `max_increment` 16, beta 0.8 | Smax 32, beta 0.125 given up | – |
//! | growth is multiplied for delayed acknowledgements, although acknowledged segments are counted | acknowledgements | up to twice as fast |

use std::num::NonZeroU32;

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, Phase, SlowStart, Threshold, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`Bic`]: those of the module `tcp_bic`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct BicParams {
        /// Reduce the window further when it is below the last maximum.
        pub fast_convergence: bool = true => flag(),
            "Linux tcp_bic, fast_convergence";
        /// Largest growth per round trip.
        pub max_increment: u16 = 16 => count(1, 65_535).of("segments"),
            "Linux tcp_bic, max_increment";
        /// Window up to which the control behaves like Reno.
        pub low_window: u16 = 14 => count(0, 65_535).of("segments"),
            "Linux tcp_bic, low_window";
        /// Fraction of the window kept after a reduction.
        pub beta: u16 = 819 => ratio(1_024, 1, 1_023),
            "Linux tcp_bic, beta";
        /// Initial slow-start threshold.
        pub initial_ssthresh: Option<NonZeroU32> = None => count_or_off("segments", 0, 1_000_000),
            "Linux tcp_bic, initial_ssthresh";
        /// Four times the round trips per segment of growth close to the last maximum.
        pub smooth_part: u16 = 20 => count(1, 10_000),
            "Linux tcp_bic, smooth_part";
    }
}

impl Control for BicParams {
    type Controller = Bic;

    const DECLARATION: Declaration = Declaration {
        name: "bic",
        summary: "Binary search for the window at which losses occurred; the predecessor of CUBIC",
        source: "Xu, Harfoush and Rhee 2004; Linux 6.1 tcp_bic",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Bic {
        Bic::new(*self)
    }

    fn initial_ssthresh(&self, _setup: &Setup) -> Threshold {
        self.initial_ssthresh
            .map_or(Threshold::UNSET, |n| Threshold::of_segments(n.get()))
    }
}

/// The part of the distance to the maximum that a round trip covers.
const B: u32 = 4;
/// Segments acknowledged per segment of growth before the first congestion, at most: 5 % per round trip.
const MOST_BEFORE_LOSS: u32 = 20;
/// Ticks after which the growth is computed again.
const STALE: u64 = 31;

/// The BIC congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    params: BicParams,
    is_open: bool,
    /// Segments acknowledged per segment of growth.
    cnt: u32,
    /// Wmax; 0 before the first congestion.
    last_max_cwnd: u32,
    last_cwnd: u32,
    /// When the growth was last computed.
    last_tick: u64,
    /// Segments per acknowledgement, in 16ths.
    delayed_ack: u32,
}

impl WindowBased for Bic {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if self.is_open {
            self.delayed_ack = self.delayed_ack + ack.acked - self.delayed_ack / 16;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        window.grow_by(|window| self.update(window.cwnd, ack.tick), acked);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let (cwnd, beta) = (window.cwnd, u32::from(self.params.beta));
        let part = |numerator: u32, denominator: u32| {
            let left = u64::from(cwnd) * u64::from(numerator) / u64::from(denominator);
            u32::try_from(left).expect("less than cwnd")
        };
        self.last_max_cwnd = if cwnd < self.last_max_cwnd && self.params.fast_convergence {
            part(1_024 + beta, 2_048)
        } else {
            cwnd
        };
        let left = if cwnd <= self.params.low_window.into() {
            cwnd / 2
        } else {
            part(beta, 1_024)
        };
        window.bytes_of(left.max(2))
    }

    fn on_phase(&mut self, transition: &Transition) {
        if transition.to == Phase::Loss {
            *self = Self::new(self.params);
        }
        self.is_open = transition.to == Phase::Open;
    }
}

impl Bic {
    const fn new(params: BicParams) -> Self {
        Self {
            params,
            is_open: true,
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_tick: 0,
            delayed_ack: 2 * 16,
        }
    }

    /// Returns the number of acknowledged segments per segment of growth.
    fn update(&mut self, cwnd: u32, tick: u64) -> u32 {
        if cwnd != self.last_cwnd || tick - self.last_tick > STALE {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.cnt = self.segments_per_growth(cwnd);
        }
        self.cnt
    }

    fn segments_per_growth(&self, cwnd: u32) -> u32 {
        if cwnd <= self.params.low_window.into() {
            return cwnd;
        }
        let most = u32::from(self.params.max_increment);
        let (max, smooth) = (self.last_max_cwnd, u32::from(self.params.smooth_part));
        let slowly = cwnd.saturating_mul(smooth) / B;
        let cnt = if cwnd < max {
            match (max - cwnd) / B {
                distance if distance > most => cwnd / most,
                0 | 1 => slowly,
                distance => cwnd / distance,
            }
        } else {
            match cwnd - max {
                above if above < B => slowly,
                above if above < most * (B - 1) => cwnd * (B - 1) / above,
                _ => cwnd / most,
            }
        };
        let cnt = if max == 0 {
            cnt.min(MOST_BEFORE_LOSS)
        } else {
            cnt
        };
        let cnt = u64::from(cnt) * 16 / u64::from(self.delayed_ack.max(1));
        u32::try_from(cnt).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control whose last maximum was `max` and whose acknowledgements cover one segment each.
    fn bic(max: u32) -> Bic {
        Bic {
            last_max_cwnd: max,
            delayed_ack: 16,
            ..Bic::new(BicParams::default())
        }
    }

    #[test]
    fn the_search_is_linear_then_binary_then_slow() {
        let cnt = |cwnd| bic(1_000).segments_per_growth(cwnd);
        // 200 / 4 = 50 is above 16: 800 / 16.
        assert_eq!(cnt(800), 50);
        // 60 / 4 = 15: 940 / 15 = 62. 8 / 4 = 2: 992 / 2. 7 / 4 = 1: 993 * 5.
        assert_eq!([940, 992, 993].map(cnt), [62, 496, 4_965]);
        // Above: 3, 4 (1004 * 3 / 4), 47 (1047 * 3 / 47), 48 (1048 / 16).
        assert_eq!([1_003, 1_004, 1_047, 1_048].map(cnt), [5_015, 753, 66, 65]);
        assert_eq!([10, 14].map(cnt), [10, 14]);
    }

    #[test]
    fn before_the_first_congestion_the_window_grows_by_5_percent() {
        assert_eq!(
            [100, 1_000].map(|cwnd| bic(0).segments_per_growth(cwnd)),
            [6, 20]
        );
    }

    #[test]
    fn growth_is_multiplied_by_the_segments_per_acknowledgement() {
        let (mut cc, mut window) = (bic(1_000), Window::new(800, 1));
        cc.delayed_ack = 32;
        assert_eq!(cc.segments_per_growth(800), 25);
        // 32 + 1 - 2, then 31 + 1 - 1.
        let ack = Ack {
            acked: 1,
            ..Ack::at(0)
        };
        cc.on_ack(&mut window, &ack);
        assert_eq!(cc.delayed_ack, 31);
        cc.on_ack(&mut window, &ack);
        assert_eq!(cc.delayed_ack, 31);
        cc.is_open = false;
        cc.on_ack(&mut window, &Ack { acked: 100, ..ack });
        assert_eq!(cc.delayed_ack, 31);
    }

    #[test]
    fn growth_is_computed_for_a_new_window_and_after_a_32nd_of_a_second() {
        let mut cc = bic(1_000);
        assert_eq!(cc.update(800, 100), 50);
        cc.last_max_cwnd = 803;
        assert_eq!([cc.update(800, 131), cc.update(800, 132)], [50, 4_000]);
        cc.last_max_cwnd = 1_000;
        assert_eq!(cc.update(801, 132), 50);
    }

    #[test]
    fn a_fifth_is_given_up_and_the_maximum_lowered_if_it_was_not_reached() {
        let mut cc = bic(0);
        let mut left = |cwnd| (cc.ssthresh(&Window::new(cwnd, 1), 0), cc.last_max_cwnd);
        assert_eq!(left(1_000), (799, 1_000));
        assert_eq!(left(999), (799, 899));
        assert_eq!(left(14), (7, 12));
        assert_eq!(left(2), (2, 1));
        cc.on_phase(&Transition {
            to: Phase::Loss,
            tick: 0,
            snd_nxt: 0,
        });
        assert_eq!((cc.last_max_cwnd, cc.delayed_ack), (0, 32));
    }

    #[test]
    fn the_initial_threshold_is_a_parameter() {
        let with = |initial_ssthresh| BicParams {
            initial_ssthresh,
            ..BicParams::default()
        };
        let of = |params: BicParams| params.initial_ssthresh(&Setup::default()).segments();
        assert_eq!(of(with(None)), None);
        assert_eq!(of(with(NonZeroU32::new(40))), Some(40));
    }
}
