//! Links that do not send at one rate: a token bucket, and a trace of delivery opportunities.
//!
//! # Token bucket
//!
//! A packet waits until there are tokens for all of its bytes. Linux `net/sched/sch_tbf.c`, behaviour only: `tokens -= length; if (tokens >= 0) send`.
//!
//! ```text
//! tokens   min(burst, tokens + rate * time)
//! a packet of S leaves when S <= tokens, and takes S
//! ```
//!
//! In any interval *t*, at most `burst + rate * t` bytes leave. Tokens are stored as the time in which the rate
//! produces them. While the next packet waits for tokens, it stays in its queue if that queue can tell its size without
//! dequeuing it (`pfifo`, `red`, `pie`); the other queues dequeue it, as `qdisc_peek_dequeued` does in Linux.
//!
//! # Trace
//!
//! Unused bytes of an opportunity are lost. As in Mahimahi, the transmission of a packet may span several opportunities,
//! and several packets may share one; a packet that arrives after an opportunity waits for the next.

use sojourn_net::{Bytes, Duration, Instant};

use crate::config::Trace;

/// The bucket, and the packet that waits for tokens.
#[derive(Debug)]
pub(crate) struct Tbf<P> {
    /// Size of the bucket, as time at the rate.
    depth: Duration,
    /// When the bucket is, or was, full.
    full_at: Instant,
    /// The next packet if it has left its queue, and its tokens as time at the rate.
    held: Option<(P, Duration)>,
}

impl<P: Copy> Tbf<P> {
    /// A full bucket of size `depth`.
    pub(crate) const fn new(depth: Duration) -> Self {
        Self {
            depth,
            full_at: Instant::ZERO,
            held: None,
        }
    }

    /// When the bucket is, or was, full.
    pub(crate) const fn full_at(&self) -> Instant {
        self.full_at
    }

    /// Whether a packet waits.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Sets the packet that waits for tokens.
    pub(crate) fn hold(&mut self, pkt: P, cost: Duration) {
        self.held = Some((pkt, cost));
    }

    /// When there will be tokens for a packet that costs `cost`.
    pub(crate) fn ready(&self, now: Instant, cost: Duration) -> Instant {
        earlier(self.full_at.max(now) + cost, self.depth).max(now)
    }

    /// Returns the waiting packet if there are enough tokens, otherwise the time at which there will be.
    pub(crate) fn release(&mut self, now: Instant) -> Result<P, Instant> {
        let (pkt, cost) = self.held.expect("a packet was taken before");
        let ready = self.ready(now, cost);
        if ready > now {
            return Err(ready);
        }
        self.full_at = self.full_at.max(now) + cost;
        self.held = None;
        Ok(pkt)
    }

    /// Changes the rate; `same` converts a time at the old rate to the time at the new rate for the same tokens.
    /// Returns the time at which the packet that has left its queue may be sent.
    pub(crate) fn change_rate(
        &mut self,
        now: Instant,
        same: impl Fn(Duration) -> Duration,
    ) -> Option<Instant> {
        self.depth = same(self.depth);
        self.full_at = now + same(self.full_at.saturating_since(now));
        let (_, cost) = self.held.as_mut()?;
        *cost = same(*cost).min(self.depth);
        let cost = *cost;
        Some(self.ready(now, cost))
    }
}

/// `time` before `at`.
const fn earlier(at: Instant, time: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(time.as_nanos()))
}

/// The position of a link in its trace.
#[derive(Debug)]
pub(crate) struct Traced<P> {
    pub(crate) trace: Trace,
    /// The number of the next opportunity.
    next: u64,
    /// Unused bytes of the current opportunity.
    credit: u64,
    /// The packet in transmission, and its remaining bytes.
    sending: Option<(P, u64)>,
    /// When to call the link next.
    awaited: Option<Instant>,
}

/// What a link whose rate is a trace may do next.
pub(crate) enum TraceStep<P> {
    /// Dequeue a packet.
    Take,
    /// Release this packet; others may follow immediately.
    Leave(P),
    /// Wait until this time.
    Wait(Instant),
}

impl<P: Copy> Traced<P> {
    pub(crate) const fn new(trace: Trace) -> Self {
        Self {
            trace,
            next: 0,
            credit: 0,
            sending: None,
            awaited: None,
        }
    }

    /// What to do at `now`.
    pub(crate) fn step(&mut self, now: Instant) -> TraceStep<P> {
        if self.awaited != Some(now) {
            // No packet was waiting: past opportunities are lost.
            self.credit = 0;
            self.next = self.next.max(self.trace.up_to(now));
        }
        loop {
            if self.credit == 0 {
                let at = self.trace.at(self.next);
                if at > now {
                    self.awaited = Some(at);
                    // A queue that is dequeued ahead of time could not drop packets that wait too long.
                    return TraceStep::Wait(at);
                }
                self.next += 1;
                self.credit = Trace::OPPORTUNITY.0;
            }
            self.awaited = Some(now);
            let Some((pkt, left)) = self.sending.take() else {
                return TraceStep::Take;
            };
            let used = left.min(self.credit);
            self.credit -= used;
            if used == left {
                return TraceStep::Leave(pkt);
            }
            self.sending = Some((pkt, left - used));
        }
    }

    /// Begins to send `pkt`, which counts as `charged` bytes.
    pub(crate) fn begin(&mut self, pkt: P, charged: Bytes) {
        self.sending = Some((pkt, charged.0));
    }

    /// The queue was empty: the rest of the opportunity is lost.
    pub(crate) fn idle(&mut self) {
        self.credit = 0;
        self.awaited = None;
    }
}
