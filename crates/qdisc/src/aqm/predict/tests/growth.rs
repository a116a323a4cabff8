//! What counts as a growth, and whether it fills the link.

use super::*;
use crate::aqm::predict::growth::Growth;
use crate::contract::Number;

/// Loads of 2, 3 and 6 in units of ten packets, a window of eight slots each.
fn grown(loads: [u32; 3]) -> History {
    let mut history = History::new(vec![8], 1_000_000, 2, true, false);
    history.forget(0);
    for load in loads {
        for _ in 0..8 {
            history.record(load * 10_000 / 8, 0);
        }
    }
    history
}

/// A packet takes 1 us.
fn lenient() -> Law {
    Law {
        packet: 1_000.0,
        significance: 0.001,
        ..law()
    }
}

#[test]
fn a_growth_is_described_by_its_total_and_its_spread() {
    let growth = lenient().growth(0, &grown([8, 12, 24])).expect("it grows");
    assert!((growth.load - 240_000.0).abs() < 1e-6);
    assert!((growth.total - 3.0).abs() < 1e-12, "{growth:?}");
    assert!((growth.spread - 4.0 / 3.0).abs() < 1e-12, "{growth:?}");
}

#[test]
fn each_round_grows_within_bounds_that_count_themselves() {
    let law = Law {
        growth_min: 1.5,
        growth_max: 2.0,
        ..lenient()
    };
    assert!(law.growth(0, &grown([8, 12, 24])).is_some());
    assert!(law.growth(0, &grown([16, 23, 46])).is_none());
    assert!(law.growth(0, &grown([16, 24, 49])).is_none());
}

#[test]
fn unsteady_growth_is_none_however_significant() {
    let law = |consistency| Law {
        consistency,
        ..lenient()
    };
    assert!(law(1.34).growth(0, &grown([8, 12, 24])).is_some());
    assert!(law(1.33).growth(0, &grown([8, 12, 24])).is_none());
}

#[test]
fn significance_counts_packets_in_standard_deviations() {
    // 40 of 200 packets, 120 of 360: 40 / sqrt(200) + 120 / sqrt(360).
    let z = 40.0 / 200_f64.sqrt() + 120.0 / 360_f64.sqrt();
    for (significance, counts) in [(0.999 * z, true), (1.001 * z, false)] {
        let law = Law {
            significance,
            ..lenient()
        };
        let growth = law.growth(0, &grown([8, 12, 24]));
        assert_eq!(growth.is_some(), counts, "{significance} of {z}");
    }
}

#[test]
fn two_packets_are_the_least_that_says_anything() {
    // The first load is 80 us: 2 packets of 40, or not quite of 41.
    for (packet, counts) in [(40_000.0, true), (41_000.0, false)] {
        let law = Law {
            packet,
            ..lenient()
        };
        assert_eq!(law.growth(0, &grown([8, 12, 24])).is_some(), counts);
    }
}

#[test]
fn the_predicted_load_is_the_mean_growth_times_the_load_but_at_most_double() {
    let rtt = Duration::from_millis(100);
    let fills = |full: f64, share: f64, total: f64| {
        let growth = Growth {
            load: share * 1e8,
            total,
            spread: 1.0,
        };
        Law { full, ..law() }.fills(&growth, rtt)
    };
    // The root of 3 is 1.732.
    assert!(fills(1.0, 0.58, 3.0) && !fills(1.0, 0.57, 3.0));
    assert!(fills(0.5, 0.29, 3.0) && !fills(0.5, 0.285, 3.0));
    // The root of 5 is 2.236, which counts as 2.
    assert!(fills(1.0, 0.501, 5.0) && !fills(1.0, 0.49, 5.0));
}

#[test]
fn signals_are_counted_and_the_last_is_reported() {
    let rtt = Duration::from_millis(100);
    let mut q = queue(unlimited());
    let seen = drive(&mut q, &exponential(rtt, 0.02), true);
    assert!(!seen.marks.is_empty());
    let all = q.statistics();
    let Number::Count(signals) = all[0].value else {
        panic!("{all:?}");
    };
    assert!((1..5).contains(&signals), "{signals}");
    let Number::Count(micros) = all[1].value else {
        panic!("{all:?}");
    };
    assert!((80_000..125_000).contains(&micros), "{micros} us");
}

