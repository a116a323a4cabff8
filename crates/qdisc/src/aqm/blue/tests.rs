use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A queue of one packet that is there at `p`.
fn full(p: f64) -> Blue<TestPacket> {
    let params = BlueParams {
        limit: 1,
        ..BlueParams::default()
    };
    let mut blue = Blue::new(params, Rng::new(1));
    blue.fifo.push(ms(0), TestPacket::mtu(0));
    blue.p = p;
    blue
}

fn assert_close(p: f64, expected: f64) {
    assert!((p - expected).abs() < 1e-12, "{p}, not {expected}");
}

#[test]
fn losses_raise_the_probability_once_in_a_freeze() {
    let mut blue = full(0.0);
    for (at, expected) in [
        (0, 0.002_5),
        (50, 0.002_5),
        (100, 0.002_5),
        (101, 0.005),
        (102, 0.005),
        (202, 0.007_5),
    ] {
        blue.enqueue(ms(at), TestPacket::mtu(1), &mut Recorder::default());
        assert_close(blue.p, expected);
    }
}

#[test]
fn an_idle_link_lowers_it_a_tenth_as_fast() {
    let mut blue = full(0.01);
    let mut seen = Recorder::default();
    assert!(blue.dequeue(ms(0), &mut seen).is_some());
    assert_close(blue.p, 0.01);
    for (at, expected) in [(0, 0.009_75), (50, 0.009_75), (5_000, 0.009_75)] {
        assert!(blue.dequeue(ms(at), &mut seen).is_none());
        assert_close(blue.p, expected);
    }
    // 5030 ms of idling: 50 more.
    blue.p = 0.02;
    blue.rng = Rng::new(3);
    blue.enqueue(ms(5_030), TestPacket::mtu(1), &mut seen);
    assert_close(blue.p, 0.02 - 50.0 * 0.000_25);
    // The 51st was not complete: the next change may come 100 ms after 5000.
    assert_eq!(blue.changed, Some(ms(5_000)));
}

#[test]
fn the_probability_stays_between_0_and_1() {
    let mut blue = full(0.999);
    blue.on_loss(ms(0));
    assert_close(blue.p, 1.0);
    blue.p = 0.000_1;
    blue.on_idle(ms(500));
    assert_close(blue.p, 0.0);
    blue.idle = true;
    blue.p = 0.5;
    blue.end_idling(Instant::from_nanos(u64::MAX));
    assert_close(blue.p, 0.0);
}

#[test]
fn each_arrival_is_signalled_with_the_probability() {
    for ecn in [false, true] {
        let params = BlueParams {
            ecn,
            limit: 100_000,
            ..BlueParams::default()
        };
        let mut blue = Blue::new(params, Rng::new(5));
        blue.p = 0.2;
        let mut seen = Recorder::default();
        for id in 0..20_000 {
            let ecn = [Ecn::NotEct, Ecn::Ect0][usize::from(id % 2 == 0)];
            let pkt = TestPacket {
                ecn,
                ..TestPacket::mtu(id)
            };
            blue.enqueue(ms(0), pkt, &mut seen);
        }
        let (marks, drops) = (seen.marks.len(), seen.drops.len());
        // Four standard deviations of a binomial are 226.
        assert!((marks + drops).abs_diff(4_000) < 230, "{marks} + {drops}");
        assert!(if ecn {
            marks.abs_diff(2_000) < 160
        } else {
            marks == 0
        });
    }
}

#[test]
fn what_can_be_marked_is_and_the_rest_is_dropped() {
    let params = BlueParams {
        ecn: true,
        ..BlueParams::default()
    };
    let mut blue = Blue::new(params, Rng::new(1));
    blue.p = 1.0;
    let mut seen = Recorder::default();
    for (id, ecn) in (0..).zip([Ecn::Ect0, Ecn::NotEct, Ecn::Ect1]) {
        let pkt = TestPacket {
            ecn,
            ..TestPacket::mtu(id)
        };
        blue.enqueue(ms(0), pkt, &mut seen);
    }
    let marked: Vec<_> = seen.marks.iter().map(|(_, pkt, _)| pkt.id).collect();
    let dropped: Vec<_> = seen.drops.iter().map(|(_, pkt, _)| pkt.id).collect();
    assert_eq!((marked, dropped), (vec![0, 2], vec![1]));
    assert_eq!(blue.backlog().packets, 2);
}
