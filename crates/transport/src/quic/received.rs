//! The received packets of a packet-number space, and the schedule of their acknowledgement.
//!
//! # Source
//!
//! RFC 9000 §13.2; frequency: RFC 9000 §13.2.2 or draft-ietf-quic-ack-frequency.

use sojourn_net::{Duration, Instant};

use super::wire::{Ack, RunAck, encodable};
use crate::ranges::RangeSet;

/// Ranges that are kept; older packets count as duplicates (RFC 9000 §13.2.3).
const MAX_KEPT: usize = 64;

/// When ack-eliciting packets are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Ack-eliciting packets per acknowledgement (RFC 9000 §13.2.2: 2): one more than the threshold of
    /// draft-ietf-quic-ack-frequency.
    pub every: u32,
    /// `max_ack_delay`: fewer packets wait at most this long.
    pub delay: Duration,
    /// Acknowledge packets out of order immediately (RFC 9000 §13.2.1): a reordering threshold of 1 in
    /// the draft, else of 0.
    pub reordered: bool,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            every: 2,
            delay: Duration::from_millis(25),
            reordered: true,
        }
    }
}

/// The receiving side of a packet-number space.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    ranges: RangeSet,
    /// Packets below need not be acknowledged again.
    floor: u32,
    largest: Option<(u32, Instant)>,
    /// The next number in order: after the largest ack-eliciting packet.
    expected: u32,
    /// Ack-eliciting packets not yet acknowledged.
    waiting: u32,
    at_once: bool,
    due: Option<Instant>,
    ce: u32,
}

impl Received {
    /// Whether packet `pn` was received before, or is too old to know.
    pub(super) fn is_duplicate(&self, pn: u32) -> bool {
        pn < self.floor || self.ranges.run_of(pn).is_some()
    }

