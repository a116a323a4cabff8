use sojourn_net::Ecn;

use super::*;
use crate::testing::{Recorder, TestPacket};

/// Thresholds of 30 and 90 packets, a weight of 1/10, no waiting.
fn params() -> Ns2RedParams {
    Ns2RedParams {
        limit: 300,
        min: Some(30.0),
        max: Some(90.0),
        q_weight: Some(0.1),
        mean_pktsize: Bytes(1_000),
        bytes: false,
        wait: false,
        ..Ns2RedParams::default()
    }
}

fn law(params: &Ns2RedParams) -> Law {
    Law::new(params, Some(Rate::mbit(8)))
}

const SIZE: Bytes = Bytes(1_000);

#[track_caller]
fn assert_near(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got}, not {want}");
}

/// Arrivals until each of 20,000 signals while the average stays at `average`.
fn gaps(params: &Ns2RedParams, average: f64) -> Vec<u64> {
    let (mut law, mut rng) = (law(params), Rng::new(7));
    law.idle_since = None;
    law.average = average;
    law.on_arrival(Instant::ZERO, average, SIZE, &mut rng);
    law.restart();
    let (mut seen, mut gap) = (Vec::new(), 0);
    while seen.len() < 20_000 {
        gap += 1;
        if law.on_arrival(Instant::ZERO, average, SIZE, &mut rng) == Verdict::Early {
            seen.push(gap);
            gap = 0;
        }
    }
    seen
}

#[test]
fn what_is_not_given_is_derived_as_in_ns_2() {
    // 10 Mbit/s: 2500 packets of 500 bytes per second.
    let law = Law::new(&Ns2RedParams::default(), Some(Rate::mbit(10)));
    assert_near(law.min, 6.25 * 500.0);
    assert_near(law.max, 18.75 * 500.0);
    assert_near(law.weight, 1.0 - f64::exp(-1.0 / 2_500.0));
    // At 1 Mbit/s five packets, and ten times 100 ms; at 10 kbit/s three packets take longer.
    let slow = Law::new(&Ns2RedParams::default(), Some(Rate::mbit(1)));
    assert_near(slow.min, 5.0 * 500.0);
    assert_near(slow.weight, 1.0 - f64::exp(-1.0 / 250.0));
    assert_near(one_minus_exp(1.0 / 30.0), 1.0 - f64::exp(-1.0 / 30.0));
}

#[test]
fn idle_time_counts_as_samples_of_zero_and_the_arrival_is_sampled() {
    let (mut law, mut rng) = (law(&params()), Rng::new(1));
    law.average = 50.0;
    law.idle_since = Some(Instant::from_millis(100));
    // 1000 packets per second: 7 in 7.9 ms.
    let now = Instant::from_nanos(107_900_000);
    law.on_arrival(now, 10.0, SIZE, &mut rng);
    assert_near(law.average, 50.0 * 0.9_f64.powi(8) + 1.0);
    law.on_arrival(now, 10.0, SIZE, &mut rng);
    assert_near(law.average, (50.0 * 0.9_f64.powi(8) + 1.0) * 0.9 + 1.0);
}

#[test]
fn the_gaps_between_signals_are_uniform() {
    // Half way the probability is 0.05: gaps of 1 to 19; with wait, 20 to 39.
    for (wait, least, most) in [(false, 1, 19), (true, 20, 39)] {
        let gaps = gaps(&Ns2RedParams { wait, ..params() }, 60.0);
        let extremes = (gaps.iter().min().copied(), gaps.iter().max().copied());
        assert!(
            extremes.0 >= Some(least) && extremes.1 <= Some(most),
            "{extremes:?}"
        );
        let mean = gaps.iter().sum::<u64>() / 200;
        let want = 50 * (least + most);
        assert!(mean.abs_diff(want) < 40, "{mean} hundredths");
    }
}

#[test]
fn above_max_the_probability_rises_slowly_if_gentle_and_at_once_if_not() {
    let mut gentle = law(&params());
    for (average, want) in [
        (60.0, 0.05),
        (89.999_999_999, 0.1),
        (90.0, 0.1),
        (135.0, 0.55),
    ] {
        gentle.average = average;
        assert_near(gentle.base(), want);
    }
    let verdict = |gentle, average| {
        let mut law = law(&Ns2RedParams { gentle, ..params() });
        (law.idle_since, law.average) = (None, average);
        law.on_arrival(Instant::ZERO, average, SIZE, &mut Rng::new(1))
    };
    assert_eq!(verdict(false, 90.0), Verdict::Forced);
    assert_eq!(verdict(true, 179.0), Verdict::Pass, "the first above min");
    assert_eq!(verdict(true, 180.0), Verdict::Forced);
}

#[test]
fn nonlinear_is_half_again_the_square() {
    let mut law = law(&Ns2RedParams {
        nonlinear: true,
        ..params()
    });
    for (average, want) in [(30.0, 0.0), (45.0, 0.009_375), (60.0, 0.037_5), (90.0, 0.1)] {
        law.average = average;
        assert_near(law.base(), want);
    }
}

