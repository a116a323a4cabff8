use super::*;
use crate::testing::{Recorder, TestPacket};

fn packet(id: u64, flow: u32, ecn: Ecn) -> TestPacket {
    TestPacket {
        flow,
        ecn,
        size: 1_250,
        ..TestPacket::mtu(id)
    }
}

fn queue(params: &AfdParams) -> (Afd<TestPacket>, Recorder) {
    let q = Afd::new(params, Some(Rate::mbit(1_000)), Rng::new(1));
    (q, Recorder::default())
}

/// Fills the shadow buffer with this many samples of flows 0, 1, …
fn sampled(q: &mut Afd<TestPacket>, counts: &[u32]) {
    for (flow, &count) in (0..).zip(counts) {
        let bin = q.shadow.bin(&packet(0, flow, Ecn::NotEct).flow());
        for _ in 0..count {
            q.shadow.replace_oldest(bin);
        }
    }
}

/// The share of 100,000 arrivals of `flow` that is lost or marked; none of them is sampled.
fn signalled(q: &mut Afd<TestPacket>, seen: &mut Recorder, flow: u32, ecn: Ecn) -> f64 {
    let before = seen.drops.len() + seen.marks.len();
    for id in 0..100_000 {
        q.enqueue(Instant::ZERO, packet(id, flow, ecn), seen);
        q.dequeue(Instant::ZERO, seen);
    }
    let n = seen.drops.len() + seen.marks.len() - before;
    f64::from(u32::try_from(n).expect("small")) / 100_000.0
}

const RARELY: Option<u32> = Some(1_000_000_000);

#[test]
fn what_is_left_of_a_fast_flow_is_the_fair_share() {
    let (mut q, mut seen) = queue(&AfdParams {
        sample: RARELY,
        ..AfdParams::default()
    });
    sampled(&mut q, &[1_200, 500, 300]);
    q.fair.restart(400.0);
    // 1 - 400/1200 and 1 - 400/500; a standard deviation is at most 0.0016.
    let shares = [0, 1, 2].map(|flow| signalled(&mut q, &mut seen, flow, Ecn::Ect0));
    assert!((shares[0] - 2.0 / 3.0).abs() < 0.006, "{shares:?}");
    assert!((shares[1] - 0.2).abs() < 0.006, "{shares:?}");
    assert!(shares[2].abs() < 1e-9, "{shares:?}");
    assert!(seen.marks.is_empty());
}

#[test]
fn marks_take_the_place_of_drops_where_a_sender_can_hear_them() {
    let (mut q, mut seen) = queue(&AfdParams {
        sample: RARELY,
        ecn: true,
        ..AfdParams::default()
    });
    sampled(&mut q, &[1_500, 500]);
    q.fair.restart(750.0);
    let share = signalled(&mut q, &mut seen, 0, Ecn::Ect0);
    assert!((share - 0.5).abs() < 0.006 && seen.drops.is_empty());
    let marks = seen.marks.len();
    signalled(&mut q, &mut seen, 0, Ecn::NotEct);
    assert!(seen.drops.len() > 49_000 && seen.marks.len() == marks);
}

#[test]
fn the_fair_share_follows_the_backlog() {
    let (mut q, mut seen) = queue(&AfdParams {
        sample: RARELY,
        ..AfdParams::default()
    });
    let tick = |q: &mut Afd<TestPacket>| {
        let due = q.next_timer().expect("it has a timer");
        q.on_timer(due);
        q.fair.value
    };
    let fill = |q: &mut Afd<TestPacket>, seen: &mut Recorder, packets| {
        while q.backlog().packets < packets {
            q.enqueue(Instant::ZERO, packet(0, 0, Ecn::NotEct), seen);
        }
    };
    // The target is 200 packets. Empty: + 0.1 * 200 a tick, at most all samples.
    assert!((tick(&mut q) - 2_000.0).abs() < 1e-9);
    fill(&mut q, &mut seen, 300);
    // 2000 + 1.7 (0 - 200) - 1.8 (300 - 200) = 1480, then 1480 + 170 - 180.
    assert!((tick(&mut q) - 1_480.0).abs() < 1e-9);
    assert!((tick(&mut q) - 1_470.0).abs() < 1e-9);
    assert_eq!(q.next_timer(), Some(Instant::from_nanos(4 * 6_250_000)));
}

