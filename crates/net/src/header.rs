//! Headers behind the IP header, as far as a queue reads them.

/// What a box on the way can read behind the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment (RFC 9293).
    Tcp(TcpHeader),
    /// A UDP datagram whose first byte is that of a QUIC long header (RFC 8999 §5.1): a
    /// connection that is being set up.
    QuicLong,
    /// Any other UDP datagram.
    Udp,
    /// Anything else.
    #[default]
    Other,
}

/// A TCP header as a box on the way needs it. Numbers may count segments instead of bytes: only
/// their order (RFC 9293 §3.4, modulo 2^32) and equality mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// First number carried.
    pub seq: u32,
    /// Next number expected.
    pub ack: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Window, unscaled or scaled; the same for all segments of a flow.
    pub window: u32,
    /// Control bits, as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR
    /// 128.
    pub flags: u8,
    /// Timestamps: the sender's clock, and the peer's echoed (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks `[start, end)`, newest first; unused ones are empty (RFC 2018).
    pub sacks: [(u32, u32); 3],
}

impl TcpHeader {
    /// The last data of the connection.
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Refuses or breaks one.
    pub const RST: u8 = 4;
    /// Data for the application at once.
    pub const PSH: u8 = 8;
    /// `ack` is valid.
    pub const ACK: u8 = 16;
    /// ECN-Echo (RFC 3168).
    pub const ECE: u8 = 64;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 128;
}
