//! `YeAH`: Scalable TCP while the queue is short, Reno beside others, and a queue that is emptied early.
//!
//! # Source
//!
//! Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", `PFLDnet` 2007; the arithmetic of Linux 6.1
//! `tcp_yeah`.
//!
//! # Law
//!
//! Once per round trip with at least three RTT samples, of which *RTT* is the smallest and *base* the smallest ever:
//!
//! ```text
//! Q            = cwnd (RTT - base) / RTT       segments queued on the way
//! slow mode    Q > alpha or RTT - base > base / phy
//!              and if Q > alpha:  cwnd -= min(Q / gamma, cwnd / 2^epsilon), to Wreno at least; ssthresh = cwnd
//!              Wreno += 1; cwnd / 2 in the first such round trip
//! fast mode    otherwise; more than zeta such round trips reset Wreno to 2
//! growth       fast mode as Scalable TCP: 1 for each min(cwnd, 100) segments acknowledged; slow mode as Reno
//! congestion   fewer than rho slow round trips in a row: ssthresh = cwnd - Q, at least half and at most 7/8 of cwnd
//!              otherwise ssthresh = cwnd / 2; 2 at least; Wreno halves, to 2 at least
//! ```
//!
//! Wreno is what Reno's window would be beside others. Sending after a pause, and retransmitting with nothing in flight,
//! forget *base*.

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::MinRtt;
use super::window::half;
use super::{Ack, Phase, Resume, SlowStart, Threshold, Transition, Window, WindowBased};

parameters! {
    /// Parameters of [`Yeah`]: the constants of the module `tcp_yeah`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct YeahParams {
        /// Number of queued segments above which the window is reduced early.
        pub alpha: u16 = 80 => count(0, 10_000).of("segments"),
            "Linux tcp_yeah, TCP_YEAH_ALPHA; Baiocchi et al. 2007: 80";
        /// An early reduction removes the queued segments divided by this.
        pub gamma: u8 = 1 => count(1, 255),
            "Linux tcp_yeah, TCP_YEAH_GAMMA; Baiocchi et al. 2007: 1";
        /// A loss removes at least the window divided by 2 to this power.
        pub delta: u8 = 3 => count(1, 10),
            "Linux tcp_yeah, TCP_YEAH_DELTA";
        /// An early reduction removes at most the window divided by 2 to this power.
        pub epsilon: u8 = 1 => count(1, 10),
            "Linux tcp_yeah, TCP_YEAH_EPSILON";
        /// The minimum RTT divided by this is the queueing delay above which the control is in slow mode.
        pub phy: u8 = 8 => count(1, 255),
            "Linux tcp_yeah, TCP_YEAH_PHY; Baiocchi et al. 2007: 8";
        /// Rounds in slow mode from which a loss halves the window.
        pub rho: u8 = 16 => count(0, 255).of("rounds"),
            "Linux tcp_yeah, TCP_YEAH_RHO";
        /// Rounds in fast mode after which the control assumes that it is alone.
        pub zeta: u8 = 50 => count(0, 255).of("rounds"),
            "Linux tcp_yeah, TCP_YEAH_ZETA";
    }
}

impl Control for YeahParams {
    type Controller = Yeah;

    const DECLARATION: Declaration = Declaration {
        name: "yeah",
        summary: "Scalable TCP that keeps the queue short, and Reno beside other flows",
        source: "Baiocchi, Castellani and Vacirca 2007; Linux 6.1 tcp_yeah",
        slow_starts: &[SlowStart::Standard],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, _setup: &Setup) -> Yeah {
        Yeah {
            params: *self,
            base_rtt: MinRtt::NONE,
            min_rtt: MinRtt::NONE,
            samples: 0,
            round_end: 0,
            queue: 0,
            slow_rounds: 0,
            reno_window: LEAST,
            fast_rounds: 0,
        }
    }
}

/// The smallest window.
const LEAST: u32 = 2;
/// Segments acknowledged per segment of growth of Scalable TCP in large windows.
const SCALABLE: u32 = 100;
/// A round with at most this number of samples is not judged: they may be of delayed acknowledgements.
const TOO_FEW: u32 = 2;

