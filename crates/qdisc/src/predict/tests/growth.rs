//! What counts as a growth, and whether it fills the link.

use super::forecast::Growth;
use super::*;

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
fn a_growth_is_told_by_its_total_and_its_spread() {
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
fn the_load_foretold_is_the_mean_growth_times_the_load_but_at_most_double() {
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
