//! The segments in flight and their states (RFC 6675, RFC 8985).

mod loss_marking;

pub(crate) use loss_marking::Lost;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sojourn_net::Instant;
use sojourn_prefetch::prefetch;

use crate::ranges::RangeSet;
use crate::ring::Ring;
use crate::segment::{Flags, SackBlock};

/// The peer has selectively acknowledged it.
pub(crate) const SACKED: u8 = 1;
/// It is considered lost.
pub(crate) const LOST: u8 = 2;
/// A retransmission of it is in flight.
pub(crate) const RESENT: u8 = 4;
/// It has been retransmitted at some time.
pub(crate) const EVER_RESENT: u8 = 8;

/// The most recently sent segment known to be delivered: its last transmission, and the segment
/// after it.
pub(crate) type Delivered = (Instant, u32);

/// When the first and the last of several segments were sent.
pub(crate) type Sending = (Instant, Instant);

/// Segments in sequence order, each sent once, that one acknowledgement removes from the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRun {
    /// At least one.
    pub(crate) count: u32,
    /// Sum of their lengths.
    pub(crate) bytes: u32,
    /// When the first was sent; segments sent once are sent in sequence order.
    pub(crate) oldest: Instant,
    /// When the last was sent.
    pub(crate) newest: Instant,
    pub(crate) last_len: u16,
}

/// The segments in flight, in sequence order, and how many are in which state.
///
/// Whatever loss recovery needs beyond a flag per segment lies in [`Losses`], which a connection
/// without loss never allocates.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// First unacknowledged segment.
    una: u32,
    segments: Ring<Sent>,
    sacked: u32,
    lost: u32,
    resent: u32,
    losses: Option<Box<Losses>>,
    /// Segments delivered, each once, and duplicates reported.
    delivered: u64,
    /// Segments ever considered lost.
    lost_total: u64,
}

impl Scoreboard {
    pub(crate) const fn new() -> Self {
        Self {
            una: 0,
            segments: Ring::new(),
            sacked: 0,
            lost: 0,
            resent: 0,
            losses: None,
            delivered: 0,
            lost_total: 0,
        }
    }

