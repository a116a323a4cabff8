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

use super::{Ack, CongestionControl, Window};

/// The Reno congestion controller; all it remembers is in the [`Window`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn on_acked(&mut self, _window: &mut Window, _ack: &Ack) {}

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u32) {
        let left = if window.in_slow_start() {
            window.slow_start(acked)
        } else {
            acked
        };
        if left > 0 {
            window.additive_increase(window.cwnd, left);
        }
    }

    fn ssthresh(&mut self, cwnd: u32) -> u32 {
        (cwnd / 2).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut w = Window::new(10);
        w.ssthresh = 20;
        Reno.grow(&mut w, &ACK, 10);
        assert_eq!(w.cwnd, 20);
        for _ in 0..20 {
            Reno.grow(&mut w, &ACK, 1);
        }
        assert_eq!(w.cwnd, 21);
        Reno.grow(&mut w, &ACK, 21);
        assert_eq!(w.cwnd, 22);
    }

    #[test]
    fn congestion_halves_down_to_two() {
        assert_eq!(Reno.ssthresh(21), 10);
        assert_eq!(Reno.ssthresh(1), 2);
    }
}
