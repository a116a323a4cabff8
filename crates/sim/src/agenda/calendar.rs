//! A calendar for events of the next seconds.

use super::key::{Key, NOTHING, time};

/// A day lasts 2^18 ns, 0.26 ms: of 100 flows with timers of milliseconds, each day has about one.
const DAY_SHIFT: u32 = 18;
/// Days of the calendar, 4.3 s in all: longer than most retransmission time-outs.
const DAYS: usize = 1 << 14;
/// Events of a day that an insertion passes at most.
const LONGEST_WALK: u32 = 16;
/// No event: places of events begin at 1, so that an empty calendar is memory that was never touched.
const NONE: u32 = 0;

/// A calendar queue (Brown 1988): a list per day, in the order of the keys, and a bitmap of the days with events.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// The first event of each day, by the number of the day modulo [`DAYS`].
    first_of: Vec<u32>,
    busy: Bitmap,
    /// At 0, none; unused ones form a list that begins at `unused`.
    events: Vec<Noted>,
    unused: u32,
    /// The day of the latest event that was removed: the first day of the calendar.
    today: u64,
    least: Key,
}

/// An event in the calendar.
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
            first_of: vec![NONE; DAYS],
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

    /// Inserts `key`; `false`: it is not of the next days, or its day is full.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> bool {
        let day = day(key);
        if day.wrapping_sub(self.today) >= DAYS as u64 {
            return false;
        }
        let slot = slot(day);
        let (mut before, mut after) = (NONE, self.first_of[slot]);
        let mut steps = 0;
        while after != NONE {
            let noted = &self.events[after as usize];
            if key < noted.key {
                break;
            }
            if steps == LONGEST_WALK {
                return false;
            }
            steps += 1;
            (before, after) = (after, noted.next);
        }
        let place = self.note(Noted { key, next: after });
        if before == NONE {
            self.first_of[slot] = place;
            self.busy.set(slot);
            self.least = self.least.min(key);
        } else {
            self.events[before as usize].next = place;
        }
        true
    }

    #[inline]
    fn note(&mut self, noted: Noted) -> u32 {
        let place = self.unused;
        if place == NONE {
            self.events.push(noted);
            let place = u32::try_from(self.events.len() - 1);
            return place.expect("of 2^24 flows, each has a few timers");
        }
        self.unused = self.events[place as usize].next;
        self.events[place as usize] = noted;
        place
    }

    /// Removes the least key.
    #[inline]
    pub(super) fn remove_least(&mut self) {
        if self.least == NOTHING {
            return;
        }
        let today = day(self.least);
        let slot = slot(today);
        self.today = today;
        let place = self.first_of[slot];
        let next = self.events[place as usize].next;
        self.events[place as usize] = Noted {
            key: NOTHING,
            next: self.unused,
        };
        self.unused = place;
        self.first_of[slot] = next;
        self.least = if next == NONE {
            self.busy.clear(slot);
            let first = self.busy.from(slot).map(|slot| self.first_of[slot]);
            first.map_or(NOTHING, |first| self.events[first as usize].key)
        } else {
            self.events[next as usize].key
        };
    }

    /// An event that is not in the calendar was removed: no other is earlier.
    #[inline]
    pub(super) fn pass(&mut self, key: Key) {
        self.today = self.today.max(day(key));
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.events.iter().map(|noted| &noted.key)
    }

    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Key> {
        let least = std::iter::once(&mut self.least);
        self.events
            .iter_mut()
            .map(|noted| &mut noted.key)
            .chain(least)
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
    fn a_full_day_refuses_events_at_its_end() {
        let mut calendar = Calendar::default();
        let taken = (0..100).filter(|&n| calendar.insert(key(0, n))).count();
        assert_eq!(taken, 1 + LONGEST_WALK as usize);
        assert!(calendar.insert(key(1 << DAY_SHIFT, 100)));
    }
}
