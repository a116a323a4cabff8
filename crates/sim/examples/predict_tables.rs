//! Prints the tables of `docs/qdiscs/predict.md`: a minute in a release build.
//!
//! ```sh
//! cargo run --release -p sojourn-sim --example predict_tables
//! ```

#[path = "../tests/transient/mod.rs"]
#[expect(clippy::unwrap_used, reason = "the set-ups are valid")]
#[expect(
    clippy::cast_precision_loss,
    reason = "small numbers of runs and nanoseconds"
)]
#[expect(dead_code, reason = "the tests use more of the module than the tables")]
mod transient;

use transient::Transient;

const PREDICT: &str = "predict limit 1000000 nodrop";
/// Results of a prototype of the same reconstruction.
const PROTOTYPE: &str = include_str!("../../../papers/predict/prototype.csv");
const RUNS: u64 = 100;

fn main() {
    print_comparison();
    println!();
    print_ablations();
}

/// Longest sojourn time and completion time, with those of the prototype in brackets.
fn print_comparison() {
    let rows: Vec<Vec<&str>> = PROTOTYPE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let queues = ["pfifo", "codel", "pie", "fq_codel", "predict"];
    println!("| RTT ms | {} |", queues.join(" | "));
    println!("|---|{}", "---|".repeat(queues.len()));
    for of_rtt in rows.chunks(queues.len()) {
        print!("| {} |", of_rtt[0][0]);
        for row in of_rtt {
            let (rtt, queue, sojourn, fct) = (row[0], row[1], row[2], row[3]);
            let qdisc = match queue {
                "predict" => PREDICT.to_owned(),
                _ => format!("{queue} limit 1000000"),
            };
            let rtt = rtt.parse().expect("the RTT is a number");
            let of = Transient::of(rtt, &qdisc).mean(RUNS);
            let (ours, fct_s) = (of.max_sojourn_ms, of.fct_s);
            print!(" {ours:.0} ({sojourn}) / {fct_s:.2} ({fct}) |");
        }
        println!();
    }
}

/// Predict with other parameters, initial windows and numbers of flows.
fn print_ablations() {
    println!("| change | RTT ms | longest sojourn time ms | completion time s |");
    println!("|---|---|---|---|");
    let print = |change: &str, rtt: u64, transient: &Transient| {
        let of = transient.mean(RUNS);
        let (sojourn, fct) = (of.max_sojourn_ms, of.fct_s);
        println!("| {change} | {rtt} | {sojourn:.0} | {fct:.2} |");
    };
    for (rtt, change) in [
        (200, "full 2"),
        (200, "mark 0.003"),
        (200, "per_octave 4"),
        (200, "per_octave 2"),
        (600, "dominance 10000"),
        (50, "nostretch"),
        (50, "rounds 3"),
        (100, "rounds 3"),
        (200, "rounds 3"),
        (200, "slot 2ms"),
        (200, "slot 5ms"),
        (12, "significance 4"),
        (25, "significance 4"),
    ] {
        let changed = Transient::of(rtt, &format!("{PREDICT} {change}"));
        print(&format!("`{change}`"), rtt, &changed);
    }
    for rtt in [12, 25, 50, 100] {
        let mut wide = Transient::of(rtt, PREDICT);
        wide.initial_window = 10;
        print("initial window of 10", rtt, &wide);
    }
    for rtt in [100, 200, 400] {
        let mut alone = Transient::of(rtt, PREDICT);
        alone.rtts.truncate(1);
        print("one flow", rtt, &alone);
    }
}
