//! Selects the round-trip time that explains the load best, and forecasts the load with it.

use sojourn_net::{Duration, Instant};

use super::growth::{Growth, LEAST, exact};
use super::history::History;
use super::integer::IntegerLaw;

/// What a growth of the load must look like; times in ns.
#[derive(Clone, Debug)]
pub(super) struct Law {
    pub(super) rounds: usize,
    pub(super) growth_min: f64,
    pub(super) growth_max: f64,
    pub(super) consistency: f64,
    pub(super) significance: f64,
    pub(super) persistence: f64,
    pub(super) hold: f64,
    pub(super) dominance: f64,
    pub(super) full: f64,
    pub(super) mark: f64,
    /// Transmission time of a full packet.
    pub(super) packet: f64,
}

/// The law in the numbers of a profile.
#[derive(Clone, Debug)]
pub(super) enum Rules {
    Real(Law),
    Integer(IntegerLaw),
}

impl Rules {
    /// A full packet takes this long from now on.
    fn set_packet(&mut self, packet: Duration) {
        match self {
            Self::Real(law) => law.packet = nanos(packet),
            Self::Integer(law) => law.set_packet(packet),
        }
    }

    /// Number of samples of a window of this number of slots from which the growth is used.
    fn enough(&self, window: u32) -> u32 {
        match self {
            Self::Real(law) => whole(law.persistence * f64::from(window)).max(2),
            Self::Integer(law) => law.enough(window),
        }
    }

    /// How long a candidate stays active, in ns.
    fn hold(&self, rtt: Duration) -> u64 {
        match self {
            Self::Real(law) => scaled(rtt, law.hold),
            Self::Integer(law) => law.hold(rtt),
        }
    }

    /// How long packets are marked, in ns.
    fn mark(&self, stretched: Duration) -> u64 {
        match self {
            Self::Real(law) => scaled(stretched, law.mark),
            Self::Integer(law) => law.mark(stretched),
        }
    }

    /// Whether `rtt` may be chosen while `top` is active.
    fn counts(&self, rtt: Duration, top: Duration) -> bool {
        match self {
            Self::Real(law) => nanos(rtt) * law.dominance >= nanos(top),
            Self::Integer(law) => law.counts(rtt, top),
        }
    }

    /// Whether a load is too small to have grown from one that says anything.
    fn is_little(&self, load: u64) -> bool {
        match self {
            Self::Real(law) => law.is_little(exact(load)),
            Self::Integer(law) => law.is_little(load),
        }
    }

    /// The growth up to the last slot of `history`, if it is exponential, steady and no chance.
    #[inline]
    pub(super) fn growth(&self, candidate: usize, history: &History) -> Option<Growth> {
        match self {
            Self::Real(law) => law.growth(candidate, history),
            Self::Integer(law) => law.growth(candidate, history),
        }
    }

    /// Whether the load one round trip ahead will be `full` or more.
    pub(super) fn fills(&self, growth: &Growth, rtt: Duration) -> bool {
        match self {
            Self::Real(law) => law.fills(growth, rtt),
            Self::Integer(law) => law.fills(growth, rtt),
        }
    }
}

/// A round-trip time that the traffic might have.
#[derive(Clone, Debug)]
struct Candidate {
    rtt: Duration,
    /// Slots with growth, less two for each without.
    pass: u32,
    /// Number of samples from which the growth is used.
    enough: u32,
    active_until: Instant,
}

/// A signal is due: what is on its way will fill the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    /// The round-trip time that the growth has.
    pub(super) rtt: Duration,
    /// The same with the queue of the moment.
    pub(super) stretched: Duration,
}

/// All candidates.
#[derive(Clone, Debug)]
pub(super) struct Forecaster {
    rules: Rules,
    candidates: Vec<Candidate>,
    rearm: Instant,
    tracking_until: Instant,
}

