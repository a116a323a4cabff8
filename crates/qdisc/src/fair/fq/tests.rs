use super::scheduler::Flow;
use super::*;
use crate::parts::round::FlowId;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::{Dscp, Ecn, TcpHeader, Transport};

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

fn flows(q: &Fq<TestPacket>) -> &Scheduler<TestPacket> {
    let Order::Flows(flows) = &q.order else {
        panic!("another profile")
    };
    flows
}

fn state(q: &Fq<TestPacket>, flow: u32) -> &Flow {
    let flows = flows(q);
    &flows.flows[flows.classify(&packet(0, flow, 64)).index()]
}

fn credit(q: &Fq<TestPacket>, flow: u32) -> i64 {
    state(q, flow).credit
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
        initial_quantum: Some(Bytes(1_600)),
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
        initial_quantum: Some(Bytes(100)),
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
    assert_eq!(size_of::<Flow>() + size_of::<FlowId>(), 60);
}

fn kbit(kilobits: u64) -> Rate {
    Rate::from_bits_per_sec(1_000 * kilobits).unwrap()
}

/// Takes packets as they become due, as a link that is never busy would; gives their times.
fn drained(q: &mut Fq<TestPacket>) -> Vec<(Instant, u32)> {
    let mut now = at_ms(0);
    let mut sent = Vec::new();
    while q.backlog().packets > 0 {
        let mut seen = Recorder::default();
        if let Some(pkt) = q.dequeue(now, &mut seen) {
            assert!(seen.marks.is_empty(), "what is paced is not late");
            sent.push((now, pkt.flow));
        } else {
            let due = q.next_timer().expect("packets wait");
            assert!(due > now, "asked too early");
            now = due;
            q.on_timer(now);
        }
    }
    sent
}

fn paced(maxrate: Rate, initial: u64) -> Vec<(Instant, u32)> {
    let (mut q, mut seen) = queue(FqParams {
        maxrate: Some(maxrate),
        initial_quantum: Some(Bytes(initial)),
        ..FqParams::default()
    });
    for id in 0..20 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(at_ms(0), packet(100 + id, 2, 1_514), &mut seen);
    }
    drained(&mut q)
}

#[test]
fn a_flow_is_paced_a_quantum_at_a_time_once_its_credit_is_spent() {
    let sent = paced(Rate::mbit(10), 3_028);
    // Two packets at once, then a quantum of 3028 bytes each 2.4224 ms.
    let of_one: Vec<_> = sent.iter().filter(|(_, flow)| *flow == 1).collect();
    let gap = Duration::from_nanos(2_422_400);
    for (n, (at, _)) in of_one.iter().enumerate() {
        let turns = u64::try_from(n / 2).unwrap();
        assert_eq!(*at, at_ms(0) + gap.times(turns), "packet {n}");
    }
    assert_eq!(sent.len(), 40);
}

#[test]
fn a_slow_flow_is_paced_packet_by_packet() {
    let sent = paced(kbit(500), 15_140);
    let of_two = sent.iter().filter(|(_, flow)| *flow == 2);
    let times: Vec<_> = of_two.map(|(at, _)| *at).collect();
    let gap = Duration::from_nanos(24_224_000);
    assert!(
        times.windows(2).all(|w| w[1].since(w[0]) == gap),
        "{times:?}"
    );
}

