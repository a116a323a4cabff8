//! Spreading transmissions over time.
//!
//! # Source
//!
//! Linux 6.1's internal pacing (its facts; what `sch_fq` does for a socket that asks for a rate):
//! an exact timer, no wheel.
//!
//! # Law
//!
//! A unit of n bytes moves the next departure to `n / rate` later. A sender that comes late, since
//! nothing allowed it to send before, gets the time lost back, but at most half of what the unit
//! takes. The first ten segments of a connection go unpaced.

use sojourn_net::{Duration, Instant};

use super::Sender;
use super::rate::Sampler;
use crate::segment::Segment;

/// How many segments go out before pacing begins.
const UNPACED: u64 = 10;

/// What a paced connection keeps besides.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// Nothing leaves before.
    next: Instant,
    /// There is something to send at `next`.
    waiting: bool,
    /// Present if the controller wants delivery rates.
    pub(super) sampler: Option<Sampler>,
}

impl Pacer {
    pub(super) fn new(sampled: bool) -> Self {
        Self {
            next: Instant::ZERO,
            waiting: false,
            sampler: sampled.then(Sampler::default),
        }
    }

    /// `bytes` leave at `now`; `rate` in bytes/s.
    fn charge(&mut self, now: Instant, bytes: u64, rate: u64) {
        let length = bytes * 1_000_000_000 / rate.max(1);
        let begin = self.next.max(now);
        let credit = begin.since(self.next).as_nanos();
        self.next = begin + Duration::from_nanos(length - credit.min(length / 2));
    }

    /// When the next unit may leave.
    pub(super) fn next(&self, now: Instant) -> Instant {
        self.next.max(now)
    }
}

impl Sender {
    /// Whether pacing forbids to send now; if so the timer will call.
    #[inline]
    pub(super) fn held_back(&mut self, now: Instant) -> bool {
        let Some(pacer) = &mut self.pacer else {
            return false;
        };
        pacer.waiting = pacer.next > now;
        pacer.waiting
    }

    /// When the pacing timer is due.
    #[inline]
    pub(super) fn departure(&self) -> Option<Instant> {
        let pacer = self.pacer.as_deref()?;
        pacer.waiting.then_some(pacer.next)
    }

    /// A unit of `bytes` has left.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, bytes: u64) {
        if let Some(pacer) = &mut self.pacer {
            if self.counters.sent >= UNPACED {
                pacer.charge(now, bytes, self.pacing_rate);
            } else {
                pacer.next = pacer.next.max(now);
            }
        }
    }

    /// When this connection last sent, or, paced, could have sent again.
    pub(super) fn last_departure(&self) -> Instant {
        self.pacer.as_ref().map_or(self.last_sent, |p| p.next)
    }

    pub(super) fn on_departure(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(pacer) = &mut self.pacer {
            pacer.waiting = false;
        }
        if self.board.lost > self.board.resent {
            self.resend_lost(now, out);
        }
        self.send_new(now, out);
    }

    pub(super) fn sampler(&mut self) -> Option<&mut Sampler> {
        self.pacer.as_mut()?.sampler.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_takes_its_length_at_the_rate() {
        let mut p = Pacer::new(false);
        p.charge(Instant::ZERO, 1_448, 1_448_000);
        assert_eq!(p.next, Instant::from_millis(1));
        p.charge(Instant::from_millis(1), 2_896, 1_448_000);
        assert_eq!(p.next, Instant::from_millis(3));
    }

    #[test]
    fn lateness_is_made_up_for_by_half_a_unit_at_most() {
        let late = |micros: u64| {
            let mut p = Pacer::new(false);
            p.charge(Instant::ZERO, 1_448, 1_448_000);
            let now = Instant::from_millis(1) + Duration::from_micros(micros);
            p.charge(now, 1_448, 1_448_000);
            p.next.since(now).as_micros()
        };
        assert_eq!([0, 200, 500, 90_000].map(late), [1_000, 800, 500, 500]);
    }
}
