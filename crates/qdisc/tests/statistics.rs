//! Queue statistics have the names of `tc -j -s` and match the traffic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    AnyQdisc, Duration, Ecn, Instant, LinkFacts, Number, Qdisc, QdiscSpec, Rng, Statistic,
    catalogue,
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
    by_name(&overloaded(spec).0.statistics())
}

/// Those of the whole queue.
fn by_name(statistics: &[Statistic]) -> BTreeMap<&'static str, f64> {
    let whole = statistics.iter().filter(|s| s.part.is_none());
    whole.map(|s| (s.name, number(s.value))).collect()
}

/// The end of [`overloaded`].
const END: Instant = Instant::from_millis(4_000);

/// The statistics and the state of an overloaded queue.
fn everything(spec: &str) -> Vec<Statistic> {
    let queue = overloaded(spec).0;
    let mut all = queue.statistics();
    all.extend(queue.state(END));
    all
}

/// The state alone, of the whole queue.
fn state(spec: &str) -> BTreeMap<&'static str, f64> {
    by_name(&overloaded(spec).0.state(END))
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
        let statistics = everything(kind.name);
        let mut names: Vec<_> = statistics.iter().map(|s| (s.part, s.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), statistics.len(), "{}", kind.name);
    }
}

#[test]
fn the_footprint_bounds_the_number_of_statistics() {
    let nested = [
        "fq profile linux-6.12",
        "cake diffserv8 bandwidth 5mbit",
        "cocoa flow_limit 5 orphan_mask 63",
        "prio leaf codel / dualpi2 / floq",
        "drr classes 9 leaf fq_pie",
        "htb default c classes (name a rate 1mbit) (name b parent a rate 1mbit leaf fq_pie) (name c rate 9mbit leaf cake)",
        "drr classes 3 leaf cake / cocoa",
        "red min 3000 max 9000 limit 60000 leaf cobalt",
        "sfb leaf predict",
    ];
    let kinds = catalogue();
    for spec in kinds.iter().map(|kind| kind.name).chain(nested) {
        let bound = QdiscSpec::parse(spec).unwrap().footprint().statistics;
        let found = everything(spec).len() as u64;
        assert!(found <= bound, "{spec}: {found}, more than {bound}");
    }
    let without = QdiscSpec::parse("pfifo").unwrap().footprint();
    assert_eq!(without.statistics, 0);
}

#[test]
fn red_states_the_probability_at_its_average() {
    for (spec, probability, gentle) in [
        (
            "red limit 600000 min 3000 max 90000 avpkt 1514 burst 4 probability 0.02",
            0.02,
            false,
        ),
        (
            "red limit 600000 min 3000 max 90000 avpkt 1514 burst 4 probability 0.5",
            0.5,
            false,
        ),
        (
            "red limit 600000 min 3000 max 9000 avpkt 1514 burst 4 probability 0.02 gentle",
            0.02,
            true,
        ),
        (
            "red limit 600000 min 3000 max 9000 avpkt 1514 burst 4 probability 0.5 gentle",
            0.5,
            true,
        ),
    ] {
        let red = by_name(&everything(spec));
        let (min, max) = (3_000.0, if gentle { 9_000.0 } else { 90_000.0 });
        let average = red["average"];
        let expected = if average >= if gentle { 2.0 * max } else { max } {
            1.0
        } else if average >= max {
            probability + (1.0 - probability) * (average - max) / max
        } else {
            probability * (average - min) / (max - min)
        };
        assert!(
            (red["prob"] - expected).abs() < 1e-3,
            "{spec}: {red:?}, not {expected}"
        );
    }
    // An empty queue has no reason to signal.
    let idle = QdiscSpec::parse("red limit 60000").unwrap();
    let idle: AnyQdisc<TestPacket> = idle.build(&LinkFacts::default(), Rng::new(1));
    assert_eq!(by_name(&idle.state(END)), BTreeMap::from([("prob", 0.0)]));
}

