use sojourn_net::{Bytes, Ecn};

use super::*;
use crate::contract::{Backlog, Number};
use crate::testing::{Recorder, TestPacket};

const LINK: LinkFacts = LinkFacts {
    rate: None,
    mtu: Bytes(1_514),
    name: None,
    flows: None,
};

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn spec(text: &str) -> QdiscSpec {
    text.parse().expect(text)
}

/// A queue with `waiting` packets at 0 ms.
fn queue(text: &str, waiting: u64) -> (AnyQdisc<TestPacket>, Recorder) {
    let mut queue = spec(text).build(&LINK, Rng::new(1));
    let mut seen = Recorder::default();
    for id in 0..waiting {
        queue.enqueue(ms(0), TestPacket::mtu(id), &mut seen);
    }
    (queue, seen)
}

/// What is dropped, with the reason, when `before`, with 10 packets, is changed by `text`; and what waits afterwards.
fn changed(before: &str, text: &str) -> (Vec<(u64, DropReason)>, Backlog) {
    let change = spec(before).changed_by(text).expect(text);
    let (mut queue, mut seen) = queue(before, 10);
    queue.apply(ms(1), &change, (&LINK, Rng::new(2)), &mut seen);
    let dropped = seen.drops.iter().map(|(_, pkt, why)| (pkt.id, *why));
    (dropped.collect(), queue.backlog())
}

#[test]
fn only_the_named_parameters_change() {
    let change = |before: &str, text: &str| match spec(before).changed_by(text) {
        Ok(QueueChange::Parameters(next)) => next.to_string(),
        other => panic!("{other:?}"),
    };
    let canonical = |text: &str| spec(text).to_string();
    assert_eq!(
        change("codel limit 7 target 10ms ecn", "codel target 5ms"),
        canonical("codel limit 7 target 5ms ecn")
    );
    assert_eq!(change("codel ecn", "codel noecn"), canonical("codel noecn"));
    assert_eq!(
        change("cake bandwidth 10mbit rtt 30ms", "cake bandwidth 20mbit"),
        canonical("cake bandwidth 20mbit rtt 30ms")
    );
    let pairs = [("target".to_owned(), "1ms".to_owned())];
    let table = spec("pie limit 9").changed_by_pairs("pie", pairs.into_iter());
    assert_eq!(
        table,
        Ok(QueueChange::Parameters(spec("pie limit 9 target 1ms")))
    );
}

#[test]
fn another_kind_replaces_the_queue_with_defaults() {
    let change = spec("codel target 9ms").changed_by("fq_codel limit 5");
    assert_eq!(
        change,
        Ok(QueueChange::Replacement(spec("fq_codel limit 5")))
    );
    let change = spec("pfifo").changed_by("bfifo");
    assert_eq!(change, Ok(QueueChange::Replacement(spec("bfifo"))));
}

