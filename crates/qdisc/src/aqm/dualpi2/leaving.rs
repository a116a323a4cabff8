//! A packet that is about to leave, and the decision about it.

use sojourn_net::{Bytes, Duration};

use crate::contract::MarkReason;

/// Which of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    L4s,
    Classic,
}

/// A packet that is about to leave, as the law sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) band: Band,
    /// It can be marked.
    pub(super) markable: bool,
    pub(super) waited: Duration,
    /// Packets its queue held, itself among them.
    pub(super) held: usize,
    /// Bytes that both queues still hold.
    pub(super) left: Bytes,
}

/// Decision about a packet that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark(MarkReason),
    Drop,
}
