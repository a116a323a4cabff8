//! Events that are rarely rescheduled.

use super::calendar::Calendar;
use super::heap::Heap;
use super::key::Key;

/// The [`Calendar`], and a [`Heap`] for what does not fit into it. Which of them holds an event changes only the cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    calendar: Calendar,
    heap: Heap,
}

impl Timers {
    /// Each change returns the least key then.
    #[inline]
    pub(super) fn push(&mut self, key: Key) -> Key {
        if !self.calendar.insert(key) {
            self.heap.push(key);
        }
        self.least()
    }

    #[inline]
    pub(super) fn remove_least(&mut self) -> Key {
        self.drop_least();
        self.least()
    }

    #[inline]
    pub(super) fn replace_least(&mut self, key: Key) -> Key {
        self.drop_least();
        self.push(key)
    }

    #[inline]
    fn drop_least(&mut self) {
        let least = self.heap.least();
        if self.calendar.least() <= least {
            self.calendar.remove_least();
        } else {
            self.heap.remove_least();
            self.calendar.pass(least);
        }
    }

    #[inline]
    fn least(&self) -> Key {
        self.calendar.least().min(self.heap.least())
    }
}