/// The `YeAH` congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Yeah {
    params: YeahParams,
    base_rtt: MinRtt,
    /// Smallest RTT of this round.
    min_rtt: MinRtt,
    samples: u32,
    /// The round ends when a segment from this one on is acknowledged.
    round_end: u32,
    /// Q in the last round that was judged.
    queue: u32,
    /// Rounds in slow mode without one in fast mode.
    slow_rounds: u32,
    reno_window: u32,
    /// Rounds in fast mode since the last congestion.
    fast_rounds: u32,
}

impl WindowBased for Yeah {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(micros) = ack.rtt_micros {
            self.base_rtt.sample(micros + 1);
            self.min_rtt.sample(micros + 1);
            self.samples += 1;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        let acked = window.segments_of(acked);
        let is_slow = self.slow_rounds > 0;
        let per = |window: &Window| {
            if is_slow {
                window.cwnd
            } else {
                window.cwnd.min(SCALABLE)
            }
        };
        window.grow_by(per, acked);
        if ack.snd_una > self.round_end {
            if self.samples > TOO_FEW {
                self.judge(window);
            }
            self.begin_round(ack.snd_nxt);
        }
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        let cwnd = window.cwnd;
        let given = if self.slow_rounds < self.params.rho.into() {
            self.queue.min(half(window)).max(cwnd >> self.params.delta)
        } else {
            half(window)
        };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(LEAST);
        window.bytes_of(cwnd.saturating_sub(given).max(LEAST))
    }

    fn on_phase(&mut self, transition: &Transition) {
        if transition.to == Phase::Open {
            self.begin_round(transition.snd_nxt);
        }
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.base_rtt = MinRtt::NONE;
        self.begin_round(resume.snd_nxt);
    }

    fn on_lone_resend(&mut self, snd_nxt: u32) {
        self.base_rtt = MinRtt::NONE;
        self.begin_round(snd_nxt);
    }
}

impl Yeah {
    const fn begin_round(&mut self, snd_nxt: u32) {
        self.round_end = snd_nxt;
        self.min_rtt = MinRtt::NONE;
        self.samples = 0;
    }

