//! Flows: a traffic source, its peer and their records. Here is what its parts share.

mod ahead;
mod application;
mod bulk;
mod connection;
mod flow;
mod limits;
mod quic;
mod tcp;

use sojourn_apps::Length;
use sojourn_net::Instant;
use sojourn_transport::quic::Datagram;
use sojourn_transport::{Segment, Ticks};

use crate::packet::{Label, Packet};
use bulk::BulkFlow;

pub(crate) use ahead::Recorded;
pub(crate) use connection::Connection;
pub(crate) use flow::{Flow, Source};
pub(crate) use quic::{End, QuicConnection};

/// The tick counters of the two hosts: the sender of data and its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    pub(crate) near: Ticks,
    pub(crate) far: Ticks,
}

/// What is written for endless data. At 100 Gbit/s it lasts for 46 years.
const ENDLESS: u64 = u64::MAX;

/// The number of bytes to pass to an endpoint.
const fn bytes_of(length: Length) -> u64 {
    match length {
        Length::Bytes(bytes) => bytes,
        Length::Endless => ENDLESS,
    }
}

/// Who uses a connection.
#[derive(Debug)]
pub(crate) enum User {
    /// A TCP or QUIC flow of the configuration, whose only connection it is.
    Bulk(Box<BulkFlow>),
    /// An application: its flow, and its number for the connection.
    App { app: u32, number: u32 },
}

impl User {
    /// The number that the user knows the connection by.
    pub(crate) const fn number(&self) -> u32 {
        match self {
            Self::Bulk(_) => 0,
            Self::App { number, .. } => *number,
        }
    }
}

/// Segments and datagrams to send; empty between events.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) segments: Vec<Segment>,
    pub(crate) datagrams: Vec<Datagram>,
}

/// What a transport sends: a TCP segment or a QUIC datagram.
pub(crate) trait Outgoing: Sized {
    /// Those of this type in the outbox.
    fn pending(outbox: &Outbox) -> &[Self];

    /// Removes all of this type from the outbox.
    fn clear(outbox: &mut Outbox);

    /// The packet that carries it, with time stamp `stamp`.
    fn packet(&self, label: Label, stamp: Instant) -> Packet;
}

impl Outgoing for Segment {
    #[inline]
    fn pending(outbox: &Outbox) -> &[Self] {
        &outbox.segments
    }

    #[inline]
    fn clear(outbox: &mut Outbox) {
        outbox.segments.clear();
    }

    #[inline]
    fn packet(&self, label: Label, stamp: Instant) -> Packet {
        label.segment(stamp, self)
    }
}

impl Outgoing for Datagram {
    #[inline]
    fn pending(outbox: &Outbox) -> &[Self] {
        &outbox.datagrams
    }

    #[inline]
    fn clear(outbox: &mut Outbox) {
        outbox.datagrams.clear();
    }

    #[inline]
    fn packet(&self, label: Label, stamp: Instant) -> Packet {
        label.datagram(stamp, self)
    }
}

/// One of the two timer events of a flow. Of a TCP connection they are for the timers of its senders
/// and of its receivers, of a QUIC connection for those of its near and of its far end. Others use
/// the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    Sender,
    Receiver,
}

/// When the earliest pending event for a timer is due, if one is pending. A timer that moves back is
/// looked at when its event comes; later events than this one are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending(Instant);

impl TimerEvent {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Sender, Self::Receiver];
}

impl Pending {
    /// No event is pending. Eight bytes rather than an `Option`'s sixteen: a flow has two.
    pub(crate) const NONE: Self = Self(Instant::MAX);

    /// Whether the event that has come is this one; then none is pending any more.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let is_this = self.0 == now;
        if is_this {
            *self = Self::NONE;
        }
        is_this
    }

    /// The instant before which a timer needs an event of its own.
    #[inline]
    pub(crate) const fn limit(self) -> Instant {
        self.0
    }

    /// Returns when to schedule an event so that one is pending no later than `due`; `None`: there
    /// is one.
    #[inline]
    pub(crate) fn advance(&mut self, due: Instant, now: Instant) -> Option<Instant> {
        (due < self.0).then(|| {
            self.0 = due.max(now);
            self.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_earliest_event_counts() {
        let at = Instant::from_millis;
        let mut pending = Pending::NONE;
        assert_eq!(pending.advance(at(9), at(1)), Some(at(9)));
        assert_eq!(pending.advance(at(9), at(1)), None);
        assert_eq!(pending.advance(at(5), at(1)), Some(at(5)));
        assert!(!pending.take(at(9)));
        assert!(pending.take(at(5)) && !pending.take(at(5)));
        // An overdue timer is handled now.
        assert_eq!(pending.advance(at(2), at(6)), Some(at(6)));
    }
}
