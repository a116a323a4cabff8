use sojourn_net::Ecn;

use super::*;
use crate::aqm::pie::Pie;
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn queue(params: FqPieParams) -> (FqPie<TestPacket>, Recorder) {
    (FqPie::new(&params, MTU, Rng::new(1)), Recorder::default())
}

const fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn packet(id: u64, flow: u32) -> TestPacket {
    TestPacket {
        flow,
        ecn: Ecn::Ect0,
        ..TestPacket::mtu(id)
    }
}

/// Tells `q` its timers up to `until`.
fn tell(q: &mut impl Qdisc<TestPacket>, until: Instant) {
    while let Some(due) = q.next_timer().filter(|&due| due <= until) {
        q.on_timer(due);
    }
}

/// With one flow, FQ-PIE is PIE: the same arrivals, the same draws, the same fate of each packet.
#[test]
fn alone_a_flow_meets_the_pie_of_the_kernel() {
    for (ecn, bytemode) in [(false, false), (true, false), (false, true)] {
        let params = FqPieParams {
            limit: 200,
            ecn,
            bytemode,
            ..FqPieParams::default()
        };
        let (mut fq, mut fq_seen) = queue(params);
        // Its first draw, the salt of the hash, is not PIE's.
        let mut rng = Rng::new(1);
        rng.next_u64();
        let mut pie = Pie::new(&params.pie(), MTU, rng);
        let mut pie_seen = Recorder::default();
        let mut traffic = Rng::new(7);
        let mut at = 0;
        for (id, size) in (0..60_000).zip([64, 700, 1_514].into_iter().cycle()) {
            // From 5 to 0.7 packets a millisecond, a tenth more than leave.
            at += traffic.below(200 + 300 * (id / 6_000 % 5));
            let now = Instant::from_nanos(at * 1_000);
            tell(&mut fq, now);
            tell(&mut pie, now);
            if traffic.below(2) == 0 {
                let pkt = TestPacket {
                    size,
                    ..packet(id, 5)
                };
                fq.enqueue(now, pkt, &mut fq_seen);
                pie.enqueue(now, pkt, &mut pie_seen);
            }
            if traffic.below(20) < 9 {
                let (a, b) = (
                    fq.dequeue(now, &mut fq_seen),
                    pie.dequeue(now, &mut pie_seen),
                );
                assert_eq!(a, b, "step {id}");
            }
        }
        assert_eq!(fq.counters.marks, fq_seen.marks.len() as u64);
        assert_eq!(fq_seen, pie_seen);
        assert!(fq_seen.drops.len() > 100, "{}", fq_seen.drops.len());
        assert_eq!(fq_seen.marks.is_empty(), !ecn);
    }
}

#[test]
fn a_flow_that_fills_its_queue_is_dropped_and_one_beside_it_is_not() {
    let (mut q, mut seen) = queue(FqPieParams::default());
    let mut ids = 0..;
    let mut packets = |flow| packet(ids.next().unwrap_or_default(), flow);
    for at in 0..8_000 {
        tell(&mut q, ms(at));
        q.enqueue(ms(at), packets(1), &mut seen);
        q.enqueue(ms(at), packets(1), &mut seen);
        if at % 4 == 0 {
            q.enqueue(ms(at), packets(2), &mut seen);
        }
        q.dequeue(ms(at), &mut seen);
    }
    assert!(
        seen.drops
            .iter()
            .all(|d| d.1.flow == 1 && d.2 == DropReason::Aqm)
    );
    assert!(seen.drops.len() > 4_000, "{}", seen.drops.len());
}

#[test]
fn when_full_the_arrival_is_lost_whoever_filled_the_buffer() {
    let (mut q, mut seen) = queue(FqPieParams {
        limit: 10,
        ..FqPieParams::default()
    });
    for id in 0..10 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    q.enqueue(ms(0), packet(10, 2), &mut seen);
    assert_eq!(seen.drops[0].1.id, 10);
    assert_eq!(q.counters.overlimit, 1);
}

#[test]
fn memory_is_counted_not_guarded() {
    let (mut q, mut seen) = queue(FqPieParams {
        memory_limit: Bytes(2_304),
        ..FqPieParams::default()
    });
    for id in 0..5 {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
    }
    // The fourth finds three, more than the limit and itself.
    assert_eq!(q.counters.overmemory, 2);
    assert!(seen.drops.is_empty());
}

#[test]
fn marks_end_where_ecn_prob_says() {
    let marks = |ecn_prob| {
        let (mut q, mut seen) = queue(FqPieParams {
            ecn: true,
            ecn_prob,
            limit: 100_000,
            ..FqPieParams::default()
        });
        for at in 0..6_000 {
            tell(&mut q, ms(at));
            q.enqueue(ms(at), packet(2 * at, 1), &mut seen);
            if at % 5 == 0 {
                q.enqueue(ms(at), packet(2 * at + 1, 1), &mut seen);
            }
            q.dequeue(ms(at), &mut seen);
        }
        seen.marks.len()
    };
    let counts = [1, 10, 100].map(marks);
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
}

#[test]
fn many_queues_are_updated_in_batches() {
    let (mut q, _) = queue(FqPieParams {
        flows: 5_000,
        ..FqPieParams::default()
    });
    let mut dues = Vec::new();
    for _ in 0..5 {
        let due = q.next_timer().unwrap_or_default();
        dues.push(due.as_micros() / 1_000);
        q.on_timer(due);
    }
    assert_eq!(dues, [504, 505, 506, 522, 523]);
}

#[test]
fn a_queue_costs_as_many_bytes_as_documented() {
    let turn = size_of::<FlowId>() + size_of::<i64>();
    assert_eq!(size_of::<Flow>() + turn, 116);
}

#[test]
fn each_queue_has_the_pie_that_was_asked_for() {
    let params = FqPieParams {
        target: Duration::from_millis(7),
        tupdate: Duration::from_millis(9),
        alpha: 3,
        beta: 5,
        limit: 11,
        ecn: true,
        bytemode: true,
        dq_rate_estimator: true,
        ..FqPieParams::default()
    };
    let pie = params.pie();
    assert_eq!(pie.target, Some(Duration::from_millis(7)));
    assert_eq!(pie.tupdate, Some(Duration::from_millis(9)));
    assert_eq!((pie.alpha, pie.beta, pie.limit), (3, 5, 11));
    assert!(pie.ecn && pie.bytemode && pie.dq_rate_estimator);
    assert_eq!(pie.profile, Profile::Linux);
}

#[test]
fn a_timer_that_is_not_due_changes_nothing() {
    let (mut q, _) = queue(FqPieParams::default());
    let due = q.next_timer().expect("it has a timer");
    q.on_timer(Instant::from_nanos(due.as_nanos() - 1));
    assert_eq!(q.next_timer(), Some(due));
    q.on_timer(due);
    assert!(q.next_timer() > Some(due));
}

#[test]
fn a_packet_over_the_memory_is_counted_from_the_next_on() {
    let (mut q, mut seen) = queue(FqPieParams {
        memory_limit: Bytes(4_600),
        ..FqPieParams::default()
    });
    for (id, over) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
        q.enqueue(ms(0), packet(id, 1), &mut seen);
        // 4600 and its own 2304 bytes are passed by the 6912 of three packets.
        assert_eq!(q.counters.overmemory, over, "packet {id}");
    }
    assert_eq!((q.counters.accepted, q.counters.new_flows), (4, 1));
}