#[test]
fn a_gap_is_a_second_at_most_and_lateness_shortens_it_by_up_to_half() {
    let (mut q, mut seen) = queue(FqParams {
        maxrate: Some(kbit(100)),
        ..FqParams::default()
    });
    for id in 0..4 {
        q.enqueue(at_ms(0), packet(id, 1, 9_000), &mut seen);
        q.enqueue(at_ms(0), packet(10 + id, 2, 15_000), &mut seen);
    }
    let due = |q: &Fq<TestPacket>, flow| state(q, flow).due;
    // 9000 bytes take 720 ms, 15000 would take 1.2 s.
    q.dequeue(at_ms(0), &mut seen).unwrap();
    q.dequeue(at_ms(0), &mut seen).unwrap();
    assert_eq!((due(&q, 1), due(&q, 2)), (at_ms(720), at_ms(1_000)));
    // 100 ms late, then much later.
    assert_eq!(q.dequeue(at_ms(820), &mut seen).map(|p| p.flow), Some(1));
    assert_eq!(due(&q, 1), at_ms(820 + 620));
    assert_eq!(q.dequeue(at_ms(5_000), &mut seen).map(|p| p.flow), Some(2));
    assert_eq!(due(&q, 2), at_ms(5_500));
}

#[test]
fn what_the_box_sends_itself_goes_first_beyond_any_limit_of_a_flow() {
    let (mut q, mut seen) = queue(FqParams {
        flow_limit: 2,
        ..FqParams::default()
    });
    let own = |id| TestPacket {
        dscp: Dscp::new(48).unwrap(),
        ..packet(id, 7, 64)
    };
    q.enqueue(at_ms(0), packet(0, 1, 1_514), &mut seen);
    for id in 1..=5 {
        q.enqueue(at_ms(0), own(id), &mut seen);
    }
    assert_eq!(flows_sent(&mut q, 9), [7, 7, 7, 7, 7, 1]);
    assert!(seen.drops.is_empty());
    assert_eq!(q.backlog(), Backlog::default());
}

#[test]
fn among_many_flows_one_that_was_long_away_is_forgotten() {
    let away = |others: u32, ms: u64| {
        let (mut q, mut seen) = queue(FqParams {
            orphan_mask: 65_535,
            ..FqParams::default()
        });
        for flow in 0..others {
            q.enqueue(at_ms(0), packet(flow.into(), flow, 1_514), &mut seen);
        }
        while q.dequeue(at_ms(0), &mut seen).is_some() {}
        q.enqueue(at_ms(ms), packet(0, 1, 1_514), &mut seen);
        credit(&q, 1)
    };
    let left = 15_140 - 1_514;
    assert_eq!(away(3_000, 3_001), 15_140);
    assert_eq!(away(3_000, 3_000), left);
    assert_eq!(away(1_000, 9_000), left);
}

#[test]
fn the_threshold_for_marks_counts_from_when_a_packet_was_due_and_spares_the_box() {
    let (mut q, mut seen) = queue(FqParams {
        maxrate: Some(kbit(500)),
        ce_threshold: Some(Duration::from_millis(5)),
        ..FqParams::default()
    });
    let ect = |id, flow, dscp| TestPacket {
        ecn: Ecn::Ect0,
        dscp: Dscp::new(dscp).unwrap(),
        ..packet(id, flow, 1_514)
    };
    for id in 0..10 {
        q.enqueue(at_ms(0), ect(id, 1, 0), &mut seen);
    }
    assert_eq!(drained(&mut q).len(), 10);
    for (id, ms) in [(10, 6_000), (11, 6_005), (12, 6_006)] {
        q.enqueue(at_ms(6_000), ect(id, 2, 0), &mut seen);
        q.enqueue(at_ms(6_000), ect(100 + id, 3, 48), &mut seen);
        q.dequeue(at_ms(ms), &mut seen);
    }
    assert!(
        seen.marks.is_empty(),
        "paced or the box's own: {:?}",
        seen.marks
    );
    q.dequeue(at_ms(6_006), &mut seen);
    assert_eq!(seen.marks.len(), 1);
}

