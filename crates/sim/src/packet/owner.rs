//! Whose packet it is.

use std::num::NonZeroU32;

use sojourn_scenario::plan::Client;

/// Whose packet it is: the flow, in 24 bits, and its client, plus 1.
///
/// Not zero, so that an `Option<Packet>` needs no more than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(pub(super) NonZeroU32);

impl Owner {
    pub(super) const FLOW_SHIFT: u32 = 8;

    /// Flow number `flow`, below 2^24, of `client`.
    pub(crate) const fn new(flow: u32, client: Option<Client>) -> Self {
        let code = match client {
            None => 0,
            Some(client) => 1 + 2 * client.number as u32 + client.receives as u32,
        };
        Self(NonZeroU32::MIN.saturating_add(flow << Self::FLOW_SHIFT | code))
    }

    /// The same client's, but of flow number `flow`.
    pub(crate) const fn with_flow(self, flow: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(flow << Self::FLOW_SHIFT | self.code()))
    }

    /// The number of the flow.
    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.0.get() >> Self::FLOW_SHIFT
    }

    /// 0, or the client and whether it receives.
    #[inline]
    const fn code(self) -> u32 {
        (self.0.get() & 0xFF) - 1
    }

    /// The number of its client.
    pub(crate) const fn client(self) -> Option<u8> {
        match self.code().to_le_bytes()[0] {
            0 => None,
            code => Some((code - 1) / 2),
        }
    }

    /// Who sends data, and who receives it: a client, and a server that only this flow talks to.
    #[inline]
    pub(super) const fn hosts(self) -> (u64, u64) {
        let server = 1 << 32 | self.flow() as u64;
        match self.code() as u64 {
            0 => (1, 2),
            code if code % 2 == 1 => (256 + code / 2, server),
            code => (server, 256 + code / 2 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Packet};
    use sojourn_net::Packet as View;

    #[test]
    fn a_client_is_the_same_host_in_both_directions() {
        let hosts = |number, receives, kind| {
            let owner = Owner::new(0xFF_FFFF, Some(Client { number, receives }));
            assert_eq!(owner.client(), Some(number));
            assert_eq!(owner.flow(), 0xFF_FFFF);
            let key = Packet::empty(owner, kind).flow();
            (key.source, key.destination)
        };
        for number in [0, 1, Client::MOST] {
            let (client, server) = hosts(number, false, Kind::Data);
            assert_eq!(client, 256 + u64::from(number));
            assert_eq!(hosts(number, false, Kind::Ack), (server, client));
            assert_eq!(hosts(number, true, Kind::Data), (server, client));
            assert_eq!(hosts(number, true, Kind::Ack), (client, server));
        }
        let key = Packet::empty(Owner::new(7, None), Kind::Data).flow();
        assert_eq!((key.source, key.destination, key.ports), (1, 2, 7));
    }
}