    /// A new packet has been processed; `eliciting`: it is ack-eliciting.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        pn: u32,
        eliciting: bool,
        ce: bool,
        policy: &AckPolicy,
    ) {
        let (start, _) = self.ranges.insert(pn, pn + 1, |_, _| {});
        while self.ranges.len() > MAX_KEPT
            && let Some((_, end)) = self.ranges.pop_first()
        {
            self.floor = end;
        }
        if self.largest.is_none_or(|(largest, _)| largest < pn) {
            self.largest = Some((pn, now));
        }
        self.ce += u32::from(ce);
        if eliciting {
            self.await_ack(now, pn, start, ce, policy);
        }
    }

    /// Whether packet `pn` follows the newest one. Such a packet is no duplicate.
    #[inline]
    pub(super) fn is_next(&self, pn: u32) -> bool {
        self.ranges.end() == Some(pn)
    }

    /// Does what [`Received::on_packet`] does, with the [next](Received::is_next) packet, without a CE mark.
    #[inline]
    pub(super) fn on_next(&mut self, now: Instant, pn: u32, eliciting: bool, policy: &AckPolicy) {
        let run = self.ranges.extend(pn, pn + 1);
        debug_assert!(run.is_some(), "packet {pn} is not the next one");
        let start = run.map_or(pn, |(start, _)| start);
        self.largest = Some((pn, now));
        if eliciting {
            self.await_ack(now, pn, start, false, policy);
        }
    }

    /// Ack-eliciting packet `pn` was received; the run that contains it begins at `start`.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    fn await_ack(&mut self, now: Instant, pn: u32, start: u32, ce: bool, policy: &AckPolicy) {
        self.waiting += 1;
        let gap = pn < self.expected || start > self.expected.max(self.floor);
        self.expected = self.expected.max(pn + 1);
        self.at_once |= ce || gap && policy.reordered || self.waiting >= policy.every;
        self.due.get_or_insert(now + policy.delay);
    }

    /// Whether there is something new to acknowledge.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.waiting > 0
    }

    /// Whether an acknowledgement must be sent now.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.waiting > 0 && (self.at_once || self.due.is_some_and(|due| due <= now))
    }

    /// When an acknowledgement must be sent.
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        if self.at_once { None } else { self.due }
    }

    /// The acknowledgement, with at most `most` ranges; clears what is pending.
    pub(super) fn acknowledge(&mut self, now: Instant, most: usize, ecn: bool) -> Option<Ack> {
        let mut ack = Ack::new(self.delay_micros(now)?, ecn.then_some(self.ce));
        let mut newest = self.ranges.runs_down();
        let first = newest.next()?;
        ack.push(first);
        let mut below = first.0;
        for range in newest.take(most - 1) {
            let Some(range) = encodable(below, range) else {
                break;
            };
            ack.push(range);
            below = range.0;
        }
        self.clear_pending();
        Some(ack)
    }

    /// The acknowledgement, without ECN, if it has a single range; clears what is pending. `None` changes nothing.
    #[inline]
    pub(super) fn acknowledge_run(&mut self, now: Instant) -> Option<RunAck> {
        let run = self.ranges.only()?;
        let delay_micros = self.delay_micros(now)?;
        self.clear_pending();
        Some(RunAck { run, delay_micros })
    }

    /// The age of the newest packet.
    #[inline]
    fn delay_micros(&self, now: Instant) -> Option<u32> {
        let (_, at) = self.largest?;
        let delay = now.since(at).as_micros();
        Some(u32::try_from(delay).unwrap_or(u32::MAX))
    }

    #[inline]
    const fn clear_pending(&mut self) {
        self.waiting = 0;
        self.at_once = false;
        self.due = None;
    }

    /// The peer has received the acknowledgement of everything up to `largest` (RFC 9000 §13.2.4).
    pub(super) fn forget_through(&mut self, largest: u32) {
        self.floor = self.floor.max(largest + 1);
        self.ranges.remove_below(self.floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(received: &mut Received, ms: u64, pn: u32) -> bool {
        let now = Instant::from_millis(ms);
        assert!(!received.is_duplicate(pn));
        received.on_packet(now, pn, true, false, &AckPolicy::default());
        received.is_due(now)
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_single_one_after_25_ms() {
        let mut received = Received::default();
        assert!(!arrive(&mut received, 10, 0));
        assert_eq!(received.due(), Some(Instant::from_millis(35)));
        assert!(received.is_due(Instant::from_millis(35)));
        assert!(arrive(&mut received, 11, 1));
        let ack = received.acknowledge(Instant::from_millis(12), 7, false);
        assert_eq!(ack.unwrap().delay_micros, 1_000);
        assert!(!received.is_pending());
    }

    #[test]
    fn a_packet_behind_a_gap_or_in_one_is_acknowledged_at_once() {
        let mut received = Received::default();
        assert!(!arrive(&mut received, 0, 0));
        assert!(arrive(&mut received, 0, 2));
        let ack = received.acknowledge(Instant::ZERO, 7, false).unwrap();
        assert_eq!(ack.ranges(), [(2, 3), (0, 1)]);
        assert!(!arrive(&mut received, 0, 3), "in order behind an old gap");
        received.acknowledge(Instant::ZERO, 7, false);
        assert!(arrive(&mut received, 0, 1));
        assert!(received.is_duplicate(3));
    }

    #[test]
    fn what_the_peer_knows_or_is_too_old_counts_as_duplicate() {
        let mut received = Received::default();
        for pn in (0..400).step_by(2) {
            arrive(&mut received, 0, pn);
        }
        assert_eq!(received.ranges.len(), MAX_KEPT);
        assert!(received.is_duplicate(1));
        received.forget_through(390);
        assert!(received.is_duplicate(389) && !received.is_duplicate(391));
        let ack = received.acknowledge(Instant::ZERO, 3, false).unwrap();
        assert_eq!(ack.ranges(), [(398, 399), (396, 397), (394, 395)]);
    }
}
