//! The two sides of a run, and the ports that identify its flows.

/// Flow number `n` is known by port `FIRST_PORT + n` of the end that is waited at, below the ports that the kernel chooses.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Flows that have a port.
pub(crate) const MOST_FLOWS: usize = 12_000;

/// Where a packet was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the client.
    Client,
    /// From the server.
    Server,
}

/// The side that data comes from which travels in this direction.
pub(crate) fn source_of(direction: Option<&str>) -> Side {
    match direction {
        Some("down") => Side::Server,
        _ => Side::Client,
    }
}
