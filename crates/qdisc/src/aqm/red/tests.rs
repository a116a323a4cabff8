use sojourn_net::Ecn;

use super::*;
use crate::registry::{QdiscSpec, Red, RedParams};
use crate::testing::{Recorder, TestPacket};

/// Thresholds of 30 and 90 packets of 1000 bytes, weight 1/32.
fn params() -> RedParams {
    RedParams {
        limit: Bytes(300_000),
        min: Some(Bytes(30_000)),
        max: Some(Bytes(90_000)),
        burst: Some(50),
        probability: 0.1,
        ..RedParams::default()
    }
}

fn law(params: &RedParams) -> Law {
    Law::new(params, &params.derive().unwrap(), Rate::mbit(10))
}

/// Arrivals until each of `signals` signals, while the average stays where it is.
fn gaps(law: &mut Law, signals: usize) -> Vec<u64> {
    let mut rng = Rng::new(7);
    let average = Bytes(law.qavg >> law.wlog);
    let (mut seen, mut gap) = (Vec::new(), 0);
    while seen.len() < signals {
        gap += 1;
        if law.on_arrival(Instant::ZERO, average, &mut rng) != Verdict::Pass {
            seen.push(gap);
            gap = 0;
        }
    }
    seen
}

#[test]
fn the_average_moves_by_a_weight_of_the_difference() {
    let mut law = law(&params());
    let mut rng = Rng::new(1);
    assert_eq!(law.wlog, 5);
    law.on_arrival(Instant::ZERO, Bytes(32_000), &mut rng);
    assert_eq!(law.qavg >> law.wlog, 1_000);
    law.on_arrival(Instant::ZERO, Bytes(32_000), &mut rng);
    assert_eq!(law.qavg >> law.wlog, 1_968);
}

#[test]
fn the_gaps_between_signals_are_uniform() {
    // Half way between the thresholds the probability is 0.05: gaps of 1 to 20, 10.5 on average.
    let mut law = law(&params());
    law.qavg = 60_000 << law.wlog;
    law.qcount = Some(0);
    law.qr = law.lot(&mut Rng::new(3));
    let gaps = gaps(&mut law, 20_000);
    let mean = gaps.iter().sum::<u64>() / 200;
    assert!((1_030..=1_070).contains(&mean), "{mean} hundredths");
    assert!(gaps.iter().all(|g| (1..=21).contains(g)));
    // 1000 of each of 20 expected; 5 standard deviations are 154.
    for gap in 1..=20 {
        let count = gaps.iter().filter(|&&g| g == gap).count();
        assert!((846..1_154).contains(&count), "{count} gaps of {gap}");
    }
}

#[test]
fn below_min_none_and_above_max_all_are_signalled() {
    let mut law = law(&params());
    let mut rng = Rng::new(1);
    law.qavg = 29_999 << law.wlog;
    assert_eq!(
        law.on_arrival(Instant::ZERO, Bytes(29_999), &mut rng),
        Verdict::Pass
    );
    law.qavg = 90_000 << law.wlog;
    assert_eq!(
        law.on_arrival(Instant::ZERO, Bytes(90_000), &mut rng),
        Verdict::HardSignal
    );
    assert_eq!(law.qcount, None);
}

#[test]
fn the_first_arrival_above_min_draws_a_lot_and_does_not_count() {
    let mut law = law(&params());
    law.qavg = 60_000 << law.wlog;
    let verdict = |law: &mut Law| law.on_arrival(Instant::ZERO, Bytes(60_000), &mut Rng::new(1));
    assert_eq!(verdict(&mut law), Verdict::Pass);
    // 30,000 bytes above min: one packet does not reach this lot, two do.
    law.qr = 60_000;
    assert_eq!(verdict(&mut law), Verdict::Pass);
    assert_eq!(verdict(&mut law), Verdict::Signal);
}

