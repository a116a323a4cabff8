//! A ring buffer for segments in flight.

use std::ops::{Index, IndexMut};

use sojourn_prefetch::prefetch;

/// The first capacity.
const SMALLEST: usize = 4;

/// A queue of segments or of what is known of each. Its capacity is a power of two, so that a place is found by
/// masking.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    first: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first: 0,
            len: 0,
        }
    }

    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The slot of the item at `place`.
    #[inline]
    const fn slot(&self, place: u32) -> usize {
        self.first.wrapping_add(place) as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.slot(0)])
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.slots[slot] = item;
        self.len += 1;
    }

    /// Doubles the capacity. It does not take the segment to fill the slots with: that would put every segment on the
    /// stack, from where it is copied as a whole and waits for the stores of its parts.
    #[cold]
    fn grow(&mut self) {
        let fill = T::default();
        let capacity = (2 * self.slots.len()).max(SMALLEST);
        let middle = self.slot(0);
        self.slots
            .rotate_left(if self.len == 0 { 0 } else { middle });
        self.first = 0;
        self.slots.resize(capacity, fill);
    }

    /// Asks the processor to load the first item and the place of the next one.
    #[inline]
    pub(crate) fn prefetch(&self) {
        for place in [0, self.len] {
            if let Some(item) = self.slots.get(self.slot(place)) {
                prefetch(item);
            }
        }
    }

    /// Removes the first item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = *self.first()?;
        self.skip(1);
        Some(first)
    }

    /// Removes the first `count` items, of which there are at least as many.
    #[inline]
    pub(crate) const fn skip(&mut self, count: u32) {
        debug_assert!(count <= self.len, "the ring has fewer items");
        self.first = self.first.wrapping_add(count);
        self.len -= count;
    }

    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        for place in 0..self.len {
            change(&mut self[place]);
        }
    }
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Default> Index<u32> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        debug_assert!(place < self.len, "the queue has no place {place}");
        &self.slots[self.slot(place)]
    }
}

impl<T: Copy + Default> IndexMut<u32> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        debug_assert!(place < self.len, "the queue has no place {place}");
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
                queue.push(n);
                want.push_back(n);
            } else {
                assert_eq!(queue.pop(), want.pop_front());
            }
            assert_eq!(queue.len() as usize, want.len());
            assert_eq!(queue.first(), want.front());
            if let Some(last) = queue.len().checked_sub(1) {
                assert_eq!(Some(&queue[last]), want.back());
            }
        }
        let mut each = want.iter();
        queue.for_each_mut(|item| assert_eq!(Some(&*item), each.next()));
        assert!(queue.slots.len() >= 256, "{}", queue.slots.len());
    }
}
