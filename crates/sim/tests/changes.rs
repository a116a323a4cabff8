//! Links that change during a run: their queues, and traces of their rate, delay and loss.

#![expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use sojourn_net::{Duration, Instant};
use sojourn_records::{Records, Signal};
use sojourn_scenario::Scenario;
use sojourn_sim::run;

const MS: Duration = Duration::from_millis(1);

/// The folder of the example traces.
fn traces() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/traces"
    ))
}

/// A run of 2 s with `down` as the link of a UDP stream and of pings.
fn records(seconds: u32, down: &str, stream: &str) -> Records {
    let text = format!(
        "duration = \"{seconds}s\"\nwarmup = \"0s\"\nrtt = \"20ms\"\nkeep_events = true\nsample = \"500ms\"\n\
         [links.down]\n{down}\n[links]\nup = \"unlimited\"\n{stream}\
         [[traffic]]\ntype = \"ping\"\ndirection = \"down\"\ninterval = \"10ms\"\nphase = \"0ms\"\n"
    );
    let plan = Scenario::from_toml_in(&text, traces()).unwrap().plan(0, 0);
    run(&plan.config, &mut |_| true).unwrap().unwrap()
}

/// A UDP stream of full packets.
fn stream(mbit: u32) -> String {
    format!(
        "[[traffic]]\ntype = \"udp\"\ndirection = \"down\"\nrate = \"{mbit}mbit\"\npayload = \"1472b\"\n"
    )
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS.times(ms)
}

#[test]
fn a_replaced_queue_drops_its_packets_and_the_new_one_begins() {
    let changes = "changes = [{ at = \"1s\", qdisc = \"bfifo limit 15140b\" }]";
    let down = format!("rate = \"10mbit\"\nqdisc = \"pfifo limit 200\"\n{changes}");
    let all = records(2, &down, &stream(20));
    let totals = &all.links[0].totals;
    assert_eq!(totals.drops_replaced, 200);
    let replaced: Vec<_> = (all.events.iter())
        .filter(
            |event| matches!(event.signal, Signal::Drop(why) if format!("{why:?}") == "Replaced"),
        )
        .collect();
    assert_eq!(replaced.len(), 200);
    assert!(replaced.iter().all(|event| event.at == at(1_000)));
    // The first still waits with all of the others, the last alone.
    assert_eq!(replaced[0].backlog.packets, 199);
    assert_eq!(replaced[199].backlog.packets, 0);
    let after = all.links[0]
        .series
        .iter()
        .filter(|sample| sample.at > at(1_500));
    for sample in after {
        assert!(sample.backlog_bytes <= 15_140, "{sample:?}");
        // 10 packets of 1,514 B at 10 Mbit/s.
        assert!(sample.sojourn_max.unwrap() < MS.times(14), "{sample:?}");
        let bytes = sample.counters.sent_bytes;
        assert!(bytes.abs_diff(625_000) < 2 * 1_514, "{bytes}");
    }
}

#[test]
fn the_classes_of_a_replaced_queue_keep_their_counts() {
    let changes =
        "changes = [{ at = \"1s\", qdisc = \"dualpi2\" }, { at = \"2s\", qdisc = \"cake\" }]";
    let down = format!("rate = \"10mbit\"\nqdisc = \"cake\"\n{changes}");
    let all = records(3, &down, &stream(9));
    let link = &all.links[0];
    let sent: u64 = link
        .classes
        .iter()
        .map(|class| class.totals.sent_packets)
        .sum();
    assert_eq!(sent, link.totals.sent_packets);
    let mut names: Vec<_> = link
        .classes
        .iter()
        .map(|class| class.class.to_string())
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("tin")) && names.iter().any(|name| name == "C")
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), link.classes.len());
}

#[test]
fn a_changed_target_changes_the_delay() {
    let delay = |changes: &str| {
        let down = format!("rate = \"10mbit\"\nqdisc = \"codel\"\n{changes}");
        let tcp = "[[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\ncount = 4\n";
        let all = records(40, &down, tcp);
        let mean = |from, to| {
            let series = all.links[0].series.iter();
            let within = series.filter(|sample| (at(from)..at(to)).contains(&sample.at));
            let waited: Vec<_> = within.filter_map(|sample| sample.sojourn_mean).collect();
            waited.iter().map(|d| d.as_millis_f64()).sum::<f64>() / waited.len() as f64
        };
        (mean(5_000, 20_000), mean(25_000, 40_000))
    };
    let (before, same) = delay("");
    let (unchanged, after) = delay("changes = [{ at = \"20s\", qdisc = \"codel target 50ms\" }]");
    assert_eq!(before.to_bits(), unchanged.to_bits());
    assert!(after > 3.0 * same, "{same} ms, then {after} ms");
}

