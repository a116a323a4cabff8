//! Timers of an application.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sojourn_net::Instant;

/// Things to do in the order of their time; those of the same instant as they were added.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Instant, u32, T)>>,
    added: u32,
}

impl<T: Ord + Copy> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }

    pub(crate) fn add(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse((at, self.added, what)));
        self.added = self.added.wrapping_add(1);
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// What is due `now`, one at a time.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((.., what))| what)
    }

    /// Forgets everything, and gives back the memory.
    pub(crate) fn clear(&mut self) {
        self.heap = BinaryHeap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_once_comes_as_it_was_added() {
        let mut timers = Timers::new();
        let at = Instant::from_millis;
        for (ms, what) in [(5, 'c'), (3, 'z'), (5, 'a'), (3, 'b')] {
            timers.add(at(ms), what);
        }
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.pop(at(2)), None);
        let order: Vec<_> = std::iter::from_fn(|| timers.pop(at(5))).collect();
        assert_eq!(order, ['z', 'b', 'c', 'a']);
    }
}
