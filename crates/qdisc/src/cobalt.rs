//! COBALT: CoDel and BLUE, alternated.
//!
//! # Source
//!
//! The AQM of CAKE, Linux 6.1 `net/sched/sch_cake.c`, here on a FIFO.
//!
//! # Law
//!
//! CoDel answers delay, BLUE a full buffer. Each packet that leaves is looked at:
//!
//! ```text
//! a signal is due       count > 0 and now >= drop_next
//! sojourn > target      begin signalling if not begun: drop_next = now + gap, count at least 1
//!          (and > 4 transmissions of an MTU)              else end it
//! due and signalling    mark or drop; count += 1; drop_next += gap
//! due and not           count -= 1, drop_next += gap, until it is due no more
//! BLUE                  drop with probability p, even what could be or was just marked
//! count = 0             drop_next = now + interval
//! late, nothing dropped drop_next = now
//! ```
//!
//! with `gap = interval / sqrt(count)`. So `drop_next` serves as CoDel's `first_above_time` too, and
//! `count` decays instead of being forgotten. BLUE's `p` changes once in `target` at most:
//!
//! ```text
//! full     p += increment; signalling begins, a signal is due
//! empty    p -= decrement; signalling ends; count -= 1 if a signal was due
//! ```
//!
//! The last packet may be marked, never dropped.
//!
//! # Differences from CAKE
//!
//! | here | CAKE | effect |
//! |---|---|---|
//! | one FIFO, limited in packets, that drops what does not fit | a queue per flow; the longest loses its oldest when memory is out | without a scheduler all flows share one law |
//! | correctly rounded square root | a table to 15, then a Newton step a change, in Q0.32 | a gap up to 0.1 % longer or shorter |
//! | empty when a departure leaves nothing | when a flow is found empty at its turn | `p` falls one transmission sooner |

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate, Rng};

use crate::codel::div_sqrt;
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::fifo::Fifo;
use crate::parameter::Field;
use crate::registry::Params;
use crate::spec::LinkFacts;

/// Parameters of [`Cobalt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CobaltParams {
    /// Packets the buffer holds.
    pub limit: usize,
    /// Acceptable standing delay.
    pub target: Duration,
    /// A little more than the longest common RTT.
    pub interval: Duration,
    /// By how much BLUE's probability rises when the buffer is full.
    pub increment: f64,
    /// By how much it falls when the buffer is empty.
    pub decrement: f64,
    /// Mark ECN-capable packets instead of dropping them, where CoDel signals.
    pub ecn: bool,
}

impl Default for CobaltParams {
    /// CAKE's at a round trip of 100 ms; the limit is CoDel's.
    fn default() -> Self {
        Self {
            limit: 1_000,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            increment: 1.0 / 256.0,
            decrement: 1.0 / 4_096.0,
            ecn: true,
        }
    }
}

impl Params for CobaltParams {
    type Queue<P: Packet> = Cobalt<P>;

    fn kind(&self) -> &'static str {
        "cobalt"
    }

    fn field(&mut self, key: &str) -> Option<Field<'_>> {
        Some(match key {
            "limit" => Field::Packets(&mut self.limit),
            "target" => Field::Time(&mut self.target),
            "interval" => Field::Time(&mut self.interval),
            "increment" => Field::Fraction(&mut self.increment),
            "decrement" => Field::Fraction(&mut self.decrement),
            "ecn" => Field::Flag(&mut self.ecn),
            _ => return None,
        })
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Cobalt<P> {
        Cobalt::new(self, link.rate, link.mtu, rng)
    }
}

/// A FIFO governed by COBALT.
#[derive(Clone, Debug)]
pub struct Cobalt<P> {
    limit: usize,
    law: Law,
    fifo: Fifo<P>,
    control: Control,
    rng: Rng,
}