    /// Asks the processor to load the segments that the next acknowledgement reads and writes.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.segments.prefetch();
        if let Some(losses) = &self.losses {
            prefetch(&**losses);
        }
    }

    /// The first unacknowledged segment.
    #[inline]
    pub(crate) const fn una(&self) -> u32 {
        self.una
    }

    /// The next segment to be sent for the first time.
    #[inline]
    pub(crate) const fn next(&self) -> u32 {
        self.una + self.segments.len()
    }

    /// Segments sent and not acknowledged, whatever their state.
    #[inline]
    pub(crate) const fn outstanding(&self) -> u32 {
        self.segments.len()
    }

    /// Segments believed to be in the network.
    #[inline]
    pub(crate) const fn in_flight(&self) -> u32 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }

    #[inline]
    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    #[inline]
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    #[inline]
    pub(crate) const fn resent(&self) -> u32 {
        self.resent
    }

    /// Whether a lost segment is still to be retransmitted.
    #[inline]
    pub(crate) const fn has_lost_to_resend(&self) -> bool {
        self.resent < self.lost
    }

    /// Segments delivered, each once, and duplicates reported.
    #[inline]
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// `count` segments more were delivered: a SYN, or duplicates that a DSACK reports.
    pub(crate) const fn add_delivered(&mut self, count: u32) {
        self.delivered += count as u64;
    }

    /// Segments ever considered lost.
    #[inline]
    pub(crate) const fn lost_total(&self) -> u64 {
        self.lost_total
    }

    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) {
        self.segments.push(sent);
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Sent> {
        self.segments.first()
    }

    #[inline]
    pub(crate) fn get(&self, seq: u32) -> &Sent {
        &self.segments[seq - self.una]
    }

    #[inline]
    fn get_mut(&mut self, seq: u32) -> &mut Sent {
        &mut self.segments[seq - self.una]
    }

    /// Removes the first segment, as acknowledged.
    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<Sent> {
        let sent = self.segments.pop()?;
        self.una += 1;
        self.delivered += 1;
        if sent.is(SACKED | LOST | RESENT) {
            self.resent -= u32::from(sent.is(RESENT));
            self.sacked -= u32::from(sent.is(SACKED));
            self.lost -= u32::from(sent.is(LOST));
            // What is sacked was counted before.
            self.delivered -= u64::from(sent.is(SACKED));
        }
        Some(sent)
    }

    /// The segments that were sent once and are neither sacked nor lost: the first ones up to one that is different,
    /// at most `most`. `None`: the first one is different.
    #[inline]
    pub(crate) fn plain_run(&self, most: u32) -> Option<PlainRun> {
        self.run(0, most)
    }

    /// The same for segments that were sent once and are sacked.
    #[inline]
    pub(crate) fn sacked_run(&self, most: u32) -> Option<PlainRun> {
        self.run(SACKED, most)
    }

    /// The first segments with just these flags.
    #[inline]
    fn run(&self, flags: u8, most: u32) -> Option<PlainRun> {
        let most = most.min(self.segments.len());
        let (mut count, mut bytes) = (0, 0);
        while count < most {
            let sent = &self.segments[count];
            if sent.flags != flags {
                break;
            }
            bytes += u32::from(sent.len);
            count += 1;
        }
        let last = self.segments[count.checked_sub(1)?];
        Some(PlainRun {
            count,
            bytes,
            oldest: self.segments[0].at,
            newest: last.at,
            last_len: last.len,
        })
    }

    /// Removes the first segments, a [run](Self::plain_run), as acknowledged.
    #[inline]
    pub(crate) fn pop_run(&mut self, run: &PlainRun) {
        self.segments.skip(run.count);
        self.una += run.count;
        self.delivered += u64::from(run.count);
    }

    /// Removes the first segments, a [run of sacked ones](Self::sacked_run), as acknowledged.
    #[inline]
    pub(crate) fn pop_sacked_run(&mut self, run: &PlainRun) {
        self.segments.skip(run.count);
        self.una += run.count;
        self.sacked -= run.count;
    }

    /// Marks as sacked the leading segments of `[from, to)` that were sent once and are neither sacked nor lost.
    /// Returns their number and the send times of the first and the last, or `None` if there are none.
    #[inline]
    pub(crate) fn mark_plain_sacked(&mut self, from: u32, to: u32) -> Option<(u32, Sending)> {
        if from == to {
            return None;
        }
        let oldest = self.get(from).at;
        let (mut seq, mut newest) = (from, oldest);
        while seq < to {
            let sent = self.get_mut(seq);
            if sent.flags != 0 {
                break;
            }
            sent.flags = SACKED;
            newest = sent.at;
            seq += 1;
        }
        let count = seq - from;
        self.sacked += count;
        self.delivered += u64::from(count);
        (count > 0).then_some((count, (oldest, newest)))
    }

    /// `seq` was selectively acknowledged. Returns it as it was before.
    pub(crate) fn mark_sacked(&mut self, seq: u32) -> Sent {
        let sent = self.get_mut(seq);
        let before = *sent;
        sent.flags |= SACKED;
        if before.is(RESENT) {
            // Without LOST the retransmission is still believed to be in flight.
            if before.is(LOST) {
                sent.flags &= !(LOST | RESENT);
                self.lost -= 1;
                self.resent -= 1;
            }
        } else if before.is(LOST) {
            sent.flags &= !LOST;
            self.lost -= 1;
        }
        self.sacked += 1;
        self.delivered += 1;
        before
    }

    /// `seq` is transmitted again at `now`. Returns it.
    pub(crate) fn retransmit(&mut self, now: Instant, seq: u32) -> Sent {
        let sent = self.get_mut(seq);
        sent.at = now;
        sent.flags |= EVER_RESENT;
        *sent
    }

    /// The transmission at `now` repaired a loss of `seq`.
    pub(crate) fn mark_resent(&mut self, now: Instant, seq: u32) {
        self.get_mut(seq).flags |= RESENT;
        self.resent += 1;
        self.losses_mut().resent.push_back((seq, now));
    }

    /// Whether a retransmission is in flight, or the first segment was retransmitted.
    pub(crate) fn any_resent(&self) -> bool {
        self.resent > 0 || self.first().is_some_and(|first| first.is(EVER_RESENT))
    }

    /// The segment after the highest one sacked; `None`: none is.
    #[inline]
    pub(crate) fn sacked_end(&self) -> Option<u32> {
        let losses = self.losses.as_ref().filter(|_| self.sacked > 0)?;
        debug_assert_eq!(
            losses.sacked.end(),
            Some(losses.high),
            "the set has its end"
        );
        Some(losses.high)
    }

    /// The `n`th highest segment sacked; `None`: fewer are.
    pub(crate) fn highest_sacked(&self, n: u32) -> Option<u32> {
        let mut left = n;
        for (start, end) in self.losses.as_ref()?.sacked.runs_down() {
            let run = end - start;
            if run >= left {
                return Some(end - left);
            }
            left -= run;
        }
        None
    }

    /// Whether all of a SACK block is known to be sacked or acknowledged, as it is of most: they repeat what the
    /// last acknowledgement reported.
    #[inline]
    pub(crate) fn is_known(&self, block: SackBlock) -> bool {
        let covers = |known: &SackBlock| known.start <= block.start && block.end <= known.end;
        let losses = self.losses.as_ref();
        losses.is_some_and(|losses| losses.known.iter().any(covers))
    }

    /// What `blocks`, at most 3, report has been marked.
    #[inline]
    pub(crate) fn note_known(&mut self, blocks: &[SackBlock]) {
        let next = self.next();
        let known = &mut self.losses_mut().known;
        for (known, block) in known.iter_mut().zip(blocks) {
            *known = SackBlock {
                end: block.end.min(next),
                ..*block
            };
        }
    }

    /// `[start, end)` is sacked. If it extends the highest run of sacked segments, returns the part that was not
    /// sacked before, which is to be marked; `None`: it does not.
    #[inline]
    pub(crate) fn extend_sacked(&mut self, start: u32, end: u32) -> Option<(u32, u32)> {
        let losses = self.losses.as_mut()?;
        let added = losses.sacked.extend_highest(start, end)?;
        losses.high = end;
        Some(added)
    }

    /// The set of sacked segments, so that it and the board can both change; give it back with
    /// [`Scoreboard::restore_sacked`].
    pub(crate) fn take_sacked(&mut self) -> RangeSet {
        std::mem::take(&mut self.losses_mut().sacked)
    }

    pub(crate) fn restore_sacked(&mut self, sacked: RangeSet) {
        let losses = self.losses_mut();
        losses.high = sacked.end().unwrap_or(losses.high);
        losses.sacked = sacked;
    }

    #[inline]
    fn losses_mut(&mut self) -> &mut Losses {
        self.losses.get_or_insert_default()
    }

    /// Forgets what is known of segments that have been acknowledged.
    #[inline]
    pub(crate) fn trim(&mut self) {
        let una = self.una;
        if let Some(losses) = &mut self.losses {
            losses.forget_below(una);
        }
    }
}