#[test]
fn flows_are_many_from_2048_on_if_more_than_half_are_away() {
    // How many of `others` wait again when flow 1 comes back, and whether it is a new one then.
    let forgotten = |others: u32, waiting: u32| {
        let (mut q, mut seen) = queue(FqParams {
            orphan_mask: 65_535,
            ..FqParams::default()
        });
        let mut flow = 0;
        while flows(&q).seen < others as usize {
            q.enqueue(at_ms(0), packet(0, flow, 1_514), &mut seen);
            flow += 1;
        }
        while q.dequeue(at_ms(0), &mut seen).is_some() {}
        let mut flow = 2;
        while flows(&q).detached > (others - waiting) as usize {
            q.enqueue(at_ms(1), packet(0, flow, 1_514), &mut seen);
            flow += 1;
        }
        q.enqueue(at_ms(3_001), packet(0, 1, 1_514), &mut seen);
        let (seen, detached) = (flows(&q).seen, flows(&q).detached);
        assert_eq!(seen, others as usize, "it is seen anew");
        assert_eq!(detached, (others - waiting) as usize - 1);
        credit(&q, 1) == 15_140
    };
    assert!(!forgotten(2_047, 0));
    assert!(forgotten(2_048, 0));
    assert!(forgotten(3_000, 1_499));
    assert!(!forgotten(3_000, 1_500));
}

#[test]
fn a_flow_is_paced_from_the_byte_on_that_spends_its_credit() {
    let paced = |initial| {
        let (mut q, mut seen) = queue(FqParams {
            maxrate: Some(Rate::mbit(10)),
            initial_quantum: Some(Bytes(initial)),
            ..FqParams::default()
        });
        q.enqueue(at_ms(0), packet(0, 1, 1_514), &mut seen);
        q.dequeue(at_ms(0), &mut seen);
        state(&q, 1).due > at_ms(0)
    };
    assert!(paced(1_514));
    assert!(!paced(1_515));
}

#[test]
fn no_timer_is_needed_while_another_flow_can_send() {
    let (mut q, mut seen) = queue(FqParams {
        maxrate: Some(kbit(500)),
        ..FqParams::default()
    });
    for id in 0..3 {
        q.enqueue(at_ms(0), packet(id, 1, 1_514), &mut seen);
    }
    while q.dequeue(at_ms(0), &mut seen).is_some() {}
    let due = q.next_timer().expect("flow 1 waits");
    // A new flow, then an old one, then the box itself.
    q.enqueue(at_ms(1), packet(10, 2, 1_514), &mut seen);
    q.enqueue(at_ms(1), packet(11, 2, 1_514), &mut seen);
    assert_eq!(q.next_timer(), None);
    while q.dequeue(at_ms(1), &mut seen).is_some() {}
    assert_eq!(q.next_timer(), Some(due));
    let own = TestPacket {
        dscp: Dscp::new(48).unwrap(),
        ..packet(12, 7, 64)
    };
    q.enqueue(at_ms(2), own, &mut seen);
    assert_eq!(q.next_timer(), None);
    q.dequeue(at_ms(2), &mut seen);
    q.on_timer(due);
    assert_eq!(q.next_timer(), None, "flow 1 may send");
    assert_eq!(q.dequeue(due, &mut seen).map(|pkt| pkt.flow), Some(1));
}

/// A queue that paces by sockets, with a first turn of one quantum.
fn pacing(params: FqParams) -> FqParams {
    FqParams {
        pacing: true,
        initial_quantum: Some(Bytes(3_028)),
        ..params
    }
}

/// A full-size segment of TCP, or an ACK without data.
fn segment(id: u64, flow: u32, payload: u32) -> TestPacket {
    TestPacket {
        transport: Transport::Tcp(TcpHeader {
            payload,
            flags: TcpHeader::ACK,
            ..TcpHeader::default()
        }),
        ..packet(id, flow, u64::from(payload) + 66)
    }
}

