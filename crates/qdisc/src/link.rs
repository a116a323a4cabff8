//! Properties of the link that a discipline may know.

use std::sync::Arc;

use sojourn_net::{Bytes, Rate};

/// Properties of the link that a discipline serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Rate of the link, if it is constant.
    pub rate: Option<Rate>,
    /// The largest packet, link header included: 1514 bytes on Ethernet.
    pub mtu: Bytes,
    /// Name of the link, if it has one.
    pub name: Option<Arc<str>>,
}

impl Default for LinkFacts {
    fn default() -> Self {
        Self {
            rate: None,
            mtu: Bytes(1_514),
            name: None,
        }
    }
}
