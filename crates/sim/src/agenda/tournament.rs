//! A tournament tree for events that every packet reschedules.

use sojourn_net::Instant;

/// Keys side by side: half a cache line.
const ARITY: usize = 4;

/// Later than any event.
const NOTHING: u64 = u64::MAX;

/// The bit of a [`Place`] that is the turn.
const TURN: u64 = 1;

/// The least of a fixed number of events, one per slot: a tree of groups of four, in which each place of a group holds
/// the least of the group below it.
///
/// A key is one word: the time, then the slot, then the turn. So events at the same instant are ordered by slot. The
/// least of four keys is computed without branches; a branch on two keys would be mispredicted half of the time.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    /// The root, then what is below its first place, …; the slots are the places of the last
    /// groups.
    groups: Vec<[u64; ARITY]>,
    /// The first group of slots.
    slots: usize,
    least: u64,
    /// How many bits of a key are below the time, and these bits.
    shift: u32,
    below: u64,
    /// The latest time that a key can hold.
    latest: Instant,
}

/// A slot and the turn of the event in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    #[inline]
    pub(super) const fn new(slot: usize, turn: u64) -> Self {
        Self((slot as u64) << 1 | turn)
    }

    #[inline]
    pub(super) const fn slot(self) -> usize {
        (self.0 >> 1) as usize
    }

    #[inline]
    pub(super) const fn turn(self) -> u64 {
        self.0 & TURN
    }

    /// The same slot in the opposite turn.
    #[inline]
    pub(super) const fn next(self) -> Self {
        Self(self.0 ^ TURN)
    }
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Self {
        let (mut above, mut level) = (0, 1);
        while level * ARITY < slots {
            above += level;
            level *= ARITY;
        }
        let shift = usize::BITS - slots.leading_zeros() + 1;
        Self {
            groups: vec![[NOTHING; ARITY]; above + level],
            slots: above,
            least: NOTHING,
            shift,
            below: (1 << shift) - 1,
            // The time of `NOTHING` is later.
            latest: Instant::from_nanos((NOTHING >> shift) - 1),
        }
    }

    /// The latest time that a key can hold. Later events are discarded.
    pub(super) const fn latest(&self) -> Instant {
        self.latest
    }

    /// The time of the first event; if there is none, later than [`Tournament::latest`].
    #[inline]
    pub(super) const fn time(&self) -> Instant {
        Instant::from_nanos(self.least >> self.shift)
    }

    /// Where the first event is.
    #[inline]
    pub(super) const fn first(&self) -> Place {
        Place(self.least & self.below)
    }

    /// Whether no event is left at `now` in a slot before `slot`.
    #[inline]
    pub(super) const fn is_past(&self, now: Instant, slot: usize) -> bool {
        self.least >= self.key(now, Place::new(slot, 0))
    }

    /// Whether the event of this slot is that of this turn.
    #[inline]
    pub(super) fn holds(&self, place: Place) -> bool {
        let slot = place.slot();
        let key = self.groups[self.slots + slot / ARITY][slot % ARITY];
        key != NOTHING && key & TURN == place.turn()
    }

    /// Puts an event into its slot, in place of the one there.
    #[inline]
    pub(super) fn set(&mut self, place: Place, at: Instant) {
        self.put(place.slot(), self.key(at, place));
    }

    /// Removes the event of a slot.
    #[inline]
    pub(super) fn clear(&mut self, slot: usize) {
        self.put(slot, NOTHING);
    }

    #[inline]
    const fn key(&self, at: Instant, place: Place) -> u64 {
        if at.as_nanos() > self.latest.as_nanos() {
            return NOTHING;
        }
        at.as_nanos() << self.shift | place.0
    }

    #[inline]
    fn put(&mut self, slot: usize, key: u64) {
        // One or two levels, as most networks have, need no loop.
        match self.slots {
            0 => self.least = put(&mut self.groups[0], slot, key),
            1 => {
                let least = put(&mut self.groups[1 + slot / ARITY], slot, key);
                self.least = put(&mut self.groups[0], slot / ARITY, least);
            }
            _ => self.put_deep(slot, key),
        }
    }

    #[inline(never)]
    fn put_deep(&mut self, slot: usize, key: u64) {
        let (mut group, mut place, mut key) = (self.slots + slot / ARITY, slot, key);
        loop {
            key = put(&mut self.groups[group], place, key);
            if group == 0 {
                break;
            }
            (group, place) = ((group - 1) / ARITY, group - 1);
        }
        self.least = key;
    }
}

/// Replaces a key of a group, the remainder of `place`; returns the least one then.
#[inline]
fn put(keys: &mut [u64; ARITY], place: usize, key: u64) -> u64 {
    keys[place % ARITY] = key;
    keys[0].min(keys[1]).min(keys[2].min(keys[3]))
}