#[test]
fn the_state_has_what_tc_leaves_out() {
    let choke = state("choke limit 5000 min 5 max 4500 burst 9");
    assert!((5.0..4_500.0).contains(&choke["average"]), "{choke:?}");
    let prob = 0.02 * (choke["average"] - 5.0) / 4_495.0;
    assert!((choke["prob"] - prob).abs() < 1e-4, "{choke:?}");
    for nonlinear in [
        "red_ns2 min 5 max 15 limit 40",
        "nlred",
        "hred rtt 50ms limit 40",
    ] {
        let prob = state(nonlinear)["prob"];
        assert!(prob > 0.0 && prob <= 1.0, "{nonlinear}: {prob}");
    }
    let dualpi2 = by_name(&everything("dualpi2 profile linux"));
    assert!(dualpi2["prob"] > 0.0, "{dualpi2:?}");
    for law in ["dualpi2 profile linux", "dualpi2 profile rfc"] {
        let pi2 = by_name(&everything(law));
        assert!(
            (pi2["prob_c"] - pi2["prob"].powi(2)).abs() < 1e-12,
            "{pi2:?}"
        );
        assert!(
            (pi2["prob_l"] - (2.0 * pi2["prob"]).min(1.0)).abs() < 1e-12,
            "{pi2:?}"
        );
    }
    assert!(state("fq_codel flows 8")["dropping_flows"] > 0.0);
    assert!(state("sfq_codel flows 8")["dropping_flows"] > 0.0);
    let bins = state("sfq_codel")["flows"];
    assert!((45.0..=50.0).contains(&bins), "{bins}");
    let slots = state("sfq limit 1000")["flows"];
    assert!((40.0..=50.0).contains(&slots), "{slots}");
    let fq_pie = state("fq_pie flows 8 limit 500");
    assert!(
        fq_pie["maxprob"] > 0.0 && fq_pie["old_flows_len"] > 6.0,
        "{fq_pie:?}"
    );
    let afcd = state("afcd sample 2 shadow 100");
    assert!(
        afcd["min_target"] > 0.0 && afcd["min_target"] <= afcd["max_target"],
        "{afcd:?}"
    );
}

#[test]
fn the_next_signal_is_stated_relative_to_the_time() {
    for spec in ["codel", "cobalt", "afcd sample 2 shadow 100"] {
        let queue = overloaded(spec).0;
        assert!(by_name(&queue.statistics())["dropping"] > 0.0, "{spec}");
        let due = |now| by_name(&queue.state(now))["drop_next"];
        // The last departure was 2 ms before the end; signals were at most an interval apart.
        assert!(
            due(END) > -100_000.0 && due(END) < 100_000.0,
            "{spec}: {}",
            due(END)
        );
        let later = due(END + Duration::from_secs(1));
        assert!((due(END) - later - 1e6).abs() < 1e-6, "{spec}: {later}");
    }
    let quiet = QdiscSpec::parse("codel").unwrap();
    let quiet: AnyQdisc<TestPacket> = quiet.build(&LinkFacts::default(), Rng::new(1));
    assert!(quiet.state(END).is_empty());
}

#[test]
fn classes_state_the_state_of_their_queues() {
    let codel = overloaded("prio leaf codel").0.state(END);
    let parts: Vec<_> = codel.iter().map(|s| (s.part, s.name)).collect();
    // All packets are in the middle band, and the others do not signal.
    assert_eq!(parts, [(Some(("bands", 1)), "drop_next")]);
    for (spec, part) in [
        ("red limit 60000 leaf pie", None),
        ("red limit 60000 leaf red limit 60000", Some(("leaf", 0))),
        ("sfb leaf red limit 60000", Some(("leaf", 0))),
        ("drr classes 2 leaf red limit 60000", Some(("classes", 1))),
    ] {
        let state = overloaded(spec).0.state(END);
        let found = state.iter().any(|s| (s.part, s.name) == (part, "prob"));
        assert!(found, "{spec}: {state:?}");
    }
    let floq = overloaded("floq limit 100").0.state(END);
    assert!(floq.iter().all(|s| s.name == "prob"), "{floq:?}");
    let places: Vec<_> = floq.iter().map(|s| s.part).collect();
    assert_eq!(places, [0, 1, 2].map(|n| Some(("classes", n))));
}
