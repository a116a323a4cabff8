//! The congestion window of a connection, and its pacing.
//!
//! # Source
//!
//! RFC 9002 §7 and appendix B; the controllers are those of TCP, with a full-sized datagram in
//! the place of a segment. `NewReno` of RFC 9002 is `reno`.
//!
//! # Law
//!
//! ```text
//! loss or CE of a packet sent after recovery began   ssthresh = cc(cwnd), cwnd = max(ssthresh, 2)
//! persistent congestion                              cwnd = 2
//! pacing                                             1.25 cwnd a smoothed RTT, in bursts of at
//!                                                    most the initial window
//! ```
//!
//! A controller that models the path (`bbr`, `bbr3`, `prague`) sets window and rate itself, and is paced in
//! any case. The counts of marks that come with acknowledgements (RFC 9000 §13.4) are what `dctcp` and
//! `prague` live on: both make all packets ECN-capable, `prague` with ECT(1). `dctcp` answers marks as above,
//! by what it has counted, `prague` each on its own.
//!
//! What is repaired, which `bbr` and `bbr3` ask for, is repaired until a packet sent after it began is
//! acknowledged; only then do they take back their window.
//!
//! The window grows by what is acknowledged of packets sent after recovery began, while it, and
//! not the application, limits sending (§7.8).

use sojourn_net::{Duration, Instant};

use super::{Params, SMALLEST_DATAGRAM};
use crate::cc::{
    Ack, CongestionControl, Controller, Episode, HyStartPlusPlus, Progress, SlowStart, Start,
    Window,
};
use crate::segment::MSS;

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// A controller's own rate is paced in bursts of so many datagrams.
const OWN_BURST: u64 = 2;

/// kMinimumWindow, in datagrams.
const MIN_WINDOW: u32 = 2;

/// What tells of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// A packet was lost.
    Loss,
    /// One was CE-marked.
    Mark,
}

/// The window and what fills it.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    cc: Controller,
    window: Window,
    /// HyStart++, until slow start first ends.
    hystart: Option<HyStartPlusPlus>,
    /// Bytes of a full-sized datagram, which is a small one until the handshake is confirmed.
    unit: u32,
    /// Bytes acknowledged that have not counted as a datagram yet.
    remainder: u64,
    in_flight: u64,
    /// The controller hears how many packets were marked, and answers that itself.
    counts_marks: bool,
    /// Packets sent before this have had their answer.
    recovery: Option<Instant>,
    /// What is being repaired, and since when.
    episode: Episode,
    episode_began: Instant,
    /// The window or pacing, not the application, limited sending last.
    pub(super) limited: bool,
    pacer: Option<Pacer>,
}

impl Congestion {
    pub(super) fn new(params: &Params) -> Self {
        let unit = params.max_datagram.min(SMALLEST_DATAGRAM).into();
        let mut cc = Controller::new(params.cc, params.seed);
        let way = params.slow_start();
        if let Some(way) = way {
            cc.end_slow_start_by(way);
        }
        let burst = if cc.steers() {
            OWN_BURST
        } else {
            params.initial_window.into()
        };
        let burst = burst * u64::from(unit);
        let paced = params.pacing || cc.steers();
        if paced {
            cc.expect_pacing();
        }
        let plus_plus = way == Some(SlowStart::HyStartPlusPlus);
        Self {
            cc,
            window: Window::new(params.initial_window),
            hystart: plus_plus.then(|| HyStartPlusPlus::new(paced)),
            unit,
            remainder: 0,
            in_flight: 0,
            counts_marks: params.cc.needs_accurate_ecn(),
            recovery: None,
            episode: Episode::None,
            episode_began: Instant::ZERO,
            limited: false,
            pacer: paced.then_some(Pacer {
                burst,
                tokens: burst,
                filled: Instant::ZERO,
            }),
        }
    }

    /// Datagrams have `unit` bytes from now on, and the window as many of them as before (RFC 9002 §7.2).
    pub(super) fn enlarge(&mut self, unit: u16) {
        let before = std::mem::replace(&mut self.unit, unit.into());
        if let Some(pacer) = &mut self.pacer {
            pacer.burst = pacer.burst / u64::from(before) * u64::from(unit);
        }
    }

    /// Whether the controller sets window and rate itself, from a model of the path.
    pub(super) fn is_steered(&self) -> bool {
        self.cc.steers()
    }

    /// The first data is about to be sent.
    pub(super) fn begin(&mut self, start: &Start) {
        self.cc.begin(&self.window, start);
    }

    /// Data is sent again after a pause.
    pub(super) fn on_restart(&mut self, now: Instant) {
        self.cc.on_restart(&mut self.window, now, tick(now));
    }

