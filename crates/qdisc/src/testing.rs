//! Test packets, and the contract suite for queues.
//!
//! [`check_qdisc`] drives a queue with any traffic and verifies after every call that it is a
//! queue at all: nothing is lost, invented, reordered within a flow or marked against its will.

mod driven;
pub mod fuzz;
mod long;
#[cfg(test)]
mod tutorial;

use std::collections::BTreeMap;
use std::fmt::Debug;

use sojourn_net::{
    Bytes, Dscp, Duration, Ecn, FlowKey, Instant, Packet, Rate, TcpHeader, Transport,
};

use crate::contract::{Backlog, DropReason, MarkReason, Number, Observer, Peek, Qdisc, Statistic};

pub use driven::Driven;

/// A packet that knows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// Its place in the order of arrival.
    pub id: u64,
    /// Which flow sent it; its highest byte is the sending host, the next the receiving one.
    pub flow: u32,
    /// Length on the wire.
    pub size: u64,
    /// The ECN field.
    pub ecn: Ecn,
    /// The class.
    pub dscp: Dscp,
    /// What can be read behind the IP header.
    pub transport: Transport,
}

impl TestPacket {
    /// A full-size packet of flow 0 that cannot be marked.
    pub const fn mtu(id: u64) -> Self {
        Self {
            id,
            flow: 0,
            size: 1_514,
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
            transport: Transport::Other,
        }
    }
}

impl Packet for TestPacket {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn dscp(&self) -> Dscp {
        self.dscp
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// A test's box marks its own packets with CS6.
    fn is_control(&self) -> bool {
        self.dscp.number() == 48
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn flow(&self) -> FlowKey {
        FlowKey {
            source: 1 + u64::from(self.flow >> 24),
            destination: 2 + u64::from(self.flow >> 16 & 0xFF),
            ports: self.flow,
            protocol: 6,
        }
    }
}

/// Everything a queue did to packets it did not simply forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// What was dropped, when and why.
    pub drops: Vec<(Instant, TestPacket, DropReason)>,
    /// What was marked, when and why.
    pub marks: Vec<(Instant, TestPacket, MarkReason)>,
    /// The pacing rate of the sender of each flow; none of the others.
    pub rates: BTreeMap<u32, Rate>,
}

impl Recorder {
    /// How many drops and marks there were.
    fn counts(&self) -> (usize, usize) {
        (self.drops.len(), self.marks.len())
    }
}

impl Observer<TestPacket> for Recorder {
    fn pacing_rate(&self, pkt: &TestPacket) -> Option<Rate> {
        self.rates.get(&pkt.flow).copied()
    }

    fn on_drop(&mut self, now: Instant, pkt: TestPacket, reason: DropReason) {
        self.drops.push((now, pkt, reason));
    }

    fn on_mark(&mut self, now: Instant, pkt: &TestPacket, reason: MarkReason) {
        self.marks.push((now, *pkt, reason));
    }
}

/// One thing that happens to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A packet of this flow, size and ECN field arrives.
    Enqueue(u32, u64, Ecn),
    /// The link asks for a packet.
    Dequeue,
    /// Time passes; due timers fire in time.
    Wait(Duration),
    /// Time passes; due timers fire at its end.
    WaitLate(Duration),
}

impl Op {
    /// The operation that `number` stands for.
    ///
    /// Random numbers give random traffic: arrivals of packets of four pairs of hosts, of any ECN field,
    /// departures, and time that passes. Times lie on a grid of half milliseconds, so that delays equal
    /// a parameter; often none passes at all. `0` is the simplest operation, so that proptest reduces a
    /// `vec(any::<u64>(), …)` to a short case.
    ///
    /// ```
    /// use sojourn_qdisc::testing::{Op, TestPacket, check_qdisc};
    /// use sojourn_qdisc::{LinkFacts, QdiscSpec, Rng};
    ///
    /// let spec = QdiscSpec::parse("codel limit 20").unwrap();
    /// let mut rng = Rng::new(1);
    /// let ops: Vec<_> = (0..400).map(|_| Op::decode(rng.next_u64())).collect();
    /// check_qdisc(|| spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(2)), &ops);
    /// ```
    pub const fn decode(number: u64) -> Self {
        const FLOWS: [u32; 6] = [0, 1, 2, 1 << 24 | 3, 1 << 16 | 4, 2 << 24 | 3 << 16 | 5];
        const SIZES: [u64; 4] = [64, 700, 1_514, 9_000];
        const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        const GRID_US: u64 = 500;
        let (what, of) = (number % 28, number / 28);
        match what {
            0..12 => Self::Enqueue(
                FLOWS[(of % 6) as usize],
                SIZES[(of / 6 % 4) as usize],
                FIELDS[(of / 24 % 4) as usize],
            ),
            12..20 => Self::Dequeue,
            20..26 => Self::Wait(Duration::from_micros(GRID_US * (of % 20))),
            26 => Self::Wait(Duration::from_micros(GRID_US * (of % 4_000))),
            _ => Self::WaitLate(Duration::from_micros(GRID_US * (of % 4_000))),
        }
    }
}

