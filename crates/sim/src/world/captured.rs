//! Packets that set out in a run whose packets are captured.

use super::network::World;
use crate::packet::Packet;

impl World<'_> {
    /// Puts a packet on its way.
    pub(super) fn launch(&mut self, pkt: &Packet) {
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.on_sent(pkt);
        }
        self.forward(pkt);
    }

    /// Ends the capture at the time that the run has reached.
    pub(super) fn end_capture(&mut self) {
        if let Some(capture) = self.observed.notes.capture.take() {
            capture.finish();
        }
    }
}
