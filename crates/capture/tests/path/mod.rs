//! A TCP connection over a scripted bottleneck, captured where its packets enter and leave.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::Write;

use sojourn_capture::{
    AccurateEcn, Connection, Direction, Endpoints, Interface, Point, Protocol, Record, Role,
    SNAP_LENGTH, Section, Synth, Tcp, Verdict, Writer,
};
use sojourn_net::{Bytes, Dscp, Duration, Ecn, FlowKey, Instant, IpVersion, Rate};
use sojourn_qdisc::{DropReason, MarkReason};
use sojourn_transport::{Arrival, Flags, Receiver, Segment, Sender, SenderParams, Ticks};

/// What happens on the way.
#[derive(Default)]
pub(crate) struct Script<'a> {
    pub(crate) params: SenderParams,
    pub(crate) writes: &'a [u64],
    /// Data segments whose first transmission is dropped, by index.
    pub(crate) drops: &'a [u32],
    /// Data segments whose first transmission is marked.
    pub(crate) marks: &'a [u32],
    /// Capture the payload too.
    pub(crate) is_whole: bool,
}

/// The ends of a connection after it has finished.
pub(crate) struct Outcome {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Packets that the script dropped and marked.
    pub(crate) dropped: usize,
    pub(crate) marked: usize,
}

#[derive(Clone, Copy)]
struct Packet {
    segment: Segment,
    role: Role,
    tcp: Tcp,
    ip: IpVersion,
    ecn: Ecn,
    id: u64,
}

impl Packet {
    fn size(&self) -> u64 {
        self.segment.wire_size() + u64::from(self.ip.more_than_v4())
    }
}

#[derive(Clone, Copy)]
enum Event {
    Leaves(Packet),
    ToReceiver(Packet),
    ToSender(Packet),
    SenderTimer,
    ReceiverTimer,
}

/// A capture with these points.
pub(crate) struct Capture<W> {
    pub(crate) writer: Writer<W>,
    enq: Point,
    drop: Point,
    deq: Point,
    up: Point,
    buffer: Vec<u8>,
    /// Keep the payload too.
    is_whole: bool,
}

impl<W: Write> Capture<W> {
    pub(crate) fn new(out: W, is_whole: bool) -> Self {
        let section = Section {
            hardware: Some("simulated"),
            comment: Some("run 7"),
            ..Section::default()
        };
        let mut writer = Writer::new(out, &section);
        let mut add = |name| {
            writer.add(&Interface {
                queue: Some("codel"),
                rate: Some(RATE),
                snap_length: if is_whole { 65_535 } else { SNAP_LENGTH },
                ..Interface::new(name)
            })
        };
        let [enq, drop, deq, up] = ["down.enq", "down.drop", "down.deq", "up.deq"].map(&mut add);
        Self {
            writer,
            enq,
            drop,
            deq,
            up,
            buffer: Vec::new(),
            is_whole,
        }
    }

    fn record(
        &mut self,
        at: Instant,
        point: Point,
        direction: Direction,
        pkt: &Packet,
        verdict: Verdict,
    ) {
        let (source, destination) = match pkt.role {
            Role::Data | Role::RequestAck => (1, 2),
            Role::Ack | Role::Request => (2, 1),
        };
        let key = FlowKey {
            source,
            destination,
            ports: 7,
            protocol: 6,
        };
        let ends = Endpoints::of(&key, pkt.ip, false).unwrap();
        let headers = Synth {
            source: ends.source,
            destination: ends.destination,
            ecn: pkt.ecn,
            dscp: Dscp::DEFAULT,
            ttl: 64,
            identification: u16::try_from(pkt.id & 0xFFFF).unwrap(),
            protocol: Protocol::Tcp(pkt.tcp),
            payload: pkt.segment.len,
        };
        let length = headers.write(&mut self.buffer).unwrap();
        assert_eq!(u64::from(length) + 14, pkt.size());
        if self.is_whole {
            self.buffer.resize(length as usize, 0);
        }
        let record = Record {
            at,
            id: Some(pkt.id),
            direction,
            queue: None,
            verdict,
            length,
            data: &self.buffer,
        };
        self.writer.write(point, &record);
    }
}

const RATE: Rate = Rate::mbit(10);
const ONE_WAY: Duration = Duration::from_millis(20);
const LIMIT: Instant = Instant::from_millis(60_000);

struct Path<'a, W> {
    script: &'a Script<'a>,
    capture: &'a mut Capture<W>,
    now: Instant,
    agenda: BTreeMap<(Instant, u64), Event>,
    scheduled: u64,
    sender: Sender,
    receiver: Receiver,
    connection: Connection,
    free_at: Instant,
    transmissions: BTreeMap<u32, u32>,
    ids: u64,
    dropped: usize,
    marked: usize,
}

