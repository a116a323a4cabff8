use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

fn queue(params: SfqCodelParams) -> (SfqCodel<TestPacket>, Recorder) {
    (SfqCodel::new(&params, Rng::new(1)), Recorder::default())
}

const fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn packet(id: u64, flow: u32, size: u64) -> TestPacket {
    TestPacket {
        flow,
        size,
        ecn: Ecn::Ect0,
        ..TestPacket::mtu(id)
    }
}

/// The flows of the next `n` packets.
fn next_flows(q: &mut SfqCodel<TestPacket>, n: usize) -> Vec<u32> {
    let mut seen = Recorder::default();
    let left = (0..n).filter_map(|_| q.dequeue(ms(0), &mut seen));
    left.map(|pkt| pkt.flow).collect()
}

#[test]
fn each_bin_sends_a_packet_in_its_turn_whatever_its_size() {
    let (mut q, mut seen) = queue(SfqCodelParams::default());
    for id in 0..6 {
        q.enqueue(ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(ms(0), packet(id + 6, 2, 64), &mut seen);
    }
    assert_eq!(next_flows(&mut q, 6), [1, 2, 1, 2, 1, 2]);
}

#[test]
fn with_a_quantum_each_sends_as_many_bytes() {
    let (mut q, mut seen) = queue(SfqCodelParams {
        quantum: Some(Bytes(1_000)),
        ..SfqCodelParams::default()
    });
    for id in 0..6 {
        q.enqueue(ms(0), packet(id, 1, 1_000), &mut seen);
        q.enqueue(ms(0), packet(id + 6, 2, 500), &mut seen);
    }
    assert_eq!(next_flows(&mut q, 8), [1, 2, 2, 1, 2, 2, 1, 2]);
}

#[test]
fn a_new_bin_goes_before_those_that_had_a_turn_and_behind_other_new_ones() {
    let (mut q, mut seen) = queue(SfqCodelParams::default());
    for flow in 1..=3 {
        for id in 0..4 {
            q.enqueue(
                ms(0),
                packet(u64::from(flow) * 10 + id, flow, 64),
                &mut seen,
            );
        }
    }
    // All three have had a turn.
    assert_eq!(next_flows(&mut q, 4), [1, 2, 3, 1]);
    q.enqueue(ms(0), packet(100, 4, 64), &mut seen);
    q.enqueue(ms(0), packet(101, 5, 64), &mut seen);
    assert_eq!(next_flows(&mut q, 6), [4, 5, 2, 3, 1, 2]);
}

#[test]
fn a_bin_that_was_served_empty_keeps_its_place_for_a_round() {
    let (mut q, mut seen) = queue(SfqCodelParams::default());
    for (id, flow) in (0..).zip([1, 2, 3, 3, 3, 3]) {
        q.enqueue(ms(0), packet(id, flow, 64), &mut seen);
    }
    assert_eq!(next_flows(&mut q, 3), [1, 2, 3]);
    // 1 is still in the ring; it does not come back as new, in front of 3.
    q.enqueue(ms(0), packet(10, 3, 64), &mut seen);
    q.enqueue(ms(0), packet(11, 2, 64), &mut seen);
    q.enqueue(ms(0), packet(12, 1, 64), &mut seen);
    assert_eq!(next_flows(&mut q, 5), [1, 2, 3, 3, 3]);
    assert_eq!(q.counters.joined, 3);
}

#[test]
fn a_full_buffer_costs_the_bin_with_most_packets_its_newest() {
    let (mut q, mut seen) = queue(SfqCodelParams {
        limit: 5,
        ..SfqCodelParams::default()
    });
    for (id, flow) in (0..).zip([1, 2, 2, 2, 3, 4]) {
        q.enqueue(ms(0), packet(id, flow, 64), &mut seen);
    }
    assert_eq!(seen.drops[0].1.id, 3);
    assert_eq!(q.backlog().packets, 5);
    assert_eq!(next_flows(&mut q, 5), [1, 2, 3, 4, 2]);
}

/// Offers two packets and serves one a millisecond; when signals came, in whole milliseconds.
fn signals(ecn: bool) -> Vec<u64> {
    let (mut q, mut seen) = queue(SfqCodelParams {
        ecn,
        limit: 10_000,
        ..SfqCodelParams::default()
    });
    for at in 0..400 {
        q.enqueue(ms(at), packet(2 * at, 1, 1_000), &mut seen);
        q.enqueue(ms(at), packet(2 * at + 1, 1, 1_000), &mut seen);
        q.dequeue(ms(at), &mut seen);
    }
    let marks = seen.marks.iter().map(|m| m.0);
    let drops = seen.drops.iter().map(|d| d.0);
    assert!(if ecn {
        seen.drops.is_empty()
    } else {
        seen.marks.is_empty()
    });
    marks
        .chain(drops)
        .map(|at| at.as_micros() / 1_000)
        .collect()
}

#[test]
fn signals_follow_the_inverse_square_root() {
    for ecn in [false, true] {
        let times = signals(ecn);
        let gaps: Vec<_> = times[..4].windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(gaps, [100, 71, 58], "{times:?}");
    }
}

#[test]
fn signalling_resumes_two_below_if_it_ended_less_than_8_intervals_ago() {
    let interval = Duration::from_millis(100);
    for (pause_ms, count, want) in [
        (799, 10, 8),
        (800, 10, 1),
        (0, 3, 1),
        (0, 2, 1),
        (799, 4, 2),
    ] {
        let mut control = Control {
            count,
            drop_next: ms(1_000),
            ..Control::default()
        };
        control.begin(interval, ms(1_000 + pause_ms));
        assert_eq!(control.count, want, "{pause_ms} ms after {count}");
        let gap = div_sqrt(interval, want);
        assert_eq!(control.drop_next, ms(1_000 + pause_ms) + gap);
    }
}

#[test]
fn the_last_packet_of_a_bin_is_never_signalled() {
    let (mut q, mut seen) = queue(SfqCodelParams::default());
    // The other bin keeps the backlog long.
    for id in 0..1_000 {
        q.enqueue(ms(0), packet(id, 2, 1_514), &mut seen);
    }
    for at in 0..300 {
        q.enqueue(ms(at), packet(10_000 + at, 1, 1_514), &mut seen);
        q.dequeue(ms(at + 1), &mut seen);
        q.dequeue(ms(at + 1), &mut seen);
    }
    assert!(
        seen.drops
            .iter()
            .all(|d| d.1.flow == 2 || d.2 == DropReason::Overlimit)
    );
    assert!(seen.drops.iter().any(|d| d.2 == DropReason::Aqm));
}

#[test]
fn a_bin_costs_as_many_bytes_as_documented() {
    assert_eq!(size_of::<Bin>(), 80);
}

#[test]
fn less_than_a_packet_in_all_is_no_standing_queue() {
    let (mut q, mut seen) = queue(SfqCodelParams::default());
    // The largest packet seen has 1514 bytes; 20 of 64 bytes are less.
    q.enqueue(ms(0), packet(0, 1, 1_514), &mut seen);
    q.dequeue(ms(0), &mut seen);
    for id in 1..21 {
        q.enqueue(ms(0), packet(id, 1, 64), &mut seen);
    }
    for n in 1..2_000 {
        q.enqueue(ms(n), packet(100 + n, 1, 64), &mut seen);
        q.dequeue(ms(n), &mut seen);
    }
    assert_eq!(seen, Recorder::default());
}

#[test]
fn a_delay_below_target_is_never_signalled_and_target_itself_is() {
    for (waits, signals) in [(4, false), (5, true)] {
        let (mut q, mut seen) = queue(SfqCodelParams {
            target: Duration::from_millis(5),
            ..SfqCodelParams::default()
        });
        for n in 0..1_000 {
            q.enqueue(ms(n), packet(n, 1, 1_514), &mut seen);
            if n >= waits {
                q.dequeue(ms(n), &mut seen);
            }
        }
        assert_eq!(seen != Recorder::default(), signals, "{waits} ms");
    }
}

#[test]
fn among_bins_as_full_another_loses_than_the_last_time() {
    let (mut q, mut seen) = queue(SfqCodelParams {
        limit: 6,
        ..SfqCodelParams::default()
    });
    for id in 0..3 {
        q.enqueue(ms(0), packet(id, 1, 1_514), &mut seen);
        q.enqueue(ms(0), packet(10 + id, 2, 64), &mut seen);
    }
    // Room is made first: of three and three the one, then of four and two the fuller; of three and
    // three again the other.
    for (id, flow) in [(20, 1), (21, 2), (22, 1), (23, 2)] {
        q.enqueue(ms(0), packet(id, flow, 64), &mut seen);
    }
    let lost: Vec<_> = seen.drops.iter().map(|drop| drop.1.id).collect();
    assert_eq!(lost, [12, 20, 21, 22]);
    assert_eq!(q.counters.overlimit, 4);
    assert_eq!(q.backlog().packets, 6);
}
