//! A sender and a receiver across a network that loses, delays, reorders, duplicates and marks at
//! random.
//!
//! The test records what reached the receiver, as a set of numbers, and checks every
//! acknowledgement against it.

#![allow(dead_code, reason = "no test uses all of it")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use sojourn_net::{Duration, Ecn, Instant, Rate, Rng};
use sojourn_transport::{
    Arrival, Device, Flags, Receiver, Segment, Sender, SenderParams, State, Ticks,
};

/// The behaviour of a network; probabilities are in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    pub data_loss: u64,
    pub ack_loss: u64,
    pub duplication: u64,
    pub marking: u64,
    pub delay: Duration,
    /// Each packet is delayed by up to this, independently, so that packets are reordered.
    pub jitter: Duration,
    /// The peer's window is closed in acknowledgements of this time, and it dies at this one.
    pub window_closed: Option<(Duration, Duration)>,
    pub peer_dies: Option<Duration>,
    /// A bottleneck for data, and the packets that may wait for it.
    pub bottleneck: Option<(Rate, u64)>,
}

/// A transfer over it.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub seed: u64,
    pub network: Network,
    pub params: SenderParams,
    /// When, and how many bytes.
    pub writes: Vec<(Duration, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ToServer(usize),
    ToClient(usize),
    ClientTimer,
    ServerTimer,
    Write(usize),
}

/// How a transfer ended, and what happened on the way.
#[derive(Debug)]
pub(crate) struct End {
    pub state: State,
    pub at: Instant,
    pub counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub resent: u64,
    pub timeouts: u64,
    pub dsacks: u64,
    pub sack_blocks: u64,
    pub echoes: u64,
    pub overtaken: u64,
    /// Acknowledgements without window, and transfers of which the application read something only after the sender
    /// was done.
    pub closed_windows: u64,
    pub read_after_fin: u64,
    /// Marked segments that reached the receiver, and those reported to the sender.
    pub marked: u64,
    pub marks_reported: u64,
}

pub(crate) struct World {
    transfer: Transfer,
    rng: Rng,
    now: Instant,
    agenda: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    /// When the timer of each end is due, as last scheduled.
    client_timer: Option<Instant>,
    server_timer: Option<Instant>,
    packets: Vec<(Segment, bool)>,
    /// The last segment was announced to be followed by another.
    in_burst: bool,
    client: Sender,
    server: Receiver,
    /// Data that reached the receiver's device, which has not handed it over.
    offered: VecDeque<(Segment, bool)>,
    /// Length of each segment ever sent.
    lengths: Vec<u16>,
    /// Segments that the receiver took.
    arrivals: u64,
    /// Which of them they were, and how many at the front without a gap.
    arrived: BTreeMap<u32, u32>,
    in_order: u32,
    in_order_bytes: u64,
    highest: u32,
    link_free: Instant,
    /// The highest acknowledgement the sender received, and its last activity.
    acked: u32,
    last_activity: Instant,
    /// How long it may then be inactive: the longest time-out since its last progress, since a shorter
    /// one does not restart the timer.
    may_wait: Duration,
    /// When a paced sender may send again, at the latest.
    departure: Instant,
    written: u64,
    counters: Counters,
}

/// Four days: longer than any back-off that is not a stall.
const PATIENCE: Duration = Duration::from_secs(345_600);

impl World {
    pub(crate) fn new(transfer: Transfer) -> Self {
        let mut rng = Rng::new(transfer.seed);
        let mut ticks = || Ticks::new(Duration::from_nanos(rng.below(4_096_000_000)));
        let (near, far) = (ticks(), ticks());
        Self {
            client: Sender::new(&transfer.params, near),
            server: Receiver::answering(&transfer.params, far),
            transfer,
            rng,
            now: Instant::ZERO,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            client_timer: None,
            server_timer: None,
            packets: Vec::new(),
            in_burst: false,
            offered: VecDeque::new(),
            lengths: Vec::new(),
            arrivals: 0,
            arrived: BTreeMap::new(),
            in_order: 0,
            in_order_bytes: 0,
            highest: 0,
            link_free: Instant::ZERO,
            acked: 0,
            last_activity: Instant::ZERO,
            may_wait: Duration::ZERO,
            departure: Instant::ZERO,
            written: 0,
            counters: Counters::default(),
        }
    }

