use super::*;
use crate::registry::QdiscSpec;
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn cake_mq(text: &str) -> CakeMq<TestPacket> {
    match QdiscSpec::parse(&format!("cake_mq {text}")) {
        Ok(QdiscSpec::CakeMq(params)) => CakeMq::new(&params, MTU, Rng::new(1)),
        other => panic!("{text}: {other:?}"),
    }
}

fn of_flow(flow: u32, id: u64) -> TestPacket {
    TestPacket {
        flow,
        ..TestPacket::mtu(id)
    }
}

/// A flow of each instance.
fn flows(queue: &CakeMq<TestPacket>) -> Vec<u32> {
    let of = |at| (1..1_000).find(|&flow| queue.classify(&of_flow(flow, 0)) == at);
    (0..queue.instances.len())
        .map(|at| of(at).expect("a flow"))
        .collect()
}

/// Keeps the flows backlogged from `from` to `to`, in milliseconds; returns the bytes that each sent.
fn run(queue: &mut CakeMq<TestPacket>, flows: &[u32], from: u64, to: u64) -> Vec<u64> {
    let mut seen = Recorder::default();
    let (mut now, end) = (Instant::from_millis(from), Instant::from_millis(to));
    let mut sent = vec![0; flows.len()];
    for &flow in flows {
        for id in 0..20 {
            queue.enqueue(now, of_flow(flow, id), &mut seen);
        }
    }
    while now < end {
        while let Some(pkt) = queue.dequeue(now, &mut seen) {
            let at = flows.iter().position(|&flow| flow == pkt.flow);
            let at = at.expect("a flow of this run");
            sent[at] += pkt.size;
            queue.enqueue(now, pkt, &mut seen);
        }
        now = queue.next_timer().expect("the shaper holds packets back");
        queue.on_timer(now);
    }
    sent
}

fn numbers(queue: &CakeMq<TestPacket>) -> Vec<u64> {
    queue.instances.iter().map(|each| each.active).collect()
}

/// Bytes in this many milliseconds at 10 Mbit/s.
const fn at_10_mbit(ms: u64) -> u64 {
    10_000 / 8 * ms
}

#[track_caller]
fn assert_within(got: u64, want: u64, by: u64) {
    assert!(got.abs_diff(want) <= by, "{got}, not {want}");
}

#[test]
fn one_busy_instance_has_the_whole_rate() {
    let mut queue = cake_mq("queues 4 bandwidth 10mbit besteffort");
    let flows = flows(&queue);
    let sent = run(&mut queue, &flows[..1], 1_000, 2_000);
    assert_within(sent[0], at_10_mbit(1_000), 2 * 1_514);
    assert_eq!(numbers(&queue), [1; 4]);
}

#[test]
fn busy_instances_share_the_rate_equally() {
    let mut queue = cake_mq("queues 4 bandwidth 10mbit besteffort");
    let flows = flows(&queue);
    let sent = run(&mut queue, &flows, 1_000, 2_000);
    for each in &sent {
        assert_within(*each, at_10_mbit(1_000) / 4, 3 * 1_514);
    }
    assert_eq!(numbers(&queue), [4; 4]);
}

/// The share of an idle instance is not lost: the others count again when `sync_time` is over.
#[test]
fn the_rate_of_an_instance_that_becomes_idle_goes_to_the_others() {
    let mut queue = cake_mq("queues 2 bandwidth 10mbit besteffort");
    let flows = flows(&queue);
    run(&mut queue, &flows, 1_000, 1_100);
    assert_eq!(numbers(&queue), [2, 2]);
    // The second flow sends what it has left, 20 packets, and no more.
    let mut seen = Recorder::default();
    let (mut now, mut sent) = (Instant::from_millis(1_100), 0);
    while now < Instant::from_millis(2_100) {
        while let Some(pkt) = queue.dequeue(now, &mut seen) {
            sent += pkt.size;
            if pkt.flow == flows[0] {
                queue.enqueue(now, pkt, &mut seen);
            }
        }
        now = queue.next_timer().expect("the first flow is busy");
        queue.on_timer(now);
    }
    assert_within(sent, at_10_mbit(1_000), 4 * 1_514);
    assert_eq!(queue.instances[0].active, 1);
}

