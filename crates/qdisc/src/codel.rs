//! CoDel: Controlled Delay.
//!
//! # Source
//!
//! RFC 8289 §5, pseudo-code `dequeue` and `dodequeue`; marking as in Linux.
//!
//! # Law
//!
//! A packet's *sojourn* is the time it spent in the queue. When every packet leaving
//! for one `interval` had a sojourn of at least `target`, the queue is *standing*
//! and CoDel signals: it marks the packet if it may, else drops it. While the queue
//! stays standing, signal `count + 1` follows signal `count` after
//!
//! ```text
//! interval / sqrt(count)
//! ```
//!
//! so that the signal rate grows linearly in time, which is what a window that falls
//! as the square root of the loss rate needs.
//!
//! Names are the RFC's; "drop" in them means "signal".
//!
//! # Differences from Linux (`include/net/codel_impl.h`)
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | `now >= first_above_time`, as the RFC | `>` | a signal comes one packet later on a tie |
//! | correctly rounded square root | one Q0.16 Newton step a signal | gap 2 is 50 ms, not 71; 2.6 % short at 3; within 0.4 % from 10 |
//! | 64-bit nanoseconds | 32-bit ticks of 1024 ns | none in states younger than 36 minutes |
//! | drops until the law is met | 6.1 too; that later kernels stop at 256 a dequeue is unchecked | after a long idle gap only |
//! | no `ce_threshold` | optional | none at its default |

use sojourn_net::{Bytes, Duration, Instant, Packet};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc};
use crate::fifo::Fifo;

/// Parameters of [`Codel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// Acceptable standing delay (RFC 8289 `TARGET`).
    pub target: Duration,
    /// A little more than the longest common RTT (RFC 8289 `INTERVAL`).
    pub interval: Duration,
    /// A backlog this small is never signalled (RFC 8289 `maxpacket`: the MTU).
    pub max_packet: Bytes,
    /// Packets the buffer holds before it drops arrivals.
    pub limit: usize,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelParams {
    /// What RFC 8289 recommends for the Internet and, for `limit`, what Linux uses.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            max_packet: Bytes(1_514),
            limit: 1_000,
            ecn: false,
        }
    }
}

/// A FIFO governed by CoDel.
#[derive(Debug)]
pub struct Codel<P> {
    params: CodelParams,
    fifo: Fifo<P>,
    control: Control,
}

impl<P: Packet> Codel<P> {
    /// An empty queue.
    pub const fn new(params: CodelParams) -> Self {
        Self {
            params,
            fifo: Fifo::new(),
            control: Control::new(),
        }
    }
}

impl<P: Packet> Qdisc<P> for Codel<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets < self.params.limit {
            self.fifo.push(now, pkt);
        } else {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.control.dequeue(&self.params, &mut self.fifo, now, obs)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

/// The control loop, apart from the buffer, so that FQ-CoDel can keep one per flow.
#[derive(Clone, Debug)]
pub struct Control {
    /// When the delay will have been at or above target for an interval.
    first_above_time: Option<Instant>,
    /// When the next signal is due, or was due when we last stopped signalling.
    drop_next: Instant,
    /// Signals since signalling began.
    count: u32,
    /// `count` as signalling last began.
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// The state of a queue that has never been congested.
    pub const fn new() -> Self {
        Self {
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// RFC 8289 `dequeue`: takes the next packet, signalling congestion if it is due.
    pub fn dequeue<P: Packet>(
        &mut self,
        params: &CodelParams,
        fifo: &mut Fifo<P>,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let (mut pkt, ok_to_drop) = self.pop(params, fifo, now)?;

        if !ok_to_drop {
            self.dropping = false;
            return Some(pkt);
        }
        if !self.dropping {
            self.start(params, now);
            if !signal(params, &mut pkt, now, obs) {
                obs.on_drop(now, pkt, DropReason::Aqm);
                pkt = self.pop(params, fifo, now)?.0;
            }
            return Some(pkt);
        }
        // The backlog may be so large that several signals are due at once. Each turn
        // removes a packet, so the loop ends with the queue.
        while self.dropping && self.drop_next <= now {
            self.count += 1;
            if signal(params, &mut pkt, now, obs) {
                self.drop_next = self.drop_next + div_sqrt(params.interval, self.count);
                return Some(pkt);
            }
            obs.on_drop(now, pkt, DropReason::Aqm);
            let (next, ok_to_drop) = self.pop(params, fifo, now)?;
            pkt = next;
            if ok_to_drop {
                self.drop_next = self.drop_next + div_sqrt(params.interval, self.count);
            } else {
                self.dropping = false;
            }
        }
        Some(pkt)
    }

    /// RFC 8289 `dodequeue`: the next packet, and whether the queue is standing.
    fn pop<P: Packet>(
        &mut self,
        params: &CodelParams,
        fifo: &mut Fifo<P>,
        now: Instant,
    ) -> Option<(P, bool)> {
        let Some((pkt, sojourn)) = fifo.pop(now) else {
            self.first_above_time = None;
            self.dropping = false;
            return None;
        };
        if sojourn < params.target || fifo.backlog().bytes <= params.max_packet {
            self.first_above_time = None;
            return Some((pkt, false));
        }
        let above_at = *self.first_above_time.get_or_insert(now + params.interval);
        Some((pkt, above_at <= now))
    }

    /// Begins signalling at the rate that last held the queue, if that was recent.
    fn start(&mut self, params: &CodelParams, now: Instant) {
        let gained = self.count - self.last_count;
        let recent = now < self.drop_next + params.interval.times(16);
        self.count = if recent && gained > 1 { gained } else { 1 };
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = now + div_sqrt(params.interval, self.count);
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// Marks `pkt` if that is allowed and possible; says whether it did.
fn signal<P: Packet>(
    params: &CodelParams,
    pkt: &mut P,
    now: Instant,
    obs: &mut dyn Observer<P>,
) -> bool {
    let marked = params.ecn && pkt.mark_ce();
    if marked {
        obs.on_mark(now, pkt, MarkReason::Aqm);
    }
    marked
}

/// `interval / sqrt(count)`, to the nearest nanosecond.
///
/// IEEE 754 fixes `sqrt` and division to the last bit, so every machine agrees.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "exact below 2^53 ns (104 days); the quotient is non-negative and no larger"
)]
fn div_sqrt(interval: Duration, count: u32) -> Duration {
    Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()).round() as u64)
}
