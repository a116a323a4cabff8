//! One connection through a scripted middlebox, and a log of what its ends sent.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(missing_docs, reason = "the fields are what they are called")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use sojourn_net::{Duration, Instant, Rate};
use sojourn_transport::{
    AfterIdle, Arrival, CcKind, Flags, OnCe, Receiver, Segment, Sender, SenderParams, Ticks,
};

/// A frame in the form common to both logs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub ms: f64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Syn,
    SynAck,
    /// Bytes before it in the stream, and whether it pushes. A FIN alone has no length.
    Data {
        offset: u64,
        len: u16,
        push: bool,
    },
    /// Bytes acknowledged, and the SACK blocks in bytes.
    Ack {
        bytes: u64,
        sacks: Vec<(u64, u64)>,
        ece: bool,
    },
}

/// What the middlebox does to data segment `k`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Drops the first `times` transmissions of segments `from..=to`.
    Drop {
        from: u64,
        to: u64,
        times: u32,
    },
    /// Drops all data after this many transmissions.
    DropAfter(u32),
    DropSyns(u32),
    DropSynAcks(u32),
    /// Drops the pure ACKs with these numbers, from 1.
    DropAcks {
        from: u32,
        to: u32,
    },
    Hold {
        from: u64,
        to: u64,
        ms: u64,
    },
    MarkCe(u64),
}

#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub(crate) struct Scenario {
    pub name: &'static str,
    pub mbit: Option<u64>,
    pub writes: &'static [(u64, u64)],
    pub rules: &'static [Rule],
    pub close: bool,
    pub cc: CcKind,
    pub ecn: bool,
    pub on_ce: OnCe,
    pub pacing: bool,
    pub after_idle: AfterIdle,
    /// Propagation each way.
    pub one_way: Duration,
    /// Packets leave the shaper when their service begins, as from a token bucket.
    pub departs_early: bool,
    pub seconds: u64,
    /// The client's tick counter when the connection began, in ms: it determines how timers are
    /// rounded.
    pub phase_ms: u64,
    /// How many frames of the client and of the server are compared; less than all where the
    /// README of `micro/` says what happens then.
    pub frames: (usize, usize),
}

impl Scenario {
    /// A connection of 100 ms without a bottleneck.
    pub(crate) const fn new(
        name: &'static str,
        writes: &'static [(u64, u64)],
        rules: &'static [Rule],
    ) -> Self {
        Self {
            name,
            mbit: None,
            writes,
            rules,
            close: false,
            cc: CcKind::Cubic,
            ecn: false,
            on_ce: OnCe::Reduce,
            pacing: false,
            after_idle: AfterIdle::Decay,
            one_way: ONE_WAY,
            departs_early: false,
            seconds: 3,
            phase_ms: 8,
            frames: (usize::MAX, usize::MAX),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ToServer(usize),
    ToClient(usize),
    ClientTimer,
    ServerTimer,
    Write(u64),
}

pub(crate) struct Lab<'a> {
    scenario: &'a Scenario,
    now: Instant,
    agenda: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    in_flight: Vec<(Segment, bool)>,
    pub client: Sender,
    server: Receiver,
    out: Vec<Segment>,
    /// Stream offset of each segment.
    offsets: Vec<u64>,
    shaper_free: Instant,
    transmissions: BTreeMap<u64, u32>,
    data_sent: u32,
    syns: u32,
    syn_acks: u32,
    acks: u32,
    established: bool,
    pub log: Vec<Frame>,
    /// Congestion window and slow-start threshold of the client whenever one changes, and when, in ms.
    pub windows: Vec<(f64, u32, Option<u32>)>,
}

/// 50 ms and the cost of a hop in the kernel.
pub(crate) const ONE_WAY: Duration = Duration::from_micros(50_052);

impl<'a> Lab<'a> {
    /// What was sent, and the client as it was at the end.
    pub(crate) fn run(scenario: &'a Scenario) -> (Vec<Frame>, Sender) {
        let lab = Self::run_to_end(scenario);
        (lab.log, lab.client)
    }

