//! What keeps an end of a connection from sending more data.

/// Why an end sends no more data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It repairs losses.
    Recovery,
    /// The application has nothing more to send.
    Application,
    /// The receive window of TCP or flow control of QUIC.
    ReceiveWindow,
    /// The pacing rate, while the congestion window has room.
    Pacing,
    /// The congestion window.
    CongestionWindow,
}

impl Limit {
    /// How many causes there are.
    pub const COUNT: usize = 5;
}
