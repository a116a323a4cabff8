//! Scenarios on the simulator itself.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use sojourn_lab::{Outcome, RunOptions, Scenario, TableKind, run};
use sojourn_sim::Simulator;

/// What a 10 Mbit/s link carries of full segments: 1448 of 1514 bytes.
const BEST_GOODPUT: f64 = 10.0 * 1_448.0 / 1_514.0;

const SCENARIO: &str = r#"
    duration = "12s"
    warmup = "2s"
    replications = 3
    rtt = "40ms"
    keep_events = true
    [links]
    down = "unlimited"
    [links.up]
    rate = "10mbit"
    qdisc = "codel"
    [[traffic]]
    type = "tcp"
    direction = "up"
    start_jitter = "50ms"
    [[traffic]]
    type = "ping"
    direction = "up"
    [[arms]]
    name = "codel"
    [[arms]]
    name = "fifo"
    set = { links.up.qdisc = "prio leaf pfifo limit 200" }
"#;

fn run_with(scenario: &str, jobs: usize, cancel: &AtomicBool, until: usize) -> Outcome {
    let reported = AtomicUsize::new(0);
    let options = RunOptions {
        jobs: NonZeroUsize::new(jobs),
        cancel,
        progress: &|done, _| {
            reported.fetch_add(1, Ordering::Relaxed);
            if done == until {
                cancel.store(true, Ordering::Relaxed);
            }
        },
        ..RunOptions::default()
    };
    let outcome = run(
        &Simulator::default(),
        &Scenario::from_toml(scenario).unwrap(),
        options,
    )
    .unwrap();
    assert_eq!(reported.into_inner(), outcome.finished());
    outcome
}

/// The values of a column that are not null, with the arm of each.
fn column(outcome: &Outcome, kind: TableKind, name: &str) -> Vec<(String, f64)> {
    let mut values = Vec::new();
    for batch in outcome.table(kind).batches().unwrap() {
        let arms = batch.column_by_name("arm").unwrap().as_string::<i32>();
        let column = batch.column_by_name(name).unwrap();
        let column = column.as_primitive::<Float64Type>();
        let rows = arms.iter().zip(column.iter());
        values.extend(rows.filter_map(|(arm, x)| Some((arm?.to_owned(), x?))));
    }
    values
}

/// Users of the web beside that, in a link of their own.
const WEB: &str = r#"
    [links.web]
    rate = "5mbit"
    qdisc = "fq_codel"
    [[traffic]]
    type = "web"
    path = ["web"]
    page = "small"
    count = 20
    start_jitter = "2s"
    think = { distribution = "exponential", mean = "500ms" }
"#;

#[test]
fn records_do_not_depend_on_the_number_of_threads() {
    let scenario = format!("sample_state = true\n{SCENARIO}{WEB}");
    let one = run_with(&scenario, 1, &AtomicBool::new(false), usize::MAX);
    let two = run_with(&scenario, 2, &AtomicBool::new(false), usize::MAX);
    assert!(one.is_complete() && two.is_complete());
    for kind in TableKind::ALL {
        let (one, two) = (one.table(kind), two.table(kind));
        // Only a controller changes links so that it is recorded.
        assert!(
            one.rows() > 0 || kind == TableKind::LinkChanges,
            "{kind} has rows"
        );
        assert_eq!(one.batches().unwrap(), two.batches().unwrap(), "{kind}");
    }
}

#[test]
fn a_long_flow_fills_the_link_and_codel_keeps_the_queue_short() {
    let outcome = run_with(SCENARIO, 2, &AtomicBool::new(false), usize::MAX);
    for (arm, goodput) in column(&outcome, TableKind::Flows, "goodput_mbit_per_s") {
        let share = goodput / BEST_GOODPUT;
        assert!((0.85..1.001).contains(&share), "{arm}: {share} of the best");
    }
    for (arm, utilisation) in column(&outcome, TableKind::Links, "utilisation") {
        assert!((0.85..1.001).contains(&utilisation), "{arm}: {utilisation}");
    }
    for (arm, ping) in column(&outcome, TableKind::Flows, "ping_ms_median") {
        let expected = match arm.as_str() {
            "codel" => 40.0..60.0,
            _ => 100.0..300.0,
        };
        assert!(expected.contains(&ping), "{arm}: {ping} ms");
    }
}

#[test]
fn cancelling_ends_runs_that_would_last_for_hours() {
    let long = SCENARIO
        .replace("12s", "100000s")
        .replace("= true", "= false");
    let mixed = long.replace(
        "\"prio leaf pfifo limit 200\"",
        "\"pfifo\", duration = \"3s\"",
    );
    let outcome = run_with(&mixed, 6, &AtomicBool::new(false), 3);
    assert_eq!((outcome.finished(), outcome.total()), (3, 6));
    let arms = column(&outcome, TableKind::Flows, "rtt_ms");
    assert!(arms.iter().all(|(arm, _)| arm == "fifo"), "{arms:?}");
}
