//! Events that are rarely rescheduled: a calendar for those of the next seconds, and a heap for those later.

use super::{Key, NOTHING, time};

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

/// A day lasts 2^18 ns, 0.26 ms: of 100 flows with timers of milliseconds, each day has about one.
const DAY_SHIFT: u32 = 18;
/// Days of the calendar, 4.3 s in all: longer than most retransmission time-outs.
const DAYS: usize = 1 << 14;
/// Events of the first day at most: an insertion moves those after it. Later days have no limit.
const MOST_OF_FIRST: usize = 64;
/// No event: places of events begin at 1, so that an empty calendar is memory that was never touched.
const NONE: u32 = 0;

/// A calendar queue (Brown 1988): a list per day, and a bitmap of the days with events. Only the first day with events
/// is sorted.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// Events of the first day that has any, latest first. Empty only if the calendar is empty.
    first: Vec<Key>,
    first_day: u64,
    /// One event of each later day, by the number of the day modulo [`DAYS`].
    list_of: Vec<u32>,
    busy: Bitmap,
    /// Events of later days. Index 0 is never used; free entries form a list that starts at `unused`.
    events: Vec<Noted>,
    unused: u32,
    /// The day of the latest event that was removed: the calendar begins with it.
    today: u64,
    least: Key,
}

/// An event of a day after the first.
#[derive(Clone, Copy, Debug)]
struct Noted {
    key: Key,
    next: u32,
}

impl Default for Calendar {
    fn default() -> Self {
        let origin = Noted {
            key: NOTHING,
            next: NONE,
        };
        Self {
            first: Vec::new(),
            first_day: 0,
            list_of: vec![NONE; DAYS],
            busy: Bitmap::new(),
            events: vec![origin],
            unused: NONE,
            today: 0,
            least: NOTHING,
        }
    }
}

impl Calendar {
    /// The least key; [`NOTHING`]: there is none.
    #[inline]
    pub(super) const fn least(&self) -> Key {
        self.least
    }

    /// Inserts `key`; returns `false` if its day is beyond the calendar or the first day is full.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> bool {
        let day = day(key);
        if day.wrapping_sub(self.today) >= DAYS as u64 {
            return false;
        }
        if day > self.first_day && !self.first.is_empty() {
            self.note(day, key);
            return true;
        }
        if self.first.len() >= MOST_OF_FIRST {
            return false;
        }
        if day < self.first_day {
            self.postpone_first();
        }
        self.first_day = day;
        let place = self.first.partition_point(|&other| other > key);
        self.first.insert(place, key);
        self.least = self.least.min(key);
        true
    }

    /// Adds an event to a day after the first.
    #[inline]
    fn note(&mut self, day: u64, key: Key) {
        let slot = slot(day);
        let next = self.list_of[slot];
        self.busy.set(slot);
        let place = self.unused;
        if place == NONE {
            self.events.push(Noted { key, next });
            let place = u32::try_from(self.events.len() - 1);
            self.list_of[slot] = place.expect("at most 2^24 flows, with a few timers each");
        } else {
            let event = &mut self.events[place as usize];
            self.unused = event.next;
            // Stored field by field: a copy of the whole entry from the stack would wait for the stores of its fields.
            event.key = key;
            event.next = next;
            self.list_of[slot] = place;
        }
    }

    /// An earlier day is about to be the first.
    fn postpone_first(&mut self) {
        while let Some(key) = self.first.pop() {
            self.note(self.first_day, key);
        }
    }

    /// Removes the least key.
    #[inline]
    pub(super) fn remove_least(&mut self) {
        if self.first.pop().is_none() {
            return;
        }
        self.today = self.first_day;
        if self.first.is_empty() {
            self.begin_next_day();
        }
        self.least = self.first.last().copied().unwrap_or(NOTHING);
    }

    /// The next day with events becomes the first.
    #[inline]
    fn begin_next_day(&mut self) {
        let Some(slot) = self.busy.from(slot(self.today)) else {
            return;
        };
        self.busy.clear(slot);
        let mut place = std::mem::replace(&mut self.list_of[slot], NONE);
        while place != NONE {
            let Noted { key, next } = self.events[place as usize];
            self.first.push(key);
            self.events[place as usize] = Noted {
                key: NOTHING,
                next: self.unused,
            };
            self.unused = std::mem::replace(&mut place, next);
        }
        if self.first.len() > 1 {
            self.first.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.first_day = day(self.first[0]);
    }

    /// An event that is not in the calendar was removed: no other is earlier.
    #[inline]
    pub(super) fn pass(&mut self, key: Key) {
        self.today = self.today.max(day(key));
    }
}