#[test]
fn a_faster_shaper_sends_what_waits_at_once() {
    let changes = "changes = [{ at = \"1s\", qdisc = \"cake bandwidth 8mbit\" }]";
    let down = format!("rate = \"100mbit\"\nqdisc = \"cake bandwidth 1mbit\"\n{changes}");
    let all = records(3, &down, &stream(9));
    let series = &all.links[0].series;
    let mbit = |n: usize| series[n].counters.sent_bytes as f64 * 8.0 / 0.5e6;
    assert!(
        mbit(1) < 1.1 && mbit(3) > 7.5,
        "{} then {}",
        mbit(1),
        mbit(3)
    );
}

/// Times in s and values of an example trace.
fn example(name: &str) -> Vec<(f64, f64)> {
    let text = std::fs::read_to_string(traces().join(name)).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|line| {
            let (time, value) = line.split_once(',').unwrap();
            (time.parse().unwrap(), value.parse().unwrap())
        })
        .collect()
}

/// The value at a time in s.
fn value(trace: &[(f64, f64)], at: f64) -> f64 {
    trace
        .iter()
        .rev()
        .find(|(time, _)| *time <= at + 1e-9)
        .unwrap()
        .1
}

#[test]
fn a_trace_with_handovers_replays_its_delay_within_a_millisecond() {
    let trace = example("handover.delay.csv");
    let down = "rate = \"100mbit\"\nqdisc = \"pfifo\"\ndelay_trace = \"handover.delay.csv\"";
    let all = records(119, down, "");
    let (mut held, mut last) = (0, 0.0);
    for ping in &all.flows[0].pings {
        let sent = ping.sent.as_nanos() as f64 / 1e9;
        let Some(rtt) = ping.rtt else { continue };
        // The echo comes back after half of the base RTT, and the ping crosses the other half.
        let arrived = sent * 1e3 + rtt.as_millis_f64() - 20.0;
        // It reaches the wire 10 ms after it was sent.
        let right = sent * 1e3 + value(&trace, sent + 0.01);
        // Behind a packet with a longer delay, it arrives with that one.
        let expected = right.max(last);
        held += u32::from(expected > right + 1.0);
        last = expected;
        assert!(
            (arrived - expected).abs() < 1.0,
            "{sent} s: {arrived} ms, not {expected} ms"
        );
    }
    // At most two pings, 10 ms apart, after each of the 7 handovers.
    assert!(all.flows[0].pings.len() > 11_000 && held <= 14, "{held}");
}

#[test]
fn a_trace_with_handovers_replays_its_rate_within_a_percent() {
    let trace = example("handover.rate.csv");
    let down = "rate_trace = \"handover.rate.csv\"\nqdisc = \"pfifo limit 50\"";
    let all = records(31, down, &stream(300));
    let mut compared = 0;
    for sample in &all.links[0].series {
        let end = sample.at.as_nanos() as f64 / 1e9;
        let steps = 500;
        let rates = (0..steps).map(|n| value(&trace, end - 0.5 + f64::from(n) * 1e-3));
        let expected = rates.sum::<f64>() / f64::from(steps);
        let got = sample.counters.sent_bytes as f64 * 8.0 / 0.5e6;
        // The queue is empty until the first packets arrive.
        if end > 0.6 {
            assert!(
                (got / expected - 1.0).abs() < 0.01,
                "{end} s: {got}, not {expected}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 61);
    // All of the capacity was used, but for the time before the first packet.
    let used = all.links[0].sending.as_secs_f64() / 31.0;
    assert!((0.99..=1.0001).contains(&used), "{used}");
}

#[test]
fn a_loss_trace_loses_packets_when_it_says_so() {
    let down = "rate = \"100mbit\"\nqdisc = \"pfifo\"\n\
                loss_trace = { points = \"0s 0%, 1s 10%, 2s 0%\", period = \"4s\" }";
    let all = records(8, down, &stream(20));
    for (n, sample) in all.links[0].series.iter().enumerate() {
        let share = sample.counters.lost_packets as f64 / sample.counters.sent_packets as f64;
        let expected = if n / 2 % 4 == 1 { 0.1 } else { 0.0 };
        assert!((share - expected).abs() < 0.03, "{n}: {share}");
        assert!(expected > 0.0 || share == 0.0, "{n}: {share}");
    }
}

#[test]
fn packets_are_lost_by_their_number() {
    let down = "rate = \"100mbit\"\nqdisc = \"pfifo\"\ndrop = [3, 7, 100]";
    let all = records(2, down, "");
    let pings = &all.flows[0].pings;
    let lost = (1..).zip(pings).filter(|(_, ping)| ping.rtt.is_none());
    let lost: Vec<u32> = lost.map(|(n, _)| n).take(3).collect();
    assert_eq!(lost, [3, 7, 100]);
    assert_eq!(all.links[0].totals.lost_packets, 3);
}
