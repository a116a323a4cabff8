//! State that the handshake of a two-way TCP connection passes to the other half.

/// The result of a handshake. An end that sends and receives is a [`crate::Sender`] and a
/// [`crate::Receiver`], one of which takes part in the handshake; the other is given this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Round-trip time of the handshake, in µs.
    pub rtt_micros: u32,
    /// ECN was negotiated.
    pub ecn: bool,
    /// The peer's latest timestamp (RFC 7323).
    pub peer_stamp: u32,
    /// The receive window of the peer in bytes.
    pub peer_window: u32,
}
