//! The tree by hand: shares, borrowing, priorities, classification, and what is refused.

use super::*;
use crate::registry::QdiscSpec;
use crate::testing::{Recorder, TestPacket};
use crate::{AnyQdisc, Bytes, Dscp, Duration, FlowFacts, Observer, Transport};

const BURSTS: &str = "burst 1600b cburst 1600b";

fn queue(text: &str) -> AnyQdisc<TestPacket> {
    let spec = QdiscSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    spec.build(&LinkFacts::default(), Rng::new(1))
}

fn packet(id: u64, dscp: u8) -> TestPacket {
    TestPacket {
        dscp: Dscp::new(dscp).expect("six bits"),
        ..TestPacket::mtu(id)
    }
}

/// What left by DSCP in `millis` ms, when each of `dscps` always has packets; timers are followed.
fn sent(queue: &mut AnyQdisc<TestPacket>, dscps: &[u8], millis: u64) -> Vec<u64> {
    let mut obs = Recorder::default();
    for id in 0..20 {
        for &dscp in dscps {
            queue.enqueue(Instant::ZERO, packet(id, dscp), &mut obs);
        }
    }
    assert_eq!(obs.drops, []);
    sent_from(queue, dscps, Instant::ZERO, millis)
}

/// The same from `start` on, of the packets that the queue has.
fn sent_from(
    queue: &mut AnyQdisc<TestPacket>,
    dscps: &[u8],
    start: Instant,
    millis: u64,
) -> Vec<u64> {
    let mut obs = Recorder::default();
    let mut now = start;
    let mut bytes = vec![0; dscps.len()];
    let end = now + Duration::from_millis(millis);
    while now < end {
        while let Some(pkt) = queue.dequeue(now, &mut obs) {
            let place = dscps.iter().position(|&dscp| dscp == pkt.dscp.number());
            bytes[place.expect("a DSCP of the test")] += pkt.size;
            queue.enqueue(now, pkt, &mut obs);
        }
        now = queue.next_timer().expect("packets wait").max(now);
        queue.on_timer(now);
    }
    assert_eq!(obs.drops, []);
    bytes
}

/// Mbit/s over 2 s.
fn rates(queue: &mut AnyQdisc<TestPacket>, dscps: &[u8]) -> Vec<f64> {
    in_mbit(sent(queue, dscps, 2_000))
}

/// Bytes of 2 s in Mbit/s.
#[expect(clippy::cast_precision_loss, reason = "small")]
fn in_mbit(bytes: Vec<u64>) -> Vec<f64> {
    let bytes = bytes.into_iter();
    bytes.map(|bytes| (bytes * 8) as f64 / 2e6).collect()
}

fn assert_near(got: &[f64], expected: &[f64]) {
    for (got, expected) in got.iter().zip(expected) {
        assert!(
            (got - expected).abs() < 0.05,
            "{got:.3} instead of {expected}"
        );
    }
}

fn two(first: &str, second: &str) -> AnyQdisc<TestPacket> {
    queue(&text_of("10mbit", first, second))
}

fn text_of(root: &str, first: &str, second: &str) -> String {
    format!(
        "htb default be classes (name root rate {root} {BURSTS}) (name ef parent root {first} {BURSTS}) \
         (name be parent root {second} {BURSTS}) filters (to ef dscp EF)"
    )
}

