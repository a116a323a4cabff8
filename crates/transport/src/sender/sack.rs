//! Reading SACK and DSACK blocks (RFC 2018, RFC 2883).

use sojourn_net::Instant;

use super::Sender;
use super::model::Findings;
use super::state::scoreboard::EVER_RESENT;
use crate::clock::micros;
use crate::segment::{Flags, Segment};

impl Sender {
    /// Marks the segments that the SACK blocks report.
    pub(super) fn read_sacks(&mut self, now: Instant, seg: &Segment, found: &mut Findings) {
        let mut blocks = seg.sack_blocks();
        if seg.flags.has(Flags::DSACK) {
            let (dup, rest) = blocks.split_first().expect("a DSACK is a block");
            self.read_dsack(dup.start, dup.end, found);
            blocks = rest;
        }
        let (una, next) = (self.board.una(), self.board.next());
        let high_before = self.board.sacked_end().unwrap_or(una);
        let mut is_new = false;
        for block in blocks {
            let (start, end) = (block.start.max(una), block.end.min(next));
            if start >= end || self.board.is_known(*block) {
                continue;
            }
            is_new = true;
            match self.board.extend_sacked(start, end) {
                Some(added) => self.mark_range_sacked(now, added, high_before, found),
                None => self.insert_sacked(now, (start, end), high_before, found),
            }
        }
        if is_new {
            self.board.note_known(blocks);
        }
    }

    /// Marks what is not marked yet of a range.
    fn insert_sacked(
        &mut self,
        now: Instant,
        (start, end): (u32, u32),
        high_before: u32,
        found: &mut Findings,
    ) {
        let mut sacked = self.board.take_sacked();
        sacked.insert(start, end, |from, to| {
            self.mark_range_sacked(now, (from, to), high_before, found);
        });
        self.board.restore_sacked(sacked);
    }

    /// Marks a range as sacked. Usually, all its segments were sent once, and none is sacked or lost.
    #[inline]
    fn mark_range_sacked(
        &mut self,
        now: Instant,
        (from, to): (u32, u32),
        high_before: u32,
        found: &mut Findings,
    ) {
        let seq = self.mark_plain_sacked(now, (from, to), high_before, found);
        if seq < to {
            self.mark_mixed_sacked(now, (seq, to), high_before, found);
        }
    }

    /// Marks a range as sacked whose first segment was retransmitted, or is sacked or lost.
    #[inline(never)]
    fn mark_mixed_sacked(
        &mut self,
        now: Instant,
        (from, to): (u32, u32),
        high_before: u32,
        found: &mut Findings,
    ) {
        let mut seq = from;
        while seq < to {
            self.mark_sacked(now, seq, high_before, found);
            seq = self.mark_plain_sacked(now, (seq + 1, to), high_before, found);
        }
    }

    /// Marks as sacked the leading segments of a range that were sent once and are neither sacked nor lost. Returns the
    /// first other segment, or the end of the range.
    #[inline]
    fn mark_plain_sacked(
        &mut self,
        now: Instant,
        (from, to): (u32, u32),
        high_before: u32,
        found: &mut Findings,
    ) -> u32 {
        let Some((count, (oldest, newest))) = self.board.mark_plain_sacked(from, to) else {
            return from;
        };
        if from < high_before {
            found.note_reordered(from);
        }
        found.original_delivered |= from < self.recovery.high_seq();
        let (oldest, _) = found.sacked_sent.unwrap_or((oldest, newest));
        found.sacked_sent = Some((oldest, newest));
        found.sacked = true;
        let seq = from + count;
        // The last was sent last: only it can be the newest delivery.
        if let Some(sampler) = self.pacing.sampler() {
            sampler.on_delivered(seq - 1 - self.board.una(), newest, seq);
        }
        self.rack
            .on_delivered(micros(now.since(newest)), (newest, seq));
        seq
    }

    fn mark_sacked(&mut self, now: Instant, seq: u32, high_before: u32, found: &mut Findings) {
        let sent = self.board.mark_sacked(seq);
        let at = sent.at;
        if !sent.is(EVER_RESENT) {
            if seq < high_before {
                found.note_reordered(seq);
            }
            found.original_delivered |= seq < self.recovery.high_seq();
            let (oldest, _) = found.sacked_sent.unwrap_or((at, at));
            found.sacked_sent = Some((oldest, at));
        }
        if let Some(sampler) = self.pacing.sampler() {
            sampler.on_delivered(seq - self.board.una(), at, seq + 1);
        }
        found.sacked = true;
        let min = self.rtt.min_micros();
        self.rack
            .advance(now, (at, seq + 1), sent.is(EVER_RESENT), min);
    }

    fn read_dsack(&mut self, start: u32, end: u32, found: &mut Findings) {
        found.dsack = true;
        let count = end - start;
        self.board.add_delivered(count);
        if self
            .probe
            .is_some_and(|probe| probe.is_resend && probe.end == end)
        {
            found.dsack_of_probe = true;
        } else {
            self.rack.on_dsack();
        }
        self.undo.on_dsack(end, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sender {
        /// Checks that [`Sender::read_sacks`] does what marking each segment by itself does.
        pub(in crate::sender) fn check_sacks(&self, now: Instant, seg: &Segment) {
            let (mut quick, mut slow) = (self.clone(), self.clone());
            let mut quick_found = Findings::nothing(0);
            let mut slow_found = Findings::nothing(0);
            quick.read_sacks(now, seg, &mut quick_found);
            slow.read_sacks_one_by_one(now, seg, &mut slow_found);
            assert_eq!(format!("{quick:?}"), format!("{slow:?}"));
            assert_eq!(format!("{quick_found:?}"), format!("{slow_found:?}"));
        }

        fn read_sacks_one_by_one(&mut self, now: Instant, seg: &Segment, found: &mut Findings) {
            let mut blocks = seg.sack_blocks();
            if seg.flags.has(Flags::DSACK) {
                let (dup, rest) = blocks.split_first().expect("a DSACK is a block");
                self.read_dsack(dup.start, dup.end, found);
                blocks = rest;
            }
            let (una, next) = (self.board.una(), self.board.next());
            let high_before = self.board.sacked_end().unwrap_or(una);
            let mut is_new = false;
            for block in blocks {
                let (start, end) = (block.start.max(una), block.end.min(next));
                if start >= end {
                    continue;
                }
                is_new |= !self.board.is_known(*block);
                let mut sacked = self.board.take_sacked();
                sacked.insert(start, end, |from, to| {
                    for seq in from..to {
                        self.mark_sacked(now, seq, high_before, found);
                    }
                });
                self.board.restore_sacked(sacked);
            }
            if is_new {
                self.board.note_known(blocks);
            }
        }
    }
}