#[test]
fn nothing_is_dropped_while_at_most_one_packet_waits() {
    let mut law = law(&params());
    law.idle_since = None;
    for queue in [0.0, 1.0] {
        law.average = 1e9;
        assert_eq!(
            law.on_arrival(Instant::ZERO, queue, SIZE, &mut Rng::new(1)),
            Verdict::Pass
        );
    }
    assert_eq!(
        law.on_arrival(Instant::ZERO, 2.0, SIZE, &mut Rng::new(1)),
        Verdict::Forced
    );
}

#[test]
fn in_bytes_a_large_packet_is_dropped_more_often() {
    let law = Law {
        above: true,
        average: 60_000.0,
        count_bytes: 10_999,
        ..law(&Ns2RedParams {
            bytes: true,
            ..params()
        })
    };
    // Ten whole packets at 0.05: 0.1 for one of average size.
    assert_near(law.probability(Bytes(1_000)), 0.1);
    assert_near(law.probability(Bytes(500)), 0.05);
    assert_near(law.probability(Bytes(9_000)), 0.9);
    assert_near(law.probability(Bytes(20_000)), 1.0);
}

#[test]
fn adaptation_keeps_the_average_in_the_middle() {
    let (mut law, mut rng) = (
        law(&Ns2RedParams {
            adaptive: true,
            ..params()
        }),
        Rng::new(1),
    );
    let mut at = |law: &mut Law, ms, average: f64| {
        (law.idle_since, law.average) = (None, average);
        law.on_arrival(Instant::from_millis(ms), average, SIZE, &mut rng);
        law.max_p
    };
    assert_near(at(&mut law, 500, 80.0), 0.1);
    assert_near(at(&mut law, 501, 80.0), 0.11);
    assert_near(at(&mut law, 1_000, 80.0), 0.11);
    assert_near(at(&mut law, 1_100, 60.0), 0.11);
    assert_near(at(&mut law, 1_200, 40.0), 0.099);
}

#[test]
fn a_full_buffer_costs_the_arrival_and_a_mark_serves_as_a_signal() {
    let small = Ns2RedParams {
        limit: 5,
        ..params()
    };
    let mut q = Ns2Red::new(&small, None, Rng::new(1));
    let mut seen = Recorder::default();
    for id in 0..7 {
        q.enqueue(Instant::ZERO, TestPacket::mtu(id), &mut seen);
    }
    assert_eq!((seen.drops.len(), q.pdrop), (2, 2));
    assert_eq!(seen.drops[0].1.id, 5);
    assert_eq!(seen.drops[0].2, DropReason::Overlimit);

    let mut q = Ns2Red::new(
        &Ns2RedParams {
            ecn: true,
            ..params()
        },
        None,
        Rng::new(1),
    );
    for id in 0..300 {
        let pkt = TestPacket {
            ecn: Ecn::Ect0,
            ..TestPacket::mtu(id)
        };
        q.enqueue(Instant::ZERO, pkt, &mut seen);
    }
    assert_eq!(q.marked, seen.marks.len() as u64);
    assert!(q.marked > 20 && q.forced > 20 && q.early == 0, "{q:?}");
}

#[test]
fn a_max_that_lies_not_above_the_derived_min_sets_min_to_a_third() {
    // 2500 packets per second and 5 ms: 6.25 packets.
    let min = |max| {
        let params = Ns2RedParams {
            max: Some(max),
            ..Ns2RedParams::default()
        };
        params.thresholds(2_500.0).0
    };
    assert_near(min(10.0), 6.25);
    assert_near(min(6.25), 6.25 / 3.0);
    assert_near(min(6.0), 2.0);
}

#[test]
fn what_is_overdue_is_certain_and_stays_so_for_small_packets() {
    for (wait, bytes) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut law = law(&Ns2RedParams {
            bytes,
            wait,
            ..params()
        });
        law.average = f64::midpoint(law.min, law.max);
        // Half of the probability of 0.1 at max: 40 packets and more are two gaps and more.
        (law.count, law.count_bytes) = (50, 50_000);
        assert_near(law.probability(Bytes(100)), 1.0);
        // In packets the size does not count.
        (law.count, law.count_bytes) = (0, 0);
        let small = law.probability(Bytes(100));
        let large = law.probability(Bytes(1_000));
        assert_near(large, if wait { 0.0 } else { 0.05 });
        assert_near(small, if bytes { large / 10.0 } else { large });
    }
}

#[test]
fn a_low_max_p_rises_by_a_quarter() {
    let mut law = law(&Ns2RedParams {
        adaptive: true,
        ..params()
    });
    law.average = 0.99 * law.max;
    law.max_p = 0.02;
    law.adapt(Instant::ZERO);
    assert_near(law.max_p, 0.025);
}

#[test]
fn min_itself_is_between_the_thresholds() {
    let mut law = law(&params());
    (law.idle_since, law.average) = (None, 30.0);
    law.on_arrival(Instant::ZERO, 30.0, SIZE, &mut Rng::new(1));
    assert!(law.above);
    law.average = 29.9;
    law.on_arrival(Instant::ZERO, 29.9, SIZE, &mut Rng::new(1));
    assert!(!law.above);
}
