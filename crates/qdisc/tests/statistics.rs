//! Queue statistics have the names of `tc -j -s` and match the traffic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    AnyQdisc, Duration, Ecn, Instant, LinkFacts, Number, Qdisc, QdiscSpec, Rng, catalogue,
};

/// Offers a packet of each of 50 flows every millisecond and takes one every two.
fn overloaded(spec: &str) -> (AnyQdisc<TestPacket>, Recorder) {
    let spec = QdiscSpec::parse(spec).unwrap();
    let mut queue = spec.build(&LinkFacts::default(), Rng::new(1));
    let mut obs = Recorder::default();
    let mut now = Instant::ZERO;
    for id in 0..4_000_u32 {
        let pkt = TestPacket {
            flow: id % 50,
            ecn: [Ecn::NotEct, Ecn::Ect0][id as usize % 2],
            ..TestPacket::mtu(id.into())
        };
        queue.enqueue(now, pkt, &mut obs);
        now += Duration::from_millis(1);
        if queue.next_timer().is_some_and(|due| due <= now) {
            queue.on_timer(now);
        }
        if id % 2 == 0 {
            queue.dequeue(now, &mut obs);
        }
    }
    (queue, obs)
}

fn number(value: Number) -> f64 {
    match value {
        Number::Count(n) => f64::from(u32::try_from(n).unwrap()),
        Number::Real(x) => x,
        Number::Flag(flag) => f64::from(u8::from(flag)),
    }
}

fn numbers(spec: &str) -> BTreeMap<&'static str, f64> {
    let statistics = overloaded(spec).0.statistics();
    let whole = statistics.iter().filter(|s| s.part.is_none());
    whole.map(|s| (s.name, number(s.value))).collect()
}

/// The sum of these counts over the parts of a queue and the whole.
fn sum(queue: &AnyQdisc<TestPacket>, names: &[&str]) -> u64 {
    let statistics = queue.statistics().into_iter();
    let counts = statistics
        .filter(|s| names.contains(&s.name))
        .map(|s| match s.value {
            Number::Count(n) => n,
            other => panic!("{} is {other:?}", s.name),
        });
    counts.sum()
}

#[test]
fn reasons_add_up_to_what_was_dropped_and_marked() {
    let mut marking = 0;
    for (spec, drops, marks) in [
        (
            "choke limit 60 min 5 max 15 burst 9 ecn",
            "early pdrop matched",
            "marked",
        ),
        (
            "choke limit 60 min 5 max 15 burst 9",
            "early pdrop matched",
            "",
        ),
        (
            "red_ns2 min 5 max 15 limit 40 ecn",
            "early forced pdrop",
            "marked",
        ),
        ("red_ns2 min 5 max 15 limit 40", "early forced pdrop", ""),
        ("hred rtt 50ms limit 40", "early forced pdrop", ""),
        (
            "sfb max 5 increment 0.1",
            "earlydrop penaltydrop bucketdrop queuedrop",
            "",
        ),
        (
            "sfb max 5 limit 30 increment 0.1",
            "earlydrop penaltydrop bucketdrop queuedrop",
            "",
        ),
        ("fq_pie limit 500 ecn", "dropped", "ecn_mark"),
        (
            "fq_pie limit 500 ecn ecn_prob 99 flows 2",
            "dropped overlimit",
            "ecn_mark",
        ),
        ("sfq_codel limit 500 flows 2 ecn", "", "ecn_mark"),
        ("floq limit 100", "early overlimit", "marked"),
        ("dualpi2", "", "ecn_mark"),
        ("cake memlimit 300000b", "drops ack_drops", "ecn_mark"),
        ("cake bandwidth 5mbit", "drops ack_drops", "ecn_mark"),
        ("drr classes 7 leaf pfifo limit 20", "drops", ""),
        ("prio leaf codel limit 20", "drops", ""),
    ] {
        let (queue, obs) = overloaded(spec);
        let names: Vec<_> = queue.statistics().iter().map(|s| s.name).collect();
        for (reasons, seen) in [(drops, obs.drops.len()), (marks, obs.marks.len())] {
            let reasons: Vec<_> = reasons.split_whitespace().collect();
            assert!(
                reasons.iter().all(|r| names.contains(r)),
                "{spec}: {names:?}"
            );
            if !reasons.is_empty() {
                assert_eq!(sum(&queue, &reasons), seen as u64, "{spec}: {reasons:?}");
            }
        }
        assert!(!obs.drops.is_empty(), "{spec} dropped nothing");
        marking += usize::from(!obs.marks.is_empty());
        if names.contains(&"memory_used") && !spec.starts_with("cake") {
            let waiting = queue.backlog();
            assert!(waiting.bytes.0 > 0, "{spec}");
            // Full packets in buffers of the kernel.
            assert_eq!(
                sum(&queue, &["memory_used"]),
                waiting.packets as u64 * 2_304,
                "{spec}"
            );
        }
    }
    assert!(marking > 6, "{marking} marked");
}

