//! The tail loss probe in flight (RFC 8985 §7).

/// A tail loss probe that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailLossProbe {
    /// It is answered when everything below this is acknowledged.
    pub(crate) end: u32,
    /// It retransmitted a segment.
    pub(crate) is_resend: bool,
}
