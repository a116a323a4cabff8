//! skeleton: additive increase, multiplicative decrease. Describe the control here.
//!
//! # Source
//!
//! The RFC, draft or module.
//!
//! # Law
//!
//! ```text
//! congestion avoidance   cwnd += 1               for each cwnd segments acknowledged
//! congestion             ssthresh = max(beta cwnd, 2)
//! ```

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`Skeleton`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SkeletonParams {
        /// Fraction of the window kept after a reduction.
        pub beta: u16 = 512 => ratio(1_024, 1, 1_023),
            "section of the source";
    }
}

impl Control for SkeletonParams {
    type Controller = Skeleton;

    const DECLARATION: Declaration = Declaration {
        name: "skeleton",
        summary: "What the control does, in one line",
        source: "The RFC, draft or module",
        slow_starts: &[
            SlowStart::Standard,
            SlowStart::HyStartPlusPlus,
            SlowStart::Search,
            SlowStart::CarefulResume,
            SlowStart::RapidStart,
        ],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Skeleton {
        Skeleton(*self)
    }
}

/// The Skeleton congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Skeleton(SkeletonParams);

impl WindowBased for Skeleton {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        window.grow_as_reno(window.segments_of(acked));
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let left = u64::from(window.cwnd) * u64::from(self.0.beta) / 1_024;
        window.bytes_of(u32::try_from(left).unwrap_or(u32::MAX).max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_leaves_beta_of_the_window() {
        let left = |beta| {
            let params = SkeletonParams { beta };
            Skeleton(params).ssthresh(&Window::new(100, 1), 0)
        };
        assert_eq!([512, 768].map(left), [50, 75]);
    }
}