    /// Chooses the mode at the end of a round.
    fn judge(&mut self, window: &mut Window) {
        let (Some(rtt), Some(base)) = (self.min_rtt.micros(), self.base_rtt.micros()) else {
            return;
        };
        let delay = rtt - base;
        let queue = u64::from(window.cwnd) * u64::from(delay) / u64::from(rtt);
        self.queue = u32::try_from(queue).expect("no more than cwnd");
        let is_long = self.queue > self.params.alpha.into();
        if is_long || delay > base / u32::from(self.params.phy) {
            if is_long && window.cwnd > self.reno_window {
                self.reduce_early(window);
            }
            self.reno_window = if self.reno_window <= LEAST {
                half(window)
            } else {
                self.reno_window + 1
            };
            self.slow_rounds += 1;
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > self.params.zeta.into() {
                self.reno_window = LEAST;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
        }
    }

    /// Takes the queue away, before a loss does it.
    fn reduce_early(&self, window: &mut Window) {
        let most = window.cwnd >> self.params.epsilon;
        let given = (self.queue / u32::from(self.params.gamma)).min(most);
        window.cwnd = (window.cwnd - given).max(self.reno_window);
        window.ssthresh = Threshold::of_segments(window.cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 50_000;

    fn yeah() -> Yeah {
        YeahParams::default().build(&Setup::default())
    }

    /// A round of three acknowledgements with this RTT, with no segment acknowledged.
    fn round(cc: &mut Yeah, window: &mut Window, rtt: u32) {
        let ack = Ack {
            rtt_micros: Some(rtt - 1),
            snd_una: cc.round_end,
            ..Ack::at(0)
        };
        for _ in 0..3 {
            cc.on_ack(window, &ack);
        }
        let last = Ack {
            snd_una: cc.round_end + 1,
            snd_nxt: cc.round_end + 1,
            ..ack
        };
        cc.grow(window, &last, 0);
    }

    /// A control that knows the base, in avoidance.
    fn settled(cwnd: u32) -> (Yeah, Window) {
        let (mut cc, mut window) = (yeah(), Window::new(cwnd, 1));
        window.end_slow_start();
        round(&mut cc, &mut window, BASE);
        (cc, window)
    }

    #[test]
    fn a_queue_above_alpha_is_emptied_at_once() {
        let (mut cc, mut window) = settled(1_000);
        // 1000 * 4 / 54 = 74; 1000 * 5 / 55 = 90.
        round(&mut cc, &mut window, 54_000);
        assert_eq!((window.cwnd, cc.queue, cc.slow_rounds), (1_000, 74, 0));
        round(&mut cc, &mut window, 55_000);
        assert_eq!((window.cwnd, cc.queue, cc.slow_rounds), (910, 90, 1));
        assert_eq!(
            (window.ssthresh.segments(), cc.reno_window),
            (Some(910), 455)
        );
        // Half at most, and no less than Reno's window: 910 * 3/4 = 682 are queued.
        cc.reno_window = 500;
        round(&mut cc, &mut window, 200_000);
        assert_eq!((window.cwnd, cc.reno_window), (500, 501));
    }

    #[test]
    fn a_delay_of_more_than_an_eighth_ends_the_fast_mode() {
        let (mut cc, mut window) = settled(100);
        round(&mut cc, &mut window, BASE + BASE / 8);
        assert_eq!(cc.slow_rounds, 0);
        round(&mut cc, &mut window, BASE + BASE / 8 + 1);
        assert_eq!((cc.slow_rounds, cc.reno_window, window.cwnd), (1, 50, 100));
        round(&mut cc, &mut window, 2 * BASE);
        assert_eq!((cc.slow_rounds, cc.reno_window), (2, 51));
        for _ in 0..50 {
            round(&mut cc, &mut window, BASE);
        }
        // With the two rounds before, 52: the 51st resets the window of Reno.
        assert_eq!((cc.slow_rounds, cc.reno_window, cc.fast_rounds), (0, 2, 1));
    }

    #[test]
    fn zeta_fast_rounds_reset_the_window_of_reno() {
        let (mut cc, mut window) = settled(100);
        cc.reno_window = 40;
        for _ in 0..49 {
            round(&mut cc, &mut window, BASE);
        }
        assert_eq!((cc.reno_window, cc.fast_rounds), (40, 50));
        round(&mut cc, &mut window, BASE);
        assert_eq!((cc.reno_window, cc.fast_rounds), (2, 0));
    }

    #[test]
    fn growth_is_that_of_scalable_tcp_or_of_reno() {
        let grown = |slow_rounds| {
            let (mut cc, mut window) = settled(400);
            cc.slow_rounds = slow_rounds;
            for _ in 0..400 {
                let snd_una = cc.round_end;
                cc.grow(
                    &mut window,
                    &Ack {
                        snd_una,
                        ..Ack::at(0)
                    },
                    1,
                );
            }
            window.cwnd
        };
        assert_eq!([0, 1].map(grown), [404, 401]);
    }

    #[test]
    fn a_loss_takes_the_queue_away_or_half_beside_others() {
        let left = |queue, slow_rounds| {
            let (mut cc, window) = settled(100);
            (cc.queue, cc.slow_rounds, cc.reno_window) = (queue, slow_rounds, 31);
            (cc.ssthresh(&window, 0), cc.reno_window)
        };
        assert_eq!([left(5, 0), left(30, 15)], [(88, 15), (70, 15)]);
        assert_eq!([left(80, 0), left(5, 16)], [(50, 15), (50, 15)]);
        assert_eq!(yeah().ssthresh(&Window::new(2, 1), 0), 2);
    }

    #[test]
    fn too_few_samples_are_not_judged_and_pauses_forget_the_base() {
        let (mut cc, mut window) = settled(100);
        let ack = Ack {
            rtt_micros: Some(500_000),
            snd_una: cc.round_end + 1,
            snd_nxt: cc.round_end + 1,
            ..Ack::at(0)
        };
        cc.on_ack(&mut window, &ack);
        cc.grow(&mut window, &ack, 0);
        assert_eq!((cc.slow_rounds, cc.samples), (0, 0));
        cc.on_lone_resend(7);
        assert_eq!((cc.base_rtt, cc.round_end), (MinRtt::NONE, 7));
    }
}
