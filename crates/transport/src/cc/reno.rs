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
//! congestion avoidance   cwnd += 1               for each cwnd segments acknowledged
//! congestion             ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! How the window comes down to the threshold (proportional rate reduction, time-outs) is the
//! sender's business, the same for every controller.
//!
//! # Differences from RFC 5681
//!
//! `ssthresh` halves the window, not the flight (RFC 5681 §3.1 says flight size): the sender
//! only lets the window grow while it limits sending, which is what that rule guards.

use super::{Ack, Window, WindowBased};

/// The Reno congestion controller; all it remembers is in the [`Window`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl WindowBased for Reno {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        window.grow_as_reno(window.segments_of(acked));
    }

    fn ssthresh(&mut self, window: &Window) -> u64 {
        window.bytes_of(half(window))
    }
}

/// Half the window in segments, 2 at least.
pub(super) fn half(window: &Window) -> u32 {
    (window.cwnd / 2).max(2)
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
        one_way_ms: None,
        snd_una: 0,
        snd_nxt: 0,
        pacing_rate: 0,
    };

    #[test]
    fn the_window_doubles_in_slow_start_and_then_grows_by_one_a_round() {
        let mut w = Window::new(10, 1_000);
        w.ssthresh = Threshold::of_segments(20);
        Reno.grow(&mut w, &ACK, 10_000);
        assert_eq!(w.cwnd, 20);
        for _ in 0..20 {
            Reno.grow(&mut w, &ACK, 1_000);
        }
        assert_eq!(w.cwnd, 21);
        Reno.grow(&mut w, &ACK, 21_000);
        assert_eq!(w.cwnd, 22);
    }

    #[test]
    fn congestion_halves_down_to_two() {
        assert_eq!(Reno.ssthresh(&Window::new(21, 1_000)), 10_000);
        assert_eq!(Reno.ssthresh(&Window::new(1, 1_000)), 2_000);
    }
}
