//! Measures the busy time of the link from the packets that it sends.

use sojourn_net::{Bytes, Duration, Instant, Rate};

use super::forecast::later;

/// A link that sends one packet after another.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    rate: Rate,
    /// When it has sent all that it was given.
    busy_until: Instant,
    /// Transmission time given to it in this slot or, ahead of time, in an earlier one, in ns.
    unaccounted: u64,
}

impl Meter {
    pub(super) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            busy_until: Instant::ZERO,
            unaccounted: 0,
        }
    }

    /// The link begins to send a packet, or will when it has sent the others.
    #[inline]
    pub(super) fn on_departure(&mut self, now: Instant, size: Bytes) {
        let time = self.rate.serialise(size);
        self.busy_until = later(self.busy_until.max(now), time);
        self.unaccounted = self.unaccounted.saturating_add(time.as_nanos());
    }

    /// A slot of this length ends: for how long of it the link was busy, in ns.
    ///
    /// What was given and is not sent at the `end` is what is left until `busy_until`, without a
    /// pause; so a transmission that straddles the edge is split there.
    pub(super) fn end_slot(&mut self, end: Instant, slot: Duration) -> u32 {
        let left = self.busy_until.saturating_since(end).as_nanos();
        let busy = self.unaccounted.saturating_sub(left).min(slot.as_nanos());
        self.unaccounted = left;
        u32::try_from(busy).unwrap_or(u32::MAX)
    }

    /// The time that the link takes for what it sends and for `waiting` bytes, in ns.
    pub(super) fn time_to_send(&self, now: Instant, waiting: Bytes) -> u32 {
        let left = self.busy_until.saturating_since(now).as_nanos();
        let time = self.rate.serialise(waiting).as_nanos();
        u32::try_from(left.saturating_add(time)).unwrap_or(u32::MAX)
    }

    /// Forgets what was sent before `start`.
    pub(super) fn begin_at(&mut self, start: Instant) {
        self.unaccounted = self.busy_until.saturating_since(start).as_nanos();
    }

    /// The link sends at `rate` from now on, except what it is sending; forgets what it sent before.
    pub(super) fn change_rate(&mut self, now: Instant, rate: Rate) {
        self.rate = rate;
        self.begin_at(now);
    }

    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.busy_until <= now
    }
}