/// Drives the queue that `build` makes through `ops`; returns what it did.
///
/// # Panics
/// If the queue breaks the contract.
pub fn check_qdisc<Q: Qdisc<TestPacket> + Clone>(build: impl Fn() -> Q, ops: &[Op]) -> History {
    check(build, ops, true)
}

/// [`check_qdisc`] for a queue that may reorder the packets of a flow, as `mac80211` does when the hashed queue of the
/// flow changes hands.
///
/// # Panics
/// If the queue breaks the rest of the contract.
pub fn check_reordering_qdisc<Q: Qdisc<TestPacket> + Clone>(
    build: impl Fn() -> Q,
    ops: &[Op],
) -> History {
    check(build, ops, false)
}

fn check<Q: Qdisc<TestPacket> + Clone>(
    build: impl Fn() -> Q,
    ops: &[Op],
    keeps_order: bool,
) -> History {
    let trial = || Trial::new(build(), keeps_order);
    let (mut first, mut second) = (trial(), trial());
    assert_eq!(
        first.step(Op::Dequeue),
        None,
        "an empty queue gave a packet"
    );
    second.step(Op::Dequeue);
    let half = ops.len() / 2;
    for &op in &ops[..half] {
        first.step(op);
    }
    let mut copy = first.clone();
    for &op in &ops[half..] {
        first.step(op);
    }
    for &op in &ops[half..] {
        copy.step(op);
    }
    assert_eq!(copy.history, first.history, "a clone behaved differently");
    for &op in ops {
        second.step(op);
    }
    assert_eq!(
        second.history, first.history,
        "the same seed, another history"
    );
    first.drain();
    first.history
}

/// The class of a flow in [`check_qdisc`]: flow 0 is best effort, the others ask for something.
fn class_of(flow: u32) -> Dscp {
    const NUMBERS: [u8; 6] = [0, 46, 12, 8, 1, 34];
    Dscp::new(NUMBERS[flow as usize % NUMBERS.len()]).unwrap_or_default()
}

/// Every kind of header: flow 0 sends TCP data and ACKs, the others open connections too.
fn transport_of(id: u64, flow: u32, size: u64) -> Transport {
    let low = u32::try_from(id & 0xFFFF_FFFF).unwrap_or_default();
    match flow % 4 {
        3 if id.is_multiple_of(8) => Transport::QuicLong,
        3 => Transport::Udp,
        2 => Transport::Other,
        opens => Transport::Tcp(TcpHeader {
            seq: low,
            ack: low / 2,
            payload: if size > 100 { 1_448 } else { 0 },
            flags: if opens == 1 && id.is_multiple_of(8) {
                TcpHeader::SYN
            } else {
                TcpHeader::ACK
            },
            ..TcpHeader::default()
        }),
    }
}

/// What went in and came out of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered, in order.
    pub delivered: Vec<(Instant, TestPacket)>,
    /// What was signalled.
    pub recorder: Recorder,
}

/// How a message about a broken promise of a queue ends.
const NOT_AFFECTED: &str =
    "packets_affect_timer returns false, as it does by default unless TIMED is true";

/// Arrivals between two checks of the statistics.
const CALLS_PER_LOOK: u64 = 1_024;

/// The longest packet at the lowest rate takes six days, and one of each of many classes may precede it.
const LONGEST_GAP: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Later times would overflow.
const END_OF_TIME: Instant = Instant::from_millis(400 * 365 * 86_400_000);

/// A queue on trial: the queue, and what an honest bookkeeper knows of it.
#[derive(Clone)]
struct Trial<Q> {
    queue: Q,
    /// Whether it may not reorder the packets of a flow.
    keeps_order: bool,
    now: Instant,
    waiting: BTreeMap<u64, TestPacket>,
    waiting_bytes: Bytes,
    last_of_flow: BTreeMap<u32, u64>,
    history: History,
}

impl<Q: Qdisc<TestPacket>> Trial<Q> {
    fn new(queue: Q, keeps_order: bool) -> Self {
        Self {
            queue,
            keeps_order,
            now: Instant::ZERO,
            waiting: BTreeMap::new(),
            waiting_bytes: Bytes(0),
            last_of_flow: BTreeMap::new(),
            history: History::default(),
        }
    }

