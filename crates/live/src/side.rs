//! The two sides of a run, and the ports that identify its flows.

/// Flow number `n` uses port `FIRST_PORT + n` on the listening side, below the ephemeral ports of the kernel.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Most flows that can have a port.
pub(crate) const MOST_FLOWS: usize = 12_000;

/// Where a packet was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the client.
    Client,
    /// From the server.
    Server,
}

/// The side that sends data in this direction.
pub(crate) fn source_of(direction: Option<&str>) -> Side {
    match direction {
        Some("down") => Side::Server,
        _ => Side::Client,
    }
}

/// The built-in flow with this port, if its number is below `flows`.
#[inline]
pub(crate) fn flow_at(port: u16, flows: usize) -> Option<u32> {
    let number = port.checked_sub(FIRST_PORT)?;
    (usize::from(number) < flows).then_some(number.into())
}
