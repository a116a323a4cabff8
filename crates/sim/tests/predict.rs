//! Predict, a reconstruction, on the transient it is made for.
//!
//! The numbers to meet are those of a throw-away prototype of the same reconstruction
//! (`papers/predict`), not its authors'.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::cast_precision_loss,
    reason = "small numbers of runs and nanoseconds"
)]

mod transient;

use sojourn_net::Instant;
use sojourn_records::LinkCounters;
use sojourn_scenario::Scenario;
use sojourn_sim::run;
use transient::{Outcome, SIX_MEGABYTES, Transient};

/// Long flows need a law for congestion avoidance too.
const WITH_FALLBACK: &str = "predict limit 1000000 nodrop fallback";
const PREDICT: &str = "predict limit 1000000 nodrop";
/// Runs of each set-up.
const SEEDS: u64 = 8;

fn with(rtt_ms: u64, change: &str) -> Outcome {
    Transient::of(rtt_ms, &format!("{PREDICT} {change}")).mean(SEEDS)
}

fn sojourn(rtt_ms: u64, qdisc: &str) -> f64 {
    Transient::of(rtt_ms, qdisc).mean(SEEDS).max_sojourn_ms
}

#[test]
fn the_longest_wait_is_the_prototypes_from_50_to_600_ms() {
    for (rtt, prototype) in [
        (50, 29.0),
        (75, 20.0),
        (100, 25.0),
        (150, 39.0),
        (200, 51.0),
        (300, 77.0),
        (400, 101.0),
        (600, 154.0),
    ] {
        let ours = with(rtt, "").max_sojourn_ms;
        let off = (ours / prototype - 1.0).abs();
        assert!(off < 0.25, "{rtt} ms: {ours:.1} ms, prototype {prototype}");
    }
}

#[test]
fn a_signal_lasts_for_the_true_round_trip() {
    // A window of marks is as long as the candidate and the queue of the moment.
    for rtt in [100, 200, 400, 600] {
        let lasts = with(rtt, "").first_signal_ms.unwrap();
        let ratio = lasts / rtt as f64;
        assert!((0.9..1.15).contains(&ratio), "{rtt} ms: {lasts:.1} ms");
    }
}

#[test]
fn without_prediction_it_is_a_doubling_late() {
    let (with, without) = (with(200, ""), with(200, "full 2"));
    let ratio = without.max_sojourn_ms / with.max_sojourn_ms;
    assert!((2.0..4.0).contains(&ratio), "{with:?}, {without:?}");
}

#[test]
fn a_single_mark_stops_a_single_flow() {
    // 0.6 ms of 200 is what one packet takes.
    let (all, one) = (with(200, ""), with(200, "mark 0.003"));
    assert!(
        one.max_sojourn_ms > 5.0 * all.max_sojourn_ms,
        "{all:?}, {one:?}"
    );
}

#[test]
fn candidates_must_lie_close() {
    let dense = with(200, "").max_sojourn_ms;
    for per_octave in [4, 2] {
        let sparse = with(200, &format!("per_octave {per_octave}")).max_sojourn_ms;
        assert!(
            sparse > 1.5 * dense,
            "{per_octave}: {sparse:.1}, not {dense:.1}"
        );
        // Where a sparse candidate is the true one, it does no harm: 8 ms times a power of 2.
        let (dense, sparse) = (
            with(256, ""),
            with(256, &format!("per_octave {per_octave}")),
        );
        let ratio = sparse.max_sojourn_ms / dense.max_sojourn_ms;
        assert!((0.8..1.25).contains(&ratio), "{dense:?}, {sparse:?}");
    }
}

#[test]
fn without_dominance_bursts_of_a_long_round_trip_end_slow_start_too_early() {
    let (with, without) = (with(600, ""), with(600, "dominance 10000"));
    assert!(without.fct_s > 1.25 * with.fct_s, "{with:?}, {without:?}");
    assert!(
        without.max_sojourn_ms < 0.75 * with.max_sojourn_ms,
        "{with:?}, {without:?}"
    );
}

