//! How much more is acknowledged at once than the bandwidth explains.

use sojourn_net::Instant;

use super::UNIT_BW_SHIFT;

/// Rounds of each of the two slots the maximum is taken over.
const SLOT_ROUNDS: u32 = 5;
/// An epoch begins anew after so many segments.
const MOST: u32 = 1 << 20;

/// Estimates by how much acknowledgements come in lumps, so that the window can bridge the gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    epoch: Instant,
    acked: u32,
    slots: [u32; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) fn begin(&mut self, now: Instant) {
        self.epoch = now;
        self.acked = 0;
    }

    /// `newly` segments were delivered at `now` on a path of bandwidth `bw`.
    pub(super) fn take(&mut self, now: Instant, newly: u32, bw: u64, round: bool, cwnd: u32) {
        if round {
            self.rounds += 1;
            if self.rounds >= SLOT_ROUNDS {
                self.rounds = 0;
                self.slot ^= 1;
                self.slots[self.slot] = 0;
            }
        }
        let expected = |since: Instant| (bw * now.since(since).as_micros()) >> UNIT_BW_SHIFT;
        let mut explained = expected(self.epoch);
        if u64::from(self.acked) <= explained || self.acked + newly >= MOST {
            self.begin(now);
            explained = 0;
        }
        self.acked += newly;
        let extra = u64::from(self.acked).saturating_sub(explained);
        let extra = u32::try_from(extra).unwrap_or(u32::MAX).min(cwnd);
        let slot = &mut self.slots[self.slot];
        *slot = (*slot).max(extra);
    }

    /// The most that came at once in the last five to ten rounds, in segments.
    pub(super) fn extra(&self) -> u32 {
        self.slots[0].max(self.slots[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment a millisecond.
    const BW: u64 = (1 << UNIT_BW_SHIFT) / 1_000;

    #[test]
    fn steady_acknowledgements_are_explained() {
        let mut a = Aggregation::default();
        for ms in 1..100 {
            a.take(Instant::from_millis(ms), 1, BW, false, 1_000);
        }
        // The bandwidth is rounded down.
        assert!(a.extra() <= 2, "{}", a.extra());
    }

    #[test]
    fn a_lump_is_remembered_for_two_slots_at_most() {
        let mut a = Aggregation::default();
        a.take(Instant::from_millis(10), 30, BW, false, 1_000);
        assert_eq!(a.extra(), 30);
        for round in 0..10 {
            assert_eq!(a.extra(), 30, "round {round}");
            let now = Instant::from_millis(1_000 * (round + 1));
            a.take(now, 1, BW, true, 1_000);
        }
        assert_eq!(a.extra(), 1);
    }
}