#[test]
fn a_change_keeps_packets_and_shares_the_new_rate() {
    let before = text_of("10mbit", "rate 1mbit ceil 10mbit", "rate 9mbit ceil 10mbit");
    let mut changing = queue(&before);
    let all = [46, 0];
    assert_near(&rates(&mut changing, &all), &[1.0, 9.0]);
    let waiting = changing.backlog();
    let after = text_of("4mbit", "rate 3mbit ceil 4mbit", "rate 1mbit ceil 4mbit");
    let spec: QdiscSpec = before.parse().expect("it was read before");
    let change = spec.changed_by(&after).expect("the classes are the same");
    let now = Instant::ZERO + Duration::from_secs(3);
    let mut obs = Recorder::default();
    let context = (&LinkFacts::default(), Rng::new(2));
    changing.apply(now, &change, context, &mut obs);
    assert_eq!((obs.drops.len(), changing.backlog()), (0, waiting));
    let shares = in_mbit(sent_from(&mut changing, &all, now, 2_000));
    assert_near(&shares, &[3.0, 1.0]);

    for (text, what) in [
        (
            before
                .replace("name be", "name bulk")
                .replace("default be", "default bulk"),
            "names",
        ),
        (
            before.replace("1600b) (name be", "1600b leaf codel) (name be"),
            "queues",
        ),
        (before.replace("name be parent root", "name be"), "parents"),
    ] {
        let error = spec.changed_by(&text).expect_err(what).to_string();
        assert!(
            error.contains("classes cannot come, go, move or get other queues"),
            "{error}"
        );
    }
}

#[test]
fn a_class_alone_borrows_up_to_its_ceil() {
    let mut queue = two("rate 1mbit ceil 4mbit", "rate 9mbit ceil 10mbit");
    assert_near(&rates(&mut queue, &[46]), &[4.0]);
    let mut queue = two("rate 1mbit ceil 4mbit", "rate 9mbit ceil 10mbit");
    assert_near(&rates(&mut queue, &[0]), &[10.0]);
}

#[test]
fn what_is_left_is_shared_in_proportion_to_the_quanta() {
    // 1 and 3 Mbit/s are guaranteed; of the other 6, quanta of 12500 and 37500 give a quarter to the first.
    let mut queue = two("rate 1mbit ceil 10mbit", "rate 3mbit ceil 10mbit");
    assert_near(&rates(&mut queue, &[46, 0]), &[2.5, 7.5]);
    let mut queue = two(
        "rate 1mbit ceil 10mbit quantum 3028b",
        "rate 3mbit ceil 10mbit quantum 3028b",
    );
    assert_near(&rates(&mut queue, &[46, 0]), &[4.0, 6.0]);
}

#[test]
fn what_is_left_goes_to_the_lowest_priority_number() {
    let mut queue = two(
        "rate 1mbit ceil 10mbit prio 1",
        "rate 3mbit ceil 10mbit prio 0",
    );
    assert_near(&rates(&mut queue, &[46, 0]), &[1.0, 9.0]);
}

#[test]
fn packets_in_no_class_pass_at_once() {
    let mut queue = queue("htb direct_qlen 3 classes (name a rate 8kbit) filters (to a dscp EF)");
    let mut obs = Recorder::default();
    for id in 0..5 {
        queue.enqueue(Instant::ZERO, packet(id, 0), &mut obs);
    }
    assert_eq!(obs.drops.len(), 2);
    let mut left = || queue.dequeue(Instant::ZERO, &mut obs).map(|pkt| pkt.id);
    assert_eq!(
        [left(), left(), left(), left()],
        [Some(0), Some(1), Some(2), None]
    );
}

#[test]
fn an_idle_class_gathers_no_more_than_its_burst() {
    let text = "htb default a classes (name a rate 1mbit burst 3028b cburst 3028b)";
    let mut queue = queue(text);
    let mut obs = Recorder::default();
    let at = Instant::ZERO + Duration::from_secs(100);
    for id in 0..9 {
        queue.enqueue(at, packet(id, 0), &mut obs);
    }
    // Two packets empty the bucket; a third leaves while the tokens are not below zero.
    let burst = std::iter::from_fn(|| queue.dequeue(at, &mut obs)).count();
    assert_eq!(burst, 3);
    let wake = queue.next_timer().expect("packets wait");
    // 1514 bytes at 1 Mbit/s, since 3028 bytes were tokens; buckets are rounded to 64 ns.
    assert!(
        wake.since(at) <= Duration::from_nanos(12_112_000 + 64),
        "{wake:?}"
    );
    assert!(
        wake.since(at) >= Duration::from_nanos(12_112_000),
        "{wake:?}"
    );
}

/// Knows the flow of each packet.
struct Knowing;