#[test]
fn gentle_raises_the_probability_from_max_p_to_1() {
    let gentle = RedParams {
        gentle: true,
        ..params()
    };
    // At 1.1 max p_b is 0.1 + 0.9 / 10 = 0.19, at 1.2 max 0.28. The first arrival after a signal is
    // the count of 1: signalled with p_b / (1 - p_b), as are the next until nothing is left.
    let mut law = law(&gentle);
    for (average, shares) in [
        (99_000, [0.234_6, 0.234_6, 0.234_6, 0.234_6, 0.061_7]),
        (108_000, [0.388_9, 0.388_9, 0.222_2, 0.0, 0.0]),
    ] {
        law.qavg = average << law.wlog;
        law.qcount = None;
        let gaps = gaps(&mut law, 20_000);
        for (gap, share) in (1..).zip(shares) {
            let count = gaps.iter().filter(|&&g| g == gap).count();
            let share: f64 = share;
            // Four standard deviations are at most 0.015.
            let got = f64::from(u32::try_from(count).unwrap()) / 20_000.0;
            assert!((got - share).abs() < 0.015, "{got} of {gap} at {average}");
        }
    }
    law.qavg = 180_000 << law.wlog;
    let verdict = law.on_arrival(Instant::ZERO, Bytes(180_000), &mut Rng::new(1));
    assert_eq!(verdict, Verdict::HardSignal);
}

#[test]
fn an_idle_link_lets_the_average_decay() {
    // 1000 bytes at 10 Mbit/s last 800 us, which iproute2 counts as 12500 ticks and the kernel
    // reads as us. A cell is 2^15 us, and the average is shifted right by 0.0832 a cell, rounded
    // down: once from cell 13, 426 ms, twice from cell 25, 819 ms.
    let mut law = law(&params());
    law.qavg = 80_000 << law.wlog;
    let after = |ms: u64| law.decayed(Duration::from_millis(ms)) >> law.wlog;
    assert_eq!(law.scell_log, 15);
    assert_eq!((law.stab[12], law.stab[13], law.stab[25]), (0, 1, 2));
    assert_eq!(after(0), 80_000);
    // Before, it falls in a straight line, in 16.4 ms to a half and no further.
    assert_eq!((after(1), after(8)), (77_558, 60_468));
    assert_eq!(
        (after(17), after(425), after(426)),
        (40_000, 40_000, 40_000)
    );
    assert_eq!((after(819), after(820)), (40_000, 20_000));
    assert_eq!(after(100_000), 0);
}

#[test]
fn idling_begins_when_the_link_asks_in_vain() {
    let mut red = Red::new(&params(), None, Rng::new(1));
    let mut seen = Recorder::default();
    red.law.qavg = 80_000 << red.law.wlog;
    red.enqueue(Instant::ZERO, TestPacket::mtu(0), &mut seen);
    let busy = red.law.qavg;
    red.dequeue(Instant::ZERO, &mut seen);
    assert_eq!(red.law.idle_since, None);
    red.dequeue(Instant::from_millis(5), &mut seen);
    red.dequeue(Instant::from_millis(9), &mut seen);
    assert_eq!(red.law.idle_since, Some(Instant::from_millis(5)));
    red.enqueue(Instant::from_millis(600), TestPacket::mtu(1), &mut seen);
    assert_eq!(red.law.qavg, busy >> 1);
    assert_eq!(red.law.idle_since, None);
}

#[test]
fn adaptation_moves_max_p_towards_the_middle_fifth() {
    let mut law = law(&params());
    assert_eq!((law.target_min, law.target_max), (54_000, 66_000));
    let start = law.max_p;
    for (average, factor) in [
        (60_000, 1.0),
        (66_000, 1.0),
        (67_000, 1.1),
        (54_000, 1.0),
        (53_000, 0.9),
    ] {
        law.max_p = start;
        law.qavg = average << law.wlog;
        law.adapt(Instant::ZERO);
        let moved = f64::from(law.max_p) / f64::from(start);
        assert!((moved - factor).abs() < 1e-6, "{moved} at {average}");
    }
    // It stays between 1 % and 50 %, give or take a step.
    for (average, least, most) in [(89_000, 0.5, 0.51), (31_000, 0.009, 0.01)] {
        law.qavg = average << law.wlog;
        for _ in 0..200 {
            law.adapt(Instant::ZERO);
        }
        let max_p = f64::from(law.max_p) / 4_294_967_296.0;
        assert!((least..=most).contains(&max_p), "{max_p}");
    }
}

