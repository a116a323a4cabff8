//! Two-way connections: the half that takes no part in the handshake.

use sojourn_net::Instant;
use sojourn_transport::{CcKind, Flags, Handshake, Segment, Sender, SenderParams, Ticks};

#[test]
fn every_control_begins_with_the_initial_window() {
    for cc in CcKind::ALL {
        let params = SenderParams {
            cc: cc.into(),
            ..SenderParams::default()
        };
        let mut sender = Sender::new(&params, Ticks::default());
        let mut out = Vec::new();
        let handshake = Handshake {
            rtt_micros: 40_000,
            ecn: cc.needs_ecn(),
            is_mangled: false,
            syn_ack_marked: false,
            peer_stamp: 7,
            peer_window: 64_240,
        };
        sender.join(Instant::from_millis(40), &handshake);
        sender.write(Instant::from_millis(40), 1 << 20, &mut out);
        // Hybla's is the ratio of the RTT to 25 ms, rounded down.
        let initial: u32 = if cc == CcKind::Hybla { 1 } else { 10 };
        assert_eq!(
            (out.len(), sender.cwnd()),
            (initial as usize, initial),
            "{cc}"
        );
        // The first acknowledgement lets it grow, or continue.
        let unmarked = if cc.needs_accurate_ecn() {
            Flags::AE | Flags::ECE
        } else {
            Flags::NONE
        };
        let ack = Segment {
            ack: 2,
            window: 1 << 20,
            flags: Flags::ACK | unmarked,
            ts_ecr: out[0].ts_val,
            ts_val: 8,
            ..Segment::EMPTY
        };
        sender.on_segment(Instant::from_millis(80), &ack, &mut out);
        assert!(sender.cwnd() >= initial, "{cc}: {}", sender.cwnd());
    }
}
