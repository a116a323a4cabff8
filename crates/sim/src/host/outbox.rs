//! What endpoints want to send.

use sojourn_net::Instant;
use sojourn_transport::Segment;
use sojourn_transport::quic::Datagram;

use crate::packet::{Label, Packet};

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
