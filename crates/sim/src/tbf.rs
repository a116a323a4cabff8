//! A token bucket that lets no packet pass before there are tokens for all of it.
//!
//! # Source
//!
//! Linux `net/sched/sch_tbf.c`, behaviour only: `tokens -= length; if (tokens >= 0) send`.
//!
//! # Law
//!
//! ```text
//! tokens   min(burst, tokens + rate * time)
//! a packet of S leaves when S <= tokens, and takes S
//! ```
//!
//! In any time *t* no more than the burst and *t* at the rate leaves. Tokens are kept as the time that they last at
//! the rate. The packet that is next has left its queue, as the classless queues of Linux hand it out when `tbf`
//! looks at it (`qdisc_peek_dequeued`).

use sojourn_net::{Duration, Instant};

use crate::packet::Packet;

/// The bucket, and the packet that waits for it.
#[derive(Debug)]
pub(crate) struct Tbf {
    /// How long a full bucket lasts.
    depth: Duration,
    /// When the bucket is, or was, full.
    full_at: Instant,
    /// The next packet, and how long the tokens it takes last.
    held: Option<(Packet, Duration)>,
}

impl Tbf {
    /// A full bucket that lasts `depth`.
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
    pub(crate) const fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// A packet is next.
    pub(crate) const fn hold(&mut self, pkt: Packet, cost: Duration) {
        self.held = Some((pkt, cost));
    }

    /// The packet that waits, if there are tokens for it; otherwise when there will be.
    pub(crate) fn release(&mut self, now: Instant) -> Result<Packet, Instant> {
        let (pkt, cost) = self.held.expect("a packet was taken before");
        let full_at = self.full_at.max(now) + cost;
        let ready = earlier(full_at, self.depth);
        if ready > now {
            return Err(ready);
        }
        self.full_at = full_at;
        self.held = None;
        Ok(pkt)
    }

    /// The rate changes: `same` gives the time that the tokens of a time last from now on. Returns when the packet
    /// that waits may leave.
    pub(crate) fn change_rate(
        &mut self,
        now: Instant,
        same: impl Fn(Duration) -> Duration,
    ) -> Option<Instant> {
        self.depth = same(self.depth);
        self.full_at = now + same(self.full_at.saturating_since(now));
        let (_, cost) = self.held.as_mut()?;
        *cost = same(*cost).min(self.depth);
        Some(earlier(self.full_at + *cost, self.depth).max(now))
    }
}

/// `time` before `at`.
const fn earlier(at: Instant, time: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(time.as_nanos()))
}
