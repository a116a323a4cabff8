use super::q16;
use super::*;
use crate::registry::{AnyQdisc, QdiscSpec, Sfb, SfbParams};
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

fn queue(params: &SfbParams) -> (Sfb<TestPacket>, Recorder) {
    (Sfb::new(params, Rng::new(1)), Recorder::default())
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn packet(id: u64, flow: u32) -> TestPacket {
    TestPacket {
        flow,
        ecn: Ecn::Ect0,
        ..TestPacket::mtu(id)
    }
}

/// Sets the probability of every bin of both sets.
fn set_p(q: &mut Sfb<TestPacket>, p: u32) {
    let bins = q.sets.iter_mut().flat_map(|set| &mut set.bins).flatten();
    bins.for_each(|bin| bin.p = p);
}

fn p_of(q: &mut Sfb<TestPacket>, set: usize, flow: u32) -> Vec<u32> {
    let hash = packet(0, flow).flow().digest(q.sets[set].perturbation);
    q.sets[set].bins_of(hash).map(|bin| bin.p).collect()
}

#[test]
fn the_defaults_are_those_of_tc() {
    let law = SfbParams::default().law();
    assert_eq!((law.target, law.increment, law.decrement), (20, 33, 3));
    // And the kernel's own, should nobody set any: 0.1 % and 1/6000.
    assert_eq!((q16(0.001), q16(1.0 / 6_000.0)), (66, 11));
}

#[test]
fn the_probability_rises_at_target_falls_at_none_and_stays_between() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    set_p(&mut q, 10);
    q.enqueue(ms(0), packet(0, 1), &mut seen);
    assert_eq!(p_of(&mut q, 0, 1), [7; 8]);
    for id in 1..20 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    assert_eq!(p_of(&mut q, 0, 1), [7; 8]);
    q.enqueue(ms(0), packet(20, 1), &mut seen);
    assert_eq!(p_of(&mut q, 0, 1), [40; 8]);
}

#[test]
fn the_probability_keeps_its_bounds() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    set_p(&mut q, 2);
    q.enqueue(ms(0), packet(0, 1), &mut seen);
    assert_eq!(p_of(&mut q, 0, 1), [0; 8]);
    set_p(&mut q, CERTAIN - 5);
    for packets in q.sets[0].bins.iter_mut().flatten() {
        packets.packets = 20;
    }
    q.enqueue(ms(0), packet(1, 1), &mut seen);
    assert_eq!(p_of(&mut q, 0, 1), [CERTAIN; 8]);
}

#[test]
fn one_bin_of_its_own_saves_a_flow() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    set_p(&mut q, CERTAIN);
    let hash = packet(0, 1).flow().digest(q.sets[0].perturbation);
    if let Some(bin) = q.sets[0].bins_of(hash).nth(5) {
        bin.p = 0;
    }
    q.penalty.tokens = 0;
    q.enqueue(ms(0), packet(0, 1), &mut seen);
    q.enqueue(ms(0), packet(1, 2), &mut seen);
    let lost: Vec<_> = seen.drops.iter().map(|d| d.1.id).collect();
    assert_eq!(lost, [1]);
}

#[test]
fn a_flow_holds_max_packets_and_the_buffer_limit() {
    let (mut q, mut seen) = queue(&SfbParams {
        limit: 40,
        decrement: 1.0,
        increment: 1e-9,
        ..SfbParams::default()
    });
    for id in 0..30 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    assert_eq!(seen.drops.len(), 5);
    assert!(seen.drops.iter().all(|d| d.2 == DropReason::Aqm));
    for id in 30..50 {
        q.enqueue(ms(0), packet(id, 2), &mut seen);
    }
    assert_eq!(q.backlog().packets, 40);
    assert_eq!(seen.drops[5..].len(), 5);
    assert!(seen.drops[5..].iter().all(|d| d.2 == DropReason::Overlimit));
}

