//! One connection over a fast path of constant delay with scripted losses.
//!
//! Without reordering, two ring buffers and four times replace an event queue: 10^8 packets pass in a
//! minute.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_transport::{Arrival, CcKind, Receiver, Segment, Sender, SenderParams, Ticks};

/// Returns whether a data segment is lost, given how many came before it, retransmissions included.
pub(crate) type Loss<'a> = &'a mut dyn FnMut(u64) -> bool;

/// A connection and its path.
pub(crate) struct Path {
    pub now: Instant,
    pub sender: Sender,
    pub receiver: Receiver,
    one_way: Duration,
    rate: Rate,
    free: Instant,
    data: VecDeque<(Instant, Segment)>,
    acks: VecDeque<(Instant, Segment)>,
    out: Vec<Segment>,
    offered: u64,
}

/// More than any test sends.
const ENDLESS: u64 = 1 << 41;

impl Path {
    /// A bulk transfer of `cc` over a round trip of `rtt`; packets are spaced by `rate`.
    pub(crate) fn new(cc: CcKind, rtt: Duration, rate: Rate) -> Self {
        let params = SenderParams {
            cc: cc.into(),
            ..SenderParams::default()
        };
        let mut path = Self {
            now: Instant::ZERO,
            sender: Sender::new(&params, Ticks::default()),
            receiver: Receiver::new(Ticks::default(), false),
            one_way: Duration::from_nanos(rtt.as_nanos() / 2),
            rate,
            free: Instant::ZERO,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            out: Vec::new(),
            offered: 0,
        };
        path.sender.connect(path.now, &mut path.out);
        path.sender.write(path.now, ENDLESS, &mut path.out);
        path.sent_by_sender(&mut |_| false);
        path
    }

    /// Data segments sent so far, retransmissions included.
    pub(crate) const fn offered(&self) -> u64 {
        self.offered
    }

    /// Processes the next event; returns whether it was an acknowledgement.
    pub(crate) fn step(&mut self, loss: Loss<'_>) -> bool {
        let data = self.data.front().map(|&(at, _)| at);
        let ack = self.acks.front().map(|&(at, _)| at);
        let (near, far) = (self.sender.next_timer(), self.receiver.next_timer());
        let next = [data, ack, near, far].into_iter().flatten().min();
        self.now = self
            .now
            .max(next.expect("a connection waits for something"));
        if data == next {
            let (_, seg) = self.data.pop_front().expect("it is the next");
            let more = self.data.front().is_some_and(|&(at, _)| at == self.now);
            let arrival = Arrival { ce: false, more };
            self.receiver
                .on_segment(self.now, &seg, arrival, &mut self.out);
            self.sent_by_receiver();
        } else if ack == next {
            let (_, seg) = self.acks.pop_front().expect("it is the next");
            self.sender.on_segment(self.now, &seg, &mut self.out);
            self.sent_by_sender(loss);
            return true;
        } else if near == next {
            self.sender.on_timer(self.now, &mut self.out);
            self.sent_by_sender(loss);
        } else {
            self.receiver.on_timer(self.now, &mut self.out);
            self.sent_by_receiver();
        }
        false
    }

    fn sent_by_sender(&mut self, loss: Loss<'_>) {
        for seg in self.out.drain(..) {
            if seg.len > 0 {
                self.offered += 1;
                if loss(self.offered - 1) {
                    continue;
                }
            }
            self.free = self.free.max(self.now) + self.rate.serialise(Bytes(seg.wire_size()));
            self.data.push_back((self.free + self.one_way, seg));
        }
    }

    fn sent_by_receiver(&mut self) {
        let at = self.now + self.one_way;
        self.acks.extend(self.out.drain(..).map(|seg| (at, seg)));
    }
}