#[test]
fn the_timer_runs_every_half_second_if_adaptive_and_never_otherwise() {
    let red = Red::<TestPacket>::new(&params(), None, Rng::new(1));
    assert_eq!(red.next_timer(), None);
    let mut ared = Red::<TestPacket>::new(
        &RedParams {
            adaptive: true,
            ..params()
        },
        None,
        Rng::new(1),
    );
    assert_eq!(ared.next_timer(), Some(Instant::from_millis(500)));
    ared.on_timer(Instant::from_millis(501));
    assert_eq!(ared.next_timer(), Some(Instant::from_millis(1_001)));
}

#[test]
fn what_is_signalled_is_marked_dropped_or_queued_as_asked() {
    let ecn = RedParams {
        ecn: true,
        ..params()
    };
    let harddrop = RedParams {
        harddrop: true,
        ..ecn.clone()
    };
    let nodrop = RedParams {
        nodrop: true,
        ..ecn.clone()
    };
    let (ect, not, hard, soft) = (Ecn::Ect0, Ecn::NotEct, Verdict::HardSignal, Verdict::Signal);
    for (params, ecn, verdict, passes, marked) in [
        (params(), ect, soft, false, false),
        (ecn.clone(), ect, soft, true, true),
        (ecn.clone(), not, soft, false, false),
        (ecn.clone(), ect, hard, true, true),
        (harddrop.clone(), ect, hard, false, false),
        (harddrop.clone(), ect, soft, true, true),
        (nodrop.clone(), not, hard, true, false),
        (nodrop.clone(), not, soft, true, false),
    ] {
        let mut red = Red::new(&params, None, Rng::new(1));
        let mut seen = Recorder::default();
        let mut pkt = TestPacket {
            ecn,
            ..TestPacket::mtu(0)
        };
        let passed = red.passes(verdict, Instant::ZERO, &mut pkt, &mut seen);
        assert_eq!((passed, !seen.marks.is_empty()), (passes, marked));
    }
}

#[test]
fn the_average_is_of_the_leaf_whose_limits_hold() {
    let spec = QdiscSpec::parse("red limit 3000 min 6000 max 60000 leaf pfifo limit 20").unwrap();
    let mut red = spec.build(&LinkFacts::default(), Rng::new(1));
    let mut seen = Recorder::default();
    for id in 0..30 {
        red.enqueue(Instant::ZERO, TestPacket::mtu(id), &mut seen);
    }
    assert_eq!(red.backlog().packets, 20, "not the limit of 3000 bytes");
    for _ in 0..2_000 {
        red.enqueue(Instant::ZERO, TestPacket::mtu(99), &mut seen);
    }
    // The average has come near 20 packets: RED signals now.
    assert!(seen.drops.iter().any(|drop| drop.2 == DropReason::Aqm));
    let qlen = Statistic::count("qlen", 20).within("leaf", 0);
    assert!(red.statistics().contains(&qlen));
}

#[test]
fn a_lot_is_the_kernels_rounded_part_of_32_random_bits() {
    for (max, part) in [(90_000, 7_158), (91_000, 7_041)] {
        let law = law(&RedParams {
            max: Some(Bytes(max)),
            ..params()
        });
        // 2^32 / 10 is 7158.28 times 60000 and 7040.93 times 61000.
        let drawn = u64::from(Rng::new(5).next_u32());
        assert_eq!(law.lot(&mut Rng::new(5)), drawn / part);
    }
}