/// The queues of loss recovery.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// What the peer has selectively acknowledged.
    sacked: RangeSet,
    /// The segment after the highest one ever sacked.
    high: u32,
    /// Blocks of the last acknowledgements, cut off where the sent segments ended: all of them is sacked or
    /// acknowledged.
    known: [SackBlock; 3],
    /// Lost originals to retransmit, ascending. An entry is stale if its flags say otherwise.
    to_resend: VecDeque<u32>,
    /// Lost retransmissions to retransmit again.
    to_resend_again: BinaryHeap<Reverse<u32>>,
    /// Retransmissions in the order they were sent; stale if sent again since.
    resent: VecDeque<(u32, Instant)>,
    /// Originals below this are judged: acknowledged, sacked, lost or retransmitted.
    judged: u32,
}

impl Losses {
    #[inline]
    fn forget_below(&mut self, una: u32) {
        self.sacked.remove_below(una);
        self.judged = self.judged.max(una);
    }

    /// The lowest entry of the two queues, removed.
    fn pop_lowest(&mut self) -> Option<u32> {
        let original = self.to_resend.front().copied();
        let again = self.to_resend_again.peek().map(|&Reverse(seq)| seq);
        match (original, again) {
            (Some(a), Some(b)) if b < a => self.to_resend_again.pop().map(|Reverse(seq)| seq),
            (Some(_), _) => self.to_resend.pop_front(),
            (None, _) => self.to_resend_again.pop().map(|Reverse(seq)| seq),
        }
    }
}

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Its last transmission.
    pub(crate) at: Instant,
    pub(crate) len: u16,
    /// The states that it is in.
    flags: u8,
    /// PSH and FIN, which a retransmission repeats.
    pub(crate) control: Flags,
}

impl Sent {
    pub(crate) const fn new(at: Instant, len: u16, control: Flags) -> Self {
        Self {
            at,
            len,
            flags: 0,
            control,
        }
    }

    /// Whether it is in any of the states `flags`.
    #[inline]
    pub(crate) const fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}