/// Runs a connection to its end.
pub(crate) fn run<W: Write>(script: &Script<'_>, capture: &mut Capture<W>) -> Outcome {
    let ticks = Ticks::new(Duration::from_millis(8));
    let mut path = Path {
        script,
        capture,
        now: Instant::ZERO,
        agenda: BTreeMap::new(),
        scheduled: 0,
        sender: Sender::new(&script.params, ticks),
        receiver: Receiver::answering(&script.params, ticks),
        connection: Connection::new(script.params.mss),
        free_at: Instant::ZERO,
        transmissions: BTreeMap::new(),
        ids: 0,
        dropped: 0,
        marked: 0,
    };
    let mut out = Vec::new();
    path.sender.connect(path.now, &mut out);
    for bytes in script.writes {
        path.sender.write(path.now, *bytes, &mut out);
    }
    path.sender.close(path.now, &mut out);
    path.sender_sends(&mut out);
    while let Some(((at, _), event)) = path.agenda.pop_first() {
        if at > LIMIT {
            break;
        }
        path.now = at;
        path.handle(event);
    }
    assert!(path.receiver.finished(), "the FIN arrives");
    Outcome {
        sender: path.sender,
        receiver: path.receiver,
        dropped: path.dropped,
        marked: path.marked,
    }
}

impl<W: Write> Path<'_, W> {
    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.agenda
            .insert((at.max(self.now), self.scheduled), event);
    }

    fn handle(&mut self, event: Event) {
        let mut out = Vec::new();
        let now = self.now;
        match event {
            Event::Leaves(pkt) => {
                let verdict = if pkt.ecn == Ecn::Ce {
                    Verdict::Marked(MarkReason::Aqm)
                } else {
                    Verdict::Passed
                };
                let deq = self.capture.deq;
                self.capture
                    .record(now, deq, Direction::Outbound, &pkt, verdict);
                self.schedule(now + ONE_WAY, Event::ToReceiver(pkt));
            }
            Event::ToReceiver(pkt) => {
                let arrival = Arrival {
                    ce: pkt.ecn == Ecn::Ce,
                    more: false,
                };
                self.receiver
                    .on_segment(now, &pkt.segment, arrival, &mut out);
                self.receiver_sends(&mut out);
            }
            Event::ReceiverTimer => {
                self.receiver.on_timer(now, &mut out);
                self.receiver_sends(&mut out);
            }
            Event::ToSender(pkt) => {
                self.sender.on_segment(now, &pkt.segment, &mut out);
                self.sender_sends(&mut out);
            }
            Event::SenderTimer => {
                self.sender.on_timer(now, &mut out);
                self.sender_sends(&mut out);
            }
        }
    }

    fn packet(&mut self, segment: Segment, role: Role) -> Packet {
        let mut tcp = self.connection.send(role, &segment.header());
        tcp.accurate_ecn = segment.marked_bytes().map(|ce_bytes| AccurateEcn {
            ce_bytes,
            l4s: false,
        });
        self.ids += 1;
        Packet {
            segment,
            role,
            tcp,
            ip: self.script.params.ip,
            ecn: segment.flags.ecn(),
            id: self.ids,
        }
    }

    fn sender_sends(&mut self, out: &mut Vec<Segment>) {
        for segment in out.drain(..) {
            let mut pkt = self.packet(segment, Role::Data);
            let enq = self.capture.enq;
            self.capture
                .record(self.now, enq, Direction::Inbound, &pkt, Verdict::Passed);
            let takes_number = segment.len > 0 || segment.flags.has(Flags::FIN);
            let times = self.transmissions.entry(segment.seq).or_default();
            *times += u32::from(takes_number);
            let is_first = takes_number && *times == 1;
            if is_first && self.script.drops.contains(&segment.seq) {
                self.dropped += 1;
                let drop = self.capture.drop;
                let verdict = Verdict::Dropped(DropReason::Aqm);
                self.capture
                    .record(self.now, drop, Direction::Inbound, &pkt, verdict);
                continue;
            }
            if is_first && self.script.marks.contains(&segment.seq) {
                assert_ne!(pkt.ecn, Ecn::NotEct);
                self.marked += 1;
                pkt.ecn = Ecn::Ce;
            }
            let time = RATE.serialise(Bytes(pkt.size()));
            self.free_at = self.free_at.max(self.now) + time;
            self.schedule(self.free_at, Event::Leaves(pkt));
        }
        if let Some(at) = self.sender.next_timer() {
            self.schedule(at, Event::SenderTimer);
        }
    }

    fn receiver_sends(&mut self, out: &mut Vec<Segment>) {
        for segment in out.drain(..) {
            let pkt = self.packet(segment, Role::Ack);
            let up = self.capture.up;
            self.capture
                .record(self.now, up, Direction::Outbound, &pkt, Verdict::Passed);
            self.schedule(self.now + ONE_WAY, Event::ToSender(pkt));
        }
        if let Some(at) = self.receiver.next_timer() {
            self.schedule(at, Event::ReceiverTimer);
        }
    }
}