/// When flow 1 sends 6 packets at 10 Mbit/s, of which the sender takes 5 Mbit/s from the third on; in microseconds.
fn paced_by_socket(params: FqParams) -> Vec<u64> {
    let (mut q, mut seen) = queue(params);
    seen.rates.insert(1, Rate::mbit(10));
    for id in 0..6 {
        q.enqueue(at_ms(0), segment(id, 1, 1_448), &mut seen);
    }
    let mut now = at_ms(0);
    let mut sent = Vec::new();
    while q.backlog().packets > 0 {
        if q.dequeue(now, &mut seen).is_some() {
            sent.push(now.since(at_ms(0)).as_micros());
        } else {
            now = q.next_timer().expect("the flow waits");
            q.on_timer(now);
        }
        if sent.len() == 3 {
            seen.rates.insert(1, Rate::mbit(5));
        }
    }
    sent
}

#[test]
fn a_socket_paces_at_its_rate_when_a_packet_leaves_and_at_most_at_maxrate() {
    for profile in [Profile::Linux, Profile::Linux612] {
        let of = |maxrate| FqParams {
            maxrate,
            profile,
            ..pacing(FqParams::default())
        };
        // A quantum of 3028 bytes takes 2422.4 us at 10 Mbit/s.
        assert_eq!(
            paced_by_socket(of(None)),
            [0, 0, 2_422, 2_422, 7_267, 7_267]
        );
        let slower = Some(Rate::mbit(2));
        assert_eq!(
            paced_by_socket(of(slower)),
            [0, 0, 12_112, 12_112, 24_224, 24_224]
        );
        let faster = Some(Rate::mbit(100));
        assert_eq!(paced_by_socket(of(faster)), paced_by_socket(of(None)));
        let off = FqParams {
            pacing: false,
            ..of(None)
        };
        assert_eq!(paced_by_socket(off), [0; 6]);
    }
}

#[test]
fn acks_and_flows_without_a_rate_are_not_paced_by_sockets() {
    for profile in [Profile::Linux, Profile::Linux612] {
        let (mut q, mut seen) = queue(FqParams {
            profile,
            ..pacing(FqParams::default())
        });
        seen.rates.insert(1, kbit(100));
        // An ACK neither waits nor makes others wait; behind data it keeps its place.
        q.enqueue(at_ms(0), segment(0, 1, 0), &mut seen);
        q.enqueue(at_ms(0), segment(1, 1, 1_448), &mut seen);
        q.enqueue(at_ms(0), segment(2, 1, 1_448), &mut seen);
        q.enqueue(at_ms(0), segment(3, 1, 0), &mut seen);
        for id in 10..30 {
            q.enqueue(at_ms(0), segment(id, 2, 1_448), &mut seen);
        }
        let sent = std::iter::from_fn(|| q.dequeue(at_ms(0), &mut seen));
        let sent: Vec<_> = sent.map(|pkt| pkt.id).collect();
        assert_eq!(sent.iter().filter(|&&id| id < 10).count(), 2, "{sent:?}");
        assert_eq!(sent.len(), 22);
        // 1514 bytes take 121.12 ms.
        let due = q.next_timer().expect("flow 1 waits");
        assert_eq!(due.since(at_ms(0)).as_micros(), 121_120);
        assert_eq!(q.dequeue(due, &mut seen).map(|pkt| pkt.id), Some(2));
        assert_eq!(q.dequeue(due, &mut seen).map(|pkt| pkt.id), Some(3));
    }
}

#[test]
fn an_ack_of_a_flow_that_is_not_due_is_not_late() {
    for profile in [Profile::Linux, Profile::Linux612] {
        let (mut q, mut seen) = queue(FqParams {
            profile,
            ce_threshold: Some(Duration::from_millis(1)),
            ..pacing(FqParams::default())
        });
        seen.rates.insert(1, kbit(100));
        q.enqueue(at_ms(0), segment(0, 1, 1_448), &mut seen);
        q.enqueue(at_ms(0), segment(1, 1, 0), &mut seen);
        let sent = std::iter::from_fn(|| q.dequeue(at_ms(0), &mut seen));
        assert_eq!(sent.map(|pkt| pkt.id).collect::<Vec<_>>(), [0, 1]);
        assert!(seen.marks.is_empty());
    }
}
