use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::{Duration, Ecn};

fn packet(id: u64, flow: u32) -> TestPacket {
    TestPacket {
        flow,
        ..TestPacket::mtu(id)
    }
}

/// The average is the backlog: `min` 5, `max` 30, the longest average burst.
fn params() -> ChokeParams {
    ChokeParams {
        limit: 100,
        min: Some(5),
        max: Some(30),
        burst: Some(6),
        probability: 0.000_001,
        ..ChokeParams::default()
    }
}

fn queue(params: ChokeParams, seed: u64) -> Choke<TestPacket> {
    Choke::new(&params, None, Rng::new(seed))
}

/// A queue of these flows, in order, whose average is what waits.
fn filled(flows: &[u32], seed: u64) -> Choke<TestPacket> {
    let mut choke = queue(params(), seed);
    for (id, &flow) in (0..).zip(flows) {
        choke.slots.push_back(Some(packet(id, flow)));
        choke.backlog.add(Bytes(1_514));
    }
    for _ in 0..1_000 {
        choke.law.sample(Instant::ZERO, flows.len() as u64);
    }
    choke
}

#[test]
fn nothing_is_compared_up_to_min() {
    let mut seen = Recorder::default();
    for waiting in [5, 8] {
        let mut choke = filled(&vec![7; waiting], 1);
        choke.enqueue(Instant::ZERO, packet(99, 7), &mut seen);
        assert_eq!(choke.counts.matched, u64::from(waiting > 5), "{waiting}");
    }
    let dropped: Vec<_> = seen.drops.iter().map(|drop| drop.1.id).collect();
    assert_eq!(dropped.len(), 2, "both are dropped");
    assert!(dropped[0] < 8 && dropped[1] == 99);
}

#[test]
fn a_flow_is_met_as_often_as_it_fills_the_queue() {
    // Five of 20 are of flow 1, one of flow 2, none of flow 3.
    let flows: Vec<u32> = (0..20)
        .map(|n| if n % 4 == 0 { 1 } else { 2 * u32::from(n == 5) })
        .collect();
    let full = filled(&flows, 5);
    for (flow, expected) in [(1, 0.25), (2, 0.05), (3, 0.0)] {
        let mut matched = 0_u32;
        for seed in 0..20_000 {
            let mut choke = full.clone();
            choke.rng = Rng::new(seed).fork("draw");
            choke.enqueue(Instant::ZERO, packet(99, flow), &mut Recorder::default());
            matched += u32::from(choke.counts.matched == 1);
        }
        // Four standard deviations of a binomial are 0.012 at most.
        let share = f64::from(matched) / 20_000.0;
        assert!((share - expected).abs() < 0.013, "flow {flow}: {share}");
    }
}

#[test]
fn a_draw_that_meets_gaps_falls_to_the_oldest() {
    // One packet in front, another behind 998 gaps: three draws all but always miss both.
    let mut choke = filled(&[1, 2], 1);
    for _ in 0..998 {
        choke.slots.insert(1, None);
    }
    let mut oldest = 0;
    for seed in 0..1_000 {
        choke.rng = Rng::new(seed).fork("draw");
        let mut clone = choke.clone();
        oldest += u32::from(clone.drop_if_drawn(&packet(0, 1).flow()).is_some());
    }
    assert!(oldest > 990, "only {oldest} of 1000 drew the oldest");
}

#[test]
fn above_max_all_are_signalled_and_harddrop_marks_none() {
    for (ecn, harddrop, marks) in [(false, false, 0), (true, false, 20), (true, true, 0)] {
        let mut choke = filled(&[1; 40], 3);
        choke.params = ChokeParams {
            ecn,
            harddrop,
            ..choke.params
        };
        let mut seen = Recorder::default();
        for id in 100..120 {
            // Each is a flow of its own, so that none is met.
            let pkt = TestPacket {
                ecn: Ecn::Ect0,
                ..packet(id, 2 + u32::try_from(id).unwrap_or(0))
            };
            choke.enqueue(Instant::ZERO, pkt, &mut seen);
        }
        assert_eq!((seen.marks.len(), seen.drops.len()), (marks, 20 - marks));
        assert_eq!(
            (choke.counts.marked, choke.counts.matched),
            (seen.marks.len() as u64, 0)
        );
    }
}

