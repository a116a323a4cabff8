//! The short path of the receiver.

use super::*;
use crate::cc::CcKind;
use crate::profile::SenderProfile;
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

/// A receiver of a profile after its handshake with a round trip of 100 ms, and its clock.
fn established(profile: SenderProfile, ecn: bool) -> (Receiver, Instant) {
    let params = SenderParams {
        profile,
        ecn,
        ..SenderParams::default()
    };
    let mut receiver = Receiver::answering(&params, Ticks::default());
    let syn = Segment {
        flags: Flags::SYN
            | if ecn {
                Flags::ECE | Flags::CWR
            } else {
                Flags::NONE
            },
        ..Segment::EMPTY
    };
    receiver.on_segment(Instant::ZERO, &syn, Arrival::default(), &mut Vec::new());
    let now = Instant::from_millis(100);
    receiver.establish(now);
    // The quick acknowledgements of the start are used up.
    let data = Segment {
        len: MSS,
        ..Segment::EMPTY
    };
    receiver.acks.on_data(100, &data, 65_536);
    while receiver.acks.is_immediate() && !profile.rules().ack_each {
        receiver.acks.on_sent();
    }
    (receiver, now)
}

/// Full segments with these numbers and flags arrive, 0.1 ms apart; returns the number of acknowledgements of each.
fn answers(profile: SenderProfile, segments: &[(u32, Flags)], ce: bool) -> (Vec<usize>, Receiver) {
    let (mut receiver, mut now) = established(profile, ce);
    let mut counts = Vec::new();
    for &(seq, flags) in segments {
        now += Duration::from_micros(100);
        let segment = Segment {
            seq,
            len: MSS,
            flags: Flags::ACK | flags,
            ts_val: 1,
            ..Segment::EMPTY
        };
        let mut out = Vec::new();
        let arrival = Arrival { ce, more: false };
        receiver.on_segment(now, &segment, arrival, &mut out);
        counts.push(out.len());
    }
    (counts, receiver)
}

#[test]
fn the_sink_of_ns_2_acknowledges_every_segment() {
    let in_order: Vec<_> = (0..40).map(|seq| (seq, Flags::NONE)).collect();
    let count = |profile| answers(profile, &in_order, false).0.iter().sum::<usize>();
    let [linux, .., ns2] = SenderProfile::ALL.map(count);
    assert_eq!(ns2, 40);
    // Every second, and more while the window grows.
    assert!((20..32).contains(&linux), "{linux}");
}

#[test]
fn a_full_segment_with_push_is_answered_at_once_by_linux_6_1_alone() {
    let answered = |profile| answers(profile, &[(0, Flags::PSH)], false).0[0] > 0;
    let of_linux = [true, false, false, false];
    assert_eq!(SenderProfile::ALL.map(answered)[..4], of_linux);
}

#[test]
fn acknowledgements_above_a_hole_are_compressed_since_linux_4_19() {
    let above: Vec<_> = (1..9).map(|seq| (seq, Flags::NONE)).collect();
    let count = |profile| {
        let (counts, receiver) = answers(profile, &above, false);
        let timer = receiver
            .next_timer()
            .map(|at| at.as_nanos() / 1_000 - 100_400);
        (counts.iter().sum::<usize>(), timer)
    };
    // The fourth arrives at 100.4 ms; 1 ms later, with 0.1 ms of slack since 5.8.
    let [linux, linux_4_19, others @ ..] = SenderProfile::ALL.map(count);
    assert_eq!((linux, linux_4_19), ((3, Some(1_100)), (3, Some(1_000))));
    assert_eq!(others.map(|(count, _)| count), [8; 3]);
}

#[test]
fn a_first_mark_has_two_or_sixteen_quick_acknowledgements() {
    let quick = |profile| {
        let (mut receiver, _) = established(profile, true);
        receiver.acks.on_mark();
        let mut count = 0;
        while receiver.acks.is_immediate() && count < 100 {
            receiver.acks.on_sent();
            count += 1;
        }
        count
    };
    assert_eq!(SenderProfile::ALL.map(quick)[..4], [2, 2, 16, 16]);
}

#[test]
fn the_first_syn_ack_is_repeated_after_one_or_three_seconds() {
    let timeout = |profile| {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        let mut receiver = Receiver::answering(&params, Ticks::default());
        let syn = Segment {
            flags: Flags::SYN,
            ..Segment::EMPTY
        };
        receiver.on_segment(Instant::ZERO, &syn, Arrival::default(), &mut Vec::new());
        receiver
            .next_timer()
            .map(|at| at.as_nanos() / 1_000_000_000)
    };
    assert_eq!(SenderProfile::ALL.map(timeout), [1, 1, 1, 3, 3].map(Some));
}