impl Forecaster {
    /// Of these round-trip times, ascending, in slots of this length.
    pub(super) fn new(rules: Rules, rtts: &[Duration], slot: Duration) -> Self {
        let candidates = rtts.iter().map(|&rtt| Candidate {
            rtt,
            pass: 0,
            enough: rules.enough(window_slots(rtt, slot)),
            active_until: Instant::ZERO,
        });
        Self {
            candidates: candidates.collect(),
            rules,
            rearm: Instant::ZERO,
            tracking_until: Instant::ZERO,
        }
    }

    /// Other rules for the same candidates, in slots of this length.
    pub(super) fn change(&mut self, rules: Rules, slot: Duration) {
        for candidate in &mut self.candidates {
            candidate.enough = rules.enough(window_slots(candidate.rtt, slot));
        }
        self.rules = rules;
    }

    /// Whether a growth is being followed, or was signalled and not answered yet.
    #[inline]
    pub(super) fn tracks(&self, now: Instant) -> bool {
        now < self.tracking_until
    }

    /// The longest candidate that is active at `now`, and the last load as a fraction of it.
    pub(super) fn active(&self, now: Instant, history: &History) -> Option<(Duration, f64)> {
        let slot = history.next().checked_sub(1)?;
        let mut candidates = self.candidates.iter().enumerate().rev();
        let (n, active) = candidates.find(|(_, candidate)| candidate.active_until >= now)?;
        let load = exact(history.load(n, slot)) / nanos(active.rtt);
        Some((active.rtt, load))
    }

    /// Looks at the load at `now`, the end of the last slot of `history`.
    pub(super) fn end_slot(
        &mut self,
        now: Instant,
        history: &History,
        backlog: u32,
    ) -> Option<Signal> {
        // The longest window holds all the others.
        let longest = self.candidates.len() - 1;
        if self
            .rules
            .is_little(history.load(longest, history.next() - 1))
        {
            self.skip(1);
            return None;
        }
        let mut top = None;
        let mut best: Option<(Growth, Duration)> = None;
        // The longest first, for an active one has a say in which shorter ones count.
        for (n, candidate) in self.candidates.iter_mut().enumerate().rev() {
            let growth = self.rules.growth(n, history);
            candidate.pass = match growth {
                Some(_) => candidate.pass.saturating_add(1),
                None => candidate.pass.saturating_sub(2),
            };
            let growth = growth.filter(|_| candidate.pass >= candidate.enough);
            if growth.is_some() {
                let hold = Duration::from_nanos(self.rules.hold(candidate.rtt));
                candidate.active_until = later(now, hold);
                self.tracking_until = self.tracking_until.max(candidate.active_until);
            }
            if top.is_none() && candidate.active_until >= now {
                top = Some(candidate.rtt);
            }
            let counts = |top| self.rules.counts(candidate.rtt, top);
            if let Some(growth) = growth
                && top.is_some_and(counts)
                && best.is_none_or(|(best, _)| growth.spread <= best.spread)
            {
                best = Some((growth, candidate.rtt));
            }
        }
        let (growth, rtt) = best?;
        if now < self.rearm || !self.rules.fills(&growth, rtt) {
            return None;
        }
        let stretched = rtt + Duration::from_nanos(u64::from(backlog));
        self.rearm = later(now, stretched.times(2));
        self.tracking_until = self.tracking_until.max(self.rearm);
        Some(Signal { rtt, stretched })
    }

    /// How long packets are marked after a signal.
    pub(super) fn mark(&self, signal: &Signal) -> Duration {
        Duration::from_nanos(self.rules.mark(signal.stretched))
    }

    /// Looks at a link anew on which a full packet takes this long.
    pub(super) fn restart(&mut self, packet: Duration) {
        self.rules.set_packet(packet);
        for candidate in &mut self.candidates {
            candidate.pass = 0;
            candidate.active_until = Instant::ZERO;
        }
    }

