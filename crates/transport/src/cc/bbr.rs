//! BBR, version 1: the window and the rate follow a model of the path, not its losses.
//!
//! # Source
//!
//! Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and
//! draft-cardwell-iccrg-bbr-congestion-control-00, as Linux 6.1 has it (its behaviour specified from
//! measurements and facts, see `docs/tcp.md`).
//!
//! # Law
//!
//! ```text
//! bw       largest delivery rate of 10 rounds          BDP = bw min_rtt
//! min_rtt  smallest RTT of 10 s
//! rate     0.99 gain bw
//! cwnd     gain BDP + what comes in lumps + 3 units
//!
//! STARTUP    gains 2.89, until three rounds brought less than 25 % more bandwidth
//! DRAIN      rate gain 0.35, until a BDP is in flight
//! PROBE_BW   rate gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, about a min_rtt each; window gain 2
//! PROBE_RTT  when min_rtt is 10 s old: a window of 4 for 200 ms and a round
//! ```
//!
//! A loss takes what was lost from the window for one round; afterwards it is as before. A mark is not
//! answered at all, as in Linux.
//!
//! Gains are in 256ths, bandwidths in segments/µs times 2^24, as in Linux.

mod aggregation;
pub(super) mod filter;
mod policer;

use sojourn_net::{Instant, Rng};

use super::{Ack, CongestionControl, Episode, Progress, Start, Window};
use crate::segment::MSS;
use aggregation::Aggregation;
use filter::MaxFilter;
use policer::Policer;

/// Binary places of a bandwidth.
const UNIT_BW_SHIFT: u32 = 24;
/// A gain of 1.
const UNIT: u64 = 256;
/// 2 / ln 2: the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = 739;
const DRAIN_GAIN: u64 = 88;
const CWND_GAIN: u64 = 512;
/// The gains of `PROBE_BW`.
const CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// Rounds the bandwidth is the maximum of.
const BW_ROUNDS: u32 = 10;
/// Growth of bandwidth that keeps STARTUP going.
const FULL_BW_GROWTH: u64 = 320;
/// Rounds without it until the pipe is full.
const FULL_BW_ROUNDS: u8 = 3;
/// How long a minimum RTT stands, and how long `PROBE_RTT` lasts at least, in ms.
const MIN_RTT_MS: u64 = 10_000;
const PROBE_RTT_MS: u64 = 200;
/// The least window.
const MIN_CWND: u32 = 4;
/// Most that is added for lumps, as time at the bandwidth, in µs.
const MOST_LUMP_MICROS: u64 = 100_000;
/// Most bytes in one unit, and most segments.
const MAX_UNIT: u64 = 65_300;
const MAX_UNIT_SEGMENTS: u64 = 127;
/// From this pacing rate on (1.2 Mbit/s) a unit has two segments.
const PAIRS_FROM: u64 = 150_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The BBR congestion controller, version 1.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Bbr {
    rng: Rng,
    mode: Mode,
    bw: MaxFilter,
    /// In µs; `u32::MAX` before the first.
    min_rtt: u32,
    /// Tick at which it was taken.
    min_rtt_at: u64,
    rounds: u32,
    /// The round ends when a segment sent after so many deliveries is delivered.
    round_end: u64,
    round_began: bool,
    full_bw: u64,
    full_bw_rounds: u8,
    full: bool,
    phase: usize,
    phase_began: Instant,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// In bytes/s.
    pacing_rate: u64,
    /// Window before a recovery or `PROBE_RTT`.
    prior_cwnd: u32,
    ssthresh: u32,
    episode: Episode,
    /// For the first round of a recovery no more is sent than was delivered.
    conserving: bool,
    timed_out: bool,
    undone: bool,
    idle_restart: bool,
    /// Tick after which `PROBE_RTT` may end.
    probe_rtt_until: Option<u64>,
    probe_rtt_round_done: bool,
    lumps: Aggregation,
    policer: Policer,
}

