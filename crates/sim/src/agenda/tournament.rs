//! A tournament tree for events that every packet reschedules.

use super::key::{Key, NOTHING};

/// Keys side by side in a cache line.
const ARITY: usize = 4;

/// The least of a fixed number of keys: a tree of groups of four, in which each place of a group
/// holds the least of the group below it.
///
/// Comparing all four has no branch to be guessed wrong, which half of the comparisons of two would
/// be.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    /// The root, then what is below its first place, …; the slots are the places of the last
    /// groups.
    groups: Vec<[Key; ARITY]>,
    /// The first group of slots.
    slots: usize,
    least: Key,
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Self {
        let (mut above, mut level) = (0, 1);
        while level * ARITY < slots {
            above += level;
            level *= ARITY;
        }
        Self {
            groups: vec![[NOTHING; ARITY]; above + level],
            slots: above,
            least: NOTHING,
        }
    }

    #[inline]
    pub(super) const fn least(&self) -> Key {
        self.least
    }

    #[inline]
    pub(super) fn at(&self, slot: usize) -> Key {
        self.groups[self.slots + slot / ARITY][slot % ARITY]
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, key: Key) {
        // Two levels, as most networks of several hops have, need no loop.
        if self.slots == 1 {
            let (group, place) = (slot / ARITY, slot % ARITY);
            let least = put(&mut self.groups[1 + group], place, key);
            self.least = put(&mut self.groups[0], group % ARITY, least);
            return;
        }
        let (mut group, mut place, mut key) = (self.slots + slot / ARITY, slot % ARITY, key);
        loop {
            key = put(&mut self.groups[group], place, key);
            if group == 0 {
                break;
            }
            (group, place) = ((group - 1) / ARITY, (group - 1) % ARITY);
        }
        self.least = key;
    }
}

/// Replaces a key of a group; returns the least one then.
#[inline]
fn put(keys: &mut [Key; ARITY], place: usize, key: Key) -> Key {
    keys[place] = key;
    keys[0].min(keys[1]).min(keys[2].min(keys[3]))
}
