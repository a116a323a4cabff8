//! The RTT samples of acknowledgements: their mean and their maximum after the warm-up.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_records::FlowCounters;
use sojourn_scenario::Scenario;
use sojourn_sim::run;

/// What is counted for `traffic` on a link of 10 Mbit/s with 50 packets, whose delay falls from 100
/// ms to 0 at 4 s.
fn counters(traffic: &str, warmup: &str) -> FlowCounters {
    let text = format!(
        "duration = \"10s\"\nwarmup = \"{warmup}\"\nrtt = \"20ms\"\n\
         links.down = {{rate = \"10mbit\", qdisc = \"pfifo limit 50\", delay = \"100ms\", \
         changes = [{{at = \"4s\", delay = \"0ms\"}}]}}\n\
         links.up = \"unlimited\"\ntraffic = [{{{traffic}}}]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    records.flows[0].totals
}

const KINDS: [&str; 4] = [
    "type = \"tcp\", direction = \"down\"",
    "type = \"quic\", direction = \"down\"",
    // Connections of an application that end before and after the warm-up, and one that lives on.
    "type = \"sessions\", direction = \"down\", every = \"50ms\", bytes = \"50kb\"",
    "type = \"request\", direction = \"down\", bytes = \"1mb\"",
];

#[test]
fn the_largest_sample_is_one_after_the_warm_up() {
    for traffic in KINDS {
        // The delay of 100 ms counts without a warm-up, but not with one that ends after it.
        let all = counters(traffic, "0s");
        assert!(all.rtt_max_micros >= 120_000, "{traffic}: {all:?}");
        for warmup in ["5s", "5.05s"] {
            let warm = counters(traffic, warmup);
            assert!(warm.rtt_samples > 0, "{traffic}: {warm:?}");
            let mean = warm.rtt_micros / warm.rtt_samples;
            assert!(
                (mean..120_000).contains(&warm.rtt_max_micros),
                "{traffic}, warm-up of {warmup}: {warm:?}"
            );
        }
    }
}

#[test]
fn a_full_queue_gives_the_largest_sample() {
    // 50 packets of 1514 bytes wait, and one is being sent.
    let packet = 1_514.0 * 8.0 / 10.0;
    let full = 20_000.0 + 51.0 * packet;
    let totals = counters(KINDS[0], "5s");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let largest = totals.rtt_max_micros as f64;
    assert!(
        (full - 2.0 * packet..=full + packet).contains(&largest),
        "{largest} µs, where a full queue gives {full}"
    );
}

#[test]
fn data_that_waits_during_recovery_counts() {
    // CoDel drops early in slow start; the longest queue is met by data that is acknowledged
    // selectively.
    let text = "duration = \"5s\"\nrtt = \"100ms\"\n\
         links.down = {rate = \"20mbit\", qdisc = \"codel limit 100000\"}\n\
         links.up = \"unlimited\"\n\
         traffic = [{type = \"tcp\", direction = \"down\", cc = \"reno\"}]\n";
    let config = Scenario::from_toml(text).unwrap().config(0, 0);
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    let queued = records.links[0].sojourn.max().unwrap() / 1_000;
    let rise = records.flows[0].totals.rtt_max_micros - 100_000;
    // The last packets of an acknowledgement count: up to two and their transmission.
    assert!(
        (queued - 2_000..queued + 2_000).contains(&rise),
        "{rise} µs; {queued} µs queued"
    );
}

#[test]
fn without_samples_there_is_no_maximum() {
    let udp = "type = \"udp\", direction = \"down\", rate = \"1mbit\"";
    let totals = counters(udp, "5s");
    assert_eq!((totals.rtt_samples, totals.rtt_max_micros), (0, 0));
}
