//! What endpoints want to send.

use sojourn_transport::Segment;
use sojourn_transport::quic::Datagram;

/// Segments and datagrams to send; empty between events.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) segments: Vec<Segment>,
    pub(crate) datagrams: Vec<Datagram>,
}
