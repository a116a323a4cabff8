use super::*;
use crate::testing::{Recorder, TestPacket};

fn queue(params: SfqParams) -> (Sfq<TestPacket>, Recorder) {
    (
        Sfq::new(&params, Bytes(1_514), Rng::new(1)),
        Recorder::default(),
    )
}

fn packet(id: u64, flow: u32, size: u64) -> TestPacket {
    TestPacket {
        flow,
        size,
        ..TestPacket::mtu(id)
    }
}

fn fill(q: &mut Sfq<TestPacket>, seen: &mut Recorder, flows: &[(u32, u64)]) {
    let mut id = 0;
    for &(flow, packets) in flows {
        for _ in 0..packets {
            q.enqueue(Instant::ZERO, packet(id, flow, 1_514), seen);
            id += 1;
        }
    }
}

fn flows_sent(q: &mut Sfq<TestPacket>, seen: &mut Recorder, packets: usize) -> Vec<u32> {
    let sent = (0..packets).map_while(|_| q.dequeue(Instant::ZERO, seen));
    sent.map(|p| p.flow).collect()
}

fn dropped(seen: &Recorder) -> Vec<u64> {
    seen.drops.iter().map(|d| d.1.id).collect()
}

#[test]
fn flows_take_turns() {
    let (mut q, mut seen) = queue(SfqParams::default());
    fill(&mut q, &mut seen, &[(1, 3), (2, 3), (3, 3)]);
    let sent = flows_sent(&mut q, &mut seen, 9);
    assert_eq!(sent, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_new_flow_waits_for_the_others_to_have_their_turn() {
    let (mut q, mut seen) = queue(SfqParams::default());
    fill(&mut q, &mut seen, &[(1, 4), (2, 4)]);
    let mut sent = flows_sent(&mut q, &mut seen, 1);
    q.enqueue(Instant::ZERO, packet(100, 3, 64), &mut seen);
    sent.extend(flows_sent(&mut q, &mut seen, 4));
    assert_eq!(sent, [1, 2, 3, 1, 2]);
}

#[test]
fn a_turn_is_a_quantum_of_bytes() {
    let (mut q, mut seen) = queue(SfqParams::default());
    for id in 0..8 {
        q.enqueue(Instant::ZERO, packet(id, 1, 757), &mut seen);
        q.enqueue(Instant::ZERO, packet(100 + id, 2, 1_514), &mut seen);
    }
    let sent = flows_sent(&mut q, &mut seen, 6);
    assert_eq!(sent, [1, 1, 2, 1, 1, 2]);
}

#[test]
fn a_slot_of_one_packet_keeps_its_turn_when_the_oldest_makes_room() {
    let (mut q, mut seen) = queue(SfqParams {
        depth: 1,
        headdrop: true,
        ..SfqParams::default()
    });
    fill(&mut q, &mut seen, &[(1, 1), (2, 1), (3, 1)]);
    q.enqueue(Instant::ZERO, packet(10, 1, 1_514), &mut seen);
    assert_eq!(dropped(&seen), [0]);
    assert_eq!(flows_sent(&mut q, &mut seen, 4), [1, 2, 3]);
    assert_eq!(q.backlog(), Backlog::default());
}

#[test]
fn the_longest_slot_loses_its_newest_packet() {
    let limit = SfqParams {
        limit: 9,
        ..SfqParams::default()
    };
    let (mut q, mut seen) = queue(limit);
    fill(&mut q, &mut seen, &[(1, 2), (2, 6), (3, 2)]);
    assert_eq!(dropped(&seen), [7]);

    let (mut q, mut seen) = queue(SfqParams {
        headdrop: true,
        ..limit
    });
    fill(&mut q, &mut seen, &[(1, 2), (2, 6), (3, 2)]);
    assert_eq!(dropped(&seen), [2]);
}

#[test]
fn among_equally_long_slots_the_last_to_grow_loses() {
    let (mut q, mut seen) = queue(SfqParams {
        limit: 5,
        ..SfqParams::default()
    });
    fill(&mut q, &mut seen, &[(1, 2), (2, 2), (3, 2)]);
    assert_eq!(dropped(&seen), [5]);
}

#[test]
fn when_all_slots_hold_one_packet_the_next_in_the_round_loses_it() {
    // Only the default limit is below the flows.
    let (mut q, mut seen) = queue(SfqParams {
        divisor: 65_536,
        ..SfqParams::default()
    });
    let flows: Vec<_> = (1..=128).map(|flow| (flow, 1)).collect();
    fill(&mut q, &mut seen, &flows);
    assert_eq!(dropped(&seen), [0]);
    assert_eq!(flows_sent(&mut q, &mut seen, 3), [2, 3, 4]);
}

#[test]
fn a_limit_that_is_set_bounds_the_flows() {
    let (mut q, mut seen) = queue(SfqParams {
        limit: 3,
        ..SfqParams::default()
    });
    fill(&mut q, &mut seen, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(dropped(&seen), [3]);
    assert_eq!(flows_sent(&mut q, &mut seen, 9), [1, 2, 3]);
}

#[test]
fn a_full_slot_drops_the_arrival_or_its_oldest() {
    let depth = SfqParams {
        depth: 2,
        ..SfqParams::default()
    };
    let (mut q, mut seen) = queue(depth);
    fill(&mut q, &mut seen, &[(1, 3)]);
    assert_eq!(dropped(&seen), [2]);
    let (mut q, mut seen) = queue(SfqParams {
        headdrop: true,
        ..depth
    });
    fill(&mut q, &mut seen, &[(1, 3)]);
    assert_eq!(dropped(&seen), [0]);
}

#[test]
fn no_vacant_slot_no_entry() {
    let (mut q, mut seen) = queue(SfqParams {
        flows: 2,
        ..SfqParams::default()
    });
    fill(&mut q, &mut seen, &[(1, 1), (2, 1), (3, 1)]);
    assert_eq!(dropped(&seen), [2]);
}

#[test]
fn a_perturbation_keeps_what_waits() {
    let (mut q, mut seen) = queue(SfqParams {
        perturb: Some(Duration::from_secs(1)),
        ..SfqParams::default()
    });
    fill(&mut q, &mut seen, &[(1, 20), (2, 20), (3, 20)]);
    let before = q.perturbation;
    let late = Instant::from_millis(1_000);
    let mut sent = Vec::new();
    while let Some(pkt) = q.dequeue(late, &mut seen) {
        sent.push(pkt.flow);
    }
    assert_ne!(q.perturbation, before);
    assert_eq!(sent.len(), 60);
    // As in Linux, the slots come back in the order of their numbers, taken from the last down.
    assert_eq!(sent[..6], [3, 2, 1, 3, 2, 1]);
}

#[test]
fn a_slot_costs_as_many_bytes_as_documented() {
    let links = size_of::<(u32, u32, u32)>();
    assert_eq!(size_of::<Slot>() + links, 52);
}

#[test]
fn what_waited_longer_than_the_threshold_is_marked() {
    let (mut q, mut seen) = queue(SfqParams {
        ce_threshold: Some(Duration::from_millis(5)),
        ..SfqParams::default()
    });
    for id in 0..2 {
        let pkt = TestPacket {
            ecn: sojourn_net::Ecn::Ect0,
            ..packet(id, 1, 1_514)
        };
        q.enqueue(Instant::ZERO, pkt, &mut seen);
    }
    for at in [5, 6] {
        q.dequeue(Instant::ZERO + Duration::from_millis(at), &mut seen);
    }
    let marked: Vec<_> = seen.marks.iter().map(|mark| (mark.1.id, mark.2)).collect();
    assert_eq!(marked, [(1, MarkReason::CeThreshold)]);
}

#[test]
fn what_does_not_fit_its_slot_after_a_new_hash_is_dropped() {
    let (mut q, mut seen) = queue(SfqParams {
        flows: 8,
        divisor: 2,
        depth: 1,
        perturb: Some(Duration::from_secs(1)),
        ..SfqParams::default()
    });
    let mut moved = 0;
    for n in 0..50 {
        let now = Instant::from_millis(1_001 * n);
        q.dequeue(now, &mut seen);
        let before = seen.drops.len();
        for flow in [1, 2] {
            q.enqueue(now, packet(n, flow, 64), &mut seen);
        }
        // At once the same again: each slot is full, so each is lost.
        let full = seen.drops.len();
        for flow in [1, 2] {
            q.enqueue(now, packet(n, flow, 64), &mut seen);
        }
        assert_eq!(seen.drops.len(), full + 2);
        moved += full - before;
        assert!(q.slots.iter().all(|slot| slot.list.packets() <= 1));
    }
    assert!(moved > 0);
}