/// An instance counts at most once per `sync_time`, so that a new one is noticed later.
#[test]
fn a_count_holds_for_the_synchronisation_time() {
    let mut queue = cake_mq("queues 2 bandwidth 10mbit besteffort sync_time 50ms");
    let flows = flows(&queue);
    let mut seen = Recorder::default();
    let at = |us: u64| Instant::from_nanos(us * 1_000);
    for id in 0..100 {
        queue.enqueue(at(0), of_flow(flows[0], id), &mut seen);
    }
    assert!(queue.dequeue(at(0), &mut seen).is_some());
    queue.enqueue(at(10), of_flow(flows[1], 100), &mut seen);
    for (us, active) in [(49_999, 1), (50_000, 2)] {
        queue.on_timer(at(us));
        queue.enqueue(at(us), of_flow(flows[0], 101), &mut seen);
        queue.enqueue(at(us), of_flow(flows[1], 102), &mut seen);
        queue.next = 0;
        queue.dequeue(at(us), &mut seen);
        assert_eq!(queue.instances[0].active, active, "{us} us");
    }
}

#[test]
fn the_thresholds_of_the_tins_and_the_quanta_follow_and_the_targets_do_not() {
    let mut queue = cake_mq("queues 2 bandwidth 64mbit diffserv4");
    let flows = flows(&queue);
    let of = |queue: &CakeMq<TestPacket>, name| -> Vec<u64> {
        let all = queue.instances[0].queue.statistics();
        let tins = all.iter().filter(|each| each.name == name);
        tins.filter_map(|each| match each.value {
            crate::contract::Number::Count(n) => Some(n),
            _ => None,
        })
        .collect()
    };
    let targets = of(&queue, "target_us");
    assert_eq!(
        of(&queue, "threshold_rate"),
        [500_000, 8_000_000, 4_000_000, 2_000_000]
    );
    assert_eq!(of(&queue, "flow_quantum"), [300, 1_514, 976, 488]);
    run(&mut queue, &flows, 1_000, 1_050);
    assert_eq!(
        of(&queue, "threshold_rate"),
        [250_000, 4_000_000, 2_000_000, 1_000_000]
    );
    assert_eq!(of(&queue, "flow_quantum"), [300, 976, 488, 300]);
    assert_eq!(of(&queue, "target_us"), targets);
}

#[test]
fn a_single_instance_is_a_cake() {
    let mut queue = cake_mq("queues 1 bandwidth 10mbit");
    let sent = run(&mut queue, &[1], 1_000, 2_000);
    assert_within(sent[0], at_10_mbit(1_000), 2 * 1_514);
}

#[test]
fn without_a_bandwidth_nothing_is_held_back() {
    let mut queue = cake_mq("queues 4");
    let mut seen = Recorder::default();
    for id in 0..100 {
        queue.enqueue(
            Instant::ZERO,
            of_flow(u32::try_from(id % 10).unwrap_or_default(), id),
            &mut seen,
        );
    }
    for _ in 0..100 {
        assert!(queue.dequeue(Instant::ZERO, &mut seen).is_some());
    }
    assert_eq!(queue.backlog(), Backlog::default());
    assert_eq!(numbers(&queue), [1; 4]);
}

#[test]
fn it_takes_the_words_of_cake() {
    for (text, same) in [
        (
            "cake_mq docsis diffserv4 nat",
            "cake_mq overhead 18b mpu 64b diffserv4 nat",
        ),
        ("cake_mq unlimited besteffort", "cake_mq besteffort"),
    ] {
        assert_eq!(QdiscSpec::parse(text), QdiscSpec::parse(same), "{text}");
    }
    let refused = QdiscSpec::parse("cake_mq autorate-ingress").unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("autorate-ingress is not modelled"),
        "{refused}"
    );
}
