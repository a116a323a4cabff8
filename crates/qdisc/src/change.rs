//! Changes of a queue during a run, as by `tc qdisc change` and `tc qdisc replace`.
//!
//! # Source
//!
//! The functions `change` of the Linux 6.1 modules and `qdisc_graft`: what they keep, and what they drop.

use sojourn_net::{Duration, Instant, Packet, Rng};

use crate::contract::{ClassId, DropReason, MarkReason, Observer, Qdisc};
use crate::parameters::{LinkFacts, ParameterError, Retention};
use crate::registry::{AnyQdisc, QdiscSpec};

/// A change of a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueChange {
    /// The queue gets these parameters, and keeps its packets and its state.
    Parameters(QdiscSpec),
    /// This queue takes its place, and its packets are dropped.
    Replacement(QdiscSpec),
}

impl QueueChange {
    /// The queue after the change, with all of its parameters.
    pub const fn spec(&self) -> &QdiscSpec {
        match self {
            Self::Parameters(spec) | Self::Replacement(spec) => spec,
        }
    }
}

impl QdiscSpec {
    /// The change of this queue that a text describes: of the same kind, the parameters that it names change; another
    /// kind replaces the queue.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`], or if the queue cannot change one of the parameters.
    pub fn changed_by(&self, text: &str) -> Result<QueueChange, ParameterError> {
        self.change(self.reparsed(text)?, || Self::parse(text))
    }

    /// As [`QdiscSpec::changed_by`], of a kind and pairs of key and value.
    ///
    /// # Errors
    /// As [`QdiscSpec::changed_by`].
    pub fn changed_by_pairs(
        &self,
        kind: &str,
        pairs: impl Iterator<Item = (String, String)> + Clone,
    ) -> Result<QueueChange, ParameterError> {
        let next = self.reset_pairs(kind, pairs.clone())?;
        self.change(next, || Self::from_pairs(kind, pairs))
    }

    /// The change to `next`, or else the replacement by `other`.
    fn change(
        &self,
        next: Option<Self>,
        other: impl FnOnce() -> Result<Self, ParameterError>,
    ) -> Result<QueueChange, ParameterError> {
        let Some(next) = next else {
            return other().map(QueueChange::Replacement);
        };
        let fail = |why| ParameterError::Conflict {
            kind: self.kind(),
            why,
        };
        Ok(match self.change_to(&next).map_err(fail)? {
            Retention::Keeps => QueueChange::Parameters(next),
            Retention::Drops => QueueChange::Replacement(next),
        })
    }
}

impl<P: Packet> AnyQdisc<P> {
    /// Applies a change. `link` is the link at `now`, and `rng` is for a queue that takes the place of this one.
    #[cold]
    #[inline(never)]
    pub fn apply(
        &mut self,
        now: Instant,
        change: &QueueChange,
        (link, rng): (&LinkFacts, Rng),
        obs: &mut dyn Observer<P>,
    ) {
        match change {
            QueueChange::Parameters(spec) => self.change(now, spec, link, obs),
            QueueChange::Replacement(spec) => {
                let mut next = spec.build(link, rng);
                wait_empty(&mut next, now);
                drop_all(std::mem::replace(self, next), now, obs);
            }
        }
    }
}

/// A queue is built at the origin of time: its timers expire until `now`.
fn wait_empty<P: Packet>(queue: &mut impl Qdisc<P>, now: Instant) {
    while let Some(due) = queue.next_timer().filter(|due| *due <= now) {
        queue.on_timer(due);
        if queue.next_timer() == Some(due) {
            break;
        }
    }
}

/// The longest time that a queue may hold its packets back, in doublings of a microsecond: more than a year.
const DOUBLINGS: u32 = 45;

/// Drops what waits in a queue that is removed, whatever its shaper would hold back.
fn drop_all<P: Packet>(mut queue: impl Qdisc<P>, now: Instant, obs: &mut dyn Observer<P>) {
    let mut obs = Removed { obs };
    // Nobody sees the clock of a queue that is removed, so it may run ahead.
    let mut at = now;
    for doubling in 0..DOUBLINGS {
        while let Some(pkt) = queue.dequeue(at, &mut obs) {
            obs.obs.on_drop(now, pkt, DropReason::Replaced);
        }
        if queue.backlog().packets == 0 {
            return;
        }
        let due = queue.next_timer().filter(|due| *due > at);
        at = due.unwrap_or(at + Duration::from_micros(1 << doubling));
        queue.on_timer(at);
    }
    debug_assert_eq!(queue.backlog().packets, 0, "the queue releases its packets");
}

/// Reports the drops of a queue that is removed.
struct Removed<'o, P> {
    obs: &'o mut dyn Observer<P>,
}

impl<P: Packet> Observer<P> for Removed<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        self.obs.on_class(class);
    }

    fn on_drop(&mut self, now: Instant, pkt: P, _reason: DropReason) {
        self.obs.on_drop(now, pkt, DropReason::Replaced);
    }

    fn on_mark(&mut self, _now: Instant, _pkt: &P, _reason: MarkReason) {}
}

#[cfg(test)]
mod tests;
