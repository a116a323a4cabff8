//! The memory footprint of a queue: waiting packets, and preallocated state.

/// Upper bounds on the memory of a queue, in units that do not depend on the type of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Entries of its tables: flows, bins, connections; at least 1 for the queue itself.
    pub slots: u64,
    /// Packets that may wait.
    pub packets: u64,
    /// Bytes that may wait.
    pub bytes: u64,
}

impl Footprint {
    /// No memory.
    pub const NONE: Self = Self {
        slots: 0,
        packets: 0,
        bytes: 0,
    };

    /// The footprint of `times` such queues.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self {
            slots: self.slots.saturating_mul(times),
            packets: self.packets.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
        }
    }

    /// The sum of two footprints.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(other.slots),
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