    fn step(&mut self, op: Op) -> Option<TestPacket> {
        let seen = self.history.recorder.counts();
        let fixed =
            !self.queue.packets_affect_timer() && matches!(op, Op::Enqueue(..) | Op::Dequeue);
        let timer_before = fixed.then(|| self.queue.next_timer());
        let mut delivered = None;
        match op {
            Op::Enqueue(flow, size, ecn) => {
                let id = self.history.offered;
                let pkt = TestPacket {
                    id,
                    flow,
                    size,
                    ecn,
                    dscp: class_of(flow),
                    transport: transport_of(id, flow, size),
                };
                self.history.offered += 1;
                self.waiting.insert(id, pkt);
                self.waiting_bytes += pkt.size();
                self.queue
                    .enqueue(self.now, pkt, &mut self.history.recorder);
            }
            Op::Dequeue => {
                let head = self.queue.peek();
                delivered = self.queue.dequeue(self.now, &mut self.history.recorder);
                let taken = Peek::from(delivered.map(|pkt| pkt.size()));
                assert!(
                    head == Peek::Dequeues || head == taken,
                    "peeked {head:?}, got {taken:?}"
                );
            }
            Op::Wait(time) => self.wait(time),
            Op::WaitLate(time) => {
                self.now += time;
                self.tell();
            }
        }
        self.audit(seen, delivered);
        if let Some(before) = timer_before {
            let after = self.queue.next_timer();
            assert_eq!(after, before, "{op:?} moved the timer, but {NOT_AFFECTED}");
        }
        if matches!(op, Op::Enqueue(..)) && self.history.offered.is_multiple_of(CALLS_PER_LOOK) {
            self.look();
        }
        if op == Op::Dequeue && delivered.is_none() && !self.waiting.is_empty() {
            let due = self.queue.next_timer();
            assert!(due > Some(self.now), "packets wait, none was given");
            let holds = self.queue.packets_affect_timer();
            assert!(holds, "packets are held back, but {NOT_AFFECTED}");
        }
        delivered
    }

    /// Lets time pass, stopping wherever a timer is due.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.queue.next_timer().filter(|&due| due <= until) {
            self.now = due.max(self.now);
            self.tell();
        }
        self.now = until;
    }

    fn tell(&mut self) {
        if self.queue.next_timer().is_some_and(|due| due <= self.now) {
            self.queue.on_timer(self.now);
        }
        if let Some(next) = self.queue.next_timer() {
            assert!(next > self.now, "a timer is due at once again");
        }
    }

    /// Checks the drops and marks that were added since the last call.
    fn audit(&mut self, (drops, marks): (usize, usize), delivered: Option<TestPacket>) {
        let marks = &self.history.recorder.marks[marks..];
        for (at, pkt, _) in marks {
            assert_eq!(*at, self.now, "a mark at another time");
            let known = self.waiting.get_mut(&pkt.id).expect("a mark on nothing");
            assert_ne!(known.ecn, Ecn::NotEct, "a Not-ECT packet was marked");
            known.ecn = Ecn::Ce;
        }
        let drops = &self.history.recorder.drops[drops..];
        for (at, pkt, _) in drops {
            assert_eq!(*at, self.now, "a drop at another time");
            let known = self.waiting.remove(&pkt.id).expect("a drop of nothing");
            assert_eq!(known, *pkt, "a dropped packet was altered");
            self.waiting_bytes -= pkt.size();
        }
        if let Some(pkt) = delivered {
            let known = self.waiting.remove(&pkt.id).expect("an invented packet");
            assert_eq!(known, pkt, "altered, cleared of CE or marked unreported");
            self.waiting_bytes -= pkt.size();
            let last = self.last_of_flow.insert(pkt.flow, pkt.id);
            let in_order = last < Some(pkt.id);
            assert!(in_order || !self.keeps_order, "a flow was reordered");
            self.history.delivered.push((self.now, pkt));
        }
        let waiting = Backlog {
            packets: self.waiting.len(),
            bytes: self.waiting_bytes,
        };
        assert_eq!(self.queue.backlog(), waiting, "backlog is not what waits");
    }

    /// Checks the statistics.
    fn look(&self) {
        let mut all = self.queue.statistics();
        all.extend(self.queue.state(self.now));
        let lists: Vec<_> = all.iter().filter_map(|s| s.part).collect();
        for Statistic { name, value, part } in all {
            let is_list = part.is_none() && lists.iter().any(|&(list, _)| list == name);
            assert!(!is_list, "{name} is a statistic and a list");
            if let Number::Real(value) = value {
                assert!(value.is_finite(), "the statistic {name} is {value}");
            }
        }
    }

    /// Empties the queue and asks it once more.
    ///
    /// Draining a queue that sends at 1 bit/s may exceed the range of time; then some packets remain.
    fn drain(&mut self) {
        let mut longer = Duration::ZERO;
        while !self.waiting.is_empty() {
            if self.step(Op::Dequeue).is_some() {
                longer = Duration::ZERO;
                continue;
            }
            assert!(longer < LONGEST_GAP, "packets wait, none leaves for years");
            let Some(due) = self.queue.next_timer() else {
                break;
            };
            if due > END_OF_TIME {
                return;
            }
            self.now = due.max(self.now + longer);
            longer = longer.times(2).max(Duration::from_nanos(1));
            self.tell();
        }
        assert_eq!(self.step(Op::Dequeue), None);
        assert_eq!(self.queue.backlog(), Backlog::default());
        self.look();
    }
}
