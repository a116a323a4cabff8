//! State that the handshake of a two-way TCP connection passes to the other half.

/// The result of a handshake. An end that sends and receives is a [`crate::Sender`] and a
/// [`crate::Receiver`], one of which takes part in the handshake; the other is given this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Round-trip time of the handshake, in µs.
    pub rtt_micros: u32,
    /// ECN was negotiated.
    pub ecn: bool,
    /// How the peer received the SYN-ACK shows that the path overwrites the IP ECN field (RFC 9768 §3.2.2.3).
    pub is_mangled: bool,
    /// The SYN-ACK arrived CE-marked, over AccECN.
    pub syn_ack_marked: bool,
    /// The peer's latest timestamp (RFC 7323).
    pub peer_stamp: u32,
    /// The receive window of the peer in bytes.
    pub peer_window: u32,
}
