//! The client that a flow belongs to.

/// A machine among several that share the links; each of its flows has a server of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Which one, at most [`Client::MOST`].
    pub number: u8,
    /// Data goes to it, and not from it.
    pub receives: bool,
}

impl Client {
    /// The highest number.
    pub const MOST: u8 = 126;
}
