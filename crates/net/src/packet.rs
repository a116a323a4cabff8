//! The view of a packet that queues are written against.

use crate::{Bytes, FlowKey};

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

    /// Whose packet it is; hashing and perturbation belong to the discipline.
    fn flow(&self) -> FlowKey;

    /// Sets CE if the sender can hear it; says whether it could.
    fn mark_ce(&mut self) -> bool {
        let capable = self.ecn() != Ecn::NotEct;
        if capable {
            self.set_ecn(Ecn::Ce);
        }
        capable
    }
}
