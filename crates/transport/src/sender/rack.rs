//! Loss detection by time.
//!
//! # Source
//!
//! RFC 8985 §6 (RACK), with Linux's rule that without any sign of reordering the window for it
//! is zero once three segments are held.
//!
//! # Law
//!
//! A segment is lost when one sent after it has been delivered and `rtt + reo_wnd` has passed
//! since its last transmission, `rtt` being that of the delivered one.
//!
//! Segments sent once lie on the board in the order of their transmission; retransmissions lie
//! in a queue of their own. Each is judged once, so detection is O(1) a segment.

use sojourn_net::{Duration, Instant};

use super::ack::Findings;
use super::scoreboard::{EVER_RESENT, LOST, RESENT, SACKED};
use super::timers::Kind;
use super::{Phase, Sender};
use crate::clock::ticks_of_micros;

/// Recoveries without a DSACK until a widened reordering window shrinks back.
const PERSIST: u8 = 16;
/// How far the walk for the last segment still waiting looks: it only sets a timer.
const LOOK_BACK: u32 = 64;

/// The most recently sent segment known to be delivered, and what reordering was seen.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    at: Instant,
    end_seq: u32,
    /// In µs.
    rtt: u32,
    pub(super) advanced: bool,
    pub(super) reordering_seen: bool,
    pub(super) dsack_seen: bool,
    steps: u8,
    pub(super) persist: u8,
    /// The last DSACK's round ends when this is acknowledged.
    round_end: u32,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            at: Instant::ZERO,
            end_seq: 0,
            rtt: 0,
            advanced: false,
            reordering_seen: false,
            dsack_seen: false,
            steps: 1,
            persist: 0,
            round_end: 0,
        }
    }

    /// A segment sent at `at` has been delivered.
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: Instant,
        at: Instant,
        end_seq: u32,
        ever_resent: bool,
        min_rtt: u32,
    ) {
        let rtt = super::micros(now.since(at));
        // Faster than the path: this acknowledges the original, not the retransmission.
        if ever_resent && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (at, end_seq) > (self.at, self.end_seq) {
            self.at = at;
            self.end_seq = end_seq;
        }
    }

    pub(super) fn notes_undo(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
}

impl Sender {
    /// How much later than its successors a segment may come, in µs.
    fn reordering_window(&self) -> u32 {
        if !self.rack.reordering_seen
            && (self.phase >= Phase::Recovery || self.board.sacked >= self.reordering)
        {
            return 0;
        }
        let quarter = self.rtt.min_micros() / 4;
        (quarter.saturating_mul(u32::from(self.rack.steps))).min(self.rtt.srtt_micros())
    }

    /// Widens the window for each round with a DSACK, and lets it shrink after a while.
    pub(super) fn adapt_reordering_window(&mut self, found: &Findings) {
        if found.dsack && self.rack.dsack_seen && self.board.una >= self.rack.round_end {
            self.rack.dsack_seen = false;
            self.rack.steps = self.rack.steps.saturating_add(1);
            self.rack.persist = PERSIST;
            self.rack.round_end = self.board.next();
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }

    /// Marks what is lost by now; arms the reordering timer for what may yet be.
    pub(super) fn detect_losses(&mut self, now: Instant, found: &mut Findings) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let resent_before = self.board.resent;
        if let Some(rest) = self.mark_overdue(now) {
            let ticks = ticks_of_micros(u64::from(rest) + 2_000);
            self.arm(now, Kind::Reordering, ticks);
            found.rearm = false;
        }
        found.resend_lost |= self.board.resent < resent_before;
    }

    /// Marks every segment overdue at `now`; returns how long, in µs, until the last of the
    /// others that were sent before the newest delivered one is.
    pub(super) fn mark_overdue(&mut self, now: Instant) -> Option<u32> {
        if self.board.outstanding() == 0 {
            return None;
        }
        let patience = self.rack.rtt + self.reordering_window();
        let newest = (self.rack.at, self.rack.end_seq);
        let rest = |at: Instant| {
            let age = super::micros(now.since(at));
            patience.checked_sub(age).filter(|&rest| rest > 0)
        };
        self.with_losses(|sender, losses| {
            let mut waiting: Option<u32> = None;
            let lost_before = sender.board.lost;
            losses.judged = losses.judged.max(sender.board.una);
            while losses.judged < sender.board.next() {
                let seq = losses.judged;
                let sent = *sender.board.get(seq);
                if !sent.is(SACKED | LOST | RESENT) {
                    if (sent.at, seq + 1) >= newest {
                        break;
                    }
                    if rest(sent.at).is_some() {
                        waiting = sender.last_waiting(seq, newest.1).and_then(rest);
                        break;
                    }
                    sender.board.mark_lost(losses, seq);
                }
                losses.judged += 1;
            }
            while let Some(&(seq, at)) = losses.resent.front() {
                let current = seq >= sender.board.una && {
                    let sent = sender.board.get(seq);
                    sent.is(RESENT) && sent.at == at && !sent.is(SACKED)
                };
                if current {
                    if (at, seq + 1) >= newest {
                        break;
                    }
                    if let Some(rest) = rest(at) {
                        waiting = Some(waiting.map_or(rest, |w| w.max(rest)));
                        break;
                    }
                    sender.board.mark_lost(losses, seq);
                    sender.lost_total += 1;
                }
                losses.resent.pop_front();
            }
            sender.lost_total += u64::from(sender.board.lost - lost_before.min(sender.board.lost));
            waiting
        })
    }

    /// The transmission time of the last segment in `[from, end)` that waits for judgement.
    fn last_waiting(&self, from: u32, end: u32) -> Option<Instant> {
        let end = end.min(self.board.next());
        let start = from.max(end.saturating_sub(LOOK_BACK));
        let waits = |seq: &u32| !self.board.get(*seq).is(SACKED | LOST | EVER_RESENT);
        (start..end)
            .rev()
            .find(waits)
            .or(Some(from))
            .map(|seq| self.board.get(seq).at)
    }

    /// Everything a time-out deems lost: the first segment, and all but the very recent.
    pub(super) fn mark_all_lost(&mut self, now: Instant) {
        let patience = Duration::from_micros(u64::from(self.rack.rtt));
        self.with_losses(|sender, losses| {
            losses.to_resend.clear();
            losses.to_resend_again.clear();
            losses.resent.clear();
            let (first, next) = (sender.board.una, sender.board.next());
            for seq in first..next {
                let sent = *sender.board.get(seq);
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
                let was_lost = sent.is(LOST);
                if sent.is(RESENT) {
                    sender.board.get_mut(seq).flags &= !RESENT;
                    sender.board.resent -= 1;
                }
                if !was_lost {
                    sender.board.get_mut(seq).flags |= LOST;
                    sender.board.lost += 1;
                    sender.lost_total += 1;
                }
                losses.to_resend.push_back(seq);
            }
            losses.resent.make_contiguous().sort_by_key(|&(_, at)| at);
            losses.judged = first;
        });
    }

    /// The reordering timer expired.
    pub(super) fn on_reordering_timer(&mut self, now: Instant) -> u32 {
        let in_flight = self.board.in_flight();
        self.mark_overdue(now);
        in_flight
    }
}
