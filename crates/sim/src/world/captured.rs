//! Packets that set out in a run whose packets are captured.

use super::network::World;
use crate::host::Flow;
use crate::packet::{Kind, Owner, Packet};

impl World<'_> {
    /// Puts a packet on its way.
    pub(super) fn launch(&mut self, pkt: &Packet) {
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.on_sent(pkt);
        }
        self.forward(pkt);
    }

    /// Captures the segments in the outbox, before they are forwarded.
    #[cold]
    pub(super) fn capture_segments(&mut self, owner: Owner, kind: Kind, way: u16) {
        if let Some(capture) = &mut self.observed.notes.capture {
            for segment in &self.outbox.segments {
                capture.on_sent(&Packet::tcp(owner, kind, way, segment));
            }
        }
    }

    /// Captures the datagrams of QUIC in the outbox, before they are forwarded.
    #[cold]
    pub(super) fn capture_datagrams(&mut self, id: u32, kind: Kind, way: u16) {
        let Flow { owner, .. } = self.flows[id as usize];
        if let Some(capture) = &mut self.observed.notes.capture {
            for datagram in &self.outbox.datagrams {
                capture.on_sent(&Packet::quic(owner, kind, way, datagram));
            }
        }
    }

    /// Ends the capture at the time that the run has reached.
    pub(super) fn end_capture(&mut self) {
        if let Some(capture) = self.observed.notes.capture.take() {
            capture.finish();
        }
    }
}