impl Observer<TestPacket> for Knowing {
    fn flow_of(&mut self, pkt: &TestPacket) -> Option<u32> {
        Some(pkt.flow)
    }

    fn on_drop(&mut self, _now: Instant, pkt: TestPacket, _reason: DropReason) {
        panic!("{pkt:?} was dropped");
    }

    fn on_mark(&mut self, _now: Instant, _pkt: &TestPacket, _reason: crate::MarkReason) {}
}

/// The class that each packet joins, by the statistics.
fn classes_of(text: &str, packets: &[TestPacket]) -> Vec<usize> {
    let facts = |traffic: &str, host| FlowFacts {
        traffic: traffic.into(),
        host,
    };
    let link = LinkFacts {
        flows: Some(
            [
                facts("web", Some(7)),
                facts("web/2", None),
                facts("website", Some(9)),
            ]
            .into(),
        ),
        ..LinkFacts::default()
    };
    let spec = QdiscSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let joined = packets.iter().map(|&pkt| {
        let mut queue: AnyQdisc<TestPacket> = spec.build(&link, Rng::new(1));
        queue.enqueue(Instant::ZERO, pkt, &mut Knowing);
        let waiting = queue
            .statistics()
            .into_iter()
            .find(|statistic| statistic.name == "qlen" && statistic.value == Number::Count(1));
        waiting
            .and_then(|statistic| statistic.part)
            .map_or(usize::MAX, |(_, place)| place)
    });
    joined.collect()
}

#[test]
fn the_first_filter_that_matches_decides() {
    let text = "htb default d classes (name a rate 1mbit) (name b rate 1mbit) (name c rate 1mbit) \
                (name d rate 1mbit) filters (to a protocol tcp destination_port 5-7) \
                (to b source 0.0.0.1) (to c dscp AF41)";
    let of = |flow: u32, dscp| TestPacket {
        flow,
        ..packet(0, dscp)
    };
    // The low half of the flow is the destination port, its highest byte the host.
    let packets = [of(6, 0), of(8, 0), of(1 << 24 | 8, 34), of(1 << 24 | 8, 0)];
    assert_eq!(classes_of(text, &packets), [0, 1, 2, 3]);
}

#[test]
fn filters_know_the_traffic_and_the_host_of_a_flow() {
    let text = "htb default d classes (name a rate 1mbit) (name b rate 1mbit) (name d rate 1mbit) \
                filters (to a host 7) (to b traffic web)";
    let of = |flow| TestPacket {
        flow,
        transport: Transport::Udp,
        ..packet(0, 0)
    };
    // Flow 2 has another name that begins alike, flow 3 is unknown.
    assert_eq!(
        classes_of(text, &[of(0), of(1), of(2), of(3)]),
        [0, 1, 2, 2]
    );
}

#[test]
fn names_of_classes_are_those_of_reports() {
    let queue = two("rate 1mbit ceil 4mbit", "rate 9mbit ceil 10mbit");
    let names: Vec<_> = queue.classes().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ef", "be"]);
    assert_eq!(queue.classes()[0].place, 1);
}

#[test]
fn the_shaper_rate_is_that_of_the_roots() {
    let rate = |text: &str| QdiscSpec::parse(text).expect(text).shaper_rate();
    let roots =
        "htb default a classes (name a rate 3mbit ceil 2mbit) (name b rate 1mbit ceil 5mbit)";
    assert_eq!(rate(roots), Some(Rate::mbit(3)));
    // Some packets are not shaped.
    assert_eq!(rate("htb classes (name a rate 3mbit)"), None);
}

#[test]
fn a_text_reads_back_and_a_table_gives_the_same() {
    let text = "htb default b r2q 10 direct_qlen 1000 classes (name a rate 2mbit) \
                (name b parent a rate 1mbit ceil 2mbit prio 3 leaf (drr classes 2 leaf (prio bands 3 priomap \
                1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 leaf codel limit 1000 target 5ms interval 100ms / pfifo limit 1000))) \
                filters (to b source 10.0.0.0/8 destination_port 80 dscp EF) \
                (to b ip 6 source 2001:2::1)";
    let spec = QdiscSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(spec.to_string(), text);
    let pairs = spec
        .pairs()
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    assert_eq!(QdiscSpec::from_pairs("htb", pairs), Ok(spec.clone()));
    // Three bands in each of two classes, and packets in no class.
    assert_eq!(spec.footprint().packets, 2 * 3 * 1_000 + 1_000);
}

