//! Ends that send and receive.

use sojourn_net::Instant;

use super::{Receiver, State};
use crate::clock::micros;
use crate::handshake::Handshake;
use crate::rtt::MAX_SAMPLE;
use crate::segment::Segment;

impl Receiver {
    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// What the handshake told this end; `seg` is what ended it, `now`.
    pub fn handshake(&self, now: Instant, seg: &Segment) -> Handshake {
        let rtt_micros = if self.syn_acks == 1 {
            micros(now.since(self.syn_ack_sent))
        } else {
            let ms = self.ticks.stamp(now).wrapping_sub(seg.ts_ecr);
            1_000 * ms.clamp(1, MAX_SAMPLE / 1_000)
        };
        Handshake {
            rtt_micros: rtt_micros.min(MAX_SAMPLE),
            ecn: self.ecn,
            peer_stamp: seg.ts_val,
        }
    }

    /// Becomes the receiving half of an end whose other half made the handshake.
    pub fn join(&mut self, now: Instant, handshake: &Handshake) {
        self.state = State::Established;
        self.ecn = handshake.ecn;
        self.echo = handshake.peer_stamp;
        self.window.begin(now);
        self.begin_with(handshake.rtt_micros);
    }

    pub(super) fn begin_with(&mut self, rtt_micros: u32) {
        self.window.first_rtt(rtt_micros);
        self.rto_ms = (rtt_micros + (2 * rtt_micros).max(200_000)).div_ceil(1_000);
    }
}
