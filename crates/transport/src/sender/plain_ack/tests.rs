//! Whether the short path does what the general one does, for connections over a simulated link.

use std::collections::VecDeque;

use sojourn_net::{Duration, Ecn, Instant, Rng};

use super::*;
use crate::cc::{CcKind, SlowStart};
use crate::clock::Ticks;
use crate::receiver::{Arrival, Receiver};
use crate::sender::{AfterIdle, SenderParams};

/// What the link takes per packet, and the propagation delay of each direction.
const SERIALISATION: Duration = Duration::from_micros(200);
const DELAY: Duration = Duration::from_millis(5);
/// Packets in the queue from which the link marks, and from which it drops.
const MARKS: u64 = 15;
const LIMIT: u64 = 50;

/// A connection with a link for its data. Acknowledgements only propagate.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    now: Instant,
    rng: Rng,
    free_at: Instant,
    data: VecDeque<(Instant, Segment, bool)>,
    acks: VecDeque<(Instant, Segment)>,
    /// Acknowledgements by the path they took.
    plain: u32,
    other: u32,
    /// Acknowledgements with SACK blocks, which are read in two ways.
    sacks: u32,
}

impl Connection {
    fn new(params: &SenderParams) -> Self {
        let ticks = Ticks::new(Duration::from_micros(300));
        Self {
            sender: Sender::new(params, ticks),
            receiver: Receiver::answering(params, ticks),
            now: Instant::from_millis(1),
            rng: Rng::new(params.seed),
            free_at: Instant::ZERO,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            plain: 0,
            other: 0,
            sacks: 0,
        }
    }

    /// Puts what the sender sends on the link, which also loses one of 300 packets.
    fn send(&mut self, segments: Vec<Segment>) {
        for segment in segments {
            let begin = self.free_at.max(self.now);
            let queued = begin.since(self.now).as_nanos() / SERIALISATION.as_nanos();
            if queued >= LIMIT || self.rng.below(300) == 0 {
                continue;
            }
            self.free_at = begin + SERIALISATION;
            let ce = queued >= MARKS && segment.flags.ecn() != Ecn::NotEct;
            self.data.push_back((self.free_at + DELAY, segment, ce));
        }
    }

    fn acknowledge(&mut self, segments: Vec<Segment>) {
        let at = self.now + DELAY;
        self.acks.extend(segments.into_iter().map(|ack| (at, ack)));
    }

    /// What happens next, or writes `bytes` at `write_at`, whichever comes first. Returns whether it wrote.
    fn step(&mut self, write_at: Option<Instant>) -> bool {
        let data = self.data.front().map(|&(at, ..)| at);
        let ack = self.acks.front().map(|&(at, _)| at);
        let timers = [self.sender.next_timer(), self.receiver.next_timer()];
        let next = [data, ack, timers[0], timers[1], write_at];
        let at = next.into_iter().flatten().min().expect("it goes on");
        self.now = self.now.max(at);
        let is_due = |time: Option<Instant>| time == Some(at);
        let mut out = Vec::new();
        if is_due(data) {
            let (_, segment, ce) = self.data.pop_front().expect("it is due");
            let arrival = Arrival { ce, more: false };
            self.receiver
                .on_segment(self.now, &segment, arrival, &mut out);
            self.acknowledge(out);
        } else if is_due(ack) {
            let (_, ack) = self.acks.pop_front().expect("it is due");
            self.on_ack(&ack);
        } else if is_due(timers[0]) {
            self.sender.on_timer(self.now, &mut out);
            self.send(out);
        } else if is_due(timers[1]) {
            self.receiver.on_timer(self.now, &mut out);
            self.acknowledge(out);
        } else {
            return true;
        }
        false
    }

    /// Handles an acknowledgement on both paths, if the short one takes it, and compares.
    fn on_ack(&mut self, ack: &Segment) {
        let mut out = Vec::new();
        let sender = &mut self.sender;
        let is_basic = sender.is_basic();
        let run = match (sender.state(), is_basic) {
            (State::Established, true) => sender.plain_run_of::<true>(ack),
            (State::Established, false) => sender.plain_run_of::<false>(ack),
            _ => None,
        };
        if let Some(run) = run {
            let (mut like_any, mut sent) = (sender.clone(), Vec::new());
            like_any.on_ack::<true>(self.now, ack, &mut sent);
            if is_basic {
                sender.on_plain_ack::<true>(self.now, ack, &run, &mut out);
            } else {
                sender.on_plain_ack::<false>(self.now, ack, &run, &mut out);
            }
            assert_eq!(out, sent);
            assert_eq!(format!("{sender:?}"), format!("{like_any:?}"));
            self.plain += 1;
        } else {
            if sender.state() == State::Established && !ack.sack_blocks().is_empty() {
                sender.check_sacks(self.now, ack);
                self.sacks += 1;
            }
            sender.on_segment(self.now, ack, &mut out);
            self.other += 1;
        }
        self.send(out);
    }
}

/// Transfers `bytes` five times, with pauses that end a round trip or many after what was written before. Returns
/// how many acknowledgements took the short path, and how many did not.
fn compare(params: &SenderParams, bytes: u64) -> (u32, u32) {
    let mut c = Connection::new(params);
    let mut out = Vec::new();
    c.sender.connect(c.now, &mut out);
    c.send(out);
    let pauses = [0, 20, 700, 100, 3_000].map(Duration::from_millis);
    for pause in pauses {
        let write_at = c.now + pause;
        while !c.step(Some(write_at)) {}
        let mut out = Vec::new();
        c.sender.write(c.now, bytes, &mut out);
        c.send(out);
        while c.sender.unsent_bytes() > 0 && c.sender.state() != State::Aborted {
            c.step(None);
        }
    }
    let mut out = Vec::new();
    c.sender.close(c.now, &mut out);
    c.send(out);
    while c.sender.state() != State::Done {
        c.step(None);
    }
    assert!(
        bytes < 100_000 || c.sacks > 20,
        "{} with SACK blocks",
        c.sacks
    );
    (c.plain, c.other)
}

#[test]
fn it_does_what_is_done_for_any_acknowledgement() {
    let (plain, other) = compare(&SenderParams::default(), 1_000_000);
    assert!(plain > 1_000 && other > 10, "{plain} {other}");
}

#[test]
fn so_it_does_for_every_control_policy_and_kind_of_ecn() {
    for cc in CcKind::ALL {
        for after_idle in AfterIdle::ALL {
            for (kind, pacing) in [
                ("off", false),
                ("off", true),
                ("classic", true),
                ("accurate", false),
            ] {
                let params = SenderParams {
                    cc: cc.into(),
                    after_idle,
                    pacing,
                    ecn: kind == "classic",
                    accurate_ecn: kind == "accurate",
                    seed: u64::from(pacing),
                    ..SenderParams::default()
                };
                let (plain, other) = compare(&params, 60_000);
                let case = format!("{cc}, {after_idle}, ecn {kind}, pacing {pacing}");
                assert!(plain > 20 && other > 0, "{case}: {plain} {other}");
            }
        }
    }
}

#[test]
fn so_it_does_with_every_slow_start_exit_and_segments_that_are_not_full() {
    for slow_start in SlowStart::ALL {
        let mut short = 0;
        for cc in CcKind::ALL {
            let params = SenderParams {
                cc: cc.into(),
                slow_start: Some(slow_start),
                mss: 500,
                ..SenderParams::default()
            };
            let (plain, other) = compare(&params, 20_123);
            assert!(plain + other > 20, "{cc}, {slow_start}: {plain} {other}");
            short += plain;
        }
        assert!(short > 100, "{slow_start}: {short}");
    }
}
