//! A heap for events that are far away.

use super::key::{Key, NOTHING};

/// A 4-ary heap: four children share a cache line.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    keys: Vec<Key>,
}

const ARITY: usize = 4;

impl Heap {
    /// The least key; [`NOTHING`]: there is none.
    #[inline]
    pub(super) fn least(&self) -> Key {
        self.keys.first().copied().unwrap_or(NOTHING)
    }

    pub(super) fn push(&mut self, key: Key) {
        let mut hole = self.keys.len();
        self.keys.push(key);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    pub(super) fn remove_least(&mut self) {
        if let Some(last) = self.keys.pop()
            && !self.keys.is_empty()
        {
            self.replace_least(last);
        }
    }

    fn replace_least(&mut self, key: Key) {
        let len = self.keys.len();
        let mut hole = 0;
        loop {
            let first = ARITY * hole + 1;
            if first >= len {
                break;
            }
            let least = first + least_of(&self.keys[first..]);
            if key <= self.keys[least] {
                break;
            }
            self.keys[hole] = self.keys[least];
            hole = least;
        }
        self.keys[hole] = key;
    }
}

/// The place of the least of the first four.
#[inline]
fn least_of(keys: &[Key]) -> usize {
    if let Some(&[a, b, c, d]) = keys.first_chunk::<ARITY>() {
        // Without a branch to be guessed wrong.
        let (left, right) = (usize::from(b < a), 2 + usize::from(d < c));
        return if c.min(d) < a.min(b) { right } else { left };
    }
    let places = 0..keys.len();
    places.min_by_key(|&place| keys[place]).unwrap_or(0)
}
