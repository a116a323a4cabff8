//! The queues of loss recovery, allocated when the first SACK block or loss needs them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sojourn_net::Instant;

use crate::ranges::RangeSet;
use crate::segment::SackBlock;

/// The queues of loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// What the peer has selectively acknowledged.
    pub(super) sacked: RangeSet,
    /// The segment after the highest one ever sacked.
    pub(super) high: u32,
    /// Blocks of the last acknowledgements, cut off where the sent segments ended: all of them is sacked or
    /// acknowledged.
    pub(super) known: [SackBlock; 3],
    /// Lost originals to retransmit, ascending. An entry is stale if its flags say otherwise.
    pub(super) to_resend: VecDeque<u32>,
    /// Lost retransmissions to retransmit again.
    pub(super) to_resend_again: BinaryHeap<Reverse<u32>>,
    /// Retransmissions in the order they were sent; stale if sent again since.
    pub(super) resent: VecDeque<(u32, Instant)>,
    /// Originals below this are judged: acknowledged, sacked, lost or retransmitted.
    pub(super) judged: u32,
}

impl Losses {
    #[inline]
    pub(super) fn forget_below(&mut self, una: u32) {
        self.sacked.remove_below(una);
        self.judged = self.judged.max(una);
    }

    /// The lowest entry of the two queues, removed.
    pub(super) fn pop_lowest(&mut self) -> Option<u32> {
        let original = self.to_resend.front().copied();
        let again = self.to_resend_again.peek().map(|&Reverse(seq)| seq);
        match (original, again) {
            (Some(a), Some(b)) if b < a => self.to_resend_again.pop().map(|Reverse(seq)| seq),
            (Some(_), _) => self.to_resend.pop_front(),
            (None, _) => self.to_resend_again.pop().map(|Reverse(seq)| seq),
        }
    }
}