#[test]
fn samples_are_drawn_one_in_so_many() {
    let (mut q, mut seen) = queue(&AfdParams {
        sample: Some(50),
        shadow: 1_000_000,
        ..AfdParams::default()
    });
    signalled(&mut q, &mut seen, 0, Ecn::NotEct);
    let bin = q.shadow.bin(&packet(0, 0, Ecn::NotEct).flow());
    // 2000 expected; five standard deviations are 221.
    assert!(q.shadow.count(bin).abs_diff(2_000) < 221);
}

/// Goodputs, as shares of the link, of two flows that send 1.2 and 0.6 of it for 10 s.
fn shares(params: &AfdParams) -> [f64; 2] {
    const SLOT: u64 = 10_000;
    let (mut q, mut seen) = queue(params);
    let mut delivered = [0_u32; 2];
    for slot in 0..1_000_000 {
        let now = Instant::from_nanos(slot * SLOT);
        if q.next_timer().is_some_and(|due| due <= now) {
            q.on_timer(now);
        }
        for (flow, sends) in [
            (0, 1 + u64::from(slot % 5 == 0)),
            (1, u64::from(slot % 5 < 3)),
        ] {
            for _ in 0..sends {
                q.enqueue(now, packet(slot, flow, Ecn::NotEct), &mut seen);
            }
        }
        if let Some(pkt) = q.dequeue(now, &mut seen)
            && slot >= 500_000
        {
            delivered[pkt.flow as usize] += 1;
        }
    }
    delivered.map(|n| f64::from(n) / 500_000.0)
}

#[test]
fn flows_that_do_not_answer_get_equal_shares() {
    let shares = shares(&AfdParams::default());
    assert!(shares.iter().all(|s| (s - 0.5).abs() < 0.05), "{shares:?}");
}

#[test]
fn the_module_drops_too_rarely_to_police_flows_that_do_not_answer() {
    // 0.001 (1 - m_fair / m_i) of flow 0 against the 44 % of all that must go.
    let shares = shares(&AfdParams::afq_kernel2012());
    assert!(shares[0] > 0.6, "{shares:?}");
}

#[test]
fn the_module_drops_a_thousandth_and_from_a_fifth_above_the_fair_share() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 100,
        sample: RARELY,
        gain: 0.1,
        ..AfdParams::afq_kernel2012()
    });
    // Target 20, empty before and now: m_fair is 2000 / 2 + 0.1 * 20 = 1002.
    sampled(&mut q, &[1_500, 500]);
    assert!((q.fair_share().expect("two flows") - 1_002.0).abs() < 1e-9);
    let share = signalled(&mut q, &mut seen, 0, Ecn::NotEct);
    assert!(
        (share - 0.1 * (1.0 - 1_002.0 / 1_500.0)).abs() < 0.003,
        "{share}"
    );
    assert!(signalled(&mut q, &mut seen, 1, Ecn::NotEct).abs() < 1e-9);
    // 1200 is less than 1.2 * 1002.
    sampled(&mut q, &[1_200, 800]);
    assert!(signalled(&mut q, &mut seen, 0, Ecn::NotEct).abs() < 1e-9);
    // A flow alone is never dropped.
    sampled(&mut q, &[2_000]);
    assert!(signalled(&mut q, &mut seen, 0, Ecn::NotEct).abs() < 1e-9);
    assert!((AfdParams::afq_kernel2012().gain - 0.001).abs() < 1e-12);
}

#[test]
fn the_module_forgets_what_its_fair_share_was_and_remembers_the_backlog_of_the_last_sample() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 100,
        sample: Some(30),
        gain: 1e-9,
        ..AfdParams::afq_kernel2012()
    });
    sampled(&mut q, &[1_500, 500]);
    for id in 0..40 {
        q.enqueue(Instant::ZERO, packet(id, 1, Ecn::NotEct), &mut seen);
    }
    // The 30th arrival found 29: 1000 + 1.7 (29 - 20) - 1.8 (40 - 20).
    assert!((q.fair_share().expect("two flows") - 979.3).abs() < 1e-9);
    assert_eq!(q.next_timer(), None);
}

