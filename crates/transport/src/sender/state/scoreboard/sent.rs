//! A segment on the board.

use sojourn_net::Instant;

use crate::segment::Flags;

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Its last transmission.
    pub(crate) at: Instant,
    pub(crate) len: u16,
    /// The states that it is in.
    pub(super) flags: u8,
    /// PSH and FIN, which a retransmission repeats.
    pub(crate) control: Flags,
}

impl Sent {
    pub(crate) const fn new(at: Instant, len: u16, control: Flags) -> Self {
        Self {
            at,
            len,
            flags: 0,
            control,
        }
    }

    /// Whether it is in any of the states `flags`.
    #[inline]
    pub(crate) const fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}
