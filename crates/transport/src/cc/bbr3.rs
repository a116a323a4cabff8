//! BBR, version 3: probes for bandwidth now and then, and remembers how much in flight was too much.
//!
//! # Source
//!
//! draft-ietf-ccwg-bbr-06 (6 July 2026), §5.
//! Not held against Linux: no released kernel has this version.
//!
//! # Law
//!
//! ```text
//! max_bw   largest delivery rate of this and the previous probing cycle
//! bw       min(max_bw, bw_shortterm)                          BDP = bw min_rtt
//! min_rtt  smallest RTT of 10 s
//! rate     0.99 gain bw          cwnd   gain BDP + what comes in lumps, at most the bounds
//!
//! STARTUP  rate 2.77, window 2, until three rounds brought less than 25 % more bandwidth, or a
//!          round of recovery lost more than 2 % in six places, or two rounds had marks
//! DRAIN    rate 0.5, until a BDP is in flight, three rounds at most
//! DOWN     rate 0.9, until no more than a BDP and 0.85 inflight_longterm is in flight
//! CRUISE   rate 1, until 2 to 3 s or min(BDP, 62 or 63) rounds after DOWN began
//! REFILL   rate 1, one round, the short-term bounds forgotten
//! UP       rate 1.25, window 2.25, until bandwidth grows no more, more than 2 % is lost or one is
//!          marked, or the bound of a probe that lost too much is in flight
//! PROBE_RTT  when the smallest RTT of 5 s is 5 s old: half a BDP for 200 ms and a round
//!
//! probe lost > 2 % or was marked  inflight_longterm = flight when it did, 0.7 of the target at least
//! round with a loss or mark, no probe
//!                                 bw_shortterm, inflight_shortterm = the round's, 0.7 at least
//! ```
//!
//! Gains are in 256ths, bandwidths in segments/µs times 2^24, as in version 1.
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | losses are judged with each acknowledgement, by its rate sample | packet by packet, with the flight of the lost one | a late detection takes the later flight |
//! | three units of budget for what hosts lump together, over QUIC too | there one (§5.5.8.2) | over QUIC at least 6 segments, or 3 ms of the rate, may be in flight, not 4 or 1 ms |
//! | places of losses: acknowledgements that told of some | discontiguous ranges | fewer, so STARTUP ends by loss a little later |
//! | a round with a mark is one with a loss, a mark in a probe is as more than 2 % lost, two rounds in a row with marks end STARTUP | a mark MUST be treated as congestion (§3.7), how is left open | ours: an AQM marks a standing queue, so that no part of marks is tolerated |

mod bounds;
mod cycle;
mod probe_rtt;
mod startup;

use sojourn_net::{Duration, Instant, Rng};

use super::bbr::filter::MaxFilter;
use super::{Ack, CongestionControl, Episode, Progress, RateSample, Start, Window};
use crate::segment::MSS;
use bounds::Bounds;
use cycle::{CwndLimit, Cycle};
use probe_rtt::Least;
use startup::{Congestion, Plateau};

/// Binary places of a bandwidth.
const UNIT_BW_SHIFT: u32 = 24;
/// A gain of 1.
const UNIT: u64 = 256;
const STARTUP_GAIN: u64 = 710;
const DRAIN_GAIN: u64 = 128;
const DOWN_GAIN: u64 = 230;
const UP_GAIN: u64 = 320;
const CWND_GAIN: u64 = 512;
const UP_CWND_GAIN: u64 = 576;
const PROBE_RTT_GAIN: u64 = 128;
/// The rounds lumps are remembered for.
const LUMP_ROUNDS: u32 = 10;
const MIN_CWND: u32 = 4;
/// Most bytes in one unit.
const MAX_UNIT: u64 = 65_300;
/// No bound.
const INFINITE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    const fn probes_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Of rate and window.
    const fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (STARTUP_GAIN, CWND_GAIN),
            Self::Drain => (DRAIN_GAIN, CWND_GAIN),
            Self::Down => (DOWN_GAIN, CWND_GAIN),
            Self::Cruise | Self::Refill => (UNIT, CWND_GAIN),
            Self::Up => (UP_GAIN, UP_CWND_GAIN),
            Self::ProbeRtt => (UNIT, PROBE_RTT_GAIN),
        }
    }
}

/// The BBR congestion controller, version 3.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Bbr3 {
    rng: Rng,
    state: State,
    /// Largest rates of the previous and of this cycle.
    bw_of_cycles: [u64; 2],
    min_rtt: Least,
    /// Of the interval of `PROBE_RTT`.
    probe_rtt_min: Least,
    rounds: u32,
    round_end: u64,
    round_began: bool,
    plateau: Plateau,
    /// The path has been full at some time.
    full: bool,
    drain_began: u32,
    cycle: Cycle,
    bounds: Bounds,
    lumps: MaxFilter,
    lump_began: Instant,
    lump_acked: u64,
    pacing_rate: u64,
    prior_cwnd: u32,
    episode: Episode,
    initial_cwnd: u32,
    limit: CwndLimit,
    congestion: Congestion,
    /// Segments ever lost, as heard last: timers find some between acknowledgements.
    lost: Option<u64>,
    /// This acknowledgement told of marks.
    marked: bool,
    probe_rtt_until: Option<u64>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    undone: bool,
    /// The state a loss made it leave.
    undo_state: Option<State>,
}

