//! What a token bucket lets through, held against its rate and burst.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use sojourn_apps::{Phase, Spacing, UdpConfig};
use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_scenario::plan::{Change, Config, FlowConfig, Hop, Shaper, Traffic};
use sojourn_transport::CcKind;

use mixed::{MS, bulk, flow, mixed, records};

/// Bytes that link 0 sends in `config` between any two samples, held against its rate.
fn check_rate(config: &Config, burst: u64) {
    let records = records(config);
    let series = &records.links[0].series;
    let rate = config.links[0].rate;
    let mut most_credit_used = 0;
    for first in 0..series.len() {
        let mut sent = 0;
        let mut time = Duration::ZERO;
        for sample in &series[first..] {
            sent += sample.counters.sent_bytes;
            time += config.sample;
            let allowed = rate.carries(time).0 + burst;
            assert!(sent <= allowed, "{sent} B in {time}, {allowed} allowed");
            most_credit_used = most_credit_used.max(sent.saturating_sub(rate.carries(time).0));
        }
    }
    assert!(
        4 * most_credit_used >= 3 * (burst - 1_514),
        "only {most_credit_used} of a burst of {burst}"
    );
}

#[test]
fn a_wire_sends_its_rate_and_a_bucket_its_burst_more() {
    let mut config = mixed("pfifo limit 200", 2);
    config.sample = MS.times(5);
    config.links[0].rate = Rate::mbit(5);
    // One packet is counted when its transmission begins.
    check_rate(&config, 1_514);
    for burst in [15_140, 60_000] {
        config.links[0].shaper = Shaper::Bucket {
            burst: Bytes(burst),
        };
        // A packet may leave while there is any credit.
        check_rate(&config, burst + 1_514);
    }
}

#[test]
fn a_tbf_bucket_sends_its_burst_more_and_no_packet_beyond() {
    let mut config = mixed("pfifo limit 200", 2);
    config.sample = MS.times(5);
    config.links[0].rate = Rate::mbit(5);
    for burst in [1_600, 15_140, 60_000] {
        config.links[0].shaper = Shaper::Tbf {
            burst: Bytes(burst),
        };
        // Counted when a packet leaves its queue: the one that waits for tokens is ahead of the bound.
        check_rate(&config, burst + 1_514);
    }
}

/// A link of 100 kbit/s with `qdisc`, and a hundred times as much in full frames.
fn overloaded(qdisc: &str, shaper: Shaper) -> Config {
    let mut config = mixed(qdisc, 2);
    let datagrams = UdpConfig {
        phase: Phase::Fixed(Duration::ZERO),
        rate: Rate::mbit(10),
        payload: Bytes(1_448),
        spacing: Spacing::Even { spread: 0.0 },
    };
    config.flows = vec![FlowConfig {
        start_jitter: Duration::ZERO,
        forward: vec![Hop::Link(0)],
        ..flow("cbr", Traffic::datagrams(datagrams))
    }];
    config.measure_from = Duration::ZERO;
    config.sample = MS;
    config.links[0].rate = Rate::from_bits_per_sec(100_000).unwrap();
    config.links[0].shaper = shaper;
    config
}

/// When full frames arrive through such a link, in bytes before each arrival, itself included.
fn arrivals_through(shaper: Shaper) -> Vec<(Instant, u64)> {
    let records = records(&overloaded("pfifo limit 200", shaper));
    let mut bytes = 0;
    let arrived = records.flows[0].series.iter().filter_map(|sample| {
        bytes += sample.delivered_bytes / 1_448 * 1_490;
        (sample.delivered_bytes > 0).then_some((sample.at, bytes))
    });
    arrived.collect()
}

