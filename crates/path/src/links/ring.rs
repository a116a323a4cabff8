//! The transmit ring of a device: packets that have left the queue, wait for transmission, and can be neither dropped
//! nor marked any more.
//!
//! A driver takes packets from the queue while the ring has room. The device sends them in order and reports completed
//! ones by interrupts, at the earliest [`RingConfig::coalesce`] after the first of them was sent; only then does
//! their room become free.
//!
//! # Byte queue limits
//!
//! BQL limits the bytes in the ring to what the device needs to stay busy from one interrupt to the next. Linux
//! `lib/dynamic_queue_limits.c`, behaviour only; compared with the code of Linux 6.1.192 in `tests/byte_limit.rs`.
//! At each interrupt:
//!
//! ```text
//! starved   the queue was over the limit, and all that was in the ring has been sent:
//!           limit += bytes both queued and sent since the last interrupt + excess over the limit then
//! busy      the device was busy all the time; what exceeds two completions is slack:
//!           after 1 s, limit -= the least slack in that time
//! ```
//!
//! The driver may exceed the limit by one packet.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant};

use super::Carried;
use crate::config::RingConfig;
use crate::records::Histogram;

/// The packets of a ring, in order, and its interrupts.
#[derive(Debug)]
pub(crate) struct Ring<P> {
    config: RingConfig,
    /// Each with the time at which it left the queue.
    waiting: VecDeque<(P, Instant)>,
    /// When the transmission of the first one ends, if it has begun.
    sent_at: Option<Instant>,
    /// Packets and bytes sent whose completion has not been reported.
    unreported: (u32, u64),
    /// When it will be.
    interrupt_at: Option<Instant>,
    limit: Option<ByteLimit>,
    /// The time for which the link has asked for its next turn.
    due: Option<Instant>,
    /// Time from leaving the queue to the end of transmission, of packets that left the queue from `measured_from` on.
    below: Histogram,
    measured_from: Instant,
}

impl<P: Carried> Ring<P> {
    /// An empty ring.
    pub(crate) fn new(config: RingConfig) -> Self {
        Self {
            config,
            waiting: VecDeque::new(),
            sent_at: None,
            unreported: (0, 0),
            interrupt_at: None,
            limit: config.bql.then(ByteLimit::default),
            due: None,
            below: Histogram::default(),
            measured_from: Instant::ZERO,
        }
    }

    /// Whether the driver takes another packet.
    pub(crate) fn has_room(&self) -> bool {
        let used = self.waiting.len() as u64 + u64::from(self.unreported.0);
        used < u64::from(self.config.packets) && self.limit.as_ref().is_none_or(ByteLimit::permits)
    }

    /// A packet of `size` enters.
    pub(crate) fn push(&mut self, now: Instant, pkt: P, size: Bytes) {
        self.waiting.push_back((pkt, now));
        if let Some(limit) = &mut self.limit {
            limit.on_queued(size.0);
        }
    }

    /// The size of the packet whose transmission begins now, if one does.
    pub(crate) fn next_to_send(&self) -> Option<Bytes> {
        let (pkt, _) = self.waiting.front().filter(|_| self.sent_at.is_none())?;
        Some(pkt.size())
    }

    /// The transmission of the first packet will end at `at`.
    pub(crate) const fn begin(&mut self, at: Instant) {
        self.sent_at = Some(at);
    }

    /// Whether a turn is due. The simulator does not cancel an event if an earlier turn has made it stale.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// Ends the transmission of the first packet, if it is over, and reports completions that are due.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<P> {
        let sent = self.sent_at.take_if(|at| *at <= now);
        let sent = sent.and_then(|_| self.waiting.pop_front());
        if let Some((pkt, entered)) = &sent {
            if *entered >= self.measured_from {
                self.below.record(now.since(*entered).as_nanos());
            }
            self.unreported.0 += 1;
            self.unreported.1 += pkt.size().0;
            self.interrupt_at.get_or_insert(now + self.config.coalesce);
        }
        if self.interrupt_at.take_if(|at| *at <= now).is_some() {
            let (_, bytes) = std::mem::take(&mut self.unreported);
            if let Some(limit) = &mut self.limit {
                limit.on_completed(now, bytes);
            }
        }
        sent.map(|(pkt, _)| pkt)
    }

    /// The time of a turn for which the link has not asked yet, if it must ask for one.
    pub(crate) fn next_turn(&mut self) -> Option<Instant> {
        let next = self.sent_at.into_iter().chain(self.interrupt_at).min()?;
        if self.due.is_some_and(|due| due <= next) {
            return None;
        }
        self.due = Some(next);
        self.due
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.below = Histogram::default();
        self.measured_from = now;
    }

    /// Time in the ring and in transmission.
    pub(crate) const fn below(&self) -> &Histogram {
        &self.below
    }
}

/// How many bytes may be in a ring.
#[derive(Debug, Default)]
pub struct ByteLimit {
    limit: u64,
    /// Bytes that ever entered, and those of the last packet.
    queued: u64,
    last: u64,
    /// Bytes that ever were reported as sent.
    completed: u64,
    /// Of the last report: bytes that had entered by then, those of the last packet, and bytes in excess of the limit.
    before: (u64, u64, u64),
    /// The least slack since the time.
    slack: Option<u64>,
    slack_since: Instant,
}

impl ByteLimit {
    /// Slack is observed for as long before the limit falls (`slack_hold_time`, one second).
    const HOLD: Duration = Duration::from_secs(1);

    /// Whether another packet may enter.
    pub const fn permits(&self) -> bool {
        self.queued - self.completed <= self.limit
    }

    /// The limit in bytes.
    pub const fn bytes(&self) -> u64 {
        self.limit
    }

    /// `bytes` enter.
    pub const fn on_queued(&mut self, bytes: u64) {
        self.queued += bytes;
        self.last = bytes;
    }

    /// An interrupt reports `bytes` as sent.
    pub fn on_completed(&mut self, now: Instant, bytes: u64) {
        let (queued_before, last_before, excess_before) = self.before;
        let inside = self.queued - self.completed;
        let completed = self.completed + bytes;
        let mut excess = inside.saturating_sub(self.limit);
        let all_gone = inside == bytes;
        let gone_before = completed >= queued_before;
        let mut limit = self.limit;
        if (excess > 0 && all_gone) || (excess_before > 0 && gone_before) {
            limit += completed.saturating_sub(queued_before) + excess_before;
            self.restart(now);
        } else if !all_gone && queued_before != self.completed && !gone_before {
            let beyond_twice = (limit + excess_before).saturating_sub(2 * bytes);
            let of_last = match excess_before {
                0 => 0,
                excess => last_before.saturating_sub(excess),
            };
            let slack = beyond_twice.max(of_last);
            let least = self.slack.map_or(slack, |least| least.min(slack));
            self.slack = Some(least);
            if now > self.slack_since + Self::HOLD {
                limit = limit.saturating_sub(least);
                self.restart(now);
            }
        }
        if limit != self.limit {
            self.limit = limit;
            excess = 0;
        }
        self.before = (self.queued, self.last, excess);
        self.completed = completed;
    }

    /// Slack is observed from now on.
    const fn restart(&mut self, now: Instant) {
        self.slack = None;
        self.slack_since = now;
    }
}
