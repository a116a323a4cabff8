//! Test: the limit under one long Reno transfer follows the published sequence 100, 200, 400, 800, 610.

use std::collections::VecDeque;

use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Rate;

const RTT: Duration = Duration::from_millis(50);
/// Packets on the path, whose rate is 100 Mbit/s, and in the queue at first: the start ends here
/// and not with a burst of losses, which is not the subject.
const PATH: f64 = 413.0 + 99.0;

/// A window of packets: one more for each that the link sends until the path is full, then one more
/// each round trip; halved once for all losses of a round trip.
struct Reno {
    window: f64,
    in_flight: u64,
    next: u64,
    /// Losses of packets before this one are answered already.
    recovery: u64,
}

impl Reno {
    /// `acked` has come, and those in `lost` never will: nothing is reordered.
    fn on_ack(&mut self, acked: u64, lost: std::ops::Range<u64>) {
        self.in_flight -= 1 + (lost.end - lost.start);
        if !lost.is_empty() && lost.end > self.recovery {
            self.window = (self.window / 2.0).max(2.0);
            self.recovery = self.next;
        } else if acked >= self.recovery {
            self.window += 1.0 / self.window;
        }
    }
}

/// When packets were lost after a second without loss, in seconds, and to which limit; last, where
/// the limit is in the end.
fn losses(seconds: u64, profile: Profile) -> (Vec<(f64, u32)>, u32) {
    let params = CocoaParams {
        quantum: Some(Bytes(3_028)),
        initial_quantum: Some(Bytes(3_028)),
        profile,
        ..CocoaParams::default()
    };
    let mut q = Cocoa::new(&params, Bytes(1_514), Rng::new(1));
    let mut seen = Recorder::default();
    let transmission = Rate::mbit(100).serialise(Bytes(1_514));
    let mut reno = Reno {
        window: 1.0,
        in_flight: 0,
        next: 0,
        recovery: 0,
    };
    let mut acks: VecDeque<(Instant, u64)> = VecDeque::new();
    let (mut now, mut expected) = (Instant::ZERO, 0);
    let mut link_free = None;
    let (mut history, mut last_loss, mut limit) = (Vec::new(), None, 100);
    let flow = q.scheduler.classify(&TestPacket::mtu(0));
    while now < Instant::from_millis(1_000 * seconds) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a window of some hundred packets"
        )]
        while reno.in_flight < reno.window as u64 {
            q.enqueue(now, TestPacket::mtu(reno.next), &mut seen);
            reno.next += 1;
            reno.in_flight += 1;
        }
        if !seen.drops.is_empty() {
            if last_loss.is_none_or(|at| now.since(at) > Duration::from_secs(1)) {
                history.push((now.as_secs_f64(), limit));
            }
            last_loss = Some(now);
            seen.drops.clear();
        }
        limit = q.controls[flow.index()].as_ref().map_or(0, |c| c.limit);
        if link_free.is_none()
            && let Some(pkt) = q.dequeue(now, &mut seen)
        {
            link_free = Some(now + transmission);
            acks.push_back((now + transmission + RTT, pkt.id));
        }
        let ack = acks.front().map_or(Instant::MAX, |a| a.0);
        now = ack.min(link_free.unwrap_or(Instant::MAX));
        assert!(now < Instant::MAX, "the sender has stopped");
        if link_free == Some(now) {
            link_free = None;
            if reno.window < PATH && reno.recovery == 0 {
                reno.window += 1.0;
            }
        }
        if ack == now
            && let Some((_, id)) = acks.pop_front()
        {
            reno.on_ack(id, expected..id);
            expected = id + 1;
        }
    }
    (history, limit)
}

#[test]
fn the_limit_of_a_reno_flow_goes_the_way_of_the_paper() {
    for profile in [Profile::Paper, Profile::Linux] {
        let (losses, last) = losses(240, profile);
        println!("{profile}: {losses:?} {last}");
        let limits: Vec<_> = losses.iter().map(|loss| loss.1).collect();
        assert_eq!(limits, [100, 200, 400, 800, 800]);
        assert!(last.abs_diff(610) < 10, "{last}");
        for (loss, paper) in losses.iter().skip(1).zip([20.5, 55.0, 131.0, 198.0]) {
            let apart = (loss.0 / paper - 1.0).abs();
            assert!(apart < 0.04, "{profile}: {} s, not {paper}", loss.0);
        }
    }
}
