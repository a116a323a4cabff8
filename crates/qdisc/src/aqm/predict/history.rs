//! The history of the link in time slots: busy time and backlog.
//!
//! A slot is named by its number on the clock. What is kept is bounded: a ring of slots, the
//! oldest of which are asked for no more.

/// How the busy time in a window is known.
#[derive(Clone, Debug)]
enum Busy {
    /// A rolling sum for each candidate in each slot, as its authors describe it.
    Rolling {
        /// Of one slot.
        tslot_busy: Vec<u32>,
        /// Of the window that ends now, for each candidate.
        rolling: Vec<u32>,
        /// The same of past slots: a row for each slot.
        history: Vec<u32>,
    },
    /// Busy time since the beginning, modulo 2^32 ns: a window is a difference of two.
    Cumulative {
        sums: Vec<u32>,
        /// The sum before the first slot.
        base: u32,
    },
}

/// What waited at the end of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// The time that it takes to send, in ns.
    nanos: u32,
    /// The same in whole slots.
    slots: u32,
}

/// Busy time in windows of several lengths, and backlog, at the end of past slots.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// The length of each candidate's window, in slots.
    windows: Vec<u32>,
    /// In ns.
    slot: u32,
    stretch: bool,
    /// The oldest slots that are asked for are this old.
    reach: u64,
    mask: usize,
    /// The first slot known, and the one under way.
    first: u64,
    next: u64,
    waiting: Vec<Waiting>,
    busy: Busy,
}

impl History {
    /// Of nothing yet, with room for `rounds` steps back; `slot` in ns.
    pub(super) fn new(
        windows: Vec<u32>,
        slot: u32,
        rounds: usize,
        stretch: bool,
        compact: bool,
    ) -> Self {
        let longest = windows.iter().copied().max().unwrap_or(1) as usize;
        let slots = ((rounds + 2) * longest * 3 / 2).next_power_of_two();
        let busy = if compact {
            Busy::Cumulative {
                sums: vec![0; slots],
                base: 0,
            }
        } else {
            Busy::Rolling {
                tslot_busy: vec![0; slots],
                rolling: vec![0; windows.len()],
                history: vec![0; slots * windows.len()],
            }
        };
        Self {
            windows,
            slot,
            stretch,
            reach: (slots - longest - 1) as u64,
            mask: slots - 1,
            first: 0,
            next: 0,
            waiting: vec![Waiting::default(); slots],
            busy,
        }
    }

    pub(super) const fn set_stretch(&mut self, stretch: bool) {
        self.stretch = stretch;
    }

    /// The slot under way.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Slots that there is room for.
    pub(super) const fn room(&self) -> u64 {
        self.mask as u64 + 1
    }

    const fn index(&self, slot: u64) -> usize {
        index(slot, self.mask)
    }

    /// Forgets everything; `slot` is under way.
    pub(super) fn forget(&mut self, slot: u64) {
        match &mut self.busy {
            Busy::Rolling {
                tslot_busy,
                rolling,
                ..
            } => {
                tslot_busy.fill(0);
                rolling.fill(0);
            }
            Busy::Cumulative { sums, base } => {
                *base = sums[index(self.next.wrapping_sub(1), self.mask)];
            }
        }
        self.first = slot;
        self.next = slot;
    }

    /// Ends the slot under way, of which the link was busy for `busy` ns, while what waits takes
    /// `backlog` ns to send.
    pub(super) fn record(&mut self, busy: u32, backlog: u32) {
        let (slot, at) = (self.next, self.index(self.next));
        self.waiting[at] = Waiting {
            nanos: backlog,
            slots: backlog / self.slot,
        };
        match &mut self.busy {
            Busy::Rolling {
                tslot_busy,
                rolling,
                history,
            } => {
                let row = &mut history[at * self.windows.len()..][..self.windows.len()];
                for ((sum, past), &window) in rolling.iter_mut().zip(row).zip(&self.windows) {
                    // What lies before the first slot is zero in the ring.
                    let tail = slot.wrapping_sub(u64::from(window));
                    *sum = *sum + busy - tslot_busy[index(tail, self.mask)];
                    *past = *sum;
                }
                tslot_busy[at] = busy;
            }
            Busy::Cumulative { sums, base } => {
                let before = if slot == self.first {
                    *base
                } else {
                    sums[index(slot.wrapping_sub(1), self.mask)]
                };
                sums[at] = before.wrapping_add(busy);
            }
        }
        self.next += 1;
    }

    /// The load of `candidate` at the end of `slot`, in ns: what the link sent in the window, and
    /// what waited.
    #[inline]
    pub(super) fn load(&self, candidate: usize, slot: u64) -> u64 {
        let at = self.index(slot);
        let busy = match &self.busy {
            Busy::Rolling { history, .. } => history[at * self.windows.len() + candidate],
            Busy::Cumulative { sums, base } => {
                let tail = slot.checked_sub(u64::from(self.windows[candidate]));
                let tail = tail.filter(|&tail| tail >= self.first);
                let before = tail.map_or(*base, |tail| sums[self.index(tail)]);
                sums[at].wrapping_sub(before)
            }
        };
        u64::from(busy) + u64::from(self.waiting[at].nanos)
    }

    /// The slot one round trip of `candidate` before `slot`, if it is known: the packets that
    /// waited then took longer to come round.
    #[inline]
    pub(super) fn round_before(&self, candidate: usize, slot: u64) -> Option<u64> {
        let plain = slot.checked_sub(u64::from(self.windows[candidate]))?;
        let mut back = plain;
        if self.stretch {
            for _ in 0..2 {
                if !self.knows(back) {
                    return None;
                }
                back = plain.checked_sub(u64::from(self.waiting[self.index(back)].slots))?;
            }
        }
        self.knows(back).then_some(back)
    }

    #[inline]
    const fn knows(&self, slot: u64) -> bool {
        slot >= self.first && self.next - slot <= self.reach
    }
}

/// The place of a slot in the ring.
#[expect(clippy::cast_possible_truncation, reason = "the ring is shorter")]
const fn index(slot: u64, mask: usize) -> usize {
    slot as usize & mask
}
