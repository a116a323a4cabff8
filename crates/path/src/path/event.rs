//! What happens to the packets of a path.

use std::fmt;

use sojourn_net::{Bytes, Duration, FlowKey, Instant};
use sojourn_qdisc::{DropReason, MarkReason};

use super::{Direction, PacketId};

/// Something that happened to a packet.
///
/// As text, it is a line such as `12.345678ms forward 17 dropped: aqm after 5.000000ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Event {
    /// When.
    pub at: Instant,
    /// The direction of the packet.
    pub direction: Direction,
    /// The packet.
    pub packet: PacketId,
    /// Its flow.
    pub flow: FlowKey,
    /// Its size as an Ethernet frame.
    pub size: Bytes,
    /// What happened.
    pub kind: EventKind,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It is offered to the queue. If the queue refuses it, a drop follows.
    Offered,
    /// The queue drops it.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Time since it was offered.
        waited: Duration,
    },
    /// The queue marks it CE and keeps it.
    Marked {
        /// Why.
        reason: MarkReason,
        /// Time since it was offered.
        waited: Duration,
    },
    /// It departs from the queue: it is dequeued for transmission.
    Departed {
        /// Its sojourn time: since it was offered.
        waited: Duration,
    },
    /// The wire behind the bottleneck loses it.
    Lost,
    /// It arrives at the end of the path.
    Arrived,
}

impl EventKind {
    /// What happened: `offered`, `dropped`, `marked`, `departed`, `lost` or `arrived`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Dropped { .. } => "dropped",
            Self::Marked { .. } => "marked",
            Self::Departed { .. } => "departed",
            Self::Lost => "lost",
            Self::Arrived => "arrived",
        }
    }

    /// Why it was dropped or marked: `overlimit`, `aqm`, `ack_filter`, `replaced` or `ce_threshold`.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Dropped { reason, .. } => Some(match reason {
                DropReason::Overlimit => "overlimit",
                DropReason::Aqm => "aqm",
                DropReason::AckFilter => "ack_filter",
                DropReason::Replaced => "replaced",
            }),
            Self::Marked { reason, .. } => Some(match reason {
                MarkReason::Aqm => "aqm",
                MarkReason::CeThreshold => "ce_threshold",
            }),
            _ => None,
        }
    }

    /// Time since the packet was offered, if it was dropped or marked or has departed.
    pub const fn waited(self) -> Option<Duration> {
        match self {
            Self::Dropped { waited, .. }
            | Self::Marked { waited, .. }
            | Self::Departed { waited } => Some(waited),
            _ => None,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(reason) = self.reason() {
            write!(f, ": {reason}")?;
        }
        if let Some(waited) = self.waited() {
            write!(f, " after {waited}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            direction,
            packet: PacketId(number),
            kind,
            ..
        } = self;
        write!(f, "{at} {direction} {number} {kind}")
    }
}