#[test]
fn what_cannot_change_is_named() {
    for (before, text, wanted) in [
        (
            "fq_codel",
            "fq_codel flows 9",
            "fq_codel: flows cannot change during a run",
        ),
        (
            "codel",
            "codel profile rfc",
            "codel: profile cannot change during a run",
        ),
        (
            "cake",
            "cake besteffort",
            "cake: diffserv cannot change during a run",
        ),
        (
            "sfq",
            "sfq quantum 900b",
            "sfq: the parameters of this queue cannot change during a run; expected another kind of queue",
        ),
        (
            "drr",
            "drr classes 9",
            "drr: classes cannot change during a run",
        ),
        (
            "prio",
            "prio bands 4",
            "prio: bands cannot change during a run",
        ),
        (
            "red_ns2",
            "red_ns2 nobytes",
            "red_ns2: bytes cannot change during a run",
        ),
        (
            "cocoa",
            "cocoa orphan_mask 7",
            "cocoa: orphan_mask cannot change during a run",
        ),
        (
            "afcd",
            "afcd shadow 9",
            "afcd: shadow cannot change during a run",
        ),
        (
            "floq",
            "floq connections 8",
            "floq: connections cannot change during a run",
        ),
        (
            "predict",
            "predict slot 2ms",
            "predict: slot cannot change during a run",
        ),
        (
            "floq",
            "floq_protect",
            "floq: the queue has another exponent than floq_protect; name floq and what changes",
        ),
        (
            "afd",
            "afq qtarget 5",
            "afd: the queue has another table than afq; name afd and what changes",
        ),
        (
            "codel",
            "codel tarqet 1ms",
            "codel: unknown parameter \"tarqet\"; did you mean \"target\"?",
        ),
    ] {
        let error = spec(before).changed_by(text).expect_err(text);
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn a_lower_limit_drops_what_linux_drops() {
    let oldest = |n| {
        (0..n)
            .map(|id| (id, DropReason::Overlimit))
            .collect::<Vec<_>>()
    };
    for kind in [
        "codel",
        "pie",
        "fq_codel",
        "fq_pie",
        "cobalt",
        "fq",
        "dualpi2",
        "blue",
        "cocoa",
        "afcd",
        "afd",
        "afq_kernel2012",
        "floq",
        "predict",
    ] {
        let (dropped, left) = changed(kind, &format!("{kind} limit 4"));
        assert_eq!((dropped, left.packets), (oldest(6), 4), "{kind}");
    }
    // net/sched/sch_fifo.c sets the limit only.
    assert_eq!(changed("pfifo", "pfifo limit 4").1.packets, 10);
    // net/sched/sch_cake.c drops at the next arrival.
    assert_eq!(changed("cake", "cake memlimit 4000b").1.packets, 10);
}

#[test]
fn a_replaced_queue_drops_everything() {
    for before in crate::catalogue() {
        let after = if before.name == "pfifo" {
            "bfifo"
        } else {
            "pfifo"
        };
        let (mut dropped, left) = changed(before.name, after);
        let waiting = queue(before.name, 10).0.backlog().packets;
        let early = 10 - waiting;
        assert_eq!(dropped.len(), 10, "{}", before.name);
        assert_eq!(left, Backlog::default(), "{}", before.name);
        let replaced = dropped.split_off(early);
        assert!(replaced.iter().all(|(_, why)| *why == DropReason::Replaced));
    }
    // Held back for seconds.
    let (dropped, _) = changed("cake bandwidth 1kbit", "pfifo");
    assert_eq!(dropped.len(), 10);
    assert!(dropped.iter().all(|(_, why)| *why == DropReason::Replaced));
    // As net/sched/sch_red.c, which makes a new buffer.
    let (dropped, left) = changed(
        "red limit 60000b min 5000b max 15000b avpkt 1000b",
        "red limit 90000b",
    );
    assert_eq!((dropped.len(), left.packets), (10, 0));
}

#[test]
fn codel_keeps_its_state() {
    let (mut queue, mut seen) = queue("codel", 2_000);
    for at in 0..900 {
        queue.dequeue(ms(at), &mut seen);
    }
    let counts = |queue: &AnyQdisc<TestPacket>| {
        let statistics = queue.statistics();
        let count = statistics.iter().find(|s| s.name == "count");
        count.map(|s| s.value)
    };
    let before = counts(&queue);
    let change = spec("codel")
        .changed_by("codel target 950ms ecn")
        .expect("valid");
    queue.apply(ms(900), &change, (&LINK, Rng::new(2)), &mut seen);
    assert_eq!(counts(&queue), before);
    let drops = seen.drops.len();
    assert!(drops > 5);
    // Nothing that waited less than the new target is dropped.
    for _ in 0..50 {
        queue.dequeue(ms(900), &mut seen);
    }
    assert_eq!(seen.drops.len(), drops);
    assert!(seen.marks.is_empty(), "no packet is {:?}", Ecn::Ect0);
}

#[test]
fn the_shaper_of_cake_goes_on() {
    let departures = |change: Option<&str>| {
        let before = "cake bandwidth 12112kbit besteffort";
        let (mut queue, mut seen) = queue(before, 10);
        let mut left = Vec::new();
        let mut at = ms(0);
        while queue.backlog().packets > 0 {
            if let Some(text) = change.filter(|_| left.len() == 4) {
                let change = spec(before).changed_by(text).expect(text);
                queue.apply(at, &change, (&LINK, Rng::new(2)), &mut seen);
            }
            match queue.dequeue(at, &mut seen) {
                Some(_) => left.push(at.as_nanos() / 1_000),
                None => at = queue.next_timer().expect("it waits"),
            }
        }
        left.windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect::<Vec<_>>()
    };
    // 1514 B at 12.112 Mbit/s take 1 ms.
    let steady = departures(None);
    assert!(
        steady.iter().all(|gap| (998..=1_001).contains(gap)),
        "{steady:?}"
    );
    let halved = departures(Some("cake bandwidth 6056kbit"));
    assert!(
        halved[..4].iter().all(|gap| (998..=1_001).contains(gap)),
        "{halved:?}"
    );
    assert!(
        halved[4..].iter().all(|gap| (1_996..=2_002).contains(gap)),
        "{halved:?}"
    );
}

#[test]
fn timers_of_a_new_queue_are_in_the_future() {
    for queue in crate::catalogue() {
        let before = if queue.name == "pfifo" {
            "bfifo"
        } else {
            "pfifo"
        };
        let change = spec(before).changed_by(queue.name).expect(queue.name);
        let mut of = spec(before).build::<TestPacket>(&LINK, Rng::new(1));
        of.apply(
            ms(10_000),
            &change,
            (&LINK, Rng::new(2)),
            &mut Recorder::default(),
        );
        let due = of.next_timer();
        assert!(
            due.is_none_or(|due| due > ms(10_000)),
            "{}: {due:?}",
            queue.name
        );
    }
}

/// What a queue does with packets of seven flows, which arrive at different rates and leave one by one.
fn history(queue: &mut AnyQdisc<TestPacket>, seen: &mut Recorder, from: u64) -> Vec<u64> {
    let mut left = Vec::new();
    for n in from..from + 4_000 {
        let now = Instant::ZERO + Duration::from_micros(300 * n);
        wait_empty(queue, now);
        let flows = if n % 5 == 0 { 7 } else { 3 };
        let mut packet = TestPacket::mtu(n);
        packet.flow = u32::try_from(n % flows).expect("small");
        packet.ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        queue.enqueue(now, packet, seen);
        if n % 9 != 0 {
            left.extend(queue.dequeue(now, seen).map(|packet| packet.id));
        }
    }
    left
}

/// Queues whose parameters change as by the kernel modules of Sojourn: before, and after each change.
const CHANGED: &[(&str, &[&str])] = &[
    (
        "cocoa flow_limit 9 limit 200",
        &[
            "cocoa flow_limit 40 guard_interval 3 max_increase 1.5 max_monitoring_interval 30ms",
            "cocoa quantum 700b initial_quantum 5000b refill_delay 1ms limit 60",
        ],
    ),
    (
        "afcd sample 3",
        &[
            "afcd target 1ms exponent 1 interval 20ms persist 3ms protect ecn limit 300",
            "afcd average alpha 1.1 beta 1.3 qtarget 20 sample 1",
            "afcd target_scale 90 limit 50",
        ],
    ),
    (
        "afcd profile kernel sample 2",
        &["afcd average qtarget 20 target 1ms target_scale 0.5 exponent 2"],
    ),
    (
        "afd sample 2",
        &["afd qtarget 5 alpha 1.1 beta 1.2 tolerance 1.1 gain 0.5 ecn sample 1 limit 90"],
    ),
    (
        "afq_kernel2012 profile kernel sample 1",
        &["afq_kernel2012 qtarget 4 gain 0.9 tolerance 1.05"],
    ),
    (
        "floq limit 60",
        &[
            "floq threshold 0.1 gamma 2 probability 0.7 ecn responsive_weight 2",
            "floq limit 90 setup_packets 2 setup_time 5ms pushout exponent 1",
        ],
    ),
    (
        "floq limit 60 profile kernel",
        &["floq threshold 0.1 gamma 2 probability 0.7 gain 0.01 noquic"],
    ),
    (
        "predict bandwidth 50mbit",
        &[
            "predict fallback target 1ms interval 9ms limit 70",
            "predict growth_min 1.01 significance 0.1 persistence 0.1 full 0.3 mark 3",
            "predict bandwidth 9mbit noecn nostretch mark_arrival",
        ],
    ),
    (
        "predict profile kernel bandwidth 50mbit",
        &["predict growth_min 1.01 significance 0.1 persistence 0.1 full 0.3 hold 3 dominance 9"],
    ),
    (
        "cake_mq bandwidth 50mbit besteffort",
        &["cake_mq bandwidth 20mbit sync_time 1ms rtt 10ms memlimit 100kb"],
    ),
    (
        "afq profile kernel sample 1",
        &["afq qtarget 4 gain 0.9 tolerance 1.05"],
    ),
    (
        "prio leaf pfifo limit 20 / pfifo limit 40",
        &["prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"],
    ),
    (
        "drr classes 4 leaf pfifo limit 20",
        &["drr quantum 400b", "drr quantum 9000b"],
    ),
    (
        "sfq_codel limit 60",
        &[
            "sfq_codel target 1ms interval 9ms ecn",
            "sfq_codel quantum 400b limit 20",
        ],
    ),
    (
        "red_ns2 limit 90",
        &[
            "red_ns2 min 9 max 90 q_weight 0.1 probability 0.5 nogentle ecn",
            "red_ns2 limit 20 nowait nonlinear bandwidth 9mbit",
        ],
    ),
    (
        "hred",
        &["hred rtt 9ms bandwidth 9mbit", "hred limit 9 ecn"],
    ),
    (
        "mac80211",
        &[
            "mac80211 target 1ms interval 9ms noecn",
            "mac80211 quantum 9000b limit 60",
            "mac80211 memory_limit 9kb",
        ],
    ),
    (
        "blue limit 40",
        &["blue limit 60 increment 0.2 freeze 2ms ecn"],
    ),
];

#[test]
fn a_queue_changed_before_its_first_packet_is_one_that_starts_so() {
    for (before, changes) in CHANGED {
        let mut at = spec(before);
        for text in *changes {
            let change = at.changed_by(text).expect(text);
            let mut changed = at.build(&LINK, Rng::new(7));
            let (mut seen, mut wanted) = (Recorder::default(), Recorder::default());
            changed.apply(ms(0), &change, (&LINK, Rng::new(8)), &mut seen);
            let mut fresh = change.spec().build(&LINK, Rng::new(7));
            let left = history(&mut changed, &mut seen, 1);
            assert_eq!(left, history(&mut fresh, &mut wanted, 1), "{text}");
            assert_eq!(seen.drops, wanted.drops, "{text}");
            assert_eq!(seen.marks, wanted.marks, "{text}");
            let mut without = Recorder::default();
            let unchanged = history(&mut at.build(&LINK, Rng::new(7)), &mut without, 1);
            assert_ne!((left, seen), (unchanged, without), "{text} changes nothing");
            at = change.spec().clone();
        }
    }
}

#[test]
fn a_change_keeps_packets_and_what_was_learned() {
    for (before, changes) in CHANGED {
        let mut at = spec(before);
        let mut queue = at.build(&LINK, Rng::new(7));
        let mut seen = Recorder::default();
        for (text, round) in changes.iter().zip(0..) {
            history(&mut queue, &mut seen, 4_000 * round);
            let now = Instant::ZERO + Duration::from_micros(300 * 4_000 * (round + 1));
            let (waiting, drops) = (queue.backlog().packets, seen.drops.len());
            let same = at.changed_by(at.kind()).expect("no parameter changes");
            let mut untouched = queue.clone();
            queue.apply(now, &same, (&LINK, Rng::new(8)), &mut seen);
            assert_eq!(
                (queue.backlog().packets, seen.drops.len()),
                (waiting, drops),
                "{before}"
            );
            let (mut one, mut other) = (Recorder::default(), Recorder::default());
            let next = 4_000 * (round + 1);
            let left = history(&mut queue.clone(), &mut one, next);
            assert_eq!(left, history(&mut untouched, &mut other, next), "{before}");
            assert_eq!(one, other, "{before}");
            let change = at.changed_by(text).expect(text);
            queue.apply(now, &change, (&LINK, Rng::new(8)), &mut seen);
            let gone = seen.drops.len() - drops;
            assert_eq!(queue.backlog().packets + gone, waiting, "{text}");
            at = change.spec().clone();
        }
    }
}

#[test]
fn choke_keeps_the_packets_of_its_table_and_starts_its_average_again() {
    // net/sched/sch_choke.c: the table of a limit of 4 has 7 places, and that of 12 has 15 as before.
    let before = "choke limit 9 min 1 max 5";
    let newest = (7..9).map(|id| (id, DropReason::Overlimit));
    let (dropped, left) = changed(before, "choke limit 4 max 4");
    assert_eq!(dropped.last(), Some(&(8, DropReason::Overlimit)));
    assert!(newest.clone().all(|drop| dropped.contains(&drop)));
    assert_eq!(left.packets, 7);
    let (dropped, left) = changed(before, "choke limit 12");
    assert_eq!((dropped.len(), left.packets), (1, 9));

    let before = "choke limit 90 min 5 max 20";
    let (mut queue, mut seen) = queue(before, 90);
    let average = |queue: &AnyQdisc<TestPacket>| queue.state(ms(0))[0].value;
    assert_ne!(average(&queue), Number::Count(0));
    let change = spec(before).changed_by("choke ecn").expect("valid");
    queue.apply(ms(1_300), &change, (&LINK, Rng::new(2)), &mut seen);
    assert_eq!(average(&queue), Number::Count(0));
}

#[test]
fn a_preset_that_the_queue_has_can_be_named() {
    for (before, text, wanted) in [
        (
            "floq_protect",
            "floq_protect limit 5",
            "floq_protect limit 5",
        ),
        ("floq_protect", "floq limit 5", "floq_protect limit 5"),
        (
            "floq exponent 0",
            "floq_protect limit 5",
            "floq_protect limit 5",
        ),
        (
            "afcd_kernel2012 limit 7",
            "afcd_kernel2012 target 2ms",
            "afcd_kernel2012 limit 7 target 2ms",
        ),
    ] {
        let change = spec(before).changed_by(text);
        assert_eq!(change, Ok(QueueChange::Parameters(spec(wanted))), "{text}");
    }
}

#[test]
fn a_sampling_period_that_follows_the_first_rate_stays() {
    for kind in ["afd random accumulate", "afcd"] {
        let rate = |mbit| LinkFacts {
            rate: Some(sojourn_net::Rate::mbit(mbit)),
            ..LINK
        };
        let of = spec(kind);
        let mut changed = of.build::<TestPacket>(&rate(100), Rng::new(7));
        let mut kept = changed.clone();
        let same = of.changed_by(of.kind()).expect("no parameter changes");
        let (mut one, mut other) = (Recorder::default(), Recorder::default());
        changed.apply(ms(0), &same, (&rate(10), Rng::new(8)), &mut one);
        assert_eq!(
            history(&mut changed, &mut one, 1),
            history(&mut kept, &mut other, 1),
            "{kind}"
        );
        assert_eq!(one, other, "{kind}");
    }
}

#[test]
fn instances_of_cake_share_the_new_rate() {
    let departures = |text: Option<&str>| {
        let of = spec("cake_mq bandwidth 10mbit");
        let mut queue = of.build::<TestPacket>(&LINK, Rng::new(3));
        let mut seen = Recorder::default();
        for id in 0..400 {
            let mut packet = TestPacket::mtu(id);
            packet.flow = u32::try_from(id % 8).expect("small");
            queue.enqueue(ms(0), packet, &mut seen);
        }
        if let Some(text) = text {
            let change = of.changed_by(text).expect(text);
            queue.apply(ms(0), &change, (&LINK, Rng::new(4)), &mut seen);
        }
        let mut left = 0;
        for n in 0..5_000 {
            let now = Instant::ZERO + Duration::from_micros(20 * n);
            wait_empty(&mut queue, now);
            left += u64::from(queue.dequeue(now, &mut seen).is_some());
        }
        let gone = left + seen.drops.len() as u64;
        assert_eq!(queue.backlog().packets as u64, 400 - gone);
        left
    };
    // 100 ms at 10 and 20 Mbit/s are 82 and 165 packets.
    let (slow, fast) = (
        departures(None),
        departures(Some("cake_mq bandwidth 20mbit")),
    );
    assert!((75..95).contains(&slow), "{slow}");
    assert!((150..180).contains(&fast), "{fast}");
    assert!(departures(Some("cake_mq unlimited")) > 380);
}
