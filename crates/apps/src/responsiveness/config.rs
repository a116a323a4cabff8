//! Configuration of a responsiveness test.

use sojourn_net::Bytes;
use sojourn_transport::SenderParams;

use crate::transport::Transport;

/// Configuration of a responsiveness test.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsivenessConfig {
    /// Transport of the connections.
    pub transport: Transport,
    /// Parameters of both ends of each connection; over QUIC, those that QUIC has too.
    pub tcp: SenderParams,
    /// Load-generating connections, at most.
    pub connections: u32,
    /// They fetch data without end; else there is one, and it is idle.
    pub load: bool,
    /// Connections begin with the handshake of TLS 1.3.
    pub tls: bool,
    /// Bytes of a request.
    pub request: Bytes,
}

impl ResponsivenessConfig {
    /// Whether the handshake of TLS takes a round trip of its own: in QUIC's it is contained.
    pub(super) fn has_tls_round_trip(&self) -> bool {
        self.tls && self.transport == Transport::Tcp
    }
}