impl<P: Packet> Cobalt<P> {
    /// An empty queue on a link of `rate`, if it is constant, for packets of up to `mtu` bytes.
    pub fn new(params: &CobaltParams, rate: Option<Rate>, mtu: Bytes, rng: Rng) -> Self {
        let transmission = rate.map_or(Duration::ZERO, |rate| rate.serialise(mtu));
        Self {
            limit: params.limit,
            law: Law {
                target: params.target,
                short: params.target.max(transmission.times(4)),
                interval: params.interval,
                increment: q32(params.increment),
                decrement: q32(params.decrement),
                ecn: params.ecn,
            },
            fifo: Fifo::new(),
            control: Control::default(),
            rng,
        }
    }
}

impl<P: Packet> Qdisc<P> for Cobalt<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets < self.limit {
            self.fifo.push(now, pkt);
        } else {
            self.control.on_full(&self.law, now);
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn removes a packet, so the loop ends with the queue.
        loop {
            let (mut pkt, sojourn) = self.fifo.pop(now)?;
            let signal = self.control.next_signal(&self.law, sojourn, now);
            let marked = signal && self.law.ecn && pkt.mark_ce();
            if marked {
                obs.on_mark(now, &pkt, MarkReason::Aqm);
            }
            let p = self.control.p;
            let blue = p > 0 && self.rng.next_u32() < p;
            let dropped = blue || signal && !marked;
            self.control.settle(&self.law, dropped, now);
            let last = self.fifo.backlog().packets == 0;
            if last {
                self.control.on_empty(&self.law, now);
            }
            if last || !dropped {
                return Some(pkt);
            }
            obs.on_drop(now, pkt, DropReason::Aqm);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("count", self.control.count.into()),
            Statistic::flag("dropping", self.control.dropping),
            Statistic::real("blue_prob", f64::from(self.control.p) / 4_294_967_296.0),
        ]
    }
}

#[derive(Clone, Debug)]
struct Law {
    target: Duration,
    /// A delay up to this is no standing queue.
    short: Duration,
    interval: Duration,
    /// Of 2^32, as is `decrement`.
    increment: u32,
    decrement: u32,
    ecn: bool,
}

/// The state of both laws; the names are CAKE's.
#[derive(Clone, Debug, Default)]
struct Control {
    count: u32,
    drop_next: Instant,
    dropping: bool,
    /// `now` was past `drop_next` when that was last compared.
    late: bool,
    /// BLUE's probability, of 2^32.
    p: u32,
    /// When it last changed.
    blue_timer: Instant,
}

impl Control {
    /// CoDel: whether the packet that leaves is to carry a signal.
    fn next_signal(&mut self, law: &Law, sojourn: Duration, now: Instant) -> bool {
        let due = self.count > 0 && now >= self.drop_next;
        self.late = now > self.drop_next;
        if sojourn > law.short {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.gap(law);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            self.count = self.count.saturating_add(1);
            self.advance(law, now);
            return true;
        }
        if due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.advance(law, now);
            }
        }
        false
    }

    /// After the verdict: `drop_next` also tells how long the queue has been quiet.
    fn settle(&mut self, law: &Law, dropped: bool, now: Instant) {
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if self.late && !dropped {
            self.drop_next = now;
        }
    }

    fn on_full(&mut self, law: &Law, now: Instant) {
        if now.since(self.blue_timer) > law.target {
            self.p = self.p.saturating_add(law.increment);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    fn on_empty(&mut self, law: &Law, now: Instant) {
        if self.p > 0 && now.since(self.blue_timer) > law.target {
            self.p = self.p.saturating_sub(law.decrement);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.advance(law, now);
        }
    }

    fn advance(&mut self, law: &Law, now: Instant) {
        self.drop_next += self.gap(law);
        self.late = now > self.drop_next;
    }

    /// Time to the next signal; after none as after one.
    fn gap(&self, law: &Law) -> Duration {
        div_sqrt(law.interval, self.count.max(1))
    }
}

/// A probability in units of 2^-32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a probability is not negative"
)]
fn q32(probability: f64) -> u32 {
    (probability * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests;
