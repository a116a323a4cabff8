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
//! A model-based controller (`bbr`, `bbr3`, `prague`) sets window and rate itself, and is always paced.
//! `dctcp` and `prague` use the counts of marks in acknowledgements (RFC 9000 §13.4): both make all packets
//! ECN-capable, `prague` with ECT(1). `dctcp` answers marks as above, by the fraction marked; `prague`
//! answers each.
//!
//! A loss episode, which `bbr` and `bbr3` need, lasts until a packet sent after it began is acknowledged
//! (§7.3.2); only then do they restore their window. With `bbr` each further loss starts this wait again, as in
//! Chromium's `BbrSender::UpdateRecoveryState` and quinn-proto's BBR: an episode ends after a round trip without
//! losses. Otherwise, under random loss, one episode would follow another, each would limit the window to the data
//! in flight in its first round, and the window would never grow. Over TCP, retransmissions extend an episode by a
//! second round. `bbr3` does not limit its window in recovery and follows RFC 9002.
//!
//! The window grows by what is acknowledged of packets sent after recovery began, while it, and
//! not the application, limits sending (§7.8).

use sojourn_net::{Duration, Instant};

use super::params::{Params, SMALLEST_DATAGRAM};
use crate::cc::{
    Ack, Controller, EcnFeedback, Episode, LostSegment, Phase, Progress, Resume, Settled, Setup,
    SlowStartExit, Start, Timeout, Transition, Window,
};

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Burst at a controller's own rate, in datagrams.
const OWN_BURST: u64 = 2;

/// kMinimumWindow, in datagrams.
const MIN_WINDOW: u32 = 2;

/// A congestion signal.
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
    /// HyStart++ or SEARCH, until slow start first ends.
    slow_start: Option<SlowStartExit>,
    /// Bytes acknowledged that have not counted as a datagram yet.
    remainder: u64,
    in_flight: u64,
    /// The controller counts marks, and answers them itself.
    counts_marks: bool,
    /// Packets sent before this have had their answer.
    recovery: Option<Instant>,
    /// What is being repaired, and since when.
    episode: Episode,
    episode_began: Instant,
    /// The episode began with a loss, not a mark.
    repairs_loss: bool,
    /// The window or pacing, not the application, limited sending last.
    pub(super) limited: bool,
    pacer: Option<Pacer>,
}

impl Congestion {
    pub(super) fn new(params: &Params) -> Self {
        // Datagrams are small until the handshake is confirmed.
        let mss = params.max_datagram.min(SMALLEST_DATAGRAM).into();
        let slow_start = params.slow_start();
        let setup = Setup {
            seed: params.seed,
            paced: params.pacing,
            slow_start,
            ..Setup::default()
        };
        let cc = Controller::new(&params.cc, &setup);
        let burst = if cc.is_model_based() {
            OWN_BURST
        } else {
            params.initial_window.into()
        };
        let burst = burst * u64::from(mss);
        let paced = params.pacing || cc.is_model_based();
        Self {
            cc,
            window: Window::new(params.initial_window, mss)
                .with_ssthresh(params.cc.initial_ssthresh(&setup)),
            slow_start: params.cc.slow_start_exit(slow_start, paced),
            remainder: 0,
            in_flight: 0,
            counts_marks: params.cc.kind().needs_accurate_ecn(),
            recovery: None,
            episode: Episode::None,
            episode_began: Instant::ZERO,
            repairs_loss: false,
            limited: false,
            pacer: paced.then_some(Pacer {
                burst,
                tokens: burst,
                filled: Instant::ZERO,
            }),
        }
    }

    /// Datagrams have `mss` bytes from now on, and the window as many of them as before (RFC 9002 §7.2).
    pub(super) fn enlarge(&mut self, mss: u16) {
        let before = self.window.mss();
        self.window.set_mss(mss.into());
        if let Some(pacer) = &mut self.pacer {
            pacer.burst = pacer.burst / u64::from(before) * u64::from(mss);
        }
    }

    /// Whether the controller sets window and rate itself, from a model of the path.
    pub(super) fn is_model_based(&self) -> bool {
        self.cc.is_model_based()
    }

