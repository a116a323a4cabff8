//! Marking segments as lost, and choosing which to retransmit.
//!
//! Segments sent once lie on the board in the order of their transmission; retransmissions lie in a
//! queue of their own. Each is judged once, so detection is O(1) per segment for any window.

use std::cmp::Reverse;

use sojourn_net::{Duration, Instant};

use super::{Delivered, EVER_RESENT, LOST, Losses, RESENT, SACKED, Scoreboard};
use crate::clock::micros;

/// A segment just marked as lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Its distance from the first unacknowledged one.
    pub(crate) index: u32,
    /// Segments delivered until now.
    pub(crate) delivered: u64,
    /// Segments ever considered lost, this one included.
    pub(crate) total: u64,
}

/// How far the search for the last waiting segment looks back: its result only sets a timer.
const LOOK_BACK: u32 = 64;

impl Scoreboard {
    /// Marks `seq` as lost: its retransmission if one is in flight, else the original. Tells `on_lost`.
    fn mark_lost(&mut self, losses: &mut Losses, seq: u32, on_lost: &mut impl FnMut(Lost)) {
        let sent = self.get_mut(seq);
        if sent.is(SACKED) {
            return;
        }
        if !sent.is(LOST) {
            sent.flags |= LOST;
            if !sent.is(RESENT) {
                if losses.to_resend.back().is_none_or(|&last| last < seq) {
                    losses.to_resend.push_back(seq);
                } else {
                    losses.to_resend_again.push(Reverse(seq));
                }
            }
            self.lost += 1;
        } else if sent.is(RESENT) {
            sent.flags &= !RESENT;
            losses.to_resend_again.push(Reverse(seq));
            self.resent -= 1;
        } else {
            return;
        }
        self.count_lost(seq, on_lost);
    }

    /// Counts `seq` as lost once more.
    fn count_lost(&mut self, seq: u32, on_lost: &mut impl FnMut(Lost)) {
        self.lost_total += 1;
        on_lost(Lost {
            index: seq - self.una,
            delivered: self.delivered,
            total: self.lost_total,
        });
    }

    /// The lowest segment to retransmit, removed from the queues.
    pub(crate) fn next_to_resend(&mut self) -> Option<u32> {
        let mut losses = self.losses.take()?;
        let found = loop {
            let Some(seq) = losses.pop_lowest() else {
                break None;
            };
            let stale = seq < self.una || {
                let sent = self.get(seq);
                !sent.is(LOST) || sent.is(SACKED | RESENT)
            };
            if !stale {
                break Some(seq);
            }
        };
        self.losses = Some(losses);
        found
    }

    /// Puts back what [`Scoreboard::next_to_resend`] returned and could not be sent.
    pub(crate) fn keep_to_resend(&mut self, seq: u32) {
        self.losses_mut().to_resend_again.push(Reverse(seq));
    }

    /// Every segment counts as in flight again.
    pub(crate) fn unmark_losses(&mut self) {
        self.segments.for_each_mut(|sent| sent.flags &= !LOST);
        self.lost = 0;
        let una = self.una;
        let losses = self.losses_mut();
        losses.to_resend.clear();
        losses.to_resend_again.clear();
        losses.judged = una;
    }

    /// Marks as lost every segment sent before `newest` and longer than `patience` µs before `now`, and tells
    /// `on_lost` of each.
    /// Returns how long, in µs, until the last of the others sent before `newest` is overdue.
    pub(crate) fn mark_overdue(
        &mut self,
        now: Instant,
        newest: Delivered,
        patience: u32,
        mut on_lost: impl FnMut(Lost),
    ) -> Option<u32> {
        let rest = |at: Instant| {
            let age = micros(now.since(at));
            patience.checked_sub(age).filter(|&rest| rest > 0)
        };
        let mut losses = self.losses.take().unwrap_or_default();
        let mut waiting: Option<u32> = None;
        losses.judged = losses.judged.max(self.una);
        while losses.judged < self.next() {
            let seq = losses.judged;
            let sent = *self.get(seq);
            if !sent.is(SACKED | LOST | RESENT) {
                if (sent.at, seq + 1) >= newest {
                    break;
                }
                if rest(sent.at).is_some() {
                    waiting = self.last_waiting(seq, newest.1).and_then(rest);
                    break;
                }
                self.mark_lost(&mut losses, seq, &mut on_lost);
            }
            losses.judged += 1;
        }
        while let Some(&(seq, at)) = losses.resent.front() {
            if self.is_current_resend(seq, at) {
                if (at, seq + 1) >= newest {
                    break;
                }
                if let Some(rest) = rest(at) {
                    waiting = Some(waiting.map_or(rest, |w| w.max(rest)));
                    break;
                }
                self.mark_lost(&mut losses, seq, &mut on_lost);
            }
            losses.resent.pop_front();
        }
        self.losses = Some(losses);
        waiting
    }

