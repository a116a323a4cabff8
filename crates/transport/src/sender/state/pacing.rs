//! The pacing rate and clock of a connection, and its delivery-rate sampler.
//!
//! # Law
//!
//! A burst of n bytes moves the next departure to `n / rate` later. A sender that is late, because
//! nothing allowed it to send before, gets the lost time back, but at most half of what the burst
//! takes. The first ten segments of a connection are not paced. Other profiles than the default give back nothing
//! and may pace from the start.

use sojourn_net::{Duration, Instant};

use crate::delivery_rate::DeliveryRateSampler;
use crate::profile::PacingRules;

/// How fast a connection may send.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    /// In bytes/s; without a pacer it only sets the size of bursts.
    rate: u64,
    /// `None`: the connection is not paced.
    paced: Option<Box<Paced>>,
}

/// The state of a paced connection.
#[derive(Clone, Debug)]
struct Paced {
    pacer: Pacer,
    /// `None`: the controller is not model-based.
    sampler: Option<DeliveryRateSampler>,
}

impl Pacing {
    /// The pacing of a new connection; `sampler`: of a model-based controller.
    /// `rules`: of the profile; `None`: it does not pace.
    pub(crate) fn new(
        paced: bool,
        sampler: Option<DeliveryRateSampler>,
        rules: Option<&PacingRules>,
    ) -> Self {
        let rules = rules.filter(|_| paced || sampler.is_some());
        let paced = rules.map(|rules| {
            Box::new(Paced {
                pacer: Pacer::new(rules),
                sampler,
            })
        });
        Self { rate: 0, paced }
    }

    /// In bytes/s.
    #[inline]
    pub(crate) const fn rate(&self) -> u64 {
        self.rate
    }

    #[inline]
    pub(crate) const fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    #[inline]
    pub(crate) const fn is_paced(&self) -> bool {
        self.paced.is_some()
    }

    #[inline]
    pub(crate) fn is_sampled(&self) -> bool {
        self.paced.as_ref().is_some_and(|p| p.sampler.is_some())
    }

    #[inline]
    pub(crate) fn sampler(&mut self) -> Option<&mut DeliveryRateSampler> {
        self.paced.as_mut()?.sampler.as_mut()
    }

    #[inline]
    pub(crate) fn pacer(&self) -> Option<&Pacer> {
        self.paced.as_ref().map(|paced| &paced.pacer)
    }

    #[inline]
    pub(crate) fn pacer_mut(&mut self) -> Option<&mut Pacer> {
        self.paced.as_mut().map(|paced| &mut paced.pacer)
    }

    /// `bytes` left at `now`, the connection having sent `segments` in all.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, bytes: u64, segments: u64) {
        if let Some(paced) = &mut self.paced {
            paced.pacer.charge(now, bytes, self.rate, segments);
        }
    }

    /// The connection has ended.
    pub(crate) fn stop(&mut self) {
        self.paced = None;
    }
}

/// When the next segment may leave.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Nothing leaves before.
    next: Instant,
    /// There is something to send at `next`.
    waiting: bool,
    /// Segments sent before pacing begins.
    unpaced: u8,
    /// A late departure shortens the next gap by half at most.
    credit: bool,
}

impl Pacer {
    pub(crate) const fn new(rules: &PacingRules) -> Self {
        Self {
            next: Instant::ZERO,
            waiting: false,
            unpaced: rules.unpaced,
            credit: rules.credit,
        }
    }

    /// `bytes` leave at `now` at a rate of `rate` bytes/s, `segments` having been sent in all. As in Linux, a rate of 0
    /// does not pace: BBR has it below a segment in 2^24 µs.
    pub(crate) fn charge(&mut self, now: Instant, bytes: u64, rate: u64, segments: u64) {
        if segments < self.unpaced.into() || rate == 0 {
            self.next = self.next.max(now);
            return;
        }
        let length = bytes * 1_000_000_000 / rate;
        let begin = self.next.max(now);
        let credit = if self.credit {
            begin.since(self.next).as_nanos().min(length / 2)
        } else {
            0
        };
        self.next = begin + Duration::from_nanos(length - credit);
    }

    /// The time of the next departure.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Whether nothing may leave at `now`; if so, [`Pacer::due`] is when something may.
    pub(crate) fn blocks(&mut self, now: Instant) -> bool {
        self.waiting = self.next > now;
        self.waiting
    }

    /// When something that waits may leave.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.then_some(self.next)
    }

    /// The time has come.
    pub(crate) const fn stop_waiting(&mut self) {
        self.waiting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::SenderProfile;

    /// The pacer of a profile.
    fn pacer_of(profile: SenderProfile) -> Pacer {
        Pacer::new(profile.rules().pacing.as_ref().expect("it paces"))
    }

    fn pacer() -> Pacer {
        pacer_of(SenderProfile::Linux)
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut p = pacer();
        p.charge(Instant::from_millis(1), 1_448, 1_448_000, 9);
        assert_eq!(p.next, Instant::from_millis(1));
        p.charge(Instant::from_millis(1), 1_448, 1_448_000, 10);
        assert_eq!(p.next, Instant::from_millis(2));
    }

    #[test]
    fn a_rate_of_nothing_does_not_pace() {
        let mut p = pacer();
        p.charge(Instant::from_millis(1), 1_448, 0, 10);
        assert_eq!(p.next, Instant::from_millis(1));
    }

    #[test]
    fn a_burst_takes_its_length_at_the_rate() {
        let mut p = pacer();
        p.charge(Instant::ZERO, 1_448, 1_448_000, 10);
        assert_eq!(p.next, Instant::from_millis(1));
        p.charge(Instant::from_millis(1), 2_896, 1_448_000, 12);
        assert_eq!(p.next, Instant::from_millis(3));
    }

    #[test]
    fn lateness_is_made_up_for_by_half_a_burst_at_most() {
        let late = |micros: u64| {
            let mut p = pacer();
            p.charge(Instant::ZERO, 1_448, 1_448_000, 10);
            let now = Instant::from_millis(1) + Duration::from_micros(micros);
            p.charge(now, 1_448, 1_448_000, 11);
            p.next.since(now).as_micros()
        };
        assert_eq!([0, 200, 500, 90_000].map(late), [1_000, 800, 500, 500]);
    }
    #[test]
    fn lateness_is_not_made_up_for_before_linux_4_20() {
        let late = |profile| {
            let mut p = pacer_of(profile);
            p.charge(Instant::ZERO, 1_448, 1_448_000, 10);
            let now = Instant::from_nanos(1_400_000);
            p.charge(now, 1_448, 1_448_000, 11);
            p.next.since(now).as_micros()
        };
        assert_eq!(late(SenderProfile::Linux), 600);
        for profile in [
            SenderProfile::Linux419,
            SenderProfile::Linux314,
            SenderProfile::Ns2,
        ] {
            assert_eq!(late(profile), 1_000, "{profile}");
        }
    }
}