    /// The first data is about to be sent.
    pub(super) fn begin(&mut self, start: &Start) {
        self.cc.on_start(&mut self.window, start);
    }

    /// Data is sent again after a pause.
    pub(super) fn on_restart(&mut self, now: Instant, next: u32) {
        let resume = Resume {
            now,
            tick: tick(now),
            last_sent_tick: tick(now),
            snd_nxt: next,
        };
        self.cc.on_restart(&mut self.window, &resume);
    }

    /// Data is sent while nothing is in flight; the last was sent at `last`. The pause does not count as time
    /// in which the window might have grown.
    pub(super) fn on_resume(&mut self, now: Instant, last: Instant, next: u32) {
        self.cc.on_resume(&Resume {
            now,
            tick: tick(now),
            last_sent_tick: tick(last),
            snd_nxt: next,
        });
    }

    /// A packet of application data was declared lost.
    pub(super) fn on_lost(&mut self, lost: &LostSegment) {
        self.cc.on_lost(&self.window, lost);
    }

    /// Lets a model-based controller set window and rate; returns whether it holds sending down.
    pub(super) fn update_model(&mut self, ack: &Ack, progress: &Progress) -> bool {
        let held_down = self.cc.update(&mut self.window, ack, progress);
        self.window.cwnd = self.window.cwnd.max(MIN_WINDOW);
        held_down
    }

    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    /// Full-sized datagrams in flight, rounded up.
    pub(super) fn in_flight(&self) -> u32 {
        u32::try_from(self.in_flight.div_ceil(self.window.mss().into())).unwrap_or(u32::MAX)
    }