    /// Marks as lost every segment below `limit` and, with `resends`, every retransmission before the first transmission
    /// of the highest segment sacked. Tells `on_lost` of each.
    pub(crate) fn mark_below(&mut self, limit: u32, resends: bool, mut on_lost: impl FnMut(Lost)) {
        let highest = self.sacked_end().map(|end| *self.get(end - 1));
        let mut losses = self.losses.take().unwrap_or_default();
        losses.judged = losses.judged.max(self.una);
        while losses.judged < limit.min(self.next()) {
            let seq = losses.judged;
            if !self.get(seq).is(SACKED | LOST | RESENT) {
                self.mark_lost(&mut losses, seq, &mut on_lost);
            }
            losses.judged += 1;
        }
        if let Some(highest) = highest.filter(|sent| resends && !sent.is(EVER_RESENT)) {
            while let Some(&(seq, at)) = losses.resent.front()
                && at <= highest.at
            {
                if self.is_current_resend(seq, at) {
                    self.mark_lost(&mut losses, seq, &mut on_lost);
                }
                losses.resent.pop_front();
            }
        }
        self.losses = Some(losses);
    }

    /// Whether the retransmission of `seq` at `at` is in flight and was not repeated since.
    fn is_current_resend(&self, seq: u32, at: Instant) -> bool {
        seq >= self.una && {
            let sent = self.get(seq);
            sent.is(RESENT) && sent.at == at && !sent.is(SACKED)
        }
    }

    /// The transmission time of the last segment in `[from, end)` that may still arrive.
    fn last_waiting(&self, from: u32, end: u32) -> Option<Instant> {
        let end = end.min(self.next());
        let start = from.max(end.saturating_sub(LOOK_BACK));
        let waits = |seq: &u32| !self.get(*seq).is(SACKED | LOST | EVER_RESENT);
        (start..end)
            .rev()
            .find(waits)
            .or(Some(from))
            .map(|seq| self.get(seq).at)
    }

    /// Marks as lost what a time-out considers lost: the first segment, and all others sent longer
    /// than `patience` before `now`. Tells `on_lost` of each.
    pub(crate) fn mark_all_lost(
        &mut self,
        now: Instant,
        patience: Duration,
        mut on_lost: impl FnMut(Lost),
    ) {
        let mut losses = self.losses.take().unwrap_or_default();
        losses.to_resend.clear();
        losses.to_resend_again.clear();
        losses.resent.clear();
        let (first, next) = (self.una, self.next());
        for seq in first..next {
            let sent = *self.get(seq);
            let recent = seq != first && now.since(sent.at) < patience;
            if sent.is(SACKED) {
                continue;
            }
            if recent {
                if sent.is(RESENT) {
                    losses.resent.push_back((seq, sent.at));
                } else if sent.is(LOST) {
                    losses.to_resend.push_back(seq);
                }
                continue;
            }
            if sent.is(RESENT) {
                self.get_mut(seq).flags &= !RESENT;
                self.resent -= 1;
            }
            if !sent.is(LOST) {
                self.get_mut(seq).flags |= LOST;
                self.lost += 1;
                self.count_lost(seq, &mut on_lost);
            }
            losses.to_resend.push_back(seq);
        }
        losses.resent.make_contiguous().sort_by_key(|&(_, at)| at);
        losses.judged = first;
        self.losses = Some(losses);
    }
}
