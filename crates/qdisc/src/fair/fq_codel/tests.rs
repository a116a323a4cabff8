use sojourn_net::{Dscp, Ecn};

use super::*;
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn queue(params: FqCodelParams) -> (FqCodel<TestPacket>, Recorder) {
    (FqCodel::new(&params, MTU, Rng::new(1)), Recorder::default())
}

fn params(limit: usize, profile: Profile) -> FqCodelParams {
    FqCodelParams {
        limit,
        profile,
        ..FqCodelParams::default()
    }
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

/// Fills one flow with 101 full and another with 200 small packets, one over the limit.
fn drops_at_overload(profile: Profile) -> Vec<u64> {
    let (mut q, mut seen) = queue(params(300, profile));
    for id in 0..200 {
        q.enqueue(at_ms(0), packet(id, 1, 64), &mut seen);
    }
    for id in 200..301 {
        q.enqueue(at_ms(0), packet(id, 2, 1_514), &mut seen);
    }
    seen.drops.iter().map(|d| d.1.id).collect()
}

#[test]
fn overload_takes_from_the_head_of_the_fattest_queue_in_bytes() {
    // Half of 101 packets.
    let rfc: Vec<_> = (200..250).collect();
    assert_eq!(drops_at_overload(Profile::Rfc), rfc);
    // Half of 152,914 bytes: the 51st packet crosses it.
    let linux: Vec<_> = (200..251).collect();
    assert_eq!(drops_at_overload(Profile::Linux), linux);
    assert_eq!(drops_at_overload(Profile::Linux314), [200]);
}

#[test]
fn no_more_than_a_batch_is_dropped_at_once() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let (mut q, mut seen) = queue(params(1_000, profile));
        for id in 0..=1_000 {
            q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        }
        assert_eq!(seen.drops.len(), 64);
    }
}

#[test]
fn overload_raises_the_count_of_codel_in_linux_only() {
    for (profile, count) in [
        (Profile::Rfc, 0),
        (Profile::Linux, 51),
        (Profile::Linux314, 0),
    ] {
        let (mut q, mut seen) = queue(params(100, profile));
        for id in 0..=100 {
            q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        }
        let mut expected = Control::default();
        expected.count_overload(count);
        let id = q.classify(&packet(0, 1, 64));
        let control = &q.turns[id].control;
        assert_eq!(format!("{control:?}"), format!("{expected:?}"));
    }
}

#[test]
fn a_sparse_flow_overtakes_a_bulk_flow_once() {
    let (mut q, mut seen) = queue(FqCodelParams::default());
    for id in 0..10 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    let mut order = Vec::new();
    for _ in 0..2 {
        order.extend(q.dequeue(at_ms(0), &mut seen).map(|p| p.id));
    }
    q.enqueue(at_ms(0), packet(100, 2, 64), &mut seen);
    order.extend(q.dequeue(at_ms(0), &mut seen).map(|p| p.id));
    assert_eq!(order, [0, 1, 100]);
}

#[test]
fn flows_with_standing_queues_share_in_bytes() {
    let (mut q, mut seen) = queue(params(10_000, Profile::Linux));
    for id in 0..1_500 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(at_ms(0), packet(10_000 + id, 2, 500), &mut seen);
    }
    let mut sent = [0, 0];
    for _ in 0..1_000 {
        let pkt = q.dequeue(at_ms(0), &mut seen).unwrap();
        sent[usize::try_from(pkt.flow - 1).unwrap()] += pkt.size;
    }
    assert!(sent[0].abs_diff(sent[1]) <= 2 * 1_514, "{sent:?}");
}

#[test]
fn the_backlog_test_is_of_the_queue_in_the_rfc_and_of_all_queues_in_linux() {
    // Flow 2 always keeps one small packet behind the one that leaves, 20 ms old; flow 1 keeps a
    // large backlog.
    for (profile, signalled) in [
        (Profile::Rfc, false),
        (Profile::Linux, true),
        (Profile::Linux314, true),
    ] {
        let (mut q, mut seen) = queue(params(100_000, profile));
        for id in 0..3_000 {
            q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        }
        q.enqueue(at_ms(0), packet(3_000, 2, 700), &mut seen);
        for round in 1..50 {
            let now = at_ms(10 * round);
            q.enqueue(now, packet(3_000 + round, 2, 700), &mut seen);
            while q.dequeue(now, &mut seen).unwrap().flow != 2 {}
        }
        let signals = seen.drops.iter().filter(|d| d.1.flow == 2).count();
        assert_eq!(signals > 0, signalled, "{profile}");
    }
}

#[test]
fn a_memory_limit_binds_too() {
    let (mut q, mut seen) = queue(FqCodelParams {
        memory_limit: Bytes(10 * 1_514),
        profile: Profile::Rfc,
        ..FqCodelParams::default()
    });
    for id in 0..=10 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    assert_eq!(seen.drops.len(), 5);
}

#[test]
fn among_equally_fat_queues_the_first_in_the_table_loses() {
    for first in [1, 2] {
        let (mut q, mut seen) = queue(params(3, Profile::Linux314));
        for (id, flow) in (0..).zip([first, first, 3 - first, 3 - first]) {
            q.enqueue(at_ms(0), packet(id, flow, 1_514), &mut seen);
        }
        let at = |flow| q.classify(&packet(0, flow, 64)).index();
        let fat = if at(1) < at(2) { 1 } else { 2 };
        assert_eq!(seen.drops[0].1.flow, fat);
    }
}

#[test]
fn a_queue_costs_as_many_bytes_as_documented() {
    let turn = size_of::<FlowId>() + size_of::<i64>();
    assert_eq!(size_of::<Flow>() + size_of::<u64>() + turn, 84);
}

#[test]
fn memory_may_be_used_to_the_last_byte() {
    let (mut q, mut seen) = queue(FqCodelParams {
        memory_limit: Bytes(3 * 2_304),
        ..FqCodelParams::default()
    });
    for id in 0..3 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    assert!(seen.drops.is_empty());
    q.enqueue(at_ms(0), packet(3, 1, 1_514), &mut seen);
    assert!(!seen.drops.is_empty());
}

#[test]
fn the_shallow_threshold_applies_to_the_selected_packets() {
    let af22 = Dscp::new(20).unwrap();
    for (selector, marked) in [
        (None, [true, true, true]),
        // ECT(1), whatever the DSCP.
        (Some(0x0103), [false, true, true]),
        // AF22, whatever the ECN field.
        (Some(0x50FC), [false, false, true]),
        // AF22 with ECT(0).
        (Some(0x52FF), [false, false, false]),
        // A mask of 0 selects all.
        (Some(0x0100), [true, true, true]),
    ] {
        let (mut q, mut seen) = queue(FqCodelParams {
            ce_threshold: Some(Duration::from_millis(1)),
            ce_threshold_selector: selector,
            ..FqCodelParams::default()
        });
        for (id, ecn, dscp) in [
            (0, Ecn::Ect0, Dscp::DEFAULT),
            (1, Ecn::Ect1, Dscp::DEFAULT),
            (2, Ecn::Ect1, af22),
        ] {
            let pkt = TestPacket {
                ecn,
                dscp,
                ..packet(id, 1, 1_000)
            };
            q.enqueue(at_ms(0), pkt, &mut seen);
        }
        let left = [0; 3].map(|_| q.dequeue(at_ms(3), &mut seen).unwrap().ecn == Ecn::Ce);
        assert_eq!(left, marked, "{selector:?}");
    }
}