#[test]
fn order_is_kept_around_gaps_and_gaps_do_not_pile_up() {
    let mut choke = filled(&[0; 20], 9);
    let mut seen = Recorder::default();
    // The oldest packet stays: gaps gather behind it.
    for id in 100..100_000 {
        choke.enqueue(
            Instant::ZERO,
            packet(id, u32::try_from(id).unwrap_or(0) % 3 + 1),
            &mut seen,
        );
        assert!(choke.slots.len() <= 2 * choke.params.limit + 1);
    }
    assert!(choke.counts.matched > 1_000, "{:?}", choke.counts);
    let mut last = None;
    while let Some(pkt) = choke.dequeue(Instant::ZERO, &mut seen) {
        assert!(last < Some(pkt.id));
        last = Some(pkt.id);
    }
    assert_eq!(choke.backlog(), Backlog::default());
    assert!(choke.slots.is_empty());
}

/// One flow sends as much as nine others together; none answers signals.
#[test]
fn a_heavy_flow_gets_less_than_it_sends() {
    let params = ChokeParams {
        limit: 200,
        min: Some(10),
        max: Some(150),
        burst: Some(20),
        ..params()
    };
    let mut choke = queue(params, 4);
    let mut rng = Rng::new(11);
    let (mut seen, mut heavy, mut all) = (Recorder::default(), 0_u32, 0_u32);
    for id in 0..60_000 {
        let now = Instant::ZERO + Duration::from_micros(100 * id);
        let flow = u32::try_from(rng.below(18)).unwrap_or(0);
        choke.enqueue(now, packet(id, flow.saturating_sub(8)), &mut seen);
        if id % 10 < 7
            && let Some(pkt) = choke.dequeue(now, &mut seen)
        {
            heavy += u32::from(pkt.flow == 0);
            all += 1;
        }
    }
    let share = f64::from(heavy) / f64::from(all);
    assert!(
        share < 0.4,
        "half of what arrives is its, {share} of what leaves"
    );
    assert!(choke.counts.matched > 1_000);
}

#[test]
fn its_average_is_that_of_a_red_with_as_many_bytes() {
    let params = ChokeParams {
        avpkt: Bytes(500),
        burst: None,
        probability: 0.25,
        ..params()
    };
    let red = params.as_red();
    assert_eq!(
        (red.min, red.max),
        (Some(Bytes(2_500)), Some(Bytes(15_000)))
    );
    assert_eq!((red.avpkt, red.burst), (Bytes(500), Some(13)));
    assert!((red.probability - 0.25).abs() < 1e-12);
    let given = ChokeParams {
        burst: Some(7),
        ..params
    };
    assert_eq!(given.as_red().burst, Some(7));
}

#[test]
fn the_choke_of_a_full_buffer_counts_its_bytes() {
    let mut choke = queue(params(), 1);
    let mut seen = Recorder::default();
    for (id, size) in [(0, 100), (1, 200), (2, 300)] {
        let pkt = TestPacket {
            size,
            ..packet(id, 1)
        };
        choke.enqueue(Instant::ZERO, pkt, &mut seen);
    }
    assert_eq!(choke.backlog().bytes, Bytes(600));
    choke.dequeue(Instant::ZERO, &mut seen);
    assert_eq!(choke.backlog().bytes, Bytes(500));
}

#[test]
fn a_burst_that_the_average_does_not_see_is_cut_at_the_limit() {
    let mut choke = queue(
        ChokeParams {
            limit: 20,
            min: Some(2),
            max: Some(19),
            burst: Some(1_000),
            ..params()
        },
        1,
    );
    let mut seen = Recorder::default();
    for id in 0..22 {
        choke.enqueue(
            Instant::ZERO,
            packet(id, u32::try_from(id).unwrap_or(0)),
            &mut seen,
        );
    }
    assert_eq!(choke.counts.pdrop, 2);
    assert!(
        seen.drops
            .iter()
            .all(|drop| drop.2 == DropReason::Overlimit)
    );
}