#[test]
fn every_queue_says_what_it_estimates() {
    for (kind, names) in [
        ("red", "average max_prob"),
        ("choke", "early marked pdrop matched"),
        ("blue", "prob"),
        ("red_ns2", "marked early forced pdrop average max_p"),
        ("hred", "marked early forced pdrop average max_p"),
        ("codel", "count lastcount dropping ldelay maxpacket"),
        ("cobalt", "count dropping blue_prob"),
        ("pie", "prob delay maxq"),
        (
            "fq_codel",
            "maxpacket new_flow_count memory_used new_flows_len old_flows_len",
        ),
        (
            "sfq_codel",
            "maxpacket drop_overlimit new_flow_count ecn_mark",
        ),
        ("fq", "flows inactive throttled flows_plimit"),
        ("cocoa", "flows inactive throttled"),
        (
            "afcd",
            "count lastcount dropping maxpacket flows fair_share",
        ),
        ("afd", "flows fair_share"),
        ("floq", "marked pushed_out responsive_share"),
        ("predict", "signals"),
        (
            "cake",
            "memory_used memory_limit capacity_estimate min_network_size max_network_size \
                  min_adj_size max_adj_size",
        ),
    ] {
        let found = numbers(kind);
        for name in names.split_whitespace() {
            assert!(found.contains_key(name), "{kind} lacks {name}: {found:?}");
        }
    }
}

#[test]
fn codel_tells_its_state() {
    let codel = numbers("codel");
    assert!(codel["count"] > 10.0 && codel["dropping"] > 0.0);
    assert!(codel["ldelay"] > 5_000.0, "{codel:?}");
    assert!((codel["maxpacket"] - 1_514.0).abs() < 0.5);
}

#[test]
fn pie_tells_its_probability_in_both_laws() {
    let (rfc, linux) = (numbers("pie"), numbers("pie profile linux"));
    for pie in [&rfc, &linux] {
        assert!(pie["prob"] > 0.1, "{pie:?}");
        assert!(pie["delay"] > 1_000.0, "{pie:?}");
        assert!(pie["maxq"] > 10.0, "{pie:?}");
    }
    assert!(linux["avg_dq_rate"] < 0.5, "{linux:?}");
    // 1514 bytes every 2 ms.
    let rate = numbers("pie profile linux dq_rate_estimator")["avg_dq_rate"];
    assert!((rate / 757_000.0 - 1.0).abs() < 0.1, "{rate}");
}

#[test]
fn flow_queues_count_their_flows() {
    let fq_codel = numbers("fq_codel");
    assert!(fq_codel["new_flow_count"] >= 45.0, "{fq_codel:?}");
    // 50 flows, two or so of which share a queue.
    assert!(
        (45.0..=50.0).contains(&fq_codel["old_flows_len"]),
        "{fq_codel:?}"
    );
    let fq = numbers("fq flow_limit 5");
    assert!(fq["flows_plimit"] > 1_000.0 && fq["flows"] > 40.0, "{fq:?}");
    let cocoa = overloaded("cocoa flow_limit 5").0.statistics();
    let limits: Vec<_> = cocoa.iter().filter(|s| s.name == "limit").collect();
    assert!(limits.len() > 40 && limits.iter().all(|s| s.part.is_some()));
}

#[test]
fn red_and_its_kin_tell_averages_and_reasons() {
    let red = numbers("red limit 60000 min 3000 max 9000 avpkt 1514 burst 4");
    assert!(
        red["average"] > 3_000.0 && red["average"] <= 60_000.0,
        "{red:?}"
    );
    let ared = numbers("ared limit 600000 min 3000 max 90000 avpkt 1514 burst 20");
    assert!(ared["max_prob"] > 0.02, "{ared:?}");
    let sfb = numbers("sfb max 5 increment 0.1");
    assert!(sfb["earlydrop"] + sfb["penaltydrop"] > 100.0, "{sfb:?}");
    assert!(
        sfb["maxprob"] > 0.5 && sfb["avgprob"] <= sfb["maxprob"],
        "{sfb:?}"
    );
    assert!(numbers("cobalt limit 100 increment 0.1")["blue_prob"] > 0.1);
}

#[test]
fn bands_are_distinguished() {
    for kind in ["pfifo_fast", "prio"] {
        let statistics = overloaded(kind).0.statistics();
        let bands = (0..3).map(|band| {
            let packets = statistics
                .iter()
                .find(|s| s.part == Some(("bands", band)) && s.name == "packets");
            packets.map(|s| s.value)
        });
        // All are of one class, which goes to the middle band.
        let zero = Some(Number::Count(0));
        assert_eq!(
            bands.collect::<Vec<_>>(),
            [zero, Some(Number::Count(2_000)), zero]
        );
    }
}

#[test]
fn names_are_unique() {
    for kind in catalogue() {
        let statistics = overloaded(kind.name).0.statistics();
        let mut names: Vec<_> = statistics.iter().map(|s| (s.part, s.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), statistics.len(), "{}", kind.name);
    }
}
