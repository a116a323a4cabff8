//! One packet at one observation point, and its verdict there.

use std::fmt;

use sojourn_net::Instant;
use sojourn_qdisc::{DropReason, MarkReason};

/// A packet at an observation point.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub at: Instant,
    /// The number of the packet, the same at every point.
    pub id: Option<u64>,
    /// Whether it enters or leaves.
    pub direction: Direction,
    /// The queue of a fair-queueing discipline that the packet is in.
    pub queue: Option<u32>,
    /// The verdict.
    pub verdict: Verdict,
    /// Bytes on the wire, from the first header of the link type on.
    pub length: u32,
    /// The first bytes of the packet: at least its headers, at most `length` bytes.
    pub data: &'a [u8],
}

/// The direction of a packet at an observation point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Not stated.
    #[default]
    Unknown,
    /// It enters the queue.
    Inbound,
    /// It leaves the queue.
    Outbound,
}

impl Direction {
    /// The two lowest bits of `epb_flags`.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }
}

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// None: it passes.
    #[default]
    Passed,
    /// It was CE-marked.
    Marked(MarkReason),
    /// The queue dropped it.
    Dropped(DropReason),
    /// The wire lost it.
    Lost,
}

impl Verdict {
    /// The comment on the packet, with the name of the queue if it is known; `None`: no comment.
    pub(crate) const fn comment(self, queue: &str) -> Option<Comment<'_>> {
        match self {
            Self::Passed => None,
            verdict => Some(Comment { verdict, queue }),
        }
    }
}

/// The comment on a packet, such as `dropped: fq_codel aqm`.
pub(crate) struct Comment<'a> {
    verdict: Verdict,
    queue: &'a str,
}

impl fmt::Display for Comment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decision, reason) = match self.verdict {
            Verdict::Passed => return f.write_str("passed"),
            Verdict::Lost => return f.write_str("lost on the wire"),
            Verdict::Dropped(DropReason::Overlimit) => ("dropped", "overlimit"),
            Verdict::Dropped(DropReason::Aqm) => ("dropped", "aqm"),
            Verdict::Marked(MarkReason::Aqm) => ("marked CE", "aqm"),
            Verdict::Marked(MarkReason::CeThreshold) => ("marked CE", "ce_threshold"),
        };
        if self.queue.is_empty() {
            write!(f, "{decision}: {reason}")
        } else {
            write!(f, "{decision}: {} {reason}", self.queue)
        }
    }
}
