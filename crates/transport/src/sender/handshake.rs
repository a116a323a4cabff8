//! Opening a connection, or joining the half of a two-way connection that opened it.

use sojourn_net::Instant;

use super::{Sender, State};
use crate::clock::{MAX_MICROS, micros};
use crate::handshake::Handshake;
use crate::segment::{Flags, Segment};

/// The receive window that a SYN advertises, unless the receiver is limited.
pub(crate) const SYN_WINDOW: u32 = 64_240;

impl Sender {
    /// Sends the SYN.
    pub fn connect(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.state = State::Connecting;
        self.opened = now;
        self.send_syn(now, out);
    }

    pub(super) fn send_syn(&mut self, now: Instant, out: &mut Vec<Segment>) {
        out.push(Segment {
            ts_val: self.timestamps.stamp(now),
            window: SYN_WINDOW,
            flags: Flags::SYN | self.ecn.syn_flags(self.counters.syn_resent),
            ..Segment::EMPTY
        });
        self.arm_syn_timer(now);
    }

    /// A SYN-ACK arrived.
    pub(super) fn on_syn_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.state = State::Established;
        self.timer.cancel();
        self.timer.reset_backoff();
        self.timestamps.begin(seg.ts_val);
        self.buffer.set_peer_window(seg.window);
        let is_marked = self.ecn.on_syn_ack(seg.flags, self.counters.syn_resent);
        let sample = if self.counters.syn_resent == 0 {
            micros(now.since(self.opened))
        } else {
            let ms = self.timestamps.stamp(now).wrapping_sub(seg.ts_ecr);
            1_000 * ms.clamp(1, MAX_MICROS / 1_000)
        };
        // Linux: the loss of more than one SYN shows that the path is congested.
        let is_lost = self.counters.syn_resent > 1 && !self.first_syn_was_echoed(seg);
        self.window.cwnd = if is_lost {
            1
        } else {
            self.usage.initial_window()
        };
        if is_marked {
            self.answer_marked_handshake();
        }
        self.usage.restart(now);
        // The SYN was delivered.
        self.board.add_delivered(1);
        self.begin_with(now, sample);
        self.confirm(now, seg, out);
        self.send_new(now, out);
    }

    /// The SYN or SYN-ACK of this end arrived CE-marked: the first window is one segment. A control that paces by a model
    /// of the path ignores that.
    fn answer_marked_handshake(&mut self) {
        if !self.is_model_based() {
            self.window.cwnd = 1;
            self.leave_slow_start();
        }
    }

    /// The handshake, a round trip of `rtt_micros`, is over.
    fn begin_with(&mut self, now: Instant, rtt_micros: u32) {
        self.rtt
            .sample(rtt_micros, self.board.una(), self.board.next());
        self.rtt.sample_min(now, rtt_micros);
        self.start_control(now, rtt_micros);
        self.set_pacing_rate();
    }

    /// Acknowledges the peer's SYN.
    pub(super) fn confirm(&self, now: Instant, syn_ack: &Segment, out: &mut Vec<Segment>) {
        let ecn = self.ecn.ect_if_always() | self.ecn.confirmation(syn_ack.flags);
        out.push(Segment {
            flags: Flags::ACK | ecn,
            ..self.blank(now)
        });
    }

    /// Whether only SYN-ACKs were lost: then the peer echoes the first SYN.
    fn first_syn_was_echoed(&self, seg: &Segment) -> bool {
        seg.ts_ecr == self.timestamps.stamp(self.opened)
    }

    /// What the handshake measured and negotiated; valid once it is over.
    pub fn handshake(&self) -> Handshake {
        Handshake {
            rtt_micros: self.rtt.srtt_micros().map_or(1, |srtt| srtt.max(1)),
            ecn: self.ecn.is_on(),
            is_mangled: false,
            syn_ack_marked: self.ecn.has_marked_syn_ack(),
            peer_stamp: self.timestamps.echo(),
            peer_window: self.buffer.peer_window(),
        }
    }

    /// Becomes the sending half of an end whose receiving half made the handshake.
    pub fn join(&mut self, now: Instant, handshake: &Handshake) {
        self.state = State::Established;
        self.opened = now;
        self.usage.restart(now);
        if self.ecn.join(handshake) {
            self.answer_marked_handshake();
        }
        self.timestamps.begin(handshake.peer_stamp);
        self.buffer.set_peer_window(handshake.peer_window);
        self.begin_with(now, handshake.rtt_micros);
    }
}
