//! The packet fields that an external discipline may read.

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Packet, Transport};

/// The fields of a packet that an external queue may read.
///
/// It reads sizes and headers from the ticket, marks it with [`Packet::mark_ce`] and hands the
/// same ticket back, to the observer or as the next packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The place of the packet in [`External`](super::External).
    id: u32,
    size: Bytes,
    ecn: Ecn,
    dscp: Dscp,
    control: bool,
    transport: Transport,
    flow: FlowKey,
}

impl Ticket {
    /// The number of the packet among those that wait in the same queue.
    pub const fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn of<P: Packet>(id: u32, pkt: &P) -> Self {
        Self {
            id,
            size: pkt.size(),
            ecn: pkt.ecn(),
            dscp: pkt.dscp(),
            control: pkt.is_control(),
            transport: pkt.transport(),
            flow: pkt.flow(),
        }
    }
}

impl Packet for Ticket {
    fn size(&self) -> Bytes {
        self.size
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn dscp(&self) -> Dscp {
        self.dscp
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    fn is_control(&self) -> bool {
        self.control
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn flow(&self) -> FlowKey {
        self.flow
    }
}