impl Bbr3 {
    /// The controller of a connection whose waits come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed).fork("bbr3"),
            state: State::Startup,
            bw_of_cycles: [0; 2],
            min_rtt: Least::NONE,
            probe_rtt_min: Least::NONE,
            rounds: 0,
            round_end: 0,
            round_began: false,
            plateau: Plateau::default(),
            full: false,
            drain_began: 0,
            cycle: Cycle::default(),
            bounds: Bounds::default(),
            lumps: MaxFilter::new(LUMP_ROUNDS),
            lump_began: Instant::ZERO,
            lump_acked: 0,
            pacing_rate: 0,
            prior_cwnd: 0,
            episode: Episode::None,
            initial_cwnd: 0,
            limit: CwndLimit::default(),
            congestion: Congestion::default(),
            lost: None,
            marked: false,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            undone: false,
            undo_state: None,
        }
    }

    fn max_bw(&self) -> u64 {
        self.bw_of_cycles[0].max(self.bw_of_cycles[1])
    }

    fn bw(&self) -> u64 {
        self.max_bw().min(self.bounds.bw_shortterm)
    }

    fn rate(bw: u64, gain: u64) -> u64 {
        let bytes = (u128::from(bw) * u128::from(MSS) * u128::from(gain)) >> 8;
        u64::try_from((bytes * 990_000) >> UNIT_BW_SHIFT).unwrap_or(u64::MAX)
    }

    fn pace(&mut self, gain: u64) {
        let rate = Self::rate(self.bw(), gain);
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        if self.min_rtt.micros == u32::MAX {
            return self.initial_cwnd;
        }
        let w =
            u128::from(bw) * u128::from(self.min_rtt.micros) * u128::from(gain) / u128::from(UNIT);
        u32::try_from(w >> UNIT_BW_SHIFT).unwrap_or(Window::UNSET)
    }

    fn with_budget(&self, segments: u32) -> u32 {
        let unit = (self.pacing_rate / 1_000).min(MAX_UNIT) / u64::from(MSS);
        let unit = u32::try_from(unit.max(2)).unwrap_or(2);
        let probing = if self.state == State::Up { 2 } else { 0 };
        segments.max(3 * unit).max(MIN_CWND) + probing
    }

    fn inflight(&self, bw: u64) -> u32 {
        self.with_budget(self.bdp(bw, UNIT))
    }

    /// What is wanted in flight: a BDP, unless congestion cut the window.
    fn target(&self, cwnd: u32) -> u32 {
        self.bdp(self.bw(), UNIT).min(cwnd)
    }

    const fn begin_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// Whether segments were lost since the last acknowledgement.
    fn hear_losses(&mut self, p: &Progress) -> bool {
        let known = p.lost.saturating_sub(p.newly_lost.into());
        self.lost.replace(p.lost).unwrap_or(known) < p.lost
    }

    /// Congestion began: what it changes may have to be taken back.
    fn save_state(&mut self, cwnd: u32) {
        self.save_cwnd(cwnd);
        self.undo_state = None;
    }

    fn update_round(&mut self, p: &Progress, sample: Option<&RateSample>) {
        self.round_began = sample.is_some_and(|s| s.prior_delivered >= self.round_end);
        if self.round_began {
            self.begin_round(p.delivered);
            self.rounds += 1;
            self.cycle.rounds_since_probe += 1;
        }
    }

    fn update_bw(&mut self, bw: u64, sample: &RateSample) {
        if bw >= self.max_bw() || !sample.app_limited {
            self.bw_of_cycles[1] = self.bw_of_cycles[1].max(bw);
        }
    }

    fn update_lumps(&mut self, p: &Progress, cwnd: u32) {
        let micros = p.delivered_at.saturating_since(self.lump_began).as_micros();
        let mut expected = (u128::from(self.bw()) * u128::from(micros)) >> UNIT_BW_SHIFT;
        if u128::from(self.lump_acked) <= expected {
            self.lump_acked = 0;
            self.lump_began = p.delivered_at;
            expected = 0;
        }
        self.lump_acked += u64::from(p.newly_delivered);
        let extra = u128::from(self.lump_acked).saturating_sub(expected);
        let extra = u64::try_from(extra)
            .unwrap_or(u64::MAX)
            .min(u64::from(cwnd));
        if !self.full && self.round_began {
            // In STARTUP a round is remembered.
            self.lumps = MaxFilter::new(LUMP_ROUNDS);
        }
        self.lumps.take(self.rounds, extra);
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let undisturbed = self.episode == Episode::None && self.state != State::ProbeRtt;
        self.prior_cwnd = if undisturbed {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    fn set_cwnd(&mut self, window: &mut Window, p: &Progress) {
        let before = std::mem::replace(&mut self.episode, p.episode);
        if before != Episode::None && p.episode == Episode::None {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if p.newly_delivered == 0 {
            return;
        }
        let lumps = u32::try_from(self.lumps.get()).unwrap_or(Window::UNSET);
        let (_, gain) = self.state.gains();
        let most = self.with_budget(self.bdp(self.bw(), gain).saturating_add(lumps));
        let grown = window.cwnd.saturating_add(p.newly_delivered);
        if self.full {
            window.cwnd = grown.min(most);
        } else if window.cwnd < most || p.delivered < self.initial_cwnd.into() {
            window.cwnd = grown;
        }
        window.cwnd = window.cwnd.max(MIN_CWND);
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(),
            State::Startup | State::Drain => INFINITE,
        };
        let cap = cap.min(self.bounds.inflight_shortterm).max(MIN_CWND);
        window.cwnd = window.cwnd.min(cap);
    }

    /// A loss turned out to be none: bounds and state as before it.
    fn undo(&mut self, p: &Progress) {
        self.bounds.restore();
        self.plateau = Plateau::default();
        match self.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.refill(p.delivered);
            }
            _ => {}
        }
    }
}