    /// Whether the window has no room for a full-sized datagram.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.in_flight + u64::from(self.window.mss()) > self.window.bytes()
    }

    /// When pacing next lets a datagram out; `None`: now.
    pub(super) fn paced_until(&mut self, now: Instant, srtt: Duration) -> Option<Instant> {
        let rate = self.fill_pacer(now, srtt);
        self.pacing_wait(now, rate)
    }

    /// Gives the pacer what it has earned up to now; returns the pacing rate.
    #[inline]
    pub(super) fn fill_pacer(&mut self, now: Instant, srtt: Duration) -> Rate {
        let rate = self.rate(srtt);
        if let Some(pacer) = &mut self.pacer {
            pacer.fill(now, rate);
        }
        rate
    }

    /// The time at which pacing permits the next datagram; `None`: now. Call `fill_pacer` first; `rate` is what it returned.
    #[inline]
    pub(super) fn pacing_wait(&self, now: Instant, rate: Rate) -> Option<Instant> {
        let pacer = self.pacer.as_ref()?;
        pacer.wait(now, rate, self.window.mss().into())
    }

    /// When pacing will let a datagram out, as things stand.
    pub(super) fn next_departure(&self, now: Instant, srtt: Duration) -> Instant {
        let rate = self.rate(srtt);
        let mut pacer = self.pacer.clone();
        let waits = pacer.as_mut().and_then(|pacer| {
            pacer.fill(now, rate);
            pacer.wait(now, rate, self.window.mss().into())
        });
        waits.unwrap_or(now)
    }

    #[inline]
    fn rate(&self, srtt: Duration) -> Rate {
        let own = self.cc.pacing_rate(self.window.mss());
        match own.filter(|&rate| rate > 0) {
            Some(rate) => (rate, SECOND),
            // 5/4 windows per round trip.
            None => (5 * self.window.bytes(), 4 * srtt.as_nanos().max(1)),
        }
    }

    /// Ack-eliciting packets with this many bytes were sent.
    #[inline]
    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.in_flight += bytes;
        if let Some(pacer) = &mut self.pacer {
            pacer.tokens = pacer.tokens.saturating_sub(bytes);
        }
    }

    /// This many bytes have left the network, or are no longer tracked.
    #[inline]
    pub(super) const fn on_gone(&mut self, bytes: u64) {
        self.in_flight -= bytes;
    }

    /// Whether a packet sent at `at` belongs to a recovery under way.
    #[inline]
    pub(super) fn is_before_recovery(&self, at: Instant) -> bool {
        self.recovery.is_some_and(|recovery| at <= recovery)
    }

    /// Whether the acknowledgement of a packet sent at `at` ends a repair: it was sent since that began.
    #[inline]
    pub(super) fn is_repaired_by(&self, at: Instant) -> bool {
        at > self.episode_began && self.episode != Episode::None
    }

    /// The repair is over; `next` is the next packet number.
    #[cold]
    pub(super) fn end_episode(&mut self, now: Instant, next: u32) {
        if self.episode == Episode::Recovery {
            self.cc.on_reduced(&mut self.window);
        }
        self.episode = Episode::None;
        self.repairs_loss = false;
        self.enter_phase(now, next, Phase::Open);
    }

    /// Tells the controller of a congestion state.
    fn enter_phase(&mut self, now: Instant, next: u32, to: Phase) {
        self.cc.on_phase(&Transition {
            to,
            tick: tick(now),
            snd_nxt: next,
        });
    }

    /// Whether a loss is being repaired: until a packet sent after it was detected is acknowledged.
    #[inline]
    pub(super) const fn repairs_loss(&self) -> bool {
        self.repairs_loss
    }

    /// What is being repaired.
    pub(super) const fn episode(&self) -> Episode {
        self.episode
    }

    /// An acknowledgement settled packets, and covered `bytes` of packets that let the window grow.
    pub(super) fn on_acked(&mut self, ack: &Ack, bytes: u64, settled: Settled) {
        self.cc.on_ack(&mut self.window, ack);
        if let Some(exit) = &mut self.slow_start
            && exit.on_ack(&mut self.window, ack, settled)
        {
            self.slow_start = None;
        }
        if self.is_model_based() || bytes == 0 {
            return;
        }
        if !self.limited {
            self.cc.on_unused(&self.window, ack);
            return;
        }
        self.remainder += bytes;
        let whole = self.window.segments_of(self.remainder);
        self.remainder %= u64::from(self.window.mss());
        let counted = match &mut self.slow_start {
            Some(exit) => exit.counts(whole),
            None => whole,
        };
        if counted > 0 {
            let acked = self.window.bytes_of(counted);
            self.cc.grow(&mut self.window, ack, acked);
        }
    }

    /// An acknowledgement reported how many of the packets it delivered were marked.
    pub(super) fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        self.cc.on_ecn_feedback(feedback);
    }

    /// A packet sent at `at` was lost or marked; returns whether recovery begins. `next` is the next packet number.
    pub(super) fn on_congestion(
        &mut self,
        now: Instant,
        at: Instant,
        next: u32,
        signal: Signal,
    ) -> bool {
        if signal == Signal::Loss && self.cc.needs_round_without_loss() {
            self.extend_episode(now);
        }
        // The controller answers each mark itself (`update_model`): it is not treated as a loss.
        let counted = signal == Signal::Mark && self.counts_marks;
        if counted || self.is_before_recovery(at) {
            return false;
        }
        self.repairs_loss |= signal == Signal::Loss;
        self.recovery = Some(now);
        let before = self.window.cwnd;
        let of_loss = match signal {
            Signal::Loss => self.cc.ssthresh_after_loss(&self.window),
            Signal::Mark => None,
        };
        let ssthresh = of_loss.unwrap_or_else(|| self.cc.ssthresh(&self.window, tick(now)));
        self.extend_episode(now);
        if self.is_model_based() {
            return true;
        }
        self.window.ssthresh = ssthresh;
        let exit = self.slow_start.as_mut();
        let begins = exit.and_then(|exit| exit.on_congestion(&mut self.window));
        let begins = begins.unwrap_or_else(|| self.window.ssthresh.limit());
        self.window.cwnd = begins.max(MIN_WINDOW);
        // RFC 9002 counts bytes: what was earned towards the next datagram is not lost.
        let earned = u64::from(self.window.cnt) * u64::from(self.window.cwnd);
        let earned = earned / u64::from(before.max(1));
        self.window.cnt = u32::try_from(earned).unwrap_or(u32::MAX);
        self.enter_phase(now, next, phase_of(signal));
        true
    }

    /// The episode begins, or lasts until a packet sent from now on is acknowledged.
    fn extend_episode(&mut self, now: Instant) {
        if self.episode == Episode::None {
            self.episode = Episode::Recovery;
        }
        self.episode_began = now;
    }

    /// Persistent congestion (RFC 9002 §7.6.2).
    pub(super) fn on_persistent(&mut self, now: Instant, next: u32) {
        self.window.cwnd = MIN_WINDOW;
        self.recovery = None;
        self.episode = Episode::Loss;
        self.repairs_loss = true;
        self.episode_began = now;
        self.enter_phase(now, next, Phase::Loss);
        self.cc.on_timeout(&Timeout { now, snd_nxt: next });
    }
}

