//! EDCA: contention of four access categories.
//!
//! # Source
//!
//! IEEE 802.11-2007, table 7-37: the default parameters of stations (AIFSN, least and
//! largest window, TXOP limit by class), which access points have here as well, and the classes of
//! priorities. A priority is the first three bits of the DSCP, as Linux takes it.

use sojourn_net::{Dscp, Duration, Instant, Rng};

use super::phy::{SIFS, SLOT};

/// Attempts at a frame before it is given up (dot11ShortRetryLimit).
pub(super) const MOST_ATTEMPTS: u32 = 7;

/// An access class, the least urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Background,
    BestEffort,
    Video,
    Voice,
}

impl Class {
    pub(super) const ALL: [Self; 4] =
        [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    pub(super) const fn of(dscp: Dscp) -> Self {
        match dscp.number() >> 3 {
            1 | 2 => Self::Background,
            0 | 3 => Self::BestEffort,
            4 | 5 => Self::Video,
            _ => Self::Voice,
        }
    }

    /// Slots that the air must be idle beyond SIFS.
    const fn aifsn(self) -> u64 {
        match self {
            Self::Background => 7,
            Self::BestEffort => 3,
            Self::Video | Self::Voice => 2,
        }
    }

    /// Least and largest contention window.
    const fn windows(self) -> (u32, u32) {
        match self {
            Self::Background | Self::BestEffort => (15, 1_023),
            Self::Video => (7, 15),
            Self::Voice => (3, 7),
        }
    }

    /// How long one may go on; nothing: for one aggregate.
    pub(super) const fn limit(self) -> Duration {
        match self {
            Self::Background | Self::BestEffort => Duration::ZERO,
            Self::Video => Duration::from_micros(3_008),
            Self::Voice => Duration::from_micros(1_504),
        }
    }

    pub(super) fn aifs(self) -> Duration {
        SIFS + SLOT.times(self.aifsn())
    }
}

/// One class of one radio.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) class: Class,
    /// It has something to send.
    pub(super) active: bool,
    /// When it began to, if the air was idle.
    since: Instant,
    /// Slots still to wait.
    backoff: u32,
    window: u32,
    /// Since the last success.
    pub(super) attempts: u32,
}

impl Contender {
    pub(super) fn new(class: Class) -> Self {
        Self {
            class,
            active: false,
            since: Instant::ZERO,
            backoff: 0,
            window: class.windows().0,
            attempts: 0,
        }
    }

    /// It has something to send from now on. Who comes while somebody sends draws a number of
    /// slots, unless some are left of the last.
    pub(super) fn activate(&mut self, now: Instant, busy: bool, rng: &mut Rng) {
        if self.active {
            return;
        }
        self.active = true;
        self.since = now;
        if busy && self.backoff == 0 {
            self.draw(rng);
        }
    }

    /// When it will send if the air, idle since `idle`, stays idle. All radios wait on one grid of
    /// slots, so that radios that send in the same slot collide.
    pub(super) fn start(&self, idle: Instant) -> Instant {
        let counted = idle + self.class.aifs() + SLOT.times(self.backoff.into());
        let late = self.since.saturating_since(idle + SIFS).as_nanos();
        let slots = late.div_ceil(SLOT.as_nanos());
        counted.max(idle + SIFS + SLOT.times(slots))
    }

    /// The air, idle since `idle`, is taken by another at `now`: the slot boundaries that have passed count, from the one
    /// at the end of AIFS to that of `now` (802.11-2007, 9.9.1.3). Who came in that time and had none to wait for draws,
    /// as one who comes while somebody sends.
    pub(super) fn freeze(&mut self, idle: Instant, now: Instant, rng: &mut Rng) {
        if self.active && self.backoff == 0 && self.since >= idle {
            self.draw(rng);
            return;
        }
        let first = idle + self.class.aifs();
        if first <= now {
            let slots = now.since(first).as_nanos() / SLOT.as_nanos();
            let passed = u32::try_from(slots + 1).unwrap_or(u32::MAX);
            self.backoff = self.backoff.saturating_sub(passed);
        }
    }

    /// What it sent has arrived.
    pub(super) fn succeed(&mut self, rng: &mut Rng) {
        self.attempts = 0;
        self.window = self.class.windows().0;
        self.draw(rng);
    }

    /// Its transmission collided; returns whether it gives up.
    pub(super) fn fail(&mut self, rng: &mut Rng) -> bool {
        self.attempts += 1;
        let (least, most) = self.class.windows();
        let gives_up = self.attempts >= MOST_ATTEMPTS;
        if gives_up {
            self.attempts = 0;
            self.window = least;
        } else {
            self.window = (2 * self.window + 1).min(most);
        }
        self.draw(rng);
        gives_up
    }

    fn draw(&mut self, rng: &mut Rng) {
        let drawn = rng.below(u64::from(self.window) + 1);
        self.backoff = u32::try_from(drawn).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_first_three_bits() {
        let of = |name: &str| Class::of(name.parse().expect("a DSCP"));
        assert_eq!(of("CS1"), Class::Background);
        assert_eq!(of("CS0"), Class::BestEffort);
        assert_eq!(of("AF41"), Class::Video);
        assert_eq!(of("EF"), Class::Video);
        assert_eq!(of("CS6"), Class::Voice);
    }

    #[test]
    fn who_comes_while_the_air_is_idle_waits_for_a_slot_only() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut contender = Contender::new(Class::BestEffort);
        contender.activate(at(1_000), false, &mut Rng::new(1));
        // SIFS and 110 slots after zero: 1,006 µs.
        assert_eq!(contender.start(at(0)), at(16 + 110 * 9));
        // The air became idle later: AIFS from then.
        assert_eq!(contender.start(at(2_000)), at(2_000 + 16 + 27));
        contender.backoff = 10;
        assert_eq!(contender.start(at(2_000)), at(2_000 + 16 + 27 + 90));
        let mut rng = Rng::new(1);
        // Boundaries at 0, 9, 18 and 27 µs after AIFS; none before its end.
        contender.freeze(at(2_000), at(2_000 + 16 + 27 + 35), &mut rng);
        assert_eq!(contender.backoff, 6);
        contender.freeze(at(2_000), at(2_000 + 16 + 26), &mut rng);
        assert_eq!(contender.backoff, 6);
    }

    #[test]
    fn who_is_forestalled_in_its_first_wait_draws() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut rng = Rng::new(1);
        let drawn = (0..100).map(|_| {
            let mut contender = Contender::new(Class::BestEffort);
            contender.activate(at(2_010), false, &mut rng);
            contender.freeze(at(2_000), at(2_020), &mut rng);
            contender.backoff
        });
        let sum: u32 = drawn.sum();
        // 0 to 15, 7.5 on average.
        assert!((650..850).contains(&sum), "{sum}");
    }

    #[test]
    fn windows_double_until_it_gives_up() {
        let mut rng = Rng::new(1);
        let mut contender = Contender::new(Class::BestEffort);
        let mut windows = Vec::new();
        while !contender.fail(&mut rng) {
            windows.push(contender.window);
        }
        assert_eq!(windows, [31, 63, 127, 255, 511, 1_023]);
        assert_eq!(contender.window, 15);
    }
}