#[test]
fn a_wrong_tree_is_refused_with_its_place() {
    for (text, why) in [
        ("htb classes (rate 1mbit)", "classes 1: name is missing"),
        ("htb classes (name a)", "classes 1: class a has no rate"),
        (
            "htb classes (name a parent b rate 1mbit) (name b rate 1mbit)",
            "classes 1: parent b of class a is not a class before it",
        ),
        (
            "htb classes (name a rate 1mbit) (name a rate 2mbit)",
            "classes 2: a class before it has the name a",
        ),
        (
            "htb classes (name a rate 1mbit leaf codel) (name b parent a rate 1mbit)",
            "class a has a leaf and classes below it",
        ),
        (
            "htb default a classes (name a rate 1mbit) (name b parent a rate 1mbit)",
            "default a is not a leaf class; expected a leaf class such as b",
        ),
        (
            "htb classes (name a rate 1mbit) filters (dscp EF)",
            "filters 1: to is missing; expected a leaf class such as a",
        ),
        (
            "htb classes (name a rate 1mbit) filters (to b)",
            "filters 1: to b is not a leaf class; expected a leaf class such as a",
        ),
        (
            "htb classes (name a rate 1mbit) filters (to a protocol icmp source_port 1)",
            "filters 1: icmp has no ports",
        ),
        (
            "htb classes (name a rate 1mbit) filters (to a ip 6 source 10.0.0.0/8)",
            "filters 1: ip, source and destination have different versions of IP",
        ),
        (
            "htb classes (name a rate 1mbit) filters (to a dscp 64)",
            "filters 1: dscp \"64\" is unknown; expected CS0 to CS7, AF11 to AF43, EF, VA, LE, BE or 0 to 63",
        ),
        (
            "htb classes (name a rate 1mbit leaf codel tarqet 5ms)",
            "classes 1: leaf: codel: unknown parameter \"tarqet\"; did you mean \"target\"?",
        ),
    ] {
        let refused = QdiscSpec::parse(text).expect_err(text).to_string();
        assert_eq!(refused, format!("htb: {why}"), "{text}");
    }
    let deep: Vec<_> = (1..9)
        .map(|n| format!("(name c{n} parent c{} rate 1mbit)", n - 1))
        .collect();
    let deep = deep.join(" ");
    let refused = QdiscSpec::parse(&format!("htb classes (name c0 rate 1mbit) {deep}"));
    let refused = refused.expect_err("too deep").to_string();
    assert_eq!(
        refused,
        "htb: classes 9: class c8 is at depth 9; expected at most 8"
    );
}

#[test]
fn notes_on_leaves_are_found_in_each_class() {
    let notes = QdiscSpec::notes_on(
        "htb classes (name a rate 1mbit leaf codel target 5000) (name b rate 1mbit leaf codel interval 9)",
    );
    let starts = ["codel: target 5000", "codel: interval 9"];
    assert_eq!(notes.len(), 2, "{notes:?}");
    for (note, start) in notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}");
    }
}

#[test]
fn bytes_of_the_classes_add_up() {
    let mut queue = two("rate 1mbit ceil 10mbit", "rate 3mbit ceil 10mbit");
    let total: u64 = sent(&mut queue, &[46, 0], 500).iter().sum();
    let bytes = |place| {
        let all = queue.statistics();
        let found = all
            .iter()
            .find(|s| s.name == "bytes" && s.part == Some((LIST, place)));
        found.map(|statistic| statistic.value)
    };
    assert_eq!(bytes(0), Some(Number::Count(total)));
    assert_eq!(queue.backlog().bytes, Bytes(40 * 1_514));
}
