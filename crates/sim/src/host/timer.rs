//! The timer events of a flow.

use sojourn_net::Instant;

/// One of the two timer events of a flow. Of a TCP connection they are for the timers of its senders
/// and of its receivers, of a QUIC connection for those of its near and of its far end. Others use
/// the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    Sender,
    Receiver,
}

/// When the earliest pending event for a timer is due, if one is pending. A timer that moves back is
/// looked at when its event comes; later events than this one are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending(Instant);

impl TimerEvent {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Sender, Self::Receiver];
}

impl Pending {
    /// No event is pending. Eight bytes rather than an `Option`'s sixteen: a flow has two.
    pub(crate) const NONE: Self = Self(Instant::MAX);

    /// Whether the event that has come is this one; then none is pending any more.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let is_this = self.0 == now;
        if is_this {
            *self = Self::NONE;
        }
        is_this
    }

    /// The instant before which a timer needs an event of its own.
    #[inline]
    pub(crate) const fn limit(self) -> Instant {
        self.0
    }

    /// Returns when to schedule an event so that one is pending no later than `due`; `None`: there
    /// is one.
    #[inline]
    pub(crate) fn advance(&mut self, due: Instant, now: Instant) -> Option<Instant> {
        (due < self.0).then(|| {
            self.0 = due.max(now);
            self.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_earliest_event_counts() {
        let at = Instant::from_millis;
        let mut pending = Pending::NONE;
        assert_eq!(pending.advance(at(9), at(1)), Some(at(9)));
        assert_eq!(pending.advance(at(9), at(1)), None);
        assert_eq!(pending.advance(at(5), at(1)), Some(at(5)));
        assert!(!pending.take(at(9)));
        assert!(pending.take(at(5)) && !pending.take(at(5)));
        // An overdue timer is handled now.
        assert_eq!(pending.advance(at(2), at(6)), Some(at(6)));
    }
}
