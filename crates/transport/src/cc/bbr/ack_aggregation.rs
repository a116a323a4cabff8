//! `extra_acked`: data acknowledged in excess of the bandwidth.

use sojourn_net::Instant;

use super::super::bbr_common::BW_SCALE;

/// An epoch is restarted after this number of segments.
const ACK_EPOCH_ACKED_RESET_THRESH: u32 = 1 << 20;

/// Newly acknowledged segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Instant,
    pub(super) newly: u32,
    /// The bandwidth of the path.
    pub(super) bw: u64,
    /// They begin a round.
    pub(super) round: bool,
    pub(super) cwnd: u32,
}

/// Estimates how far acknowledgements are aggregated, so that the window can bridge the gaps between them.
#[derive(Clone, Debug, Default)]
pub(super) struct AckAggregation {
    ack_epoch_mstamp: Instant,
    ack_epoch_acked: u32,
    extra_acked: [u32; 2],
    extra_acked_win_idx: usize,
    extra_acked_win_rtts: u32,
}

impl AckAggregation {
    pub(super) fn begin(&mut self, now: Instant) {
        self.ack_epoch_mstamp = now;
        self.ack_epoch_acked = 0;
    }

    /// Segments were acknowledged; each of the two slots of the maximum lasts `win_rtts` rounds.
    pub(super) fn update(&mut self, win_rtts: u32, acked: &Acked) {
        let &Acked {
            now,
            newly,
            bw,
            round,
            cwnd,
        } = acked;
        if round {
            self.extra_acked_win_rtts += 1;
            if self.extra_acked_win_rtts >= win_rtts {
                self.extra_acked_win_rtts = 0;
                self.extra_acked_win_idx ^= 1;
                self.extra_acked[self.extra_acked_win_idx] = 0;
            }
        }
        let expected = |since: Instant| (bw * now.since(since).as_micros()) >> BW_SCALE;
        let mut explained = expected(self.ack_epoch_mstamp);
        if u64::from(self.ack_epoch_acked) <= explained
            || self.ack_epoch_acked + newly >= ACK_EPOCH_ACKED_RESET_THRESH
        {
            self.begin(now);
            explained = 0;
        }
        self.ack_epoch_acked += newly;
        let extra = u64::from(self.ack_epoch_acked).saturating_sub(explained);
        let extra = u32::try_from(extra).unwrap_or(u32::MAX).min(cwnd);
        let slot = &mut self.extra_acked[self.extra_acked_win_idx];
        *slot = (*slot).max(extra);
    }

    /// The largest excess of the last five to ten rounds, in segments.
    pub(super) fn get(&self) -> u32 {
        self.extra_acked[0].max(self.extra_acked[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment a millisecond.
    const BW: u64 = (1 << BW_SCALE) / 1_000;

    const fn acked(now: Instant, newly: u32, round: bool) -> Acked {
        Acked {
            now,
            newly,
            bw: BW,
            round,
            cwnd: 1_000,
        }
    }

    #[test]
    fn steady_acknowledgements_are_explained() {
        let mut a = AckAggregation::default();
        for ms in 1..100 {
            a.update(5, &acked(Instant::from_millis(ms), 1, false));
        }
        // The bandwidth is rounded down.
        assert!(a.get() <= 2, "{}", a.get());
    }

    #[test]
    fn a_burst_of_acknowledgements_is_remembered_for_two_slots_at_most() {
        let mut a = AckAggregation::default();
        a.update(5, &acked(Instant::from_millis(10), 30, false));
        assert_eq!(a.get(), 30);
        for round in 0..10 {
            assert_eq!(a.get(), 30, "round {round}");
            let now = Instant::from_millis(1_000 * (round + 1));
            a.update(5, &acked(now, 1, true));
        }
        assert_eq!(a.get(), 1);
    }
}