#[test]
fn tbf_keeps_the_arrival_curve_that_htb_exceeds_by_a_packet() {
    let burst = Bytes(1_600);
    let rate = Rate::from_bits_per_sec(100_000).unwrap();
    let curve = |at: Instant| 1_600 + rate.carries(at.since(Instant::ZERO)).0;
    let tbf = arrivals_through(Shaper::Tbf { burst });
    assert!(tbf.len() > 40, "{tbf:?}");
    assert!(tbf.iter().all(|&(at, bytes)| bytes <= curve(at)), "{tbf:?}");
    // One frame at once; each further one when its tokens have come, in the interval that contains that instant;
    // an interval does not include its end.
    assert_eq!(tbf[0].1, 1_490);
    for &(at, bytes) in &tbf[1..] {
        let before = Instant::from_nanos(at.as_nanos() - MS.as_nanos());
        assert!(bytes >= curve(before), "{bytes} B at {at:?} came late");
    }
    let htb = arrivals_through(Shaper::Bucket { burst });
    assert_eq!(htb[1].1, 2 * 1_490);
    assert!(htb[1].0 <= Instant::ZERO + MS.times(3), "{htb:?}");
    assert!(htb.iter().any(|&(at, bytes)| bytes > curve(at)));
    let total = |arrivals: &[(Instant, u64)]| arrivals.last().unwrap().1;
    assert!(total(&htb) - total(&tbf) <= 1_490);
}

#[test]
fn a_packet_that_waits_for_tokens_stays_in_a_queue_that_peeks() {
    const ONLY_LIMIT: &str = "limit 4 target 100s interval 1000s";
    let counts = |qdisc: &str, shaper| {
        let records = records(&overloaded(qdisc, shaper));
        let delivered: u64 = records.flows[0]
            .series
            .iter()
            .map(|s| s.delivered_bytes)
            .sum();
        (delivered / 1_448, records.links[0].totals.drops_overlimit)
    };
    let tbf = Shaper::Tbf {
        burst: Bytes(1_600),
    };
    let (delivered, dropped) = counts("pfifo limit 4", tbf);
    assert!(delivered > 40, "{delivered}");
    let (of_codel, dropped_by_codel) = counts(&format!("codel {ONLY_LIMIT}"), tbf);
    // A packet that has left the queue makes room for one more.
    assert_eq!((of_codel, dropped_by_codel), (delivered, dropped - 1));
    for keeps in [
        "red limit 6056 min 6000 max 6050 avpkt 1514 burst 5 probability 0.001",
        "pie limit 4 target 100s",
        "sfb limit 4 max 5 target 5",
        "prio leaf pfifo limit 4",
        "pfifo_fast limit 4",
    ] {
        assert_eq!(counts(keeps, tbf), (delivered, dropped), "{keeps}");
    }
    let both = format!("prio leaf codel {ONLY_LIMIT}");
    assert_eq!(counts(&both, tbf), (of_codel, dropped_by_codel));
}

#[test]
fn a_packet_that_waits_for_tokens_in_its_queue_leaves_earlier_at_a_higher_rate() {
    let tbf = Shaper::Tbf {
        burst: Bytes(1_600),
    };
    let mut config = overloaded("pfifo limit 4", tbf);
    // At 100 kbit/s, the second frame waits until 114 ms.
    config.links[0].changes = vec![Change {
        at: MS.times(20),
        rate: Some(Rate::mbit(1)),
        ..Change::default()
    }];
    let records = records(&config);
    let mut samples = records.flows[0].series.iter();
    let mut frames = samples.by_ref().filter(|sample| sample.delivered_bytes > 0);
    let (first, second) = (frames.next().unwrap().at, frames.next().unwrap().at);
    let gap = second.since(first);
    assert!(gap > MS.times(20) && gap < MS.times(40), "{gap}");
}

#[test]
fn a_bucket_is_full_at_the_start() {
    let mut config = mixed("pfifo limit 200", 2);
    config.flows = vec![FlowConfig {
        start_jitter: Duration::ZERO,
        ..flow("burst", bulk(CcKind::Cubic, None, false))
    }];
    config.sample = Duration::from_nanos(1_000);
    config.duration = MS.times(50);
    config.measure_from = Duration::ZERO;
    config.flows[0].forward = vec![Hop::Link(0)];
    config.flows[0].reverse = vec![];
    config.links[0].rate = Rate::mbit(1);
    config.links[0].shaper = Shaper::Bucket {
        burst: Bytes(6 * 1_514),
    };
    let records = records(&config);
    // SYN, acknowledgement and six full segments.
    assert!(records.links[0].series[0].counters.sent_packets >= 8);
}