    /// Passes over `slots` slots in which nothing grew.
    pub(super) fn skip(&mut self, slots: u64) {
        let less = u32::try_from(slots.saturating_mul(2)).unwrap_or(u32::MAX);
        for candidate in &mut self.candidates {
            candidate.pass = candidate.pass.saturating_sub(less);
        }
    }
}

impl Law {
    /// The growth up to the last slot of `history`, if it is exponential, steady and no chance.
    pub(super) fn growth(&self, candidate: usize, history: &History) -> Option<Growth> {
        let mut slot = history.next().checked_sub(1)?;
        let newest = exact(history.load(candidate, slot));
        if self.is_little(newest) {
            return None;
        }
        let mut load = newest;
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        let mut z = 0.0;
        for _ in 0..self.rounds {
            slot = history.round_before(candidate, slot)?;
            let earlier = exact(history.load(candidate, slot));
            if earlier < exact(LEAST) * self.packet {
                return None;
            }
            let growth = load / earlier;
            if growth < self.growth_min || growth > self.growth_max {
                return None;
            }
            least = least.min(growth);
            most = most.max(growth);
            // Counts of packets, the difference in units of its standard deviation by chance.
            z += (load - earlier) / ((load + earlier) * self.packet).sqrt();
            load = earlier;
        }
        let growth = Growth {
            load: newest,
            total: newest / load,
            spread: most / least,
        };
        (growth.spread <= self.consistency && z >= self.significance).then_some(growth)
    }

    /// Whether a load is too small to have grown from one that says anything.
    fn is_little(&self, load: f64) -> bool {
        load < self.growth_min * exact(LEAST) * self.packet
    }

    /// Whether the load one round trip ahead will be `full` or more: `g L >= full R`, where `g` is
    /// the mean growth of a round but at most 2. Compared as powers, which need no root.
    pub(super) fn fills(&self, growth: &Growth, rtt: Duration) -> bool {
        let needed = self.full * nanos(rtt) / growth.load;
        let (mut power, mut doubled) = (1.0, 1.0_f64);
        for _ in 0..self.rounds {
            power *= needed;
            doubled *= 2.0;
        }
        growth.total.min(doubled) >= power
    }
}

/// The candidates from `least` to `most`, `per_octave` to each doubling.
pub(super) fn candidates(least: Duration, most: Duration, per_octave: u32) -> Vec<Duration> {
    let ratio = root_of_two(per_octave);
    let mut rtts = Vec::new();
    let mut octave = nanos(least);
    while octave <= nanos(most) {
        let mut rtt = octave;
        for _ in 0..per_octave {
            if rtt <= nanos(most) {
                rtts.push(Duration::from_nanos(rounded(rtt)));
            }
            rtt *= ratio;
        }
        octave *= 2.0;
    }
    rtts
}

/// The slots of a window as long as `rtt`.
pub(super) fn window_slots(rtt: Duration, slot: Duration) -> u32 {
    let slots = (rtt.as_nanos() + slot.as_nanos() / 2) / slot.as_nanos();
    u32::try_from(slots.max(1)).unwrap_or(u32::MAX)
}

/// The `n`-th root of 2 by bisection, the same on every machine.
fn root_of_two(n: u32) -> f64 {
    let (mut low, mut high) = (1.0, 2.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let mut power = 1.0;
        for _ in 0..n {
            power *= middle;
        }
        if power < 2.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

pub(super) fn later(now: Instant, by: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(by.as_nanos()))
}

pub(super) fn scaled(time: Duration, factor: f64) -> u64 {
    rounded(nanos(time) * factor)
}

pub(super) fn nanos(time: Duration) -> f64 {
    exact(time.as_nanos())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; no time is negative"
)]
fn rounded(nanos: f64) -> u64 {
    nanos.round() as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; no count is negative"
)]
fn whole(slots: f64) -> u32 {
    slots.ceil() as u32
}
