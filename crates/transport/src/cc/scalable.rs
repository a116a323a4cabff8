//! Scalable TCP: growth and reduction in proportion to the window.
//!
//! # Source
//!
//! Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM CCR 33(2), 2003, section 3; as in
//! Linux 6.1 `tcp_scalable`.
//!
//! # Law
//!
//! ```text
//! slow start    cwnd += acked       while cwnd < ssthresh
//! avoidance     cwnd += 1           for each min(cwnd, ai_cnt) segments acknowledged    (paper: a = 0.01)
//! congestion    ssthresh = max(cwnd - cwnd / 2^md_scale, 2)                             (paper: b = 0.125)
//! ```
//!
//! The time between two losses is the same number of round trips for every window. Up to `ai_cnt` segments the growth
//! is that of Reno.

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`Scalable`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ScalableParams {
        /// Acknowledged segments per segment of growth in windows at least this large.
        pub ai_cnt: u16 = 100 => count(1, 10_000).of("segments"),
            "Linux tcp_scalable, TCP_SCALABLE_AI_CNT; Kelly 2003: a = 0.01";
        /// A reduction removes the window divided by 2 to this power.
        pub md_scale: u8 = 3 => count(1, 10),
            "Linux tcp_scalable, TCP_SCALABLE_MD_SCALE; Kelly 2003: b = 0.125";
    }
}

impl Control for ScalableParams {
    type Controller = Scalable;

    const DECLARATION: Declaration = Declaration {
        name: "scalable",
        summary: "Grows and reduces in proportion to the window, for long fast paths",
        source: "Kelly 2003; Linux 6.1 tcp_scalable",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Scalable {
        Scalable(*self)
    }

    fn excess_losses(&self) -> u32 {
        1 << (self.md_scale - 1)
    }
}

/// The Scalable TCP congestion controller; its state is in the [`Window`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalable(ScalableParams);

impl WindowBased for Scalable {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        window.grow_by(|window| window.cwnd.min(self.0.ai_cnt.into()), acked);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let left = window.cwnd - (window.cwnd >> self.0.md_scale);
        window.bytes_of(left.max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after `acked` segments were acknowledged two at a time in avoidance, from `cwnd`.
    fn after(params: ScalableParams, cwnd: u32, acked: u32) -> u32 {
        let (mut cc, mut window) = (Scalable(params), Window::new(cwnd, 1));
        window.end_slow_start();
        for _ in 0..acked / 2 {
            cc.grow(&mut window, &Ack::at(0), 2);
        }
        window.cwnd
    }

    #[test]
    fn large_windows_grow_by_a_hundredth_of_what_is_acknowledged() {
        let params = ScalableParams::default();
        // As Reno: 50 + 51 acknowledged segments earn 2.
        assert_eq!(after(params, 50, 102), 52);
        assert_eq!(after(params, 1_000, 1_000), 1_010);
        assert_eq!(after(params, 50_000, 50_000), 50_500);
        let faster = ScalableParams {
            ai_cnt: 50,
            ..params
        };
        assert_eq!(after(faster, 1_000, 1_000), 1_020);
    }

    #[test]
    fn what_slow_start_leaves_of_an_acknowledgement_counts() {
        let (mut cc, mut window) = (Scalable::default(), Window::new(10, 1));
        window.ssthresh = super::super::Threshold::of_segments(12);
        // 2 segments to the threshold, 12 for one segment of growth, 1 left over.
        cc.grow(&mut window, &Ack::at(0), 15);
        assert_eq!((window.cwnd, window.cnt), (13, 1));
    }

    #[test]
    fn congestion_removes_an_eighth_and_leaves_two_segments_at_least() {
        let mut left = |cwnd| Scalable::default().ssthresh(&Window::new(cwnd, 1), 0);
        assert_eq!(
            [1, 2, 7, 8, 100, 1_001].map(&mut left),
            [2, 2, 7, 7, 88, 876]
        );
        let mut halves = Scalable(ScalableParams {
            md_scale: 1,
            ..ScalableParams::default()
        });
        assert_eq!(halves.ssthresh(&Window::new(101, 1), 0), 51);
    }
}
