//! The short path of the receiver.

use super::*;
use crate::cc::CcKind;
use crate::sender::SenderParams;
use sojourn_net::{Duration, Rng};

#[test]
fn the_next_segment_in_order_is_treated_as_any_segment() {
    let without_ecn = SenderParams::default();
    let classic = SenderParams {
        ecn: true,
        ..without_ecn
    };
    let accurate = SenderParams {
        accurate_ecn: true,
        ..without_ecn
    };
    let of = |kind: CcKind| SenderParams {
        cc: kind.into(),
        ..without_ecn
    };
    let dctcp = of(CcKind::Dctcp);
    let prague = of(CcKind::Prague);
    for params in [without_ecn, classic, accurate, dctcp, prague] {
        compare(&params);
    }
}

fn compare(params: &SenderParams) {
    let mut receiver = Receiver::answering(params, Ticks::new(Duration::from_micros(700)));
    let (mut now, mut rng, mut out) = (Instant::from_millis(1), Rng::new(1), Vec::new());
    let (mut offer, mut usual, mut rare) = (Flags::SYN, Flags::ACK, Flags::NONE);
    if params.wants_accurate_ecn() {
        offer |= Flags::ECE | Flags::CWR | Flags::AE;
        usual |= params.ect() | Flags::of_ace(5);
    } else if params.offers_ecn() {
        offer |= Flags::ECE | Flags::CWR;
        usual |= params.ect();
        rare = Flags::CWR;
    }
    let syn = Segment {
        flags: offer,
        ..Segment::EMPTY
    };
    receiver.on_segment(now, &syn, Arrival::default(), &mut out);
    let (mut plain, mut acked) = (0, 0);
    for n in 0..10_000 {
        now += Duration::from_micros(rng.below(if n % 500 == 0 { 900_000 } else { 1_500 }));
        let stamp = receiver.ticks.stamp(now);
        // Now and then one is missing, which fills the hole later.
        let seq = receiver.next + u32::from(rng.below(50) == 0);
        let segment = Segment {
            seq,
            len: if rng.below(20) == 0 { 200 } else { MSS },
            flags: match rng.below(60) {
                0 | 1 => usual | Flags::PSH,
                2 => usual | rare,
                _ => usual,
            },
            ts_val: stamp,
            ts_ecr: stamp.saturating_sub(20),
            ..Segment::EMPTY
        };
        let arrival = Arrival {
            ce: params.offers_ecn() && rng.below(15) == 0,
            more: rng.below(4) == 0,
        };
        let (mut like_any, mut sent) = (receiver.clone(), Vec::new());
        out.clear();
        let is_plain = seq == receiver.next && receiver.expects_only_data(&segment, arrival.ce);
        receiver.on_segment(now, &segment, arrival, &mut out);
        like_any.on_any_segment(now, &segment, arrival, &mut sent);
        assert_eq!(out, sent);
        assert_eq!(format!("{receiver:?}"), format!("{like_any:?}"));
        (plain, acked) = (plain + u32::from(is_plain), acked + out.len());
        receiver.on_timer(now, &mut out);
    }
    assert!(
        plain > 4_000 && acked > 2_500,
        "{params:?}: {plain} {acked}"
    );
}

#[test]
fn each_change_between_marked_and_unmarked_is_acknowledged_immediately() {
    let prague = SenderParams {
        cc: CcKind::Prague.into(),
        ..SenderParams::default()
    };
    let mut feedback = EcnFeedback::answering(&prague);
    let segment = Segment {
        len: MSS,
        ..Segment::EMPTY
    };
    let arrivals = [false, true, true, false, false, true];
    let immediate = arrivals.map(|ce| {
        let response = feedback.on_data(&segment, ce, true);
        if response.immediate {
            let mut ack = Segment::EMPTY;
            feedback.write_to(&mut ack);
        }
        response.immediate
    });
    assert_eq!(immediate, [false, true, false, true, false, true]);
}