#[test]
fn three_rounds_are_too_many_where_few_are_seen() {
    for rtt in [50, 100] {
        let (two, three) = (with(rtt, ""), with(rtt, "rounds 3"));
        let ratio = three.max_sojourn_ms / two.max_sojourn_ms;
        assert!(ratio > 1.5, "{rtt} ms: {two:?}, {three:?}");
    }
    let (two, three) = (with(200, ""), with(200, "rounds 3"));
    let ratio = three.max_sojourn_ms / two.max_sojourn_ms;
    assert!((0.9..1.1).contains(&ratio), "{two:?}, {three:?}");
}

#[test]
fn slots_of_1_to_5_ms_and_the_form_of_the_history_do_not_matter() {
    let base = with(200, "").max_sojourn_ms;
    assert!((with(200, "compact").max_sojourn_ms - base).abs() < 1e-9);
    for slot in ["2ms", "5ms"] {
        let ratio = with(200, &format!("slot {slot}")).max_sojourn_ms / base;
        assert!((0.9..1.1).contains(&ratio), "{slot}: {ratio:.2}");
    }
}

#[test]
fn a_window_of_ten_leaves_too_few_doublings_to_see() {
    for rtt in [25, 50, 100] {
        let mut wide = Transient::of(rtt, PREDICT);
        wide.initial_window = 10;
        let (ten, three) = (wide.mean(SEEDS), with(rtt, ""));
        assert!(
            ten.max_sojourn_ms > 1.25 * three.max_sojourn_ms,
            "{rtt} ms: {three:?}, {ten:?}"
        );
    }
}

#[test]
fn others_wait_longer_and_transfers_of_long_round_trips_end_later_with_them() {
    // P1: at 12 ms CoDel and PIE do nothing before it is over.
    let fifo = sojourn(12, "pfifo limit 1000000");
    for qdisc in [
        "codel limit 1000000 profile rfc",
        "pie limit 1000000 profile rfc",
    ] {
        let ratio = sojourn(12, qdisc) / fifo;
        assert!((0.9..1.1).contains(&ratio), "{qdisc}: {ratio:.2}");
    }
    // P3, P4 (the worst flow), P5.
    for rtt in [100, 200, 400] {
        let (predict, fifo) = (with(rtt, ""), Transient::of(rtt, "pfifo limit 1000000"));
        let fifo = fifo.mean(SEEDS);
        for qdisc in [
            "codel limit 1000000 profile rfc",
            "pie limit 1000000 profile rfc",
            "fq_codel limit 1000000 profile rfc",
        ] {
            let other = Transient::of(rtt, qdisc).mean(SEEDS);
            assert!(
                predict.max_sojourn_ms < other.max_sojourn_ms / 2.0,
                "{rtt} ms, {qdisc}: {predict:?}, {other:?}"
            );
            if rtt >= 200 {
                assert!(
                    other.fct_s - fifo.fct_s > 1.5 * (predict.fct_s - fifo.fct_s),
                    "{rtt} ms, {qdisc}: {predict:?}, {other:?}, {fifo:?}"
                );
            }
        }
        assert!(predict.fct_s < 1.25 * fifo.fct_s, "{predict:?}, {fifo:?}");
    }
}

#[test]
fn with_six_megabytes_all_react_at_12_ms_and_predict_waits_least() {
    let six = |qdisc: &str| {
        let mut transient = Transient::of(12, qdisc);
        transient.bytes = SIX_MEGABYTES;
        transient.mean(SEEDS).max_sojourn_ms
    };
    let fifo = six("pfifo limit 1000000");
    let (codel, pie) = (
        six("codel limit 1000000 profile rfc"),
        six("pie limit 1000000 profile rfc"),
    );
    // P2.
    assert!(
        codel < fifo / 2.0 && pie < fifo / 2.0,
        "{codel}, {pie}, {fifo}"
    );
    let predict = six(PREDICT);
    assert!(
        predict < codel / 1.5 && predict < pie / 1.5,
        "{predict}, {codel}, {pie}"
    );
}

#[test]
fn with_mixed_round_trips_predict_waits_least() {
    // P7.
    let mixed = |qdisc: &str| {
        let mut transient = Transient::of(200, qdisc);
        transient.bytes = SIX_MEGABYTES;
        transient.mean_of_drawn(20..350, 2 * SEEDS).max_sojourn_ms
    };
    let predict = mixed(PREDICT);
    for qdisc in [
        "codel limit 1000000 profile rfc",
        "pie limit 1000000 profile rfc",
        "fq_codel limit 1000000 profile rfc",
    ] {
        let other = mixed(qdisc);
        assert!(
            predict < other / 1.5,
            "{qdisc}: {other:.0}, not {predict:.0}"
        );
    }
}

