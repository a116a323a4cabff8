//! The segments on the board, in a ring.

use std::ops::{Index, IndexMut};

use sojourn_net::Instant;
use sojourn_prefetch::prefetch;

use super::sent::Sent;
use crate::segment::Flags;

/// The first capacity.
const SMALLEST: usize = 4;

/// A queue of segments. Its capacity is a power of two, so that a place is found by masking.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    slots: Vec<Sent>,
    first: u32,
    len: u32,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first: 0,
            len: 0,
        }
    }

    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// The slot of the segment at `place`.
    #[inline]
    const fn slot(&self, place: u32) -> usize {
        self.first.wrapping_add(place) as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Sent> {
        (self.len > 0).then(|| &self.slots[self.slot(0)])
    }

    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.slots[slot] = sent;
        self.len += 1;
    }

    /// Doubles the capacity. It does not take the segment to fill the slots with: that would put every segment on the
    /// stack, from where it is copied as a whole and waits for the stores of its parts.
    #[cold]
    fn grow(&mut self) {
        let fill = Sent::new(Instant::ZERO, 0, Flags::NONE);
        let capacity = (2 * self.slots.len()).max(SMALLEST);
        let middle = self.slot(0);
        self.slots
            .rotate_left(if self.len == 0 { 0 } else { middle });
        self.first = 0;
        self.slots.resize(capacity, fill);
    }

    /// Asks the processor to load the first segment and the place of the next one.
    #[inline]
    pub(super) fn prefetch(&self) {
        for place in [0, self.len] {
            if let Some(sent) = self.slots.get(self.slot(place)) {
                prefetch(sent);
            }
        }
    }

    /// Removes the first segment.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Sent> {
        let sent = *self.first()?;
        self.skip(1);
        Some(sent)
    }

    /// Removes the first `count` segments, of which there are at least as many.
    #[inline]
    pub(super) const fn skip(&mut self, count: u32) {
        self.first = self.first.wrapping_add(count);
        self.len -= count;
    }

    pub(super) fn for_each_mut(&mut self, mut change: impl FnMut(&mut Sent)) {
        for place in 0..self.len {
            change(&mut self[place]);
        }
    }
}

impl Index<u32> for Ring {
    type Output = Sent;

    #[inline]
    fn index(&self, place: u32) -> &Sent {
        debug_assert!(place < self.len, "the board has no segment {place}");
        &self.slots[self.slot(place)]
    }
}

impl IndexMut<u32> for Ring {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut Sent {
        debug_assert!(place < self.len, "the board has no segment {place}");
        let slot = self.slot(place);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use sojourn_net::Rng;

    use super::*;

    #[test]
    fn it_is_a_queue_while_it_turns_and_grows() {
        let mut rng = Rng::new(1);
        let (mut queue, mut want) = (Ring::new(), VecDeque::new());
        // The counter of the first slot overflows on the way.
        queue.first = u32::MAX - 500;
        for n in 0..10_000_u64 {
            // Up to some hundred segments, then down to none.
            if rng.below(100) < if n % 2_000 < 1_000 { 70 } else { 20 } {
                let at = Instant::from_nanos(n);
                queue.push(Sent::new(at, 1_448, Flags::NONE));
                want.push_back(at);
            } else {
                assert_eq!(queue.pop().map(|sent| sent.at), want.pop_front());
            }
            assert_eq!(queue.len() as usize, want.len());
            assert_eq!(queue.first().map(|sent| sent.at), want.front().copied());
            if let Some(last) = queue.len().checked_sub(1) {
                assert_eq!(Some(&queue[last].at), want.back());
            }
        }
        let mut each = want.iter();
        queue.for_each_mut(|sent| assert_eq!(Some(&sent.at), each.next()));
        assert!(queue.slots.len() >= 256, "{}", queue.slots.len());
    }
}
