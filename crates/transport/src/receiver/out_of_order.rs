//! Segments received out of order, and how they are reported (RFC 2018, RFC 2883).

use crate::ranges::RangeSet;
use crate::segment::{Flags, SackBlock, Segment};

/// Runs kept for reporting; three fit a segment with timestamps.
const MAX_KEPT: usize = 4;

/// Segments above a hole.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrder {
    held: RangeSet,
    /// Number of segments held.
    count: u32,
    /// Latest first.
    recent: [Option<SackBlock>; MAX_KEPT],
    /// A duplicate to report once.
    duplicate: Option<SackBlock>,
    /// Held segments that are not full-sized, with their length: the ends of writes.
    short: Vec<(u32, u16)>,
    fin: Option<u32>,
}

impl OutOfOrder {
    /// Number of segments held.
    #[inline]
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The next acknowledgement reports `seq` as a duplicate.
    pub(super) fn report_duplicate(&mut self, seq: u32) {
        self.duplicate = Some(SackBlock {
            start: seq,
            end: seq + 1,
        });
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Holds a segment, of length `short` unless it is full-sized; returns whether it starts or extends a
    /// run other than the two latest ones.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per segment above a hole; the compiler inlines it only if limited receivers are not there"
    )]
    pub(super) fn add(&mut self, seq: u32, short: Option<u16>, fin: bool) -> bool {
        if self.held.run_of(seq).is_some() {
            self.report_duplicate(seq);
            return false;
        }
        self.short.extend(short.map(|len| (seq, len)));
        if fin {
            self.fin = Some(seq);
        }
        self.count += 1;
        // The usual case: it continues the latest run, which is the highest one.
        if let Some(latest) = &mut self.recent[0]
            && latest.end == seq
            && self.held.extend(seq, seq + 1).is_some()
        {
            latest.end = seq + 1;
            return false;
        }
        let (start, end) = self.held.insert(seq, seq + 1, |_, _| {});
        let run = SackBlock { start, end };
        let known = |b: &Option<SackBlock>| b.is_some_and(|b| start <= b.start && b.end <= end);
        let place = self.recent.iter().position(known);
        let kept_before = self.recent.iter().flatten().count();
        // Runs that grew together are one now.
        let mut kept: [Option<SackBlock>; MAX_KEPT] = [None; MAX_KEPT];
        kept[0] = Some(run);
        let others = self.recent.iter().filter(|b| b.is_some() && !known(b));
        for (slot, other) in kept[1..].iter_mut().zip(others) {
            *slot = *other;
        }
        self.recent = kept;
        place.unwrap_or(kept_before) >= 2
    }

    /// Releases the segments from `next` on; returns the new next segment, the bytes, and whether
    /// the FIN was among them. Full-sized segments have `mss` bytes.
    pub(super) fn release(&mut self, next: u32, mss: u16) -> (u32, u32, bool) {
        let Some((start, end)) = self.held.first().filter(|&(start, _)| start <= next) else {
            return (next, 0, false);
        };
        debug_assert_eq!(
            start, next,
            "a held run cannot begin below the next segment"
        );
        self.held.pop_first();
        self.count -= end - start;
        let mut bytes = (end - start) * u32::from(mss);
        self.short.retain(|&(seq, len)| {
            let within = seq < end;
            if within {
                bytes = bytes - u32::from(mss) + u32::from(len);
            }
            !within
        });
        let fin = self.fin.is_some_and(|fin| fin < end);
        for block in &mut self.recent {
            if block.is_some_and(|b| b.end <= end) {
                *block = None;
            }
        }
        // Keep the runs at the front, in order.
        let mut kept = [None; MAX_KEPT];
        for (slot, block) in kept
            .iter_mut()
            .zip(self.recent.iter().filter(|b| b.is_some()))
        {
            *slot = *block;
        }
        self.recent = kept;
        (end, bytes, fin)
    }

    /// Writes the SACK blocks of an acknowledgement: a duplicate first, then the latest runs.
    #[inline]
    pub(super) fn report(&mut self, seg: &mut Segment) {
        // Kept runs are at the front.
        if self.duplicate.is_some() || self.recent[0].is_some() {
            self.write(seg);
        }
    }

    fn write(&mut self, seg: &mut Segment) {
        let mut count = 0;
        if let Some(duplicate) = self.duplicate.take() {
            seg.sacks[0] = duplicate;
            seg.flags |= Flags::DSACK;
            count = 1;
        }
        for block in self.recent.iter().flatten() {
            if usize::from(count) == seg.sacks.len() {
                break;
            }
            seg.sacks[usize::from(count)] = *block;
            count += 1;
        }
        seg.set_sack_count(count);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sojourn_net::Rng;

    use super::*;

    #[test]
    fn the_latest_block_is_the_whole_run_of_the_latest_segment() {
        let mut rng = Rng::new(1);
        let (mut held, mut want) = (OutOfOrder::default(), BTreeSet::new());
        let mut seq = 0;
        for _ in 0..5_000 {
            // Mostly the next segment, sometimes after or before a hole.
            seq = match rng.below(10) {
                0 => seq + 1 + u32::try_from(rng.below(4)).unwrap(),
                1 => seq.saturating_sub(u32::try_from(rng.below(60)).unwrap()),
                _ => seq + 1,
            };
            let is_new = want.insert(seq);
            held.add(seq, None, false);
            assert_eq!(held.count as usize, want.len());
            if is_new {
                let start = (0..seq).rev().take_while(|n| want.contains(n)).last();
                let end = (seq..u32::MAX).find(|n| !want.contains(n)).unwrap();
                let latest = held.recent[0].unwrap();
                assert_eq!((latest.start, latest.end), (start.unwrap_or(seq), end));
                assert_eq!(held.held.run_of(seq), Some((latest.start, latest.end)));
            }
        }
    }
}
