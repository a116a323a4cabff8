//! Ends that send and receive.

use sojourn_net::Instant;

use super::{SYN_WINDOW, Sender, State};
use crate::receiver::Handshake;

impl Sender {
    /// What the handshake told this end; of use as soon as it is over.
    pub fn handshake(&self) -> Handshake {
        Handshake {
            rtt_micros: self.rtt.srtt_micros().max(1),
            ecn: self.ecn,
            peer_stamp: self.peer_stamp,
        }
    }

    /// Becomes the sending half of an end whose other half made the handshake.
    pub fn join(&mut self, now: Instant, handshake: &Handshake) {
        self.state = State::Established;
        self.opened = now;
        self.used_at = now;
        self.join_ecn(handshake.ecn);
        self.peer_stamp = handshake.peer_stamp;
        self.peer_window = SYN_WINDOW;
        self.rtt
            .sample(handshake.rtt_micros, self.board.una, self.board.next());
        self.rtt.sample_min(now, handshake.rtt_micros);
        // As after a handshake of its own: a model-based controller needs the path and the window.
        self.start_model(now, handshake.rtt_micros);
        self.set_pacing_rate();
    }
}
