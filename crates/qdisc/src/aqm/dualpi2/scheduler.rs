//! The scheduler between the two queues.

use sojourn_net::{Bytes, Duration};

use super::leaving::Band;

/// What chooses between two queues that both hold packets.
#[derive(Clone, Debug)]
pub(super) enum Scheduler {
    /// Weighted: the sign of the credit says whose turn it is.
    RoundRobin {
        /// Weights in hundredths of a per cent.
        classic: i64,
        l4s: i64,
        start: i64,
        credit: i64,
    },
    /// The oldest, C's packets made younger.
    TimeShifted { shift: Duration },
}

impl Scheduler {
    #[inline]
    pub(super) fn choose(&self, l4s_waited: Duration, classic_waited: Duration) -> Band {
        let l4s = match *self {
            Self::RoundRobin { credit, .. } => credit <= 0,
            Self::TimeShifted { shift } => classic_waited.saturating_sub(shift) <= l4s_waited,
        };
        if l4s { Band::L4s } else { Band::Classic }
    }

    /// A packet of `size` left while the other queue held some.
    #[inline]
    pub(super) fn charge(&mut self, band: Band, size: Bytes) {
        if let Self::RoundRobin {
            classic,
            l4s,
            credit,
            ..
        } = self
        {
            let change = match band {
                Band::L4s => *classic,
                Band::Classic => -*l4s,
            };
            *credit = credit.saturating_add(change.saturating_mul(signed(size)));
        }
    }

    /// Both queues are empty.
    #[inline]
    pub(super) fn reset(&mut self) {
        if let Self::RoundRobin { start, credit, .. } = self {
            *credit = *start;
        }
    }
}

/// A length as weights are multiplied with; no packet comes near 2^40 bytes.
#[inline]
pub(super) fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).map_or(1 << 40, |n| n.min(1 << 40))
}
