//! Properties of the link that a discipline may know.

use sojourn_net::{Bytes, Rate};

/// Properties of the link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Rate of the link, if it is constant.
    pub rate: Option<Rate>,
    /// The largest packet, link header included: 1514 bytes on Ethernet.
    pub mtu: Bytes,
}

impl Default for LinkFacts {
    fn default() -> Self {
        Self {
            rate: None,
            mtu: Bytes(1_514),
        }
    }
}
