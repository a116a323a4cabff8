use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

const MTU: Bytes = Bytes(1_514);

fn queue(params: CobaltParams) -> (Cobalt<TestPacket>, Recorder) {
    (
        Cobalt::new(&params, None, MTU, Rng::new(1)),
        Recorder::default(),
    )
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// When packets are dropped from a queue of 3000 that is drained by one each millisecond.
fn drops(params: CobaltParams, last: u64) -> Vec<u64> {
    let (mut q, mut seen) = queue(CobaltParams {
        limit: 3_000,
        ..params
    });
    for id in 0..3_000 {
        q.enqueue(ms(0), TestPacket::mtu(id), &mut seen);
    }
    for at in 0..=last {
        q.dequeue(ms(at), &mut seen);
    }
    seen.drops
        .iter()
        .map(|d| d.0.as_nanos().div_ceil(1_000_000))
        .collect()
}

#[test]
fn signals_follow_the_inverse_square_root() {
    // Above target at 6 ms and signalled with the next packet, since the first gap is none; the
    // others are due 100/sqrt(2), 100/sqrt(3), 100/sqrt(4) ms later.
    let signals = drops(CobaltParams::default(), 400);
    assert_eq!(signals[..4], [7, 77, 135, 185]);
}

#[test]
fn target_itself_is_no_standing_queue() {
    let (mut q, mut seen) = queue(CobaltParams::default());
    for n in 0..1_000 {
        q.enqueue(ms(n), TestPacket::mtu(n), &mut seen);
        if n >= 5 {
            q.dequeue(ms(n), &mut seen);
        }
    }
    assert_eq!(q.control.count, 0);
}

#[test]
fn four_transmissions_are_no_standing_queue() {
    // 12.112 ms each at 1 Mbit/s.
    let rate = Some(Rate::mbit(1));
    let q: Cobalt<TestPacket> = Cobalt::new(&CobaltParams::default(), rate, MTU, Rng::new(1));
    assert_eq!(q.law.mtu_time, Duration::from_micros(12_112));
}

#[test]
fn what_can_be_marked_is_marked() {
    for (ecn, marks) in [(true, 6), (false, 0)] {
        let (mut q, mut seen) = queue(CobaltParams {
            ecn,
            ..CobaltParams::default()
        });
        for id in 0..900 {
            let pkt = TestPacket {
                ecn: Ecn::Ect0,
                ..TestPacket::mtu(id)
            };
            q.enqueue(ms(0), pkt, &mut seen);
        }
        for at in 0..=300 {
            q.dequeue(ms(at), &mut seen);
        }
        assert_eq!((seen.marks.len(), seen.drops.len()), (marks, 6 - marks));
    }
}

#[test]
fn count_decays_while_the_delay_is_low() {
    let (mut q, mut seen) = queue(CobaltParams::default());
    q.control.count = 3;
    q.control.drop_next = ms(1_000);
    // 100/sqrt(2) and 100/sqrt(1) ms after that two more steps are due.
    for (at, count) in [(999, 3), (1_000, 2)] {
        q.enqueue(ms(at), TestPacket::mtu(0), &mut seen);
        q.enqueue(ms(at), TestPacket::mtu(1), &mut seen);
        q.dequeue(ms(at), &mut seen);
        assert_eq!(q.control.count, count);
        q.fifo.pop_newest();
        assert_eq!(q.backlog(), Backlog::default());
    }
    q.enqueue(ms(1_180), TestPacket::mtu(2), &mut seen);
    q.enqueue(ms(1_180), TestPacket::mtu(3), &mut seen);
    q.dequeue(ms(1_180), &mut seen);
    assert_eq!(q.control.count, 0);
    // Quiet: the next signal is an interval away.
    assert_eq!(q.control.drop_next, ms(1_280));
}

#[test]
fn the_last_packet_is_marked_but_never_dropped() {
    let (mut q, mut seen) = queue(CobaltParams::default());
    q.control.p_drop = u32::MAX;
    for id in 0..3 {
        q.enqueue(ms(0), TestPacket::mtu(id), &mut seen);
    }
    assert_eq!(q.dequeue(ms(0), &mut seen).map(|p| p.id), Some(2));
    assert_eq!(seen.drops.len(), 2);
}

#[test]
fn a_full_buffer_raises_the_probability_once_in_a_target() {
    let (mut q, mut seen) = queue(CobaltParams {
        limit: 1,
        ..CobaltParams::default()
    });
    let step = 1 << 24;
    q.enqueue(ms(10), TestPacket::mtu(0), &mut seen);
    for (at, p) in [(10, step), (12, step), (15, step), (16, 2 * step)] {
        q.enqueue(ms(at), TestPacket::mtu(1), &mut seen);
        assert_eq!(q.control.p_drop, p, "at {at} ms");
    }
    assert!(q.control.dropping && q.control.count == 1);
}

#[test]
fn an_empty_buffer_lowers_it_as_rarely_and_by_less() {
    let (mut q, mut seen) = queue(CobaltParams::default());
    q.control.p_drop = 1 << 24;
    q.control.blue_timer = ms(10);
    let step = 1 << 20;
    for (at, steps) in [(12, 0), (15, 0), (16, 1), (21, 1), (22, 2)] {
        q.enqueue(ms(at), TestPacket::mtu(1), &mut seen);
        q.dequeue(ms(at), &mut seen);
        assert_eq!(q.control.p_drop, (1 << 24) - steps * step, "at {at} ms");
    }
}

#[test]
fn a_delay_of_as_many_transmissions_as_flows_ask_for_is_no_standing_queue() {
    let rate = Some(Rate::mbit(1));
    let q: Cobalt<TestPacket> = Cobalt::new(&CobaltParams::default(), rate, MTU, Rng::new(1));
    // 12.112 ms each: four alone, two for each of eight flows.
    for (flows, most) in [(0, 48_448), (1, 48_448), (8, 193_792)] {
        for (more, stands) in [(0, false), (1, true)] {
            let mut control = Control::default();
            let sojourn = Duration::from_micros(most + more);
            control.next_signal(&q.law, sojourn, flows, ms(1_000));
            assert_eq!(control.dropping, stands, "{flows} flows, {sojourn}");
        }
    }
}

#[test]
fn what_no_mark_could_carry_is_dropped_whatever_blue_says() {
    let (q, _) = queue(CobaltParams::default());
    for p_drop in [0, u32::MAX] {
        let mut control = Control {
            p_drop,
            ..Control::default()
        };
        assert!(control.settle(&q.law, true, ms(1), &mut Rng::new(1)));
    }
    assert!(!Control::default().settle(&q.law, false, ms(1), &mut Rng::new(1)));
}

#[test]
fn an_empty_buffer_ends_a_state_and_takes_a_step_back() {
    let (q, _) = queue(CobaltParams::default());
    let mut control = Control {
        count: 2,
        drop_next: ms(10),
        dropping: true,
        ..Control::default()
    };
    control.on_empty(&q.law, ms(9));
    assert_eq!((control.count, control.dropping), (2, false));
    control.on_empty(&q.law, ms(10));
    assert_eq!(control.count, 1);
}
