//! Veno: tells random losses from congestion by the number of queued segments.
//!
//! # Source
//!
//! Fu and Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks", IEEE JSAC 21(2), 2003; the
//! arithmetic of Linux 6.1 `tcp_veno`.
//!
//! # Law
//!
//! With the smallest RTT since sending last began, *base*:
//!
//! ```text
//! N            = cwnd (RTT - base) / RTT       segments queued on the way
//! slow start   cwnd += acked                   while cwnd < ssthresh
//! avoidance    N < beta:   cwnd += 1           per round trip, as Reno
//!              N >= beta:  cwnd += 1           every second round trip
//! congestion   N < beta:   ssthresh = 4/5 cwnd, 2 at least: the loss is random
//!              N >= beta:  ssthresh = 1/2 cwnd, 2 at least
//! ```
//!
//! N is computed in halves at each acknowledgement, with its own RTT. The first two samples and acknowledgements that
//! arrive during recovery do not count: the window then grows as Reno's, and N stays.
//!
//! # Differences from the paper
//!
//! | here, as Linux | paper | effect |
//! |---|---|---|
//! | RTT of one acknowledgement | smallest RTT of a round trip | N is larger |
//! | no RTT of an acknowledgement, because all it covers was retransmitted | – | counts as congestion |
//! | samples are counted in 16 bits | – | Reno for two of 65536 acknowledgements |

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::window::half;
use super::{Ack, Phase, Resume, SlowStart, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`Veno`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct VenoParams {
        /// Number of queued segments from which a loss counts as congestion.
        pub beta: u16 = 3 => count(0, 10_000).of("segments"),
            "Linux tcp_veno, beta; Fu and Liew 2003: 3";
    }
}

impl Control for VenoParams {
    type Controller = Veno;

    const DECLARATION: Declaration = Declaration {
        name: "veno",
        summary: "Reno that reduces less after losses without a queue, for wireless paths",
        source: "Fu and Liew 2003; Linux 6.1 tcp_veno",
        slow_starts: SlowStart::WITH_STANDARD,
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: true,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Veno {
        Veno {
            params: *self,
            is_enabled: true,
            skips: false,
            samples: 0,
            rtt: NO_RTT,
            base_rtt: NO_RTT,
            queued: 0,
        }
    }
}

/// No sample, in µs.
const NO_RTT: u32 = 0x7fff_ffff;
/// As many samples are too few.
const TOO_FEW: u16 = 2;

/// The Veno congestion controller. RTTs are in µs.
#[derive(Clone, Copy, Debug)]
pub struct Veno {
    params: VenoParams,
    /// Nothing is being repaired, or sending has begun again since.
    is_enabled: bool,
    /// With a queue, the next growth is left out.
    skips: bool,
    samples: u16,
    /// Smallest since the window last could grow.
    rtt: u32,
    base_rtt: u32,
    /// N in halves of a segment.
    queued: u32,
}

impl WindowBased for Veno {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(micros) = ack.rtt_micros {
            let rtt = micros + 1;
            self.base_rtt = self.base_rtt.min(rtt);
            self.rtt = self.rtt.min(rtt);
            self.samples = self.samples.wrapping_add(1);
        }
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        if !self.is_enabled {
            window.grow_as_reno(acked);
            return;
        }
        if self.samples <= TOO_FEW {
            window.grow_as_reno(acked);
        } else {
            self.queued = queued(window.cwnd, self.rtt, self.base_rtt);
            self.grow_by_queue(window, acked);
        }
        self.rtt = NO_RTT;
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        window.bytes_of(if self.is_congested() {
            half(window)
        } else {
            let kept = u64::from(window.cwnd) * 4 / 5;
            u32::try_from(kept).expect("less than cwnd").max(2)
        })
    }

    fn on_phase(&mut self, transition: &Transition) {
        self.is_enabled = transition.to == Phase::Open;
        if self.is_enabled {
            self.rtt = NO_RTT;
        }
    }

    fn on_resume(&mut self, _resume: &Resume) {
        self.restart();
    }

    fn on_lone_resend(&mut self, _snd_nxt: u32) {
        self.restart();
    }
}

impl Veno {
    const fn is_congested(&self) -> bool {
        self.queued >= 2 * self.params.beta as u32
    }

    fn grow_by_queue(&mut self, window: &mut Window, acked: u32) {
        let left = if window.in_slow_start() {
            window.slow_start(acked)
        } else {
            acked
        };
        if left == 0 {
            return;
        }
        if !self.is_congested() {
            window.additive_increase(window.cwnd, left);
        } else if window.cnt >= window.cwnd {
            window.cwnd += u32::from(!self.skips);
            self.skips = !self.skips;
            window.cnt = 0;
        } else {
            window.cnt += left;
        }
    }