#[test]
fn min_itself_is_between_the_thresholds_and_max_itself_is_not_above_for_choke() {
    let mut law = law(&params());
    let mut rng = Rng::new(1);
    law.qavg = 30_000 << law.wlog;
    law.on_arrival(Instant::ZERO, Bytes(30_000), &mut rng);
    assert_eq!(law.qcount, Some(0), "a lot is drawn");
    // Below it the next between the thresholds is the first again.
    law.on_arrival(Instant::ZERO, Bytes(0), &mut rng);
    assert_eq!(law.qcount, None);
    law.qavg = law.qth_max;
    assert!(!law.is_above_max());
    law.qavg += 1;
    assert!(law.is_above_max());
}

#[test]
fn the_buffer_holds_limit_bytes_to_the_last() {
    let mut red = Red::new(
        &RedParams {
            limit: Bytes(4 * 1_514),
            min: Some(Bytes(3_000)),
            max: Some(Bytes(6_000)),
            burst: Some(4),
            ..params()
        },
        None,
        Rng::new(1),
    );
    let mut seen = Recorder::default();
    for id in 0..5 {
        red.enqueue(Instant::ZERO, TestPacket::mtu(id), &mut seen);
    }
    assert_eq!(red.backlog().packets, 4);
    assert_eq!(seen.drops[0].2, DropReason::Overlimit);
}

#[test]
fn a_timer_that_is_not_due_or_not_wanted_changes_nothing() {
    for adaptive in [false, true] {
        let params = RedParams {
            adaptive,
            ..params()
        };
        let mut red = Red::<TestPacket>::new(&params, None, Rng::new(1));
        let (due, max_p) = (red.next_timer(), red.law.max_p);
        let at = if adaptive { 499 } else { 1_000 };
        red.law.qavg = 89_000 << red.law.wlog;
        red.on_timer(Instant::from_millis(at));
        assert_eq!((red.next_timer(), red.law.max_p), (due, max_p));
    }
}

#[test]
fn thresholds_that_do_not_fit_together_are_made_to() {
    let derived = RedDerived::of(&RedParams {
        min: Some(Bytes(90_000)),
        max: Some(Bytes(30_000)),
        ..params()
    });
    assert_eq!((derived.min, derived.max), (Bytes(90_000), Bytes(90_000)));
}

/// The average of the full queue and that after it was emptied and left idle for a day.
fn averages_around_idling(params: &RedParams, (packets, size): (u64, u64)) -> (u64, u64) {
    let mut red = Red::new(params, None, Rng::new(1));
    let mut seen = Recorder::default();
    let packet = |id| TestPacket {
        size,
        ecn: Ecn::Ect0,
        ..TestPacket::mtu(id)
    };
    for id in 0..packets {
        red.enqueue(Instant::ZERO, packet(id), &mut seen);
    }
    let full = red.law.qavg;
    while red.dequeue(Instant::ZERO, &mut seen).is_some() {}
    let later = Instant::from_millis(86_400_000);
    red.enqueue(later, packet(packets), &mut seen);
    (full, red.law.qavg)
}

#[test]
fn the_decay_of_a_large_average_over_long_cells_does_not_overflow() {
    // The product of average and microseconds exceeds 64 bits in both; half of the average remains.
    // Typed parameters, of which the kernel would refuse the thresholds.
    let small = RedParams {
        avpkt: Bytes(10),
        bandwidth: Rate::from_bits_per_sec(1),
        ecn: true,
        ..RedParams::default()
    };
    let large = RedParams {
        limit: Bytes(1 << 30),
        bandwidth: Rate::from_bits_per_sec(16),
        ..RedParams::default()
    };
    for (params, load) in [(small, (30_000, 9_000)), (large, (4_000, 65_535))] {
        let (full, left) = averages_around_idling(&params, load);
        let micros = 86_400_000_000;
        assert!(
            u128::from(full) * micros > u128::from(u64::MAX),
            "{params:?}"
        );
        assert_eq!(left, full - full / 2, "{params:?}");
    }
}
