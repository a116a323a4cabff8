use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

const MTU: Bytes = Bytes(1_514);

fn queue(params: FqParams) -> (Fq<TestPacket>, Recorder) {
    (Fq::new(&params, MTU, Rng::new(1)), Recorder::default())
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn packet(id: u64, flow: u32, size: u64) -> TestPacket {
    TestPacket {
        flow,
        size,
        ..TestPacket::mtu(id)
    }
}

fn flows_sent(q: &mut Fq<TestPacket>, packets: usize) -> Vec<u32> {
    let mut seen = Recorder::default();
    let sent = (0..packets).map_while(|_| q.dequeue(at_ms(0), &mut seen));
    sent.map(|p| p.flow).collect()
}

fn credit(q: &Fq<TestPacket>, flow: u32) -> i64 {
    let id = q.scheduler.classify(&packet(0, flow, 64));
    q.scheduler.flows[id.index()].credit
}

#[test]
fn a_flow_begins_with_ten_packets_and_goes_on_with_two_a_turn() {
    let (mut q, mut seen) = queue(FqParams::default());
    for id in 0..40 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(at_ms(0), packet(100 + id, 2, 1_514), &mut seen);
    }
    assert_eq!(flows_sent(&mut q, 10), [1; 10]);
    assert_eq!(flows_sent(&mut q, 10), [2; 10]);
    assert_eq!(flows_sent(&mut q, 8), [1, 1, 2, 2, 1, 1, 2, 2]);
}

#[test]
fn flows_with_standing_queues_share_in_bytes() {
    let (mut q, mut seen) = queue(FqParams {
        flow_limit: 10_000,
        ..FqParams::default()
    });
    for id in 0..2_000 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(at_ms(0), packet(10_000 + id, 2, 500), &mut seen);
    }
    let mut sent = [0, 0];
    for _ in 0..1_000 {
        let pkt = q.dequeue(at_ms(0), &mut seen).unwrap();
        sent[usize::try_from(pkt.flow - 1).unwrap()] += pkt.size;
    }
    assert!(sent[0].abs_diff(sent[1]) <= 2 * 3_028, "{sent:?}");
}

#[test]
fn a_flow_that_comes_overtakes_those_that_stay() {
    let (mut q, mut seen) = queue(FqParams::default());
    for id in 0..40 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    flows_sent(&mut q, 11);
    q.enqueue(at_ms(0), packet(100, 2, 64), &mut seen);
    assert_eq!(flows_sent(&mut q, 2), [2, 1]);
}

#[test]
fn a_flow_loses_what_exceeds_its_own_limit() {
    let (mut q, mut seen) = queue(FqParams::default());
    for id in 0..=100 {
        q.enqueue(at_ms(0), packet(id, 1, 64), &mut seen);
    }
    q.enqueue(at_ms(0), packet(101, 2, 64), &mut seen);
    let lost: Vec<_> = seen.drops.iter().map(|d| d.1.id).collect();
    assert_eq!(lost, [100]);
    assert_eq!(q.backlog().packets, 101);
}

#[test]
fn all_flows_together_have_a_limit_too() {
    let (mut q, mut seen) = queue(FqParams {
        limit: 3,
        ..FqParams::default()
    });
    for id in 0..5 {
        let flow = u32::try_from(id).unwrap();
        q.enqueue(at_ms(0), packet(id, flow, 64), &mut seen);
    }
    let lost: Vec<_> = seen.drops.iter().map(|d| d.1.id).collect();
    assert_eq!(lost, [3, 4]);
}

/// The credit of a flow that sent one packet of `size` bytes, was found empty at once and
/// comes back after `away` milliseconds.
fn credit_on_return(size: u64, away: u64) -> i64 {
    let (mut q, mut seen) = queue(FqParams {
        turns: Turns {
            initial_quantum: Some(Bytes(1_600)),
            ..Turns::default()
        },
        ..FqParams::default()
    });
    q.enqueue(at_ms(500), packet(0, 1, size), &mut seen);
    q.dequeue(at_ms(500), &mut seen);
    assert_eq!(q.dequeue(at_ms(500), &mut seen), None);
    q.enqueue(at_ms(500 + away), packet(1, 1, 64), &mut seen);
    credit(&q, 1)
}

#[test]
fn a_long_absence_refills_the_credit() {
    assert_eq!(credit_on_return(1_500, 40), 100);
    assert_eq!(credit_on_return(1_500, 41), 3_028);
}

#[test]
fn the_first_credit_is_not_a_refill() {
    let (mut q, mut seen) = queue(FqParams {
        turns: Turns {
            initial_quantum: Some(Bytes(100)),
            ..Turns::default()
        },
        ..FqParams::default()
    });
    q.enqueue(at_ms(1_000), packet(0, 1, 64), &mut seen);
    assert_eq!(credit(&q, 1), 100);
}

#[test]
fn an_emptied_new_flow_waits_behind_the_old_ones_once() {
    let (mut q, mut seen) = queue(FqParams::default());
    for id in 0..40 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    flows_sent(&mut q, 11);
    q.enqueue(at_ms(0), packet(100, 2, 64), &mut seen);
    // Flow 2 is served, found empty and moved behind flow 1: its next packet comes as old.
    assert_eq!(flows_sent(&mut q, 2), [2, 1]);
    q.enqueue(at_ms(0), packet(101, 2, 64), &mut seen);
    assert_eq!(flows_sent(&mut q, 3), [2, 1, 1]);
    // Found empty as old, it loses its place, and comes first again.
    q.enqueue(at_ms(0), packet(102, 2, 64), &mut seen);
    assert_eq!(flows_sent(&mut q, 2), [2, 1]);
}

#[test]
fn what_waited_longer_than_the_threshold_is_marked() {
    for (ms, marks) in [(10, 0), (11, 1)] {
        let (mut q, mut seen) = queue(FqParams {
            ce_threshold: Some(Duration::from_millis(10)),
            ..FqParams::default()
        });
        let pkt = TestPacket {
            ecn: Ecn::Ect0,
            ..packet(0, 1, 1_514)
        };
        q.enqueue(at_ms(0), pkt, &mut seen);
        q.dequeue(at_ms(ms), &mut seen);
        assert_eq!(seen.marks.len(), marks);
    }
}

#[test]
fn a_flow_costs_as_many_bytes_as_documented() {
    assert_eq!(size_of::<Flow>() + size_of::<FlowId>(), 52);
}
