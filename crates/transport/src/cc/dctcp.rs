//! DCTCP: the window is reduced in proportion to the fraction of marked data.
//!
//! # Source
//!
//! RFC 8257 §3; the arithmetic of Linux 6.1 `tcp_dctcp`.
//!
//! # Law
//!
//! ```text
//! once per window M = marked / delivered        alpha = (1 - g) alpha + g M,   g = 1/16
//! CE echoed       ssthresh = cwnd (1 - alpha / 2)         once per window
//! loss            ssthresh = cwnd / 2
//! growth          as Reno
//! ```
//!
//! alpha is in 1024ths and starts at 1, so that the first mark halves the window.
//!
//! Packets of both ends are ECN-capable, retransmissions and acknowledgements too, and the peer
//! echoes CE packet by packet instead of until CWR arrives (RFC 8257 §3.2).
//!
//! # Differences from RFC 8257
//!
//! | here, as Linux | RFC 8257 | effect |
//! |---|---|---|
//! | counts segments | bytes | none with full segments |
//! | alpha below 16/1024 becomes 0 without marks | decays forever | a rare mark then costs nothing |
//! | the window falls over a round trip (PRR) | at once | smoother |
//! | a loss after an ECN reduction of the same window halves what is left | once per window | rare |

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::window::half;
use super::{Ack, EcnFeedback, SlowStart, Window, WindowBased};

/// 1, as alpha counts.
const ONE: u32 = 1_024;

parameters! {
    /// Parameters of [`Dctcp`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct DctcpParams {
        /// Exponent n of the gain g = 2^-n of alpha.
        pub shift_g: u8 = 4 => count(0, 10),
            "Linux tcp_dctcp, dctcp_shift_g; RFC 8257 section 4.2: 1/16";
        /// Alpha at the start of a connection.
        pub alpha_on_init: u16 = 1_024 => ratio(1_024, 0, 1_024),
            "Linux tcp_dctcp, dctcp_alpha_on_init";
    }
}

impl Control for DctcpParams {
    type Controller = Dctcp;

    const DECLARATION: Declaration = Declaration {
        name: "dctcp",
        summary: "Reduces the window in proportion to the fraction of marked segments",
        source: "RFC 8257; Linux 6.1 tcp_dctcp",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Required,
        fills_buffers: false,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Dctcp {
        Dctcp {
            alpha: self.alpha_on_init.into(),
            delivered: 0,
            marked: 0,
            end: 0,
            shift_g: self.shift_g.into(),
        }
    }
}

/// The DCTCP congestion controller.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// Part of the segments marked, in 1024ths.
    alpha: u32,
    delivered: u32,
    marked: u32,
    /// The window of observation ends when this is acknowledged.
    end: u32,
    shift_g: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        DctcpParams::default().build(&Setup::default())
    }
}

impl Dctcp {
    fn end_window(&mut self) {
        let decay = match self.alpha >> self.shift_g {
            0 => self.alpha,
            part => part,
        };
        let marked = u64::from(self.marked) * u64::from(ONE >> self.shift_g);
        let gain = marked / u64::from(self.delivered.max(1));
        let gain = u32::try_from(gain).unwrap_or(ONE);
        self.alpha = (self.alpha - decay + gain).min(ONE);
        self.delivered = 0;
        self.marked = 0;
    }
}

impl WindowBased for Dctcp {
    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        self.delivered += feedback.delivered;
        self.marked += feedback.marked;
        if feedback.snd_una >= self.end {
            self.end_window();
            self.end = feedback.snd_nxt;
        }
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        window.grow_as_reno(window.segments_of(acked));
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let given = (u64::from(window.cwnd) * u64::from(self.alpha)) >> 11;
        let left = u64::from(window.cwnd) - given;
        let left = u32::try_from(left).expect("less than cwnd").max(2);
        window.bytes_of(left)
    }

    fn ssthresh_after_loss(&mut self, window: &Window) -> Option<u64> {
        Some(window.bytes_of(half(window)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn feedback(snd_una: u32, snd_nxt: u32, delivered: u32, marked: u32) -> EcnFeedback {
        EcnFeedback {
            snd_una,
            snd_nxt,
            delivered,
            marked,
        }
    }

    /// A window of segments of one byte.
    const fn window(segments: u32) -> Window {
        Window::new(segments, 1)
    }

    /// alpha after windows of 100 segments, of which `marked` were marked.
    fn alpha_after(marked: &[u32]) -> u32 {
        let mut cc = Dctcp::default();
        let mut una = 0;
        // The first acknowledgement ends a window that has hardly begun.
        cc.on_ecn_feedback(&feedback(una, 100, 0, 0));
        for &m in marked {
            for n in 0..100 {
                una += 1;
                cc.on_ecn_feedback(&feedback(una, una + 100, 1, u32::from(n < m)));
            }
        }
        cc.alpha
    }

    #[test]
    fn alpha_is_the_moving_average_of_rfc_8257() {
        // The kernel's series without a mark, and RFC 8257's law beside it.
        assert_eq!(alpha_after(&[]), 960);
        assert_eq!(alpha_after(&[0]), 900);
        assert_eq!(alpha_after(&[0, 0]), 844);
        let mut real = 1.0;
        let marks = [30, 0, 100, 50, 10, 10, 10, 0, 0, 70];
        real *= 15.0 / 16.0;
        for m in marks {
            real = real * 15.0 / 16.0 + f64::from(m) / 100.0 / 16.0;
        }
        let ours = f64::from(alpha_after(&marks)) / 1_024.0;
        assert!((ours - real).abs() < 0.01, "{ours}, not {real}");
    }

    #[test]
    fn alpha_settles_at_the_part_marked() {
        let steady = |m| f64::from(alpha_after(&[m; 200])) / 1_024.0;
        for m in [10, 50, 90] {
            let want = f64::from(m) / 100.0;
            assert!((steady(m) - want).abs() < 0.02, "{} of {m} %", steady(m));
        }
        // Integers do not go the last sixteenth on their own, so Linux makes it 0.
        assert!(steady(0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_window_gives_half_of_alpha_and_half_of_itself_at_a_loss() {
        let cut = |alpha| {
            Dctcp {
                alpha,
                ..Dctcp::default()
            }
            .ssthresh(&window(100), 0)
        };
        assert_eq!([0, 102, 512, 1_024].map(cut), [100, 96, 75, 50]);
        // Measured on the kernel: 49 at alpha 794.
        let mut cc = Dctcp {
            alpha: 794,
            ..Dctcp::default()
        };
        assert_eq!(cc.ssthresh(&window(49), 0), 31);
        assert_eq!(cc.ssthresh_after_loss(&window(49)), Some(24));
        assert_eq!(cc.ssthresh(&window(2), 0), 2);
    }

    #[test]
    fn shift_g_is_the_gain_and_alpha_on_init_the_start() {
        let alpha = |shift_g, alpha_on_init| {
            let params = DctcpParams {
                shift_g,
                alpha_on_init,
            };
            let mut cc = params.build(&Setup::default());
            cc.on_ecn_feedback(&feedback(0, 100, 100, 0));
            cc.alpha
        };
        assert_eq!(alpha(4, 1_024), 960);
        assert_eq!(alpha(1, 1_024), 512);
        assert_eq!(alpha(4, 512), 480);
    }
}