impl CongestionControl for Bbr3 {
    fn on_acked(&mut self, _window: &mut Window, _ack: &Ack) {}

    fn grow(&mut self, _window: &mut Window, _ack: &Ack, _acked: u32) {}

    fn on_echo(&mut self, _snd_una: u32, _snd_nxt: u32, _delivered: u32, marked: u32) {
        self.marked |= marked > 0;
    }

    fn ssthresh(&mut self, cwnd: u32) -> u32 {
        self.save_cwnd(cwnd);
        Window::UNSET
    }

    fn on_timeout(&mut self, _now: Instant, _snd_nxt: u32) {
        self.episode = Episode::Loss;
    }

    fn steers(&self) -> bool {
        true
    }

    fn begin(&mut self, window: &Window, start: &Start) {
        self.initial_cwnd = window.cwnd;
        self.min_rtt = Least {
            micros: if start.measured {
                start.rtt_micros
            } else {
                u32::MAX
            },
            at: start.tick,
        };
        self.probe_rtt_min = self.min_rtt;
        self.round_end = start.delivered;
        self.lump_began = start.now;
        let bw = (u64::from(window.cwnd) << UNIT_BW_SHIFT) / u64::from(start.pacing_rtt_micros());
        self.pacing_rate = Self::rate(bw, STARTUP_GAIN);
    }

    fn steer(&mut self, window: &mut Window, ack: &Ack, p: &Progress) -> bool {
        if std::mem::take(&mut self.undone) {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.undo(p);
        }
        let sample = p.sample.as_ref();
        let bw = sample.map_or(0, |s| {
            (s.delivered << UNIT_BW_SHIFT) / s.interval_micros.max(1)
        });
        let lost = self.hear_losses(p);
        if self.bounds.hear(p, bw, lost, self.marked) {
            self.save_state(window.cwnd);
        }
        self.update_round(p, sample);
        self.limit.hear(self.round_began, window, p);
        if let Some(sample) = sample {
            self.update_bw(bw, sample);
            self.check_startup_marks();
            if self.bounds.round_ended {
                let probing = self.state.accelerates();
                let (max_bw, cwnd) = (self.max_bw(), window.cwnd);
                self.bounds.adapt(probing, max_bw, cwnd);
            }
            self.update_lumps(p, window.cwnd);
            self.check_plateau(bw, sample);
        }
        self.check_startup_loss(p, lost);
        self.check_startup_and_drain(ack.now, p);
        if self.full {
            self.update_cycle(window, ack.now, p, bw);
        }
        let expired = self.update_min_rtt(ack);
        let held_down = self.check_probe_rtt(window, ack, p, expired);
        self.bounds.advance(p, bw);
        let (gain, _) = self.state.gains();
        self.pace(gain);
        self.set_cwnd(window, p);
        self.marked = false;
        held_down
    }

    fn on_undo(&mut self) {
        self.undone = true;
    }

    fn on_restart(&mut self, window: &mut Window, now: Instant, tick: u64) {
        self.idle_restart = true;
        self.lump_began = now;
        self.lump_acked = 0;
        if self.state.probes_bw() {
            self.pace(UNIT);
        } else if self.state == State::ProbeRtt {
            let delivered = self.round_end;
            self.end_probe_rtt(window, now, tick, delivered);
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }
}

/// A wait of 2 to 3 s.
fn probe_wait(rng: &mut Rng) -> Duration {
    Duration::from_micros(2_000_000 + rng.below(1_000_000))
}

#[cfg(test)]
mod tests;
