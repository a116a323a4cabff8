//! BLUE: a marking probability that follows losses and idle times, not the length of the queue.
//!
//! # Source
//!
//! Feng, Shin, Kandlur and Saha, "The BLUE active queue management algorithms", 2002, as later
//! works quote its law; the constants of its authors' ns code, as ported to ns-3.
//!
//! # Algorithm
//!
//! Each arrival is signalled with probability `p`. Overflow raises `p` by `increment`, an idle link
//! lowers it by `decrement`, each at most once per `freeze`. The queue settles where overflow and
//! idle times balance.
//!
//! Pseudo-code: `docs/qdiscs/blue.md`.
//!
//! # Reconstruction
//!
//! How often an idle link lowers `p` is not in the texts that we could read: here once when it
//! finds the queue empty and once more for each `freeze` that it stays so.
//!
//! # Differences from the paper
//!
//! | here | paper | effect |
//! |---|---|---|
//! | `freeze` is fixed | may be drawn at random | queues in a row may swing together |
//! | only what does not fit raises `p` | a backlog above a threshold may do so too | set `limit` |
//! | one time of last change | two in the authors' code | a rise delays the next fall |

use sojourn_net::{Duration, Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{Kind, LinkFacts, Params, Profile, Retention, parameters};
use crate::parts::fifo::Fifo;

parameters! {
    /// Parameters of [`Blue`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BlueParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "Sojourn default; the paper sets it per experiment";
        /// Increase of the probability when a packet does not fit.
        pub increment: f64 = 0.002_5 => fraction(0, 1),
            "Feng et al. 2002: delta_1; value of the authors' ns code as ported to ns-3";
        /// Decrease of the probability when the link is idle.
        pub decrement: f64 = 0.000_25 => fraction(0, 1),
            "Feng et al. 2002: delta_2; value of the authors' ns code as ported to ns-3";
        /// Minimum time between two changes of the probability.
        pub freeze: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "Feng et al. 2002: freeze_time; value of the authors' ns code as ported to ns-3";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "Feng et al. 2002: packets are marked or dropped; Sojourn default";
    }
}

impl Params for BlueParams {
    type Queue<P: Packet> = Blue<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "blue",
        class: Some("Blue"),
        summary: "Signals with a probability that rises on loss and falls during idle time \
                  (reconstructed)",
        source: "Feng, Shin, Kandlur and Saha 2002, as cited in later publications",
        reconstruction: Some(
            "the interval between decreases on an idle link is Sojourn's choice; see \
             docs/qdiscs/blue.md",
        ),
        profiles: &[Profile::Paper],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn build<P: Packet>(&self, _link: &LinkFacts, rng: Rng) -> Blue<P> {
        Blue::new(*self, rng)
    }

    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Keeps)
    }

    /// The probability stays, and the oldest packets above a lower limit are dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Blue<P>,
        now: Instant,
        _link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        // The time that it has been idle counts as it was.
        if std::mem::take(&mut queue.idle) {
            queue.end_idling(now);
        }
        queue.params = *self;
        queue.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO governed by BLUE.
#[derive(Clone, Debug)]
pub struct Blue<P> {
    params: BlueParams,
    fifo: Fifo<P>,
    rng: Rng,
    p: f64,
    changed: Option<Instant>,
    idle: bool,
}

impl<P: Packet> Blue<P> {
    /// An empty queue, made at the origin of time.
    pub const fn new(params: BlueParams, rng: Rng) -> Self {
        Self {
            params,
            fifo: Fifo::new(),
            rng,
            p: 0.0,
            changed: None,
            idle: false,
        }
    }

    fn on_loss(&mut self, now: Instant) {
        if self.is_thawed(now) {
            self.p = (self.p + self.params.increment).min(1.0);
            self.changed = Some(now);
        }
    }

    fn on_idle(&mut self, now: Instant) {
        if self.is_thawed(now) {
            self.p = (self.p - self.params.decrement).max(0.0);
            self.changed = Some(now);
        }
    }

    fn is_thawed(&self, now: Instant) -> bool {
        let freeze = self.params.freeze;
        self.changed
            .is_none_or(|changed| now.since(changed) > freeze)
    }

    /// Lowers the probability for the time that the link has been idle since it last changed.
    fn end_idling(&mut self, now: Instant) {
        self.idle = false;
        let Some(changed) = self.changed else {
            return;
        };
        let freezes = now.since(changed).as_nanos() / self.params.freeze.as_nanos().max(1);
        #[expect(clippy::cast_precision_loss, reason = "a probability; 53 bits suffice")]
        let fall = freezes as f64 * self.params.decrement;
        self.p = (self.p - fall).max(0.0);
        self.changed = Some(
            changed + Duration::from_nanos(freezes.saturating_mul(self.params.freeze.as_nanos())),
        );
    }
}

impl<P: Packet> Qdisc<P> for Blue<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        if self.idle {
            self.end_idling(now);
        }
        if self.fifo.backlog().packets >= self.params.limit {
            self.on_loss(now);
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if self.rng.uniform() < self.p {
            if !self.params.ecn || !pkt.mark_ce() {
                return obs.on_drop(now, pkt, DropReason::Aqm);
            }
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let popped = self.fifo.pop_stamped();
        if popped.is_none() && !self.idle {
            self.on_idle(now);
            self.idle = true;
        }
        popped.map(|(pkt, _)| pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![Statistic::real("prob", self.p)]
    }
}

#[cfg(test)]
mod tests;