#[test]
fn the_fallback_keeps_out_of_what_follows_a_signal() {
    let rtt = Duration::from_millis(100);
    let mut arrivals = exponential(rtt, 0.02);
    // Nobody answers: a fifth more than the link for two round trips and a half.
    let gap = RATE.serialise(Bytes(1_514)).as_nanos() * 5 / 6;
    let end = arrivals.last().expect("some").0;
    arrivals.extend((1..=250_000_000 / gap).map(|n| (end + n * gap, 1_514)));
    let fallback = PredictParams {
        fallback: true,
        target: Duration::from_millis(1),
        interval: Duration::from_millis(10),
        ..unlimited()
    };
    let alone = drive(&mut queue(unlimited()), &arrivals, true);
    let both = drive(&mut queue(fallback), &arrivals, true);
    let until = alone.marks[0].0 + rtt.times(2);
    let before = |seen: &Recorder| seen.marks.iter().filter(|m| m.0 < until).count();
    assert_eq!(before(&both), before(&alone));
    assert!(both.marks.len() > before(&both), "it acts later");
}

#[test]
fn the_fallback_leaves_a_signal_alone_and_spares_a_single_packet() {
    let fallback = PredictParams {
        fallback: true,
        ..unlimited()
    };
    let mut seen = Recorder::default();
    let mut q = signalling(fallback, 4);
    while q.dequeue(ms(1), &mut seen).is_some() {}
    assert_eq!(seen.drops.len(), 4, "one of each flow");

    let (mut q, mut seen) = (queue(fallback), Recorder::default());
    for n in 0..40 {
        let pkt = TestPacket {
            ecn: Ecn::Ect0,
            ..TestPacket::mtu(n)
        };
        q.enqueue(ms(500 * n), pkt, &mut seen);
        assert!(q.dequeue(ms(500 * n + 400), &mut seen).is_some());
    }
    assert_eq!(seen, Recorder::default());
}

#[test]
fn what_was_sent_before_a_pause_is_forgotten() {
    let mut meter = Meter::new(Rate::mbit(12));
    meter.on_departure(ms(0), Bytes(1_500));
    meter.begin_at(ms(10));
    assert_eq!(meter.end_slot(ms(11), SLOT), 0);
    // But not what is still being sent.
    for _ in 0..3 {
        meter.on_departure(ms(20), Bytes(1_500));
    }
    meter.begin_at(ms(22));
    assert_eq!(meter.end_slot(ms(23), SLOT), 1_000_000);
    assert_eq!(meter.end_slot(ms(24), SLOT), 0);

    let (mut q, mut seen) = (queue(unlimited()), Recorder::default());
    q.enqueue(ms(0), TestPacket::mtu(0), &mut seen);
    q.dequeue(ms(0), &mut seen);
    q.enqueue(ms(10_000), TestPacket::mtu(1), &mut seen);
    q.dequeue(ms(10_001), &mut seen);
    // The slot in which it only waited.
    let waited = RATE.serialise(Bytes(1_514)).as_nanos();
    assert_eq!(q.past.history.load(0, 10_000), waited);
}

#[test]
fn flows_are_distinguished_by_the_whole_of_their_place() {
    let mut signalled = Signalled::default();
    for hash in [0, 1, 63, 64, 5 * 64, 15 * 64] {
        assert!(signalled.insert(hash), "{hash}");
    }
    assert!(!signalled.insert(64) && !signalled.insert(16 * 64));
}

#[test]
fn a_time_is_scaled_by_its_factor() {
    assert_eq!(forecast::scaled(Duration::from_millis(10), 1.5), 15_000_000);
    assert_eq!(forecast::scaled(Duration::from_millis(10), 0.5), 5_000_000);
}
