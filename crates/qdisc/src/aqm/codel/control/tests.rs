use sojourn_net::Ecn;

use super::*;
use crate::aqm::codel::*;
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn linux() -> CodelParams {
    CodelParams {
        profile: Profile::Linux,
        ..CodelParams::default()
    }
}

/// Drops of a queue of 900 packets that arrived at once, drained one packet a millisecond.
fn drops_in(last_ms: u64, params: &CodelParams) -> Vec<u64> {
    let mut codel = Codel::new(params, MTU);
    let mut seen = Recorder::default();
    for id in 0..900 {
        codel.enqueue(at_ms(0), TestPacket::mtu(id), &mut seen);
    }
    for ms in 0..=last_ms {
        codel.dequeue(at_ms(ms), &mut seen);
    }
    let micros = seen.drops.iter().map(|d| d.0.as_micros() / 1_000);
    micros.collect()
}

#[test]
fn the_first_signal_comes_one_interval_after_the_delay_reaches_target() {
    for params in [CodelParams::default(), linux()] {
        assert_eq!(drops_in(200, &params)[0], 105);
    }
}

#[test]
fn linux_waits_beyond_the_interval_and_sees_no_less_than_a_tick() {
    // In ticks of 1024 ns: target 10, interval 100, a packet leaves every 10. The delay reaches
    // target at tick 10; at tick 110 it has been there for an interval.
    let ticks = |n: u64| Duration::from_nanos(1_024 * n);
    for (profile, late, first) in [
        (Profile::Rfc, 0, 110),
        (Profile::Linux, 0, 120),
        // 1023 ns more are nothing to Linux: 110 ticks still.
        (Profile::Linux, 1_023, 120),
        (Profile::Linux, 1_024, 110),
    ] {
        let params = CodelParams {
            target: ticks(10),
            interval: ticks(100),
            profile,
            ..CodelParams::default()
        };
        let mut codel = Codel::new(&params, MTU);
        let mut seen = Recorder::default();
        for id in 0..50 {
            codel.enqueue(at_ms(0), TestPacket::mtu(id), &mut seen);
        }
        let mut dropped_at = None;
        for n in 1..30 {
            let late = if n > 10 { late } else { 0 };
            let now = Instant::ZERO + ticks(10 * n) + Duration::from_nanos(late);
            codel.dequeue(now, &mut seen);
            if !seen.drops.is_empty() {
                dropped_at.get_or_insert(10 * n);
            }
        }
        assert_eq!(dropped_at, Some(first), "{profile}, {late} ns late");
    }
}

#[test]
fn signals_follow_the_inverse_square_root() {
    // 105 + 100/sqrt(1), then + 100/sqrt(2), + 100/sqrt(3), rounded up to a departure.
    let rfc = drops_in(
        400,
        &CodelParams {
            profile: Profile::Rfc,
            ..CodelParams::default()
        },
    );
    assert_eq!(rfc[..4], [105, 205, 276, 334]);
    // 105 + 100, + 50.0, + 56.3; in ticks the first gap is 99.998 ms.
    let linux = drops_in(400, &linux());
    assert_eq!(linux[..4], [105, 205, 255, 312]);
}

#[test]
fn one_waiting_packet_is_never_signalled() {
    for params in [CodelParams::default(), linux()] {
        let mut codel = Codel::new(&params, MTU);
        let mut seen = Recorder::default();
        for ms in (0..10_000).step_by(500) {
            codel.enqueue(at_ms(ms), TestPacket::mtu(ms), &mut seen);
            assert!(codel.dequeue(at_ms(ms + 400), &mut seen).is_some());
        }
        assert!(seen.drops.is_empty());
    }
}

#[test]
fn the_newton_step_is_the_kernels() {
    // x (3 - n x^2) / 2 from 1: 0.5 at 2; then from 0.5 at 3: 0.5625.
    let half = newton_step(u16::MAX, 2);
    assert_eq!(half, 0x8001);
    assert!(newton_step(half, 3).abs_diff(36_864) <= 2);
    // From 10 on it is within 0.4 % of the truth.
    let mut x = u16::MAX;
    for count in 2..=1_000_u32 {
        x = newton_step(x, count);
        let truth = 65_536.0 / f64::from(count).sqrt();
        let error = (f64::from(x) - truth).abs() / truth;
        assert!(count < 10 || error < 0.004, "{error} at {count}");
    }
}

#[test]
fn a_packet_older_than_the_ce_threshold_is_marked_without_ecn() {
    let params = CodelParams {
        ce_threshold: Some(Duration::from_millis(2)),
        ..CodelParams::default()
    };
    let mut codel = Codel::new(&params, MTU);
    let mut seen = Recorder::default();
    for id in 0..3 {
        let pkt = TestPacket {
            ecn: Ecn::Ect0,
            ..TestPacket::mtu(id)
        };
        codel.enqueue(at_ms(0), pkt, &mut seen);
    }
    for ms in 1..=3 {
        codel.dequeue(at_ms(ms), &mut seen);
    }
    let marked: Vec<_> = seen.marks.iter().map(|m| (m.1.id, m.2)).collect();
    assert_eq!(marked, [(2, MarkReason::CeThreshold)]);
}

#[test]
fn overload_before_the_first_signal_does_not_look_like_recent_congestion() {
    // 64 packets were lost at once, then the queue stands: the first gap is a whole interval.
    let params = linux();
    let law = Law::new(&params);
    let mut control = Control::default();
    control.count_overload(64);
    control.signals.start(&law, at_ms(200));
    assert_eq!(control.signals.count, 1);
    assert!(control.signals.gap(&law) > Duration::from_millis(99));
}

#[test]
fn the_rate_is_taken_up_again_within_16_intervals() {
    let params = CodelParams::default();
    let law = Law::new(&params);
    for (at, count) in [(1_599, 4), (1_600, 1)] {
        let mut signals = Signals {
            count: 5,
            lastcount: 1,
            ..Signals::default()
        };
        signals.start(&law, at_ms(at));
        assert_eq!(
            signals.count, count,
            "{at} ms after the last signal was due"
        );
    }
}