impl Bbr {
    /// The controller of a connection whose choices of phase come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed).fork("bbr"),
            mode: Mode::Startup,
            bw: MaxFilter::new(BW_ROUNDS),
            min_rtt: u32::MAX,
            min_rtt_at: 0,
            rounds: 0,
            round_end: 0,
            round_began: false,
            full_bw: 0,
            full_bw_rounds: 0,
            full: false,
            phase: 0,
            phase_began: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0,
            prior_cwnd: 0,
            ssthresh: Window::UNSET,
            episode: Episode::None,
            conserving: false,
            timed_out: false,
            undone: false,
            idle_restart: false,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            lumps: Aggregation::default(),
            policer: Policer::default(),
        }
    }

    fn bandwidth(&self) -> u64 {
        self.policer.bw().unwrap_or_else(|| self.bw.get())
    }

    fn rate(bw: u64, gain: u64) -> u64 {
        let bytes = (u128::from(bw) * u128::from(MSS) * u128::from(gain)) >> 8;
        let rate = (bytes * (1_000_000 / 100 * 99)) >> UNIT_BW_SHIFT;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn pace(&mut self, bw: u64, gain: u64) {
        let rate = Self::rate(bw, gain);
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Segments that leave together.
    fn unit(&self) -> u64 {
        let least = if self.pacing_rate < PAIRS_FROM { 1 } else { 2 };
        let by_rate = (self.pacing_rate >> 10).min(MAX_UNIT) / u64::from(MSS);
        by_rate.max(least).min(MAX_UNIT_SEGMENTS)
    }

    /// `gain` times what the path holds at bandwidth `bw`, rounded up.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        if self.min_rtt == u32::MAX {
            return 10;
        }
        let w = u128::from(bw) * u128::from(self.min_rtt) * u128::from(gain) / u128::from(UNIT);
        let segments = w.div_ceil(1 << UNIT_BW_SHIFT);
        u64::try_from(segments).unwrap_or(u64::MAX)
    }

    /// Room for what lies in units on both hosts; an even number, for delayed acknowledgements.
    fn with_budget(&self, segments: u64) -> u64 {
        let even = (segments + 3 * self.unit()).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBw && self.phase == 0;
        even + if probing { 2 } else { 0 }
    }

    fn inflight(&self, gain: u64) -> u64 {
        self.with_budget(self.bdp(self.bw.get(), gain))
    }

    /// What will be in the network when the next unit may leave.
    fn in_flight_at_departure(&self, now: Instant, p: &Progress, in_flight: u32) -> u64 {
        let wait = p.next_departure.since(now).as_micros();
        let delivered = (self.bandwidth() * wait) >> UNIT_BW_SHIFT;
        let unit = if self.pacing_gain > UNIT {
            self.unit()
        } else {
            0
        };
        (u64::from(in_flight) + unit).saturating_sub(delivered)
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let undisturbed = self.episode == Episode::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    fn probe_bw(&mut self, delivered_at: Instant) {
        self.mode = Mode::ProbeBw;
        // Any phase but that which drains.
        let drawn = usize::try_from(self.rng.below(7)).expect("below 7");
        self.phase = (CYCLE.len() - drawn) % CYCLE.len();
        self.phase_began = delivered_at;
    }

    fn update_bw(&mut self, p: &Progress) {
        self.round_began = false;
        let Some(sample) = p.sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = p.delivered;
            self.rounds += 1;
            self.round_began = true;
            self.conserving = false;
        }
        self.look_for_policer(p, p.newly_lost > 0);
        let bw = (sample.delivered << UNIT_BW_SHIFT) / sample.interval_micros.max(1);
        if !sample.app_limited || bw >= self.bw.get() {
            self.bw.take(self.rounds, bw);
        }
    }

    fn look_for_policer(&mut self, p: &Progress, lost: bool) {
        let probing = self.mode == Mode::ProbeBw;
        if self.policer.take(p, lost, self.round_began, probing) {
            self.probe_bw(p.delivered_at);
        }
    }

    fn update_phase(&mut self, now: Instant, p: &Progress) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let long = p.delivered_at.since(self.phase_began).as_micros() > u64::from(self.min_rtt);
        let over = if self.pacing_gain == UNIT {
            long
        } else {
            let in_flight = self.in_flight_at_departure(now, p, p.prior_in_flight);
            if self.pacing_gain > UNIT {
                long && (p.newly_lost > 0 || in_flight >= self.inflight(self.pacing_gain))
            } else {
                long || in_flight <= self.inflight(UNIT)
            }
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_began = p.delivered_at;
        }
    }

    fn check_full(&mut self, p: &Progress) {
        let app_limited = p.sample.is_some_and(|s| s.app_limited);
        if self.full || !self.round_began || app_limited {
            return;
        }
        let bw = self.bw.get();
        if bw >= self.full_bw * FULL_BW_GROWTH / UNIT {
            self.full_bw = bw;
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.full = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    fn check_drained(&mut self, now: Instant, p: &Progress) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            let bdp = self.inflight(UNIT);
            self.ssthresh = u32::try_from(bdp).unwrap_or(Window::UNSET);
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(now, p, p.in_flight) <= self.inflight(UNIT)
        {
            self.probe_bw(p.delivered_at);
        }
    }

    /// Returns whether sending is held down on purpose.
    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        let expired = ack.tick > self.min_rtt_at + MIN_RTT_MS;
        if let Some(rtt) = ack.rtt_micros
            && (rtt < self.min_rtt || (expired && !p.ack_delayed))
        {
            self.min_rtt = rtt;
            self.min_rtt_at = ack.tick;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(window.cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        let probing = self.mode == Mode::ProbeRtt;
        if probing {
            if self.probe_rtt_until.is_none() {
                if p.in_flight <= MIN_CWND {
                    self.probe_rtt_until = Some(ack.tick + PROBE_RTT_MS);
                    self.probe_rtt_round_done = false;
                    self.round_end = p.delivered;
                }
            } else {
                self.probe_rtt_round_done |= self.round_began;
                if self.probe_rtt_round_done {
                    self.end_probe_rtt(window, ack.tick, p.delivered_at);
                }
            }
        }
        if p.newly_delivered > 0 {
            self.idle_restart = false;
        }
        probing
    }

    fn end_probe_rtt(&mut self, window: &mut Window, tick: u64, delivered_at: Instant) {
        if self.probe_rtt_until.is_none_or(|until| tick <= until) {
            return;
        }
        self.min_rtt_at = tick;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full {
            self.probe_bw(delivered_at);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.bw().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    fn set_cwnd(&mut self, window: &mut Window, p: &Progress) {
        if p.newly_delivered > 0 {
            window.cwnd = self.next_cwnd(window.cwnd, p);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }

    fn next_cwnd(&mut self, cwnd: u32, p: &Progress) -> u32 {
        let mut cwnd = cwnd;
        if p.newly_lost > 0 {
            cwnd = cwnd.saturating_sub(p.newly_lost).max(1);
        }
        let delivered = p.in_flight + p.newly_delivered;
        let before = std::mem::replace(&mut self.episode, p.episode);
        if p.episode == Episode::Recovery && before != Episode::Recovery {
            self.conserving = true;
            self.round_end = p.delivered;
            cwnd = delivered;
        } else if before != Episode::None && p.episode == Episode::None {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        if self.conserving {
            return cwnd.max(delivered).max(MIN_CWND);
        }
        let bw = self.bandwidth();
        let mut target = self.bdp(bw, self.cwnd_gain);
        if self.full {
            let most = (bw * MOST_LUMP_MICROS) >> UNIT_BW_SHIFT;
            target += u64::from(self.lumps.extra()).min(most);
        }
        let target = u32::try_from(self.with_budget(target)).unwrap_or(Window::UNSET);
        if self.full {
            cwnd = (cwnd + p.newly_delivered).min(target);
        } else if cwnd < target || p.delivered < 10 {
            cwnd += p.newly_delivered;
        }
        cwnd.max(MIN_CWND)
    }
}

impl CongestionControl for Bbr {
    fn on_acked(&mut self, _window: &mut Window, _ack: &Ack) {}

    fn grow(&mut self, _window: &mut Window, _ack: &Ack, _acked: u32) {}

    fn ssthresh(&mut self, cwnd: u32) -> u32 {
        self.save_cwnd(cwnd);
        self.ssthresh
    }

    fn on_timeout(&mut self, _now: Instant, _snd_nxt: u32) {
        self.episode = Episode::Loss;
        self.full_bw = 0;
        self.timed_out = true;
    }

    fn steers(&self) -> bool {
        true
    }

    fn begin(&mut self, window: &Window, start: &Start) {
        self.min_rtt = start.rtt_micros;
        self.min_rtt_at = start.tick;
        self.round_end = start.delivered;
        self.lumps.begin(start.now);
        let bw = (u64::from(window.cwnd) << UNIT_BW_SHIFT) / u64::from(start.pacing_rtt_micros());
        self.pacing_rate = Self::rate(bw, HIGH_GAIN);
    }

    fn steer(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        if std::mem::take(&mut self.timed_out) {
            self.round_began = true;
            self.look_for_policer(p, true);
        }
        if std::mem::take(&mut self.undone) {
            self.policer.reset(p);
        }
        self.update_bw(p);
        if p.sample.is_some() && p.newly_delivered > 0 {
            let bw = self.bandwidth();
            let round = self.round_began;
            self.lumps
                .take(p.delivered_at, p.newly_delivered, bw, round, window.cwnd);
        }
        self.update_phase(ack.now, p);
        self.check_full(p);
        self.check_drained(ack.now, p);
        let held_down = self.update_min_rtt(window, ack, p);
        self.update_gains();
        self.pace(self.bandwidth(), self.pacing_gain);
        self.set_cwnd(window, p);
        held_down
    }

    fn on_undo(&mut self) {
        self.full_bw = 0;
        self.full_bw_rounds = 0;
        self.undone = true;
    }

    fn on_restart(&mut self, window: &mut Window, now: Instant, tick: u64) {
        self.idle_restart = true;
        self.lumps.begin(now);
        match self.mode {
            Mode::ProbeBw => self.pace(self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.end_probe_rtt(window, tick, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }

    fn least_unit(&self) -> u32 {
        if self.pacing_rate < PAIRS_FROM { 1 } else { 2 }
    }
}

#[cfg(test)]
mod tests;
