//! What queues say of themselves carries the names of `tc -j -s` and follows what happened.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    AnyQdisc, Duration, Instant, LinkFacts, Number, Qdisc, QdiscSpec, Rng, catalogue,
};

/// Offers a packet of each of 50 flows every millisecond and takes one every two.
fn overloaded(spec: &str) -> AnyQdisc<TestPacket> {
    let spec = QdiscSpec::parse(spec).unwrap();
    let mut queue = spec.build(&LinkFacts::default(), Rng::new(1));
    let mut obs = Recorder::default();
    let mut now = Instant::ZERO;
    for id in 0..4_000_u32 {
        let pkt = TestPacket {
            flow: id % 50,
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
    queue
}

fn numbers(spec: &str) -> BTreeMap<&'static str, f64> {
    let statistics = overloaded(spec).statistics();
    let number = |value| match value {
        Number::Count(n) => f64::from(u32::try_from(n).unwrap()),
        Number::Real(x) => x,
        Number::Flag(flag) => f64::from(u8::from(flag)),
    };
    statistics
        .iter()
        .map(|s| (s.name, number(s.value)))
        .collect()
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
    let cocoa = overloaded("cocoa flow_limit 5").statistics();
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
fn names_are_told_once() {
    for kind in catalogue() {
        let statistics = overloaded(kind.name).statistics();
        let mut names: Vec<_> = statistics.iter().map(|s| (s.part, s.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), statistics.len(), "{}", kind.name);
    }
}