#[inline]
const fn day(key: Key) -> u64 {
    time(key).as_nanos() >> DAY_SHIFT
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a remainder follows")]
const fn slot(day: u64) -> usize {
    day as usize % DAYS
}

const WORDS: usize = DAYS / 64;
const GROUPS: usize = WORDS / 64;

/// The days with events, and the words of these bits that are not zero.
#[derive(Clone, Debug)]
struct Bitmap {
    words: Vec<u64>,
    groups: [u64; GROUPS],
}

impl Bitmap {
    fn new() -> Self {
        Self {
            words: vec![0; WORDS],
            groups: [0; GROUPS],
        }
    }

    #[inline]
    fn set(&mut self, slot: usize) {
        let word = slot / 64;
        self.words[word] |= 1 << (slot % 64);
        self.groups[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    fn clear(&mut self, slot: usize) {
        let word = slot / 64;
        self.words[word] &= !(1 << (slot % 64));
        if self.words[word] == 0 {
            self.groups[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The first bit that is set, beginning at `slot` and continuing at 0 after the last.
    #[inline]
    fn from(&self, slot: usize) -> Option<usize> {
        let word = slot / 64;
        let bits = self.words[word] & (u64::MAX << (slot % 64));
        if bits != 0 {
            return Some(word * 64 + bits.trailing_zeros() as usize);
        }
        let word = self.word_from(word + 1).or_else(|| self.word_from(0))?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// The first word from `word` on that is not zero.
    #[inline]
    fn word_from(&self, word: usize) -> Option<usize> {
        let mut mask = u64::MAX << (word % 64);
        for group in word / 64..GROUPS {
            let bits = self.groups[group] & mask;
            if bits != 0 {
                return Some(group * 64 + bits.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Rng;
    use std::collections::BTreeSet;

    fn key(nanos: u64, order: u32) -> Key {
        Key::from(nanos) << 64 | Key::from(order)
    }

    #[test]
    fn events_leave_in_the_order_of_their_keys_over_several_years() {
        const YEAR: u64 = (DAYS as u64) << DAY_SHIFT;
        let mut rng = Rng::new(1);
        let (mut calendar, mut want) = (Calendar::default(), BTreeSet::new());
        let (mut now, mut refused) = (0, 0);
        for order in 0..200_000 {
            if rng.below(100) < 52 {
                // Often the same day, seldom the next year.
                let spread = [1, 1 << DAY_SHIFT, YEAR / 50, YEAR + YEAR / 10];
                let choice = usize::try_from(rng.below(4)).unwrap();
                let ahead = rng.below(spread[choice]);
                let key = key(now + ahead, order);
                if calendar.insert(key) {
                    want.insert(key);
                } else {
                    refused += 1;
                }
            } else {
                let least = want.pop_first();
                assert_eq!(calendar.least(), least.unwrap_or(NOTHING));
                calendar.remove_least();
                now = least.map_or(now, |least| time(least).as_nanos());
            }
        }
        assert!(now > 3 * YEAR, "{now}");
        assert!((100..20_000).contains(&refused), "{refused}");
        while let Some(least) = want.pop_first() {
            assert_eq!(calendar.least(), least);
            calendar.remove_least();
        }
        assert_eq!(calendar.least(), NOTHING);
    }

    #[test]
    fn what_is_before_today_and_after_the_last_day_is_refused() {
        let mut calendar = Calendar::default();
        let day = |n: u64| key(n << DAY_SHIFT, 0);
        assert!(!calendar.insert(day(DAYS as u64)));
        calendar.pass(day(1));
        assert!(!calendar.insert(day(0)));
        assert!(calendar.insert(day(DAYS as u64)));
        assert!(calendar.insert(day(1)));
        assert_eq!(calendar.least(), day(1));
    }

    #[test]
    fn a_full_first_day_refuses_events() {
        let mut calendar = Calendar::default();
        let taken = (0..100).filter(|&n| calendar.insert(key(0, n))).count();
        assert_eq!(taken, MOST_OF_FIRST);
        assert!((0..100).all(|n| calendar.insert(key(1 << DAY_SHIFT, n))));
        assert!(!calendar.insert(key(0, 100)));
    }

    #[test]
    fn an_earlier_day_becomes_the_first() {
        let mut calendar = Calendar::default();
        let day = |n: u64| key(n << DAY_SHIFT, 0);
        for n in [9, 5, 7, 1, 3] {
            assert!(calendar.insert(day(n)));
        }
        for n in [1, 3, 5, 7, 9] {
            assert_eq!(calendar.least(), day(n));
            calendar.remove_least();
        }
        assert_eq!(calendar.least(), NOTHING);
    }
}
