//! What is known of each segment in flight.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sojourn_net::Instant;

use crate::ranges::RangeSet;
use crate::segment::Flags;

/// The peer holds it.
pub(super) const SACKED: u8 = 1;
/// It is deemed lost.
pub(super) const LOST: u8 = 2;
/// A retransmission of it is in flight.
pub(super) const RESENT: u8 = 4;
/// It has been retransmitted at some time.
pub(super) const EVER_RESENT: u8 = 8;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its last transmission.
    pub(super) at: Instant,
    pub(super) len: u16,
    pub(super) flags: u8,
    /// PSH and FIN, which a retransmission repeats.
    pub(super) control: Flags,
}

impl Sent {
    #[inline]
    pub(super) const fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// The segments in flight, in sequence order, and how many are in which state.
///
/// Whatever loss recovery needs beyond a flag per segment lies in [`Losses`], which a connection
/// that never meets a loss never allocates.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    /// First segment not acknowledged.
    pub(super) una: u32,
    segments: VecDeque<Sent>,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) resent: u32,
    losses: Option<Box<Losses>>,
}

/// Queues that make loss recovery O(1) a segment, whatever the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// What the peer has reported to hold.
    pub(super) held: RangeSet,
    /// Lost originals to retransmit, ascending. An entry is stale if its flags say otherwise.
    pub(super) to_resend: VecDeque<u32>,
    /// Lost retransmissions to retransmit again.
    pub(super) to_resend_again: BinaryHeap<Reverse<u32>>,
    /// Retransmissions in the order they were sent; stale if sent again since.
    pub(super) resent: VecDeque<(u32, Instant)>,
    /// Originals below this are judged: acknowledged, held, lost or retransmitted.
    pub(super) judged: u32,
}

impl Scoreboard {
    pub(super) const fn new() -> Self {
        Self {
            una: 0,
            segments: VecDeque::new(),
            sacked: 0,
            lost: 0,
            resent: 0,
            losses: None,
        }
    }

    /// The next segment to be sent for the first time.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "indices are 32-bit")]
    pub(super) fn next(&self) -> u32 {
        self.una + self.segments.len() as u32
    }

    /// Segments sent and not acknowledged, whatever their state.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "indices are 32-bit")]
    pub(super) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Segments believed to be in the network.
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }

    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        self.segments.push_back(sent);
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    #[inline]
    pub(super) fn get(&self, seq: u32) -> &Sent {
        &self.segments[(seq - self.una) as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, seq: u32) -> &mut Sent {
        &mut self.segments[(seq - self.una) as usize]
    }

    /// Removes the first segment, as acknowledged.
    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<Sent> {
        let sent = self.segments.pop_front()?;
        self.una += 1;
        if sent.flags & (SACKED | LOST | RESENT) != 0 {
            self.resent -= u32::from(sent.is(RESENT));
            self.sacked -= u32::from(sent.is(SACKED));
            self.lost -= u32::from(sent.is(LOST));
        }
        Some(sent)
    }

    /// The queues, if anything was ever lost or held out of order.
    #[inline]
    pub(super) fn losses(&self) -> Option<&Losses> {
        self.losses.as_deref()
    }

    #[inline]
    pub(super) fn losses_mut(&mut self) -> &mut Losses {
        self.losses.get_or_insert_default()
    }

    /// The queues apart from the board, so that both can change; give them back with
    /// [`Scoreboard::restore`].
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "it lies in a box and goes back there"
    )]
    pub(super) fn take_losses(&mut self) -> Box<Losses> {
        self.losses.take().unwrap_or_default()
    }

    pub(super) fn restore(&mut self, losses: Box<Losses>) {
        self.losses = Some(losses);
    }

    /// Forgets what is known of segments that have been acknowledged.
    #[inline]
    pub(super) fn trim(&mut self) {
        let una = self.una;
        if let Some(losses) = &mut self.losses {
            losses.held.remove_below(una);
            losses.judged = losses.judged.max(una);
        }
    }

    /// Deems `seq` lost: its retransmission if one is in flight, else the original.
    pub(super) fn mark_lost(&mut self, losses: &mut Losses, seq: u32) {
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
        }
    }

    /// The lowest segment to retransmit, removed from the queues.
    pub(super) fn next_to_resend(&mut self) -> Option<u32> {
        let mut losses = self.losses.take()?;
        let found = loop {
            let original = losses.to_resend.front().copied();
            let again = losses.to_resend_again.peek().map(|&Reverse(seq)| seq);
            let seq = match (original, again) {
                (Some(a), Some(b)) if b < a => {
                    losses.to_resend_again.pop();
                    b
                }
                (Some(a), _) => {
                    losses.to_resend.pop_front();
                    a
                }
                (None, Some(b)) => {
                    losses.to_resend_again.pop();
                    b
                }
                (None, None) => break None,
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
    pub(super) fn keep_to_resend(&mut self, seq: u32) {
        self.losses_mut().to_resend_again.push(Reverse(seq));
    }

    /// Takes back that anything was lost.
    pub(super) fn unmark_losses(&mut self) {
        for sent in &mut self.segments {
            sent.flags &= !LOST;
        }
        self.lost = 0;
        let una = self.una;
        let losses = self.losses_mut();
        losses.to_resend.clear();
        losses.to_resend_again.clear();
        losses.judged = una;
    }
}