    /// Sending begins with nothing in flight: the path may have changed.
    fn restart(&mut self) {
        self.rtt = NO_RTT;
        self.base_rtt = NO_RTT;
        self.skips = false;
        self.is_enabled = true;
    }
}

/// N for a window of `cwnd` segments, in halves.
fn queued(cwnd: u32, rtt: u32, base_rtt: u32) -> u32 {
    let fits = 2 * u64::from(cwnd) * u64::from(base_rtt) / u64::from(rtt);
    2 * cwnd - u32::try_from(fits).expect("no more than twice cwnd")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control that has seen three RTTs of 50 ms, in avoidance.
    fn settled(cwnd: u32) -> (Veno, Window) {
        let mut cc = VenoParams::default().build(&Setup::default());
        let mut window = Window::new(cwnd, 1);
        window.end_slow_start();
        for _ in 0..3 {
            cc.on_ack(&mut window, &sample(50_000));
        }
        (cc, window)
    }

    fn sample(rtt_micros: u32) -> Ack {
        Ack {
            rtt_micros: Some(rtt_micros - 1),
            ..Ack::at(0)
        }
    }

    /// Two segments are acknowledged with this RTT.
    fn acknowledge(cc: &mut Veno, window: &mut Window, rtt_micros: u32) {
        cc.rtt = NO_RTT;
        cc.on_ack(window, &sample(rtt_micros));
        cc.grow(window, &Ack::at(0), 2);
    }

    /// The part of a window of 100 that is kept after an acknowledgement with this RTT.
    fn kept(params: VenoParams, rtt_micros: u32) -> u64 {
        let (mut cc, mut window) = settled(100);
        cc.params = params;
        acknowledge(&mut cc, &mut window, rtt_micros);
        cc.ssthresh(&window, 0)
    }

    #[test]
    fn a_loss_with_fewer_than_three_segments_queued_costs_a_fifth() {
        let params = VenoParams::default();
        // 200 * 50 / 51.5 = 194.2: 6 halves; / 51.2: 195.3, 5 halves.
        assert_eq!(
            [50_000, 51_200, 51_500, 60_000].map(|rtt| kept(params, rtt)),
            [80, 80, 50, 50]
        );
        let patient = VenoParams { beta: 20 };
        assert_eq!([60_000, 70_000].map(|rtt| kept(patient, rtt)), [80, 50]);
        let (mut cc, _) = settled(2);
        assert_eq!(cc.ssthresh(&Window::new(2, 1), 0), 2);
    }

    #[test]
    fn with_a_queue_the_window_grows_every_second_round_trip() {
        let growth = |rtt| {
            let (mut cc, mut window) = settled(20);
            for _ in 0..110 {
                acknowledge(&mut cc, &mut window, rtt);
            }
            window.cwnd
        };
        // 220 segments: 20 + 21 + ... + 28 = 216 are nine windows.
        assert_eq!(growth(50_000), 29);
        // Windows of 20 and 22 segments, an acknowledgement each at their end: of eleven each second one grows.
        assert_eq!(growth(100_000), 24);
    }

    #[test]
    fn too_few_samples_and_recoveries_are_left_to_reno() {
        let mut cc = VenoParams::default().build(&Setup::default());
        let mut window = Window::new(10, 1);
        window.end_slow_start();
        cc.on_ack(&mut window, &sample(50_000));
        acknowledge(&mut cc, &mut window, 500_000);
        assert_eq!(cc.queued, 0);
        acknowledge(&mut cc, &mut window, 500_000);
        assert_eq!(cc.queued, 18);
        let transition = |to| Transition {
            to,
            tick: 0,
            snd_nxt: 0,
        };
        cc.on_phase(&transition(Phase::Recovery));
        acknowledge(&mut cc, &mut window, 50_000);
        assert_eq!(cc.queued, 18);
        cc.on_phase(&transition(Phase::Open));
        acknowledge(&mut cc, &mut window, 50_000);
        assert_eq!(cc.queued, 0);
    }

    #[test]
    fn an_acknowledgement_without_an_rtt_counts_as_congestion() {
        let (mut cc, mut window) = settled(100);
        acknowledge(&mut cc, &mut window, 50_000);
        cc.grow(&mut window, &Ack::at(0), 2);
        assert_eq!(cc.ssthresh(&window, 0), 50);
    }

    #[test]
    fn sending_after_a_pause_forgets_the_base() {
        let (mut cc, mut window) = settled(100);
        acknowledge(&mut cc, &mut window, 100_000);
        assert_eq!(cc.ssthresh(&window, 0), 50);
        cc.on_phase(&Transition {
            to: Phase::Loss,
            tick: 0,
            snd_nxt: 0,
        });
        cc.on_lone_resend(0);
        acknowledge(&mut cc, &mut window, 100_000);
        assert_eq!((cc.base_rtt, cc.queued), (100_000, 0));
    }
}