/// Shares of marked and of dropped packets of a flow that is signalled with probability `p`.
fn shares(p: u32) -> (f64, f64) {
    let (mut q, mut seen) = queue(&SfbParams {
        decrement: 1e-9,
        ..SfbParams::default()
    });
    set_p(&mut q, p);
    for id in 0..100_000 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
        q.dequeue(ms(0), &mut seen);
    }
    let of = |n: usize| f64::from(u32::try_from(n).unwrap()) / 100_000.0;
    (of(seen.marks.len()), of(seen.drops.len()))
}

#[test]
fn signals_are_marks_up_to_one_half_and_drops_above() {
    // p = 1/4: marks. p = 3/4: drops for a draw below 1/2, marks for the rest.
    let (marks, drops) = shares(1 << 14);
    assert!(
        (marks - 0.25).abs() < 0.01 && drops < 1e-9,
        "{marks} {drops}"
    );
    let (marks, drops) = shares(3 << 14);
    assert!((marks - 0.25).abs() < 0.01, "{marks}");
    assert!((drops - 0.5).abs() < 0.01, "{drops}");
}

/// How many of `n` packets of a flow that does not answer, `gap` apart, are let in.
fn admitted(n: u64, gap: u64, params: &SfbParams) -> usize {
    let (mut q, mut seen) = queue(&SfbParams {
        decrement: 1e-9,
        ..params.clone()
    });
    set_p(&mut q, CERTAIN);
    (0..n)
        .filter(|&id| {
            let at = ms(1_000 + gap * id);
            q.enqueue(at, packet(id, 1), &mut seen);
            q.dequeue(at, &mut seen).is_some()
        })
        .count()
}

#[test]
fn the_penalty_lets_in_a_burst_and_then_what_comes_rarely() {
    let params = SfbParams::default();
    // The burst, then the ten tokens of the second before the first packet.
    assert_eq!(admitted(500, 0, &params), 20 + 10);
    // Each refill buys one packet less than the one before; in the end 99 ms buy none, forever.
    assert_eq!(admitted(500, 99, &params), 20 + (1..=20).sum::<usize>());
    assert_eq!(admitted(500, 100, &params), 500);
    for (penalty_rate, penalty_burst) in [(0, 20), (10, 0)] {
        let none = SfbParams {
            penalty_rate,
            penalty_burst,
            ..params.clone()
        };
        assert_eq!(admitted(500, 1_000, &none), 0);
    }
}

#[test]
fn after_the_interval_the_other_set_decides() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    let keys = [q.sets[0].perturbation, q.sets[1].perturbation];
    q.enqueue(ms(600_000), packet(0, 1), &mut seen);
    assert_eq!(q.active, 0);
    q.enqueue(ms(600_001), packet(1, 1), &mut seen);
    assert_eq!(q.active, 1);
    assert_ne!(q.sets[0].perturbation, keys[0]);
    assert_eq!(q.sets[1].perturbation, keys[1]);
    // What was counted in either set leaves it.
    while q.dequeue(ms(600_001), &mut seen).is_some() {}
    let mut bins = q.sets.iter().flat_map(|set| &set.bins).flatten();
    assert!(bins.all(|bin| bin.packets == 0));
}

#[test]
fn before_a_change_penalised_flows_enter_the_other_set() {
    for (at, p, counted) in [
        (540_000, CERTAIN, 0),
        (540_001, CERTAIN, 1),
        (540_001, 0, 0),
    ] {
        let (mut q, mut seen) = queue(&SfbParams {
            decrement: 1e-9,
            ..SfbParams::default()
        });
        set_p(&mut q, p);
        q.enqueue(ms(at), packet(0, 1), &mut seen);
        let packets: u32 = q.sets[1].bins.iter().flatten().map(|bin| bin.packets).sum();
        assert_eq!(packets, 8 * counted, "at {at} ms");
        // And the other way round, when the other set decides.
        (q.active, q.rehashed) = (1, ms(at));
        set_p(&mut q, p);
        q.enqueue(ms(2 * at), packet(0, 1), &mut seen);
        let packets: u32 = q.sets[0].bins.iter().flatten().map(|bin| bin.packets).sum();
        assert_eq!(packets, 8 + 8 * counted, "at {at} ms");
    }
}

