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

/// What the endpoints of a transport send: segments of TCP, or datagrams of QUIC.
pub(crate) trait Outgoing: Sized {
    /// Those in the outbox.
    fn of(outbox: &Outbox) -> &[Self];

    /// Removes them from the outbox.
    fn clear(outbox: &mut Outbox);

    /// The packet that carries it, at `stamp`.
    fn packet(&self, label: Label, stamp: Instant) -> Packet;
}

impl Outgoing for Segment {
    #[inline]
    fn of(outbox: &Outbox) -> &[Self] {
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
    fn of(outbox: &Outbox) -> &[Self] {
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
