//! The short path of the receiver.

use super::*;
use sojourn_net::{Duration, Rng};

#[test]
fn the_next_segment_in_order_is_treated_as_any_segment() {
    let mut receiver = Receiver::new(Ticks::new(Duration::from_micros(700)), false);
    let (mut now, mut rng, mut out) = (Instant::from_millis(1), Rng::new(1), Vec::new());
    let syn = Segment {
        flags: Flags::SYN,
        ..Segment::EMPTY
    };
    receiver.on_segment(now, &syn, Arrival::default(), &mut out);
    let (mut plain, mut acked) = (0, 0);
    for n in 0..20_000 {
        now += Duration::from_micros(rng.below(if n % 500 == 0 { 900_000 } else { 1_500 }));
        let stamp = receiver.ticks.stamp(now);
        // Now and then one is missing, which fills the hole later.
        let seq = receiver.next + u32::from(rng.below(50) == 0);
        let segment = Segment {
            seq,
            len: if rng.below(20) == 0 { 200 } else { MSS },
            flags: if rng.below(30) == 0 {
                Flags::ACK | Flags::PSH
            } else {
                Flags::ACK
            },
            ts_val: stamp,
            ts_ecr: stamp.saturating_sub(20),
            ..Segment::EMPTY
        };
        let arrival = Arrival {
            ce: false,
            more: rng.below(4) == 0,
        };
        let (mut like_any, mut sent) = (receiver.clone(), Vec::new());
        out.clear();
        let is_plain = seq == receiver.next && receiver.expects_only_data(&segment);
        receiver.on_segment(now, &segment, arrival, &mut out);
        like_any.on_any_segment(now, &segment, arrival, &mut sent);
        assert_eq!(out, sent);
        assert_eq!(format!("{receiver:?}"), format!("{like_any:?}"));
        (plain, acked) = (plain + u32::from(is_plain), acked + out.len());
        receiver.on_timer(now, &mut out);
    }
    assert!(plain > 10_000 && acked > 5_000, "{plain} {acked}");
}