    /// Runs a scenario.
    pub(crate) fn run_to_end(scenario: &'a Scenario) -> Self {
        let params = SenderParams {
            cc: scenario.cc.into(),
            ecn: scenario.ecn,
            on_ce: scenario.on_ce,
            pacing: scenario.pacing,
            after_idle: scenario.after_idle,
            ..SenderParams::default()
        };
        let ticks = Ticks::new(Duration::from_millis(scenario.phase_ms));
        let mut lab = Self {
            scenario,
            now: Instant::ZERO,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            in_flight: Vec::new(),
            client: Sender::new(&params, ticks),
            server: Receiver::answering(&params, ticks),
            out: Vec::new(),
            offsets: vec![0],
            shaper_free: Instant::ZERO,
            transmissions: BTreeMap::new(),
            data_sent: 0,
            syns: 0,
            syn_acks: 0,
            acks: 0,
            established: false,
            log: Vec::new(),
            windows: Vec::new(),
        };
        let mut out = Vec::new();
        lab.client.connect(lab.now, &mut out);
        lab.client_sends(out);
        let end = Instant::from_millis(1_000 * scenario.seconds);
        while let Some(Reverse((at, _, event))) = lab.agenda.pop() {
            if at > end {
                break;
            }
            lab.now = at;
            lab.handle(event);
            let window = (lab.client.cwnd(), lab.client.ssthresh());
            if lab
                .windows
                .last()
                .is_none_or(|last| (last.1, last.2) != window)
            {
                let ms = at.as_secs_f64() * 1_000.0;
                lab.windows.push((ms, window.0, window.1));
            }
        }
        lab
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, self.scheduled, event)));
    }

    fn handle(&mut self, event: Event) {
        let mut out = std::mem::take(&mut self.out);
        match event {
            Event::ToServer(n) => {
                let (seg, ce) = self.in_flight[n];
                let next = self.agenda.peek();
                let more = next.is_some_and(|Reverse((at, _, next))| {
                    *at == self.now && matches!(next, Event::ToServer(_))
                });
                let arrival = Arrival { ce, more };
                self.server.on_segment(self.now, &seg, arrival, &mut out);
                self.server_sends(out);
            }
            Event::ServerTimer => {
                self.server.on_timer(self.now, &mut out);
                self.server_sends(out);
            }
            Event::ToClient(n) => {
                let (seg, _) = self.in_flight[n];
                self.client.on_segment(self.now, &seg, &mut out);
                if seg.flags.has(Flags::SYN) && !self.established {
                    self.established = true;
                    for &(ms, bytes) in self.scenario.writes {
                        self.schedule(self.now.max(Instant::from_millis(ms)), Event::Write(bytes));
                    }
                }
                self.client_sends(out);
            }
            Event::ClientTimer => {
                self.client.on_timer(self.now, &mut out);
                self.client_sends(out);
            }
            Event::Write(bytes) => {
                self.client.write(self.now, bytes, &mut out);
                if self.scenario.close {
                    self.client.close(self.now, &mut out);
                }
                self.client_sends(out);
            }
        }
    }

    fn client_sends(&mut self, segments: Vec<Segment>) {
        for seg in segments {
            if seg.flags.has(Flags::SYN) {
                self.note(What::Syn);
                self.syns += 1;
                if self.rules(|r| matches!(r, Rule::DropSyns(n) if self.syns <= n)) {
                    continue;
                }
            } else if seg.len > 0 || seg.flags.has(Flags::FIN) {
                self.data_client_sends(seg);
                continue;
            }
            self.pass_to_server(self.now + self.scenario.one_way, seg, false);
        }
        if let Some(at) = self.client.next_timer() {
            self.schedule(at.max(self.now), Event::ClientTimer);
        }
    }

    fn data_client_sends(&mut self, seg: Segment) {
        let k = u64::from(seg.seq);
        let n = usize::try_from(k).unwrap();
        if n + 1 == self.offsets.len() {
            // A FIN counts as a byte.
            let fin = u64::from(seg.flags.has(Flags::FIN));
            self.offsets
                .push(self.offsets[n] + u64::from(seg.len) + fin);
        }
        self.note(What::Data {
            offset: self.offsets[n],
            len: seg.len,
            push: seg.flags.has(Flags::PSH),
        });
        let times = self.transmissions.entry(k).or_default();
        *times += 1;
        let times = *times;
        self.data_sent += 1;
        let sent = self.data_sent;
        let dropped = self.rules(|r| match r {
            Rule::Drop {
                from,
                to,
                times: limit,
            } => seg.len > 0 && (from..=to).contains(&k) && times <= limit,
            Rule::DropAfter(n) => sent > n,
            _ => false,
        });
        if dropped {
            return;
        }
        let mut leaves = self.now;
        if let Some(mbit) = self.scenario.mbit {
            let size = sojourn_net::Bytes(seg.wire_size());
            let begins = self.shaper_free.max(self.now);
            self.shaper_free = begins + Rate::mbit(mbit).serialise(size);
            leaves = if self.scenario.departs_early {
                begins
            } else {
                self.shaper_free
            };
        }
        for rule in self.scenario.rules {
            if let Rule::Hold { from, to, ms } = *rule
                && (from..=to).contains(&k)
                && times == 1
            {
                leaves += Duration::from_millis(ms);
            }
        }
        let ce = self.rules(|r| matches!(r, Rule::MarkCe(n) if n == k && times == 1));
        self.pass_to_server(leaves + self.scenario.one_way, seg, ce);
    }

    fn pass_to_server(&mut self, at: Instant, seg: Segment, ce: bool) {
        self.in_flight.push((seg, ce));
        self.schedule(at, Event::ToServer(self.in_flight.len() - 1));
    }

    fn server_sends(&mut self, segments: Vec<Segment>) {
        for seg in segments {
            if seg.flags.has(Flags::SYN) {
                self.note(What::SynAck);
                self.syn_acks += 1;
                if self.rules(|r| matches!(r, Rule::DropSynAcks(n) if self.syn_acks <= n)) {
                    continue;
                }
            } else {
                let bytes = |k: u32| self.offsets[usize::try_from(k).unwrap()];
                let what = What::Ack {
                    bytes: bytes(seg.ack),
                    sacks: seg
                        .sack_blocks()
                        .iter()
                        .map(|b| (bytes(b.start), bytes(b.end)))
                        .collect(),
                    ece: seg.flags.has(Flags::ECE),
                };
                self.note(what);
                self.acks += 1;
                let nth = self.acks;
                if self.rules(
                    |r| matches!(r, Rule::DropAcks { from, to } if (from..=to).contains(&nth)),
                ) {
                    continue;
                }
            }
            self.in_flight.push((seg, false));
            let n = self.in_flight.len() - 1;
            self.schedule(self.now + self.scenario.one_way, Event::ToClient(n));
        }
        if let Some(at) = self.server.next_timer() {
            self.schedule(at.max(self.now), Event::ServerTimer);
        }
    }

    fn rules(&self, hit: impl Fn(Rule) -> bool) -> bool {
        self.scenario.rules.iter().any(|&rule| hit(rule))
    }

    fn note(&mut self, what: What) {
        let ms = self.now.as_secs_f64() * 1_000.0;
        self.log.push(Frame { ms, what });
    }
}
