//! The view of a packet that queues are written against.

use crate::{Bytes, Dscp, FlowKey, Transport};

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable, classic.
    Ect0,
    /// ECN-capable, L4S (RFC 9331).
    Ect1,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// The two bits of the header.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// What the two lowest bits of `tos` say.
    #[inline]
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// What a queue may know of a packet, and may do to it.
///
/// A simulated packet, an owned Ethernet frame and a ring descriptor all implement it, so one
/// algorithm serves the simulator and the live datapath.
pub trait Packet {
    /// Length on the wire that the bottleneck is charged for.
    fn size(&self) -> Bytes;

    /// The ECN field as it stands.
    fn ecn(&self) -> Ecn;

    /// Overwrites the ECN field, fixing any checksum that covers it.
    fn set_ecn(&mut self, ecn: Ecn);

    /// The class that the sender asks for.
    fn dscp(&self) -> Dscp {
        Dscp::DEFAULT
    }

    /// Sets the DSCP and updates any checksum that covers it; does nothing for packets without one.
    fn set_dscp(&mut self, _dscp: Dscp) {}

    /// The box's own traffic, such as ARP, which some disciplines serve before all other (Linux:
    /// `TC_PRIO_CONTROL`).
    fn is_control(&self) -> bool {
        false
    }

    /// What can be read behind the IP header.
    fn transport(&self) -> Transport {
        Transport::Other
    }

    /// Whose packet it is; hashing and perturbation belong to the discipline.
    fn flow(&self) -> FlowKey;

    /// Sets CE if the packet is ECN-capable; returns whether it is.
    fn mark_ce(&mut self) -> bool {
        let capable = self.ecn() != Ecn::NotEct;
        if capable {
            self.set_ecn(Ecn::Ce);
        }
        capable
    }
}