#[test]
fn it_costs_as_many_bytes_as_documented() {
    assert_eq!(size_of::<[Set; 2]>(), 2_064);
}

#[test]
fn what_a_leaf_drops_leaves_its_bins() {
    let spec = QdiscSpec::parse("sfb leaf pfifo_head_drop limit 3").expect("a queue");
    let AnyQdisc::Sfb(mut q) = spec.build(&LinkFacts::default(), Rng::new(1)) else {
        panic!("no sfb");
    };
    let longest = |q: &Sfb<TestPacket>| {
        let bins = q.sets[q.active].bins.iter().flatten();
        bins.map(|bin| bin.packets).max()
    };
    let mut seen = Recorder::default();
    for id in 0..10 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    assert_eq!((seen.drops.len(), longest(&q)), (7, Some(3)));
    while q.dequeue(ms(1), &mut seen).is_some() {}
    assert_eq!(longest(&q), Some(0));
}

#[test]
fn the_sets_take_turns() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    for (turn, active) in [1, 0, 1, 0].into_iter().enumerate() {
        let now = ms(601_000 * (turn as u64 + 1));
        q.enqueue(now, packet(0, 1), &mut seen);
        q.dequeue(now, &mut seen);
        assert_eq!(q.active, active);
    }
}

#[test]
fn what_it_tells_of_its_bins_is_of_the_set_that_decides() {
    let (mut q, mut seen) = queue(&SfbParams::default());
    set_p(&mut q, CERTAIN / 4);
    for bin in q.sets[1].bins.iter_mut().flatten() {
        bin.p = CERTAIN;
    }
    q.enqueue(ms(0), packet(0, 1), &mut seen);
    let statistic = |name| {
        let all = q.statistics();
        let found = all.iter().find(|s| s.name == name);
        found.map(|s| s.value)
    };
    assert_eq!(
        statistic("maxqlen"),
        Some(crate::contract::Number::Count(1))
    );
    assert_eq!(
        statistic("maxprob"),
        Some(crate::contract::Number::Real(
            f64::from(CERTAIN / 4) / f64::from(CERTAIN)
        ))
    );
}

#[test]
fn timers_are_those_of_the_leaf() {
    let spec = QdiscSpec::parse("sfb leaf fq maxrate 1mbit").expect("a queue");
    let mut queue = spec.build(&LinkFacts::default(), Rng::new(1));
    let mut seen = Recorder::default();
    assert_eq!(queue.next_timer(), None);
    for id in 0..12 {
        queue.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    while queue.dequeue(ms(0), &mut seen).is_some() {}
    let due = queue.next_timer().expect("packets wait");
    queue.on_timer(due);
    assert!(queue.dequeue(due, &mut seen).is_some());

    let spec = QdiscSpec::parse("sfb leaf pie").expect("a queue");
    let mut queue: AnyQdisc<TestPacket> = spec.build(&LinkFacts::default(), Rng::new(1));
    let due = queue.next_timer().expect("it has updates");
    queue.on_timer(due);
    assert!(queue.next_timer() > Some(due));
}

#[test]
fn marks_of_a_leaf_are_reported() {
    let spec = QdiscSpec::parse("sfb leaf codel ce_threshold 1ms").expect("a queue");
    let mut queue = spec.build(&LinkFacts::default(), Rng::new(1));
    let mut seen = Recorder::default();
    for n in 0..2_000 {
        for id in [2 * n, 2 * n + 1] {
            // Many flows, so that no bin is full.
            let flow = u32::try_from(id % 97).unwrap_or(0);
            queue.enqueue(ms(n), packet(id, flow), &mut seen);
        }
        queue.dequeue(ms(n), &mut seen);
    }
    let late = |mark: &(Instant, TestPacket, MarkReason)| mark.2 == MarkReason::CeThreshold;
    assert!(seen.marks.iter().any(late));
}