    /// Data is sent while nothing is in flight; the last was sent at `last`. A pause is no time in which the
    /// window might have grown.
    pub(super) fn on_resume(&mut self, now: Instant, last: Instant) {
        self.cc.on_resume(tick(now), tick(last));
    }

    /// Lets the controller set window and rate; says whether it holds sending down.
    pub(super) fn steer(&mut self, ack: &Ack, progress: &Progress) -> bool {
        let held_down = self.cc.steer(&mut self.window, ack, progress);
        self.window.cwnd = self.window.cwnd.max(MIN_WINDOW);
        held_down
    }

    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    /// The window in bytes.
    fn bytes(&self) -> u64 {
        u64::from(self.window.cwnd) * u64::from(self.unit)
    }

    /// Full-sized datagrams in flight, rounded up.
    pub(super) fn in_flight(&self) -> u32 {
        u32::try_from(self.in_flight.div_ceil(self.unit.into())).unwrap_or(u32::MAX)
    }

    /// Whether the window has no room for a full-sized datagram.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight + u64::from(self.unit) > self.bytes()
    }

    /// When pacing next lets a datagram out; `None`: now.
    pub(super) fn paced_until(&mut self, now: Instant, srtt: Duration) -> Option<Instant> {
        let rate = self.rate(srtt);
        let pacer = self.pacer.as_mut()?;
        pacer.fill(now, rate);
        pacer.wait(now, rate, self.unit.into())
    }

    /// When pacing will let a datagram out, as things stand.
    pub(super) fn next_departure(&self, now: Instant, srtt: Duration) -> Instant {
        let rate = self.rate(srtt);
        let mut pacer = self.pacer.clone();
        let waits = pacer.as_mut().and_then(|pacer| {
            pacer.fill(now, rate);
            pacer.wait(now, rate, self.unit.into())
        });
        waits.unwrap_or(now)
    }

    /// The pacing rate: so many bytes in so many nanoseconds.
    fn rate(&self, srtt: Duration) -> (u64, u64) {
        // Its own rate is that of TCP's segments.
        let own = self.cc.pacing_rate().filter(|&rate| rate > 0);
        let own = own.map(|rate| (rate * u64::from(self.unit) / u64::from(MSS), SECOND));
        // 5/4 windows a round trip.
        own.unwrap_or((5 * self.bytes(), 4 * srtt.as_nanos().max(1)))
    }

    /// So many bytes that are to be acknowledged have been sent.
    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.in_flight += bytes;
        if let Some(pacer) = &mut self.pacer {
            pacer.tokens = pacer.tokens.saturating_sub(bytes);
        }
    }

    /// So many bytes have left the network, or nobody cares for them any more.
    pub(super) const fn on_gone(&mut self, bytes: u64) {
        self.in_flight -= bytes;
    }

    /// Whether a packet sent at `at` belongs to a recovery under way.
    pub(super) fn is_before_recovery(&self, at: Instant) -> bool {
        self.recovery.is_some_and(|recovery| at <= recovery)
    }

    /// A packet sent at `at` has been acknowledged: one sent since a repair began ends it.
    pub(super) fn on_delivered(&mut self, at: Instant) {
        if at > self.episode_began {
            self.episode = Episode::None;
        }
    }

    /// What is being repaired.
    pub(super) const fn episode(&self) -> Episode {
        self.episode
    }

    /// An acknowledgement covered `bytes` of packets that let the window grow.
    pub(super) fn on_acked(&mut self, ack: &Ack, bytes: u64) {
        self.cc.on_acked(&mut self.window, ack);
        if let Some(hystart) = &mut self.hystart {
            hystart.on_acked(&mut self.window, ack);
            if self.window.ssthresh != Window::UNSET {
                self.hystart = None;
            }
        }
        if self.is_steered() || !self.limited || bytes == 0 {
            return;
        }
        self.remainder += bytes;
        let whole = self.remainder / u64::from(self.unit);
        self.remainder %= u64::from(self.unit);
        let whole = u32::try_from(whole).unwrap_or(u32::MAX);
        let counted = match &mut self.hystart {
            Some(hystart) => hystart.counts(whole),
            None => whole,
        };
        if counted > 0 {
            self.cc.grow(&mut self.window, ack, counted);
        }
    }

    /// An acknowledgement told how many packets were marked of those it delivered.
    pub(super) fn on_echo(&mut self, una: u32, next: u32, delivered: u32, marked: u32) {
        self.cc.on_echo(una, next, delivered, marked);
    }

    /// A packet sent at `at` was lost or marked; says whether recovery begins.
    pub(super) fn on_congestion(&mut self, now: Instant, at: Instant, signal: Signal) -> bool {
        // Each mark has its own answer there (`steer`), and does not stand for a loss.
        let heard = signal == Signal::Mark && self.counts_marks;
        if heard || self.is_before_recovery(at) {
            return false;
        }
        self.recovery = Some(now);
        let before = self.window.cwnd;
        let of_loss = match signal {
            Signal::Loss => self.cc.ssthresh_of_loss(before),
            Signal::Mark => None,
        };
        let ssthresh = of_loss.unwrap_or_else(|| self.cc.ssthresh(before));
        if self.episode == Episode::None {
            self.episode = Episode::Recovery;
        }
        self.episode_began = now;
        if self.is_steered() {
            return true;
        }
        self.window.ssthresh = ssthresh;
        self.window.cwnd = self.window.ssthresh.max(MIN_WINDOW);
        // RFC 9002 counts bytes: what was earned of the next datagram is not lost.
        let earned = u64::from(self.window.cnt) * u64::from(self.window.cwnd);
        let earned = earned / u64::from(before.max(1));
        self.window.cnt = u32::try_from(earned).unwrap_or(u32::MAX);
        true
    }

    /// Nothing came through for long (RFC 9002 §7.6.2).
    pub(super) fn on_persistent(&mut self, now: Instant, next: u32) {
        self.window.cwnd = MIN_WINDOW;
        self.recovery = None;
        self.episode = Episode::Loss;
        self.episode_began = now;
        self.cc.on_timeout(now, next);
    }
}