#[test]
fn numbers_without_a_sign_leave_no_fair_share() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 100,
        sample: RARELY,
        beta: 100.0,
        ..AfdParams::afq_kernel2012()
    });
    sampled(&mut q, &[1_500, 500]);
    q.fair.old = 20.0;
    let mut share_of = |old: f64, packets: usize| {
        q.fair.old = old;
        while q.backlog().packets < packets {
            q.enqueue(Instant::ZERO, packet(0, 1, Ecn::NotEct), &mut seen);
        }
        q.fair_share()
    };
    // The target is 20. One of the two is below it; both are; none is; and 1000 - 100 * 11 is below 0.
    assert_eq!(share_of(20.0, 0), None);
    assert!(share_of(0.0, 0).is_some());
    assert_eq!(share_of(19.0, 21), None);
    assert!((share_of(20.0, 30).expect("1000 - 100 * 10") - 0.0).abs() < 1e-9);
    assert_eq!(share_of(20.0, 31), None);
}

#[test]
fn the_module_neither_counts_nor_samples_an_arrival_that_finds_no_room() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 3,
        sample: Some(4),
        ..AfdParams::afq_kernel2012()
    });
    let bin = q.shadow.bin(&packet(0, 0, Ecn::NotEct).flow());
    let mut arrive = |q: &mut Afd<TestPacket>| {
        q.enqueue(Instant::ZERO, packet(0, 0, Ecn::NotEct), &mut seen);
    };
    for _ in 0..10 {
        arrive(&mut q);
    }
    assert_eq!(q.shadow.count(bin), 0);
    q.dequeue(Instant::ZERO, &mut Recorder::default());
    arrive(&mut q);
    assert_eq!(q.shadow.count(bin), 1, "the fourth that found room");
}

#[test]
fn a_packet_that_may_be_marked_needs_room_too() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 3,
        sample: RARELY,
        ecn: true,
        ..AfdParams::default()
    });
    sampled(&mut q, &[2_000]);
    q.fair.restart(1e-9);
    for id in 0..4 {
        q.enqueue(Instant::ZERO, packet(id, 0, Ecn::Ect0), &mut seen);
    }
    assert_eq!(seen.marks.len(), 3);
    assert_eq!(seen.drops[0].2, DropReason::Overlimit);
}

#[test]
fn a_timer_that_is_not_due_changes_nothing() {
    let (mut q, _) = queue(&AfdParams::default());
    let due = q.next_timer().expect("it has a timer");
    q.fair.restart(400.0);
    q.on_timer(Instant::from_nanos(due.as_nanos() - 1));
    assert_eq!(q.next_timer(), Some(due));
    assert!((q.fair.value - 400.0).abs() < 1e-9);
}

#[test]
fn the_table_of_the_module_has_100_places() {
    let module = AfdParams::afq_kernel2012();
    assert_eq!((module.table, module.shadow), (100, 2_000));
    assert_eq!(AfdParams::default().table, 2_000);
}

#[test]
fn a_flow_alone_has_no_fair_share_in_the_module() {
    let (mut q, mut seen) = queue(&AfdParams {
        limit: 100,
        sample: RARELY,
        ..AfdParams::afq_kernel2012()
    });
    sampled(&mut q, &[2_000]);
    for id in 0..90 {
        q.enqueue(Instant::ZERO, packet(id, 0, Ecn::NotEct), &mut seen);
    }
    assert_eq!(q.fair_share(), None);
}

#[test]
fn samples_span_1200_ms_of_the_link_rounded_to_the_nearest() {
    let one_in = |mbits| sample_for(Some(Rate::mbit(mbits)), 2_000);
    // One of 50 at 1 Gbit/s, of 50.5 at 1.01.
    assert_eq!([1_000, 1_009, 1_010].map(one_in), [50, 50, 51]);
    assert_eq!(one_in(1), 1);
    assert_eq!(sample_for(None, 2_000), 500);
}