/// The congestion state that a signal leads to.
const fn phase_of(signal: Signal) -> Phase {
    match signal {
        Signal::Loss => Phase::Recovery,
        Signal::Mark => Phase::Cwr,
    }
}

/// The 1 ms tick of controllers.
pub(super) const fn tick(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// A pacing rate: a number of bytes and the nanoseconds they take.
type Rate = (u64, u64);

/// A token bucket (RFC 9002 §7.7).
#[derive(Clone, Debug)]
struct Pacer {
    burst: u64,
    tokens: u64,
    filled: Instant,
}

impl Pacer {
    /// Adds the tokens of the time since the last call, at a rate of `bytes` per `nanos`.
    #[inline]
    fn fill(&mut self, now: Instant, (bytes, nanos): Rate) {
        let passed = now.since(self.filled).as_nanos();
        self.filled = now;
        // The product rarely needs more than 64 bits.
        let earned = if let Some(product) = passed.checked_mul(bytes) {
            product / nanos
        } else {
            let earned = u128::from(passed) * u128::from(bytes) / u128::from(nanos);
            u64::try_from(earned).unwrap_or(u64::MAX)
        };
        self.tokens = self.tokens.saturating_add(earned).min(self.burst);
    }

    /// When there are `size` tokens; `None`: now.
    #[inline]
    fn wait(&self, now: Instant, (bytes, nanos): Rate, size: u64) -> Option<Instant> {
        let missing = size.checked_sub(self.tokens).filter(|&n| n > 0)?;
        let wait = if let Some(product) = missing.checked_mul(nanos) {
            product.div_ceil(bytes)
        } else {
            let wait = (u128::from(missing) * u128::from(nanos)).div_ceil(bytes.into());
            u64::try_from(wait).unwrap_or(u64::MAX)
        };
        Some(now + Duration::from_nanos(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cc::CcKind;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn congestion(max_datagram: u16, pacing: bool) -> Congestion {
        Congestion::new(&Params {
            cc: CcKind::Reno.into(),
            max_datagram,
            pacing,
            ..Params::default()
        })
    }

    #[test]
    fn a_window_answers_once_a_round_to_loss() {
        let mut congestion = congestion(1_200, false);
        assert!(congestion.on_congestion(MS(100), MS(50), 0, Signal::Loss));
        assert_eq!(congestion.window.cwnd, 5);
        assert!(!congestion.on_congestion(MS(120), MS(100), 0, Signal::Loss));
        assert!(congestion.on_congestion(MS(130), MS(101), 0, Signal::Loss));
        assert_eq!(congestion.window.cwnd, 2);
        assert!(congestion.on_congestion(MS(150), MS(140), 0, Signal::Loss));
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
        // Ten at once, then one every 8 ms.
        assert!(sent[..10].iter().all(|&at| at == MS(1)));
        let gaps = sent[9..].windows(2).map(|w| w[1].since(w[0]).as_micros());
        assert_eq!(gaps.collect::<Vec<_>>(), [8_000; 12]);
    }

    #[test]
    fn a_pacer_is_exact_beyond_64_bits() {
        let mut pacer = Pacer {
            burst: 1 << 40,
            tokens: 7,
            filled: Instant::ZERO,
        };
        let rate = (1 << 60, 1 << 62);
        pacer.fill(MS(1_000), rate);
        assert_eq!(pacer.tokens, 250_000_007);
        let due = pacer.wait(MS(1_000), rate, 250_000_007 + (1 << 40));
        assert_eq!(due, Some(MS(1_000) + Duration::from_nanos(1 << 42)));
        pacer.fill(MS(1_000_000), (1 << 62, 1));
        assert_eq!(pacer.tokens, pacer.burst);
    }
}
