//! How a link sends: its rate, the shaper that enforces it, and the bytes that a packet counts.

use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::Framing;

use super::rates::RateTrace;
use super::trace::Trace;

/// How a link sends.
#[derive(Clone, Debug, PartialEq)]
pub struct TransmitterConfig {
    /// Bits per second at the layer that `encapsulation` brings packets to.
    pub rate: Rate,
    /// How the rate is enforced.
    pub shaper: Shaper,
    /// What a packet counts.
    pub encapsulation: Encapsulation,
    /// Opportunities to send instead of a rate and shaper; `rate` is their mean.
    pub trace: Option<Trace>,
    /// The rate over time instead of a rate and shaper; `rate` is the mean.
    pub rates: Option<RateTrace>,
    /// Whether the rate will change.
    pub changes_rate: bool,
    /// Whether a controller asks for the utilisation of the link and may change its rate.
    pub is_controlled: bool,
}

impl TransmitterConfig {
    /// Sends Ethernet frames at `rate`, one after the other.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            shaper: Shaper::Serial,
            encapsulation: Encapsulation::ETHERNET,
            trace: None,
            rates: None,
            changes_rate: false,
            is_controlled: false,
        }
    }

    /// Whether a trace determines the rate.
    pub const fn follows_trace(&self) -> bool {
        self.trace.is_some() || self.rates.is_some()
    }

    /// Whether the link sends frames as they are, always at one rate unless a controller changes it.
    pub fn is_plain(&self) -> bool {
        self.encapsulation == Encapsulation::ETHERNET && !self.follows_trace() && !self.changes_rate
    }
}

/// How a link's rate is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaper {
    /// A wire: a packet leaves when its last bit has been serialised.
    Serial,
    /// A token bucket, as Linux's `htb`: a packet leaves at once while there is credit, and its serialisation time
    /// is charged afterwards, so that in any time *t* a packet more than the burst and *t* at the rate may leave.
    Bucket {
        /// The credit an idle link gathers.
        burst: Bytes,
    },
    /// A token bucket, as Linux's `tbf`: a packet leaves when there is credit for all of it, so that in any time *t*
    /// no more than the burst and *t* at the rate leaves.
    Tbf {
        /// Maximum credit; at least a full frame.
        burst: Bytes,
    },
    /// A wire behind the transmit ring of a device, which takes packets out of the queue ahead of their transmission.
    Ring(RingConfig),
}

/// The transmit ring of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// Packets that it holds.
    pub packets: u32,
    /// Whether byte queue limits apply.
    pub bql: bool,
    /// Time from the first transmission that an interrupt reports to the interrupt.
    pub coalesce: Duration,
}

/// What the link layer makes of a packet, by its Ethernet size (14 B header, no FCS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Bytes added; may be negative.
    pub overhead: i16,
    /// What the smallest packet counts, once they are added.
    pub mpu: u16,
    /// How the sum is packed.
    pub framing: Framing,
}

impl Encapsulation {
    /// Frames as queues count them.
    pub const ETHERNET: Self = Self {
        overhead: 0,
        mpu: 0,
        framing: Framing::Bytes,
    };

    /// What a packet of this Ethernet size is charged for.
    #[inline]
    pub fn charged(&self, size: Bytes) -> Bytes {
        let bytes = size.0.saturating_add_signed(self.overhead.into());
        Bytes(self.framing.wire(bytes.max(self.mpu.into()).max(1)))
    }
}

impl Default for Encapsulation {
    fn default() -> Self {
        Self::ETHERNET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_its_overhead_then_the_least_then_whole_cells() {
        let of = |overhead, mpu, framing| Encapsulation {
            overhead,
            mpu,
            framing,
        };
        let charged = |layer: Encapsulation, size| layer.charged(Bytes(size)).0;
        assert_eq!(charged(Encapsulation::ETHERNET, 1_514), 1_514);
        // The least frame of Ethernet with preamble and gap.
        let ethernet = of(24, 84, Framing::Bytes);
        assert_eq!(
            [54, 60, 1_514].map(|n| charged(ethernet, n)),
            [84, 84, 1_538]
        );
        let pppoe_llc = of(40 - 14, 0, Framing::Atm);
        assert_eq!(
            [54, 1_514].map(|n| charged(pppoe_llc, n)),
            [2 * 53, 33 * 53]
        );
        assert_eq!(charged(of(-100, 0, Framing::Bytes), 60), 1);
    }
}
