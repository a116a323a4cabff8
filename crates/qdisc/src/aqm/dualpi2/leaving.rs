//! A packet that is about to leave, and the decision about it.

use sojourn_net::{Bytes, Duration};

use crate::contract::{ClassId, MarkReason};

/// Which of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    L4s,
    Classic,
}

impl Band {
    /// What reports call it: the name of RFC 9332.
    pub(super) const fn id(self) -> ClassId {
        match self {
            Self::L4s => ClassId::named("L", 0),
            Self::Classic => ClassId::named("C", 1),
        }
    }
}

/// A packet that is about to leave, as the law sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) band: Band,
    /// It can be marked.
    pub(super) markable: bool,
    pub(super) waited: Duration,
    /// L's own threshold applies to it in the kernel.
    pub(super) step: bool,
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