/// The 1 ms tick of controllers.
pub(super) const fn tick(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// A token bucket (RFC 9002 §7.7).
#[derive(Clone, Debug)]
struct Pacer {
    burst: u64,
    tokens: u64,
    filled: Instant,
}

impl Pacer {
    /// Adds the tokens that have come since, so many bytes in so many nanoseconds.
    fn fill(&mut self, now: Instant, (bytes, nanos): (u64, u64)) {
        let (rate, round) = (u128::from(bytes), u128::from(nanos));
        let passed = now.since(self.filled).as_nanos();
        let tokens = u128::from(passed) * rate / round + u128::from(self.tokens);
        self.tokens = u64::try_from(tokens).map_or(self.burst, |tokens| tokens.min(self.burst));
        self.filled = now;
    }

    /// When there will be `size` tokens; `None`: now.
    fn wait(&self, now: Instant, (bytes, nanos): (u64, u64), size: u64) -> Option<Instant> {
        let (rate, round) = (u128::from(bytes), u128::from(nanos));
        let missing = size.checked_sub(self.tokens).filter(|&n| n > 0)?;
        let wait = (u128::from(missing) * round).div_ceil(rate);
        Some(now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cc::CcKind;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn congestion(max_datagram: u16, pacing: bool) -> Congestion {
        Congestion::new(&Params {
            cc: CcKind::Reno,
            max_datagram,
            pacing,
            ..Params::default()
        })
    }

    #[test]
    fn a_window_answers_once_a_round_to_loss() {
        let mut congestion = congestion(1_200, false);
        assert!(congestion.on_congestion(MS(100), MS(50), Signal::Loss));
        assert_eq!(congestion.window.cwnd, 5);
        assert!(!congestion.on_congestion(MS(120), MS(100), Signal::Loss));
        assert!(congestion.on_congestion(MS(130), MS(101), Signal::Loss));
        assert_eq!(congestion.window.cwnd, 2);
        assert!(congestion.on_congestion(MS(150), MS(140), Signal::Loss));
        assert_eq!(congestion.window.cwnd, 2, "kMinimumWindow");
    }

    #[test]
    fn pacing_sends_five_quarters_of_a_window_a_round_after_a_burst() {
        let mut congestion = congestion(1_000, true);
        let (srtt, mut now, mut sent) = (Duration::from_millis(100), MS(1), Vec::new());
        while now < MS(101) {
            match congestion.paced_until(now, srtt) {
                None => {
                    congestion.on_sent(1_000);
                    sent.push(now);
                }
                Some(at) => now = at,
            }
        }
        assert_eq!(congestion.next_departure(MS(98), srtt), MS(105));
        assert_eq!(congestion.next_departure(MS(200), srtt), MS(200));
        // Ten at once, then one each 8 ms.
        assert!(sent[..10].iter().all(|&at| at == MS(1)));
        let gaps = sent[9..].windows(2).map(|w| w[1].since(w[0]).as_micros());
        assert_eq!(gaps.collect::<Vec<_>>(), [8_000; 12]);
    }
}