    pub(crate) fn run(mut self) -> End {
        let mut out = Vec::new();
        self.client.connect(self.now, &mut out);
        self.client_sends(&mut out);
        for n in 0..self.transfer.writes.len() {
            self.schedule(Instant::ZERO + self.transfer.writes[n].0, Event::Write(n));
        }
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            assert!(at < Instant::ZERO + PATIENCE, "no end in sight");
            self.now = at;
            self.handle(event, &mut out);
            let is_unread = self.client.state() == State::Done && !self.server.finished();
            self.counters.read_after_fin |= u64::from(is_unread);
            if self.is_over() {
                break;
            }
        }
        let written: u64 = self.transfer.writes.iter().map(|w| w.1).sum();
        if self.client.state() == State::Done {
            assert_eq!(self.server.delivered_bytes(), written);
            assert!(self.server.finished());
            assert_eq!(self.client.in_flight(), 0);
        } else {
            assert!(self.server.delivered_bytes() <= written);
        }
        let sent = self.client.counters();
        self.counters.resent = sent.resent;
        self.counters.marks_reported = sent.marked;
        self.counters.timeouts = u64::from(sent.timeouts.max(sent.syn_resent));
        End {
            state: self.client.state(),
            at: self.now,
            counters: self.counters,
        }
    }

    /// Whether nothing is left to do. The peer acknowledges the FIN when it arrives; its application may read later,
    /// when the burst is over or when it reads again.
    fn is_over(&self) -> bool {
        match self.client.state() {
            State::Done => self.server.finished(),
            state => state == State::Aborted,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, self.scheduled, event)));
    }

    fn handle(&mut self, event: Event, out: &mut Vec<Segment>) {
        let now = self.now;
        match event {
            Event::ToServer(n) => {
                let (seg, ce) = self.packets[n];
                let dead = self.transfer.network.peer_dies;
                if dead.is_some_and(|at| now >= Instant::ZERO + at) {
                    return;
                }
                // If a burst is announced to continue and does not, its end is never read.
                let next = self.agenda.peek();
                let follows = next.is_some_and(|n| matches!(n.0.2, Event::ToServer(_)));
                let more = follows && self.rng.below(4) == 0;
                self.in_burst = more;
                self.server.on_segment(now, &seg, Arrival { ce, more }, out);
                let is_data = seg.len > 0 || seg.flags.has(Flags::FIN);
                // A peer that gave up the handshake accepts nothing.
                if is_data && self.server.is_established() {
                    self.offered.push_back((seg, ce));
                }
                self.server_sends(out);
            }
            // Superseded.
            Event::ServerTimer if self.server_timer != Some(now) => {}
            Event::ClientTimer if self.client_timer != Some(now) => {}
            Event::ServerTimer => {
                self.server_timer = None;
                self.server.on_timer(now, out);
                let next = self.server.next_timer();
                assert!(next.is_none_or(|at| at > now), "it stays due");
                self.server_sends(out);
            }
            Event::ToClient(n) => {
                let (mut seg, _) = self.packets[n];
                if let Some((from, to)) = self.transfer.network.window_closed
                    && (Instant::ZERO + from..Instant::ZERO + to).contains(&now)
                    && !seg.flags.has(Flags::SYN)
                {
                    seg.window = 0;
                }
                self.check_silence();
                if seg.ack > self.acked {
                    self.acked = seg.ack;
                    self.may_wait = Duration::ZERO;
                }
                self.client.on_segment(now, &seg, out);
                self.client_sends(out);
            }
            Event::ClientTimer => {
                self.client_timer = None;
                self.check_silence();
                self.client.on_timer(now, out);
                let next = self.client.next_timer();
                assert!(next.is_none_or(|at| at > now), "it stays due");
                self.client_sends(out);
            }
            Event::Write(n) => {
                self.written += self.transfer.writes[n].1;
                self.last_activity = now;
                self.client.write(now, self.transfer.writes[n].1, out);
                if n + 1 == self.transfer.writes.len() {
                    self.client.close(now, out);
                }
                self.client_sends(out);
            }
        }
    }

    /// Records what the receiver's device has handed over.
    fn note_arrivals(&mut self) {
        while self.arrivals < self.server.received_segments() {
            self.arrivals += 1;
            let (seg, ce) = self.offered.pop_front().expect("it was offered");
            self.note_arrival(&seg, ce);
        }
        let waits = self.transfer.params.receiver.device != Device::default();
        assert!(waits || self.offered.is_empty());
    }

    fn note_arrival(&mut self, seg: &Segment, ce: bool) {
        self.counters.marked += u64::from(ce);
        self.counters.overtaken += u64::from(seg.seq < self.highest);
        self.highest = self.highest.max(seg.seq);
        *self.arrived.entry(seg.seq).or_default() += 1;
        while self.arrived.contains_key(&self.in_order) {
            self.in_order_bytes += u64::from(self.lengths[self.in_order as usize]);
            self.in_order += 1;
        }
    }

    /// Whether something written has not been acknowledged.
    fn pending(&self) -> bool {
        let sent: u64 = self.lengths.iter().map(|&len| u64::from(len)).sum();
        (self.acked as usize) < self.lengths.len() || sent < self.written
    }

    /// A sender with something to do is inactive for at most a time-out or the delay of a probe, as
    /// rounded by the timer wheel.
    fn check_silence(&self) {
        let silent = self.now.saturating_since(self.last_activity);
        let stalled = self.client.state() == State::Established
            && silent > self.may_wait
            && self.now > self.departure;
        assert!(
            !stalled || !self.pending(),
            "silent for {silent}, not {}",
            self.may_wait
        );
    }

    /// The pacer of the client counts `out`.
    fn pace(&mut self, out: &[Segment]) {
        let params = &self.transfer.params;
        let is_paced = params.pacing || params.cc.kind().is_model_based();
        if let Some(rate) = self.client.pacing_rate().filter(|_| is_paced) {
            let bytes: u64 = out.iter().map(Segment::wire_size).sum();
            self.departure = self.departure.max(self.now);
            self.departure += Duration::from_nanos(1_000_000_000 * bytes / rate);
        }
    }

    fn client_sends(&mut self, out: &mut Vec<Segment>) {
        self.last_activity = self.now;
        let srtt = self.client.srtt().unwrap_or_default();
        // A probe is bounded by the time-out only while that is not overdue, as in Linux.
        let probe = 2 * srtt.as_micros() / 1_000 + 202;
        let longest = self.client.rto_ms().max(probe);
        // The timer wheel rounds up by at most 4,096 of 32,256 ticks.
        let may_wait = Duration::from_millis(longest + longest / 7 + 10);
        self.may_wait = self.may_wait.max(may_wait);
        self.pace(out);
        if self.client.state() == State::Established {
            let waits = self.client.next_timer().is_some();
            let news = !out.is_empty();
            assert!(waits || news || !self.pending(), "nothing will happen");
        }
        for seg in out.drain(..) {
            if seg.len > 0 || seg.flags.has(Flags::FIN) {
                let n = seg.seq as usize;
                assert!(n <= self.lengths.len(), "segment {n} skips others");
                if n == self.lengths.len() {
                    self.lengths.push(seg.len);
                }
                assert_eq!(self.lengths[n], seg.len, "segment {n} changed its length");
                assert!(seg.len <= self.transfer.params.mss);
            }
            let Some(leaves) = self.transmission(&seg) else {
                continue;
            };
            let ce = seg.flags.ecn() != Ecn::NotEct
                && self.rng.below(1_000) < self.transfer.network.marking;
            let loss = self.transfer.network.data_loss;
            self.pass(leaves, (seg, ce), loss, Event::ToServer);
        }
        let due = self.client.next_timer().map(|at| at.max(self.now));
        let timer = std::mem::replace(&mut self.client_timer, due);
        if let Some(at) = due.filter(|_| due != timer) {
            self.schedule(at, Event::ClientTimer);
        }
    }

    /// When the bottleneck has sent a segment; `None`: no room.
    fn transmission(&mut self, seg: &Segment) -> Option<Instant> {
        let Some((rate, room)) = self.transfer.network.bottleneck else {
            return Some(self.now);
        };
        let time = rate.serialise(sojourn_net::Bytes(seg.wire_size()));
        let full = rate.serialise(sojourn_net::Bytes(1_514)).times(room);
        if self.link_free.saturating_since(self.now) > full {
            return None;
        }
        self.link_free = self.link_free.max(self.now) + time;
        Some(self.link_free)
    }

    fn server_sends(&mut self, out: &mut Vec<Segment>) {
        self.note_arrivals();
        let delivered = self.server.delivered_bytes();
        let receiver = &self.transfer.params.receiver;
        // An application that always reads does so when a burst is over.
        if receiver.is_usual() || receiver.reader.is_immediate() && !self.in_burst {
            assert_eq!(delivered, self.in_order_bytes);
        } else {
            assert!(delivered <= self.in_order_bytes);
        }
        let mut left = out.len();
        for seg in out.drain(..) {
            left -= 1;
            if !seg.flags.has(Flags::SYN) {
                // RFC 8257: when marking changes, what came before is acknowledged first.
                let merges = self.transfer.params.receiver.device != Device::default();
                let of_before = merges || left > 0 && self.transfer.params.cc.kind().needs_ecn();
                let all = if of_before { seg.ack } else { self.in_order };
                assert!(seg.ack == all && all <= self.in_order, "{seg:?}");
                self.check_acknowledgement(&seg);
            }
            let loss = self.transfer.network.ack_loss;
            self.pass(self.now, (seg, false), loss, Event::ToClient);
        }
        let due = self.server.next_timer().map(|at| at.max(self.now));
        let timer = std::mem::replace(&mut self.server_timer, due);
        if let Some(at) = due.filter(|_| due != timer) {
            self.schedule(at, Event::ServerTimer);
        }
    }

    /// An acknowledgement claims what arrived, and nothing else.
    fn check_acknowledgement(&mut self, seg: &Segment) {
        self.counters.closed_windows += u64::from(seg.window == 0);
        self.counters.echoes += u64::from(seg.flags.has(Flags::ECE));
        let dsack = usize::from(seg.flags.has(Flags::DSACK));
        self.counters.dsacks += u64::from(seg.flags.has(Flags::DSACK));
        for block in &seg.sack_blocks()[..dsack] {
            for seq in block.start..block.end {
                assert!(self.arrived[&seq] > 1, "{seq} is no duplicate");
            }
        }
        for block in &seg.sack_blocks()[dsack..] {
            self.counters.sack_blocks += 1;
            assert!(block.start < block.end && block.start > seg.ack, "{seg:?}");
            for seq in block.start..block.end {
                assert!(self.arrived.contains_key(&seq), "{seq} has not arrived");
            }
        }
    }

    fn pass(
        &mut self,
        leaves: Instant,
        packet: (Segment, bool),
        loss: u64,
        event: fn(usize) -> Event,
    ) {
        let network = self.transfer.network;
        let copies = 1 + u64::from(self.rng.below(1_000) < network.duplication);
        for _ in 0..copies {
            if self.rng.below(1_000) < loss {
                continue;
            }
            let jitter = self.rng.below(network.jitter.as_nanos() + 1);
            let at = leaves + network.delay + Duration::from_nanos(jitter);
            self.packets.push(packet);
            self.schedule(at, event(self.packets.len() - 1));
        }
    }
}
