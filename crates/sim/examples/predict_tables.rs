//! Prints the tables of `papers/predict`: a minute in a release build.
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
mod transient;

use transient::{SIX_MEGABYTES, Transient};

/// Long flows need an AQM for congestion avoidance too.
const WITH_FALLBACK: &str = "predict limit 1000000 nodrop fallback";
const PREDICT: &str = "predict limit 1000000 nodrop";

fn main() {
    const RUNS: u64 = 100;
    let queues = [
        "pfifo limit 1000000",
        "codel limit 1000000",
        "pie limit 1000000",
        "fq_codel limit 1000000",
        PREDICT,
    ];
    println!("rtt_ms,queue,max_sojourn_ms,fct_s");
    for rtt in [12, 25, 50, 75, 100, 150, 200, 300, 400, 600] {
        for qdisc in queues {
            let of = Transient::of(rtt, qdisc).mean(RUNS);
            println!("{rtt},{qdisc},{:.1},{:.3}", of.max_sojourn_ms, of.fct_s);
        }
    }
    for qdisc in queues {
        let mut large = Transient::of(12, qdisc);
        large.bytes = SIX_MEGABYTES;
        println!("6 MB at 12,{qdisc},{:.1},", large.mean(RUNS).max_sojourn_ms);
        let mixed = large.mean_of_drawn(20..350, RUNS).max_sojourn_ms;
        println!("6 MB at 20 to 350,{qdisc},{mixed:.1},");
    }
    println!("rtt_ms,paced: queue,max_sojourn_ms,fct_s");
    for rtt in [12, 25, 50, 75, 100, 150, 200, 300, 400, 600] {
        for qdisc in &queues[1..] {
            let of = Transient::of(rtt, qdisc).paced().mean(RUNS);
            println!("{rtt},{qdisc},{:.1},{:.3}", of.max_sojourn_ms, of.fct_s);
        }
    }
    println!("rtt_ms,payload,queue,p50,p90,p99");
    for (rtt, rounds) in [(50, 12), (200, 12), (200, 240)] {
        for qdisc in queues.into_iter().chain([WITH_FALLBACK]) {
            let [p50, p90, p99] = Transient::of(rtt, qdisc)
                .longer(rounds)
                .mean(RUNS / 5)
                .sojourn_ms;
            println!("{rtt},{rounds} BDP,{qdisc},{p50:.1},{p90:.1},{p99:.1}");
        }
    }
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
        let of = Transient::of(rtt, &format!("{PREDICT} {change}")).mean(RUNS);
        println!("{rtt},{change},{:.1},{:.3}", of.max_sojourn_ms, of.fct_s);
    }
    for rtt in [12, 25, 50, 100] {
        let mut wide = Transient::of(rtt, PREDICT);
        wide.initial_window = 10;
        println!("{rtt},IW 10,{:.1},", wide.mean(RUNS).max_sojourn_ms);
    }
    for rtt in [100, 200, 400] {
        let mut alone = Transient::of(rtt, PREDICT);
        alone.rtts.truncate(1);
        println!("{rtt},N = 1,{:.1},", alone.mean(RUNS).max_sojourn_ms);
    }
}
