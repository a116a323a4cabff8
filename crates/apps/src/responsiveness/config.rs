//! Configuration of a responsiveness test.

use sojourn_net::Bytes;
use sojourn_transport::SenderParams;

/// What is tested.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsivenessConfig {
    /// Of every connection, at both ends.
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
