//! Links: rate, shaper, what a packet counts, delay and queue.

use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::{Framing, QdiscSpec};

/// A transmitter with a queue in front and a wire behind.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// What the records call it; unique, since its random streams are named after it.
    pub name: String,
    /// Bits per second at the layer that `encapsulation` brings packets to.
    pub rate: Rate,
    /// How the rate is enforced.
    pub shaper: Shaper,
    /// What a packet counts.
    pub encapsulation: Encapsulation,
    /// Propagation delay behind the transmitter.
    pub delay: Duration,
    /// The queue discipline.
    pub qdisc: QdiscSpec,
}

impl LinkConfig {
    /// A wire of `rate` for Ethernet frames, without delay.
    pub const fn new(name: String, rate: Rate, qdisc: QdiscSpec) -> Self {
        Self {
            name,
            rate,
            shaper: Shaper::Serial,
            encapsulation: Encapsulation::ETHERNET,
            delay: Duration::ZERO,
            qdisc,
        }
    }

    /// How long the link takes for a packet of this Ethernet size.
    pub(super) fn serialisation(&self, size: Bytes) -> Duration {
        self.rate.serialise(self.encapsulation.charged(size))
    }
}

/// How a link's rate is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaper {
    /// A wire: a packet leaves when its last bit has been serialised.
    Serial,
    /// A token bucket, as Linux's `htb` and `tbf`: a packet leaves at once while there is
    /// credit, and its serialisation time is charged afterwards.
    Bucket {
        /// The credit an idle link gathers.
        burst: Bytes,
    },
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