#[test]
fn most_packets_wait_least_and_long_flows_hide_it() {
    // P8, in quantiles of the distribution.
    let quantiles = |rtt, qdisc, rounds| {
        Transient::of(rtt, qdisc)
            .longer(rounds)
            .mean(SEEDS)
            .sojourn_ms
    };
    for (rtt, at, factor) in [(50, 0, 4.0), (50, 2, 5.0), (200, 1, 10.0), (200, 2, 4.0)] {
        let predict = quantiles(rtt, WITH_FALLBACK, 12)[at];
        for qdisc in [
            "codel limit 1000000 profile rfc",
            "pie limit 1000000 profile rfc",
            "fq_codel limit 1000000 profile rfc",
        ] {
            let other = quantiles(rtt, qdisc, 12)[at];
            assert!(
                predict < other / factor,
                "{rtt} ms, {qdisc}, quantile {at}: {other:.1}, not {predict:.1}"
            );
        }
    }
    let (codel, predict) = (
        quantiles(200, "codel limit 1000000 profile rfc", 240),
        quantiles(200, WITH_FALLBACK, 240),
    );
    assert!(predict[1] > codel[1] / 2.0, "{predict:?}, {codel:?}");
}

#[test]
fn paced_flows_leave_predict_less_to_hold_and_codel_more() {
    // P6; the prototype's longest waits with pacing, where ours paces as its did.
    for (rtt, prototype) in [(200, 36.0), (300, 43.0), (400, 69.0), (600, 83.0)] {
        let ours = Transient::of(rtt, PREDICT)
            .paced()
            .mean(SEEDS)
            .max_sojourn_ms;
        let off = (ours / prototype - 1.0_f64).abs();
        assert!(off < 0.25, "{rtt} ms: {ours:.1} ms, prototype {prototype}");
        assert!(ours < with(rtt, "").max_sojourn_ms, "{rtt} ms: {ours:.1}");
    }
    for rtt in [300, 600] {
        let codel = "codel limit 1000000 profile rfc";
        let (paced, not) = (
            Transient::of(rtt, codel).paced().mean(SEEDS),
            sojourn(rtt, codel),
        );
        assert!(
            paced.max_sojourn_ms > 1.15 * not,
            "{rtt} ms: {paced:?}, {not:.1}"
        );
    }
}

/// A flow that starts at 2 s on a link of `rate`, which is 20 Mbit/s from 1 s on.
fn on_a_changed_link(qdisc: &str, rate: &str) -> (Option<Instant>, LinkCounters) {
    let text = format!(
        "duration = \"20s\"\nwarmup = \"0s\"\nrtt = \"100ms\"\nlinks.up = \"unlimited\"\n\
         links.down = {{rate = \"{rate}\", qdisc = \"{qdisc}\", changes = [{{at = \"1s\", rate = \"20mbit\"}}]}}\n\
         traffic = [{{type = \"tcp\", direction = \"down\", start = \"2s\", bytes = \"3mb\", cc = \"reno\", \
         ecn = true, on_ce = \"end-slow-start\"}}]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    (records.flows[0].completed, records.links[0].totals)
}

#[test]
fn the_rate_is_that_of_the_link_after_a_change() {
    // In a queue of its own, and inside others.
    for qdisc in [
        "predict limit 10000 nodrop",
        "prio leaf predict limit 10000 nodrop",
        "drr classes 4 leaf predict limit 10000 nodrop",
    ] {
        let steady = on_a_changed_link(qdisc, "20mbit");
        assert!(steady.0.is_some() && steady.1.marks_aqm > 0, "{qdisc}");
        for before in ["40mbit", "5mbit"] {
            assert_eq!(
                on_a_changed_link(qdisc, before),
                steady,
                "{qdisc}, {before}"
            );
        }
    }
    // With the double rate it sees half of the load.
    let (wrong, steady) = (
        on_a_changed_link("predict limit 10000 nodrop bandwidth 40mbit", "40mbit"),
        on_a_changed_link("predict limit 10000 nodrop", "20mbit"),
    );
    assert_ne!(wrong, steady);
}
