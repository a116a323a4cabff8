//! The capture of a run: its packets where they enter and leave the queues of the links.
//!
//! A packet has no room for a number, so [`UnderWay`] remembers those of the packets in the network. Headers of
//! TCP are made when a segment is sent, because bytes are counted in the order of sending.

mod under_way;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use sojourn_capture::{
    AccurateEcn, Connection, Direction, Endpoints, LinkPoints, Point, Protocol, Record, Role,
    Section, Synth, Tcp, Verdict, Writer, address,
};
use sojourn_net::{FlowKey, Instant, IpVersion, Packet as View};
use sojourn_qdisc::{DropReason, MarkReason};
use sojourn_records::CaptureOutput;
use sojourn_scenario::plan::{Config, LinkConfig, Traffic};
use sojourn_transport::Flags;

use crate::packet::{Kind, Packet};
use under_way::{Labels, UnderWay};

/// Flows have 24 bits in addresses and ports.
const NUMBERS: u32 = 1 << 24;

/// The capture of a run.
pub(crate) struct Capture<'a> {
    writer: Writer<&'a mut (dyn Write + Send)>,
    /// One per link.
    points: Vec<LinkPoints>,
    under_way: UnderWay,
    /// By flow, or slot of an application's connection.
    open: BTreeMap<u32, Open>,
    /// Flows of the configuration.
    declared: u32,
    /// Connections of applications, modulo [`NUMBERS`].
    connections: u32,
    sent: u64,
    buffer: Vec<u8>,
}

impl<'a> Capture<'a> {
    /// Begins the capture of a run.
    pub(crate) fn new(config: &Config, output: CaptureOutput<'a>) -> Self {
        let section = Section {
            hardware: Some("simulated"),
            comment: Some(output.comment),
            ..Section::default()
        };
        let mut writer = Writer::new(output.out, &section);
        let points = config.links.iter().map(|link| points_of(&mut writer, link));
        let points = points.collect();
        name_hosts(&mut writer, config);
        Self {
            writer,
            points,
            under_way: UnderWay::default(),
            open: BTreeMap::new(),
            declared: u32::try_from(config.flows.len()).unwrap_or(u32::MAX),
            connections: 0,
            sent: 0,
            buffer: Vec::new(),
        }
    }

    /// Flow `id` starts, or a connection of an application takes slot `id`.
    #[cold]
    pub(crate) fn open(&mut self, id: u32, traffic: &Traffic) {
        let number = if id < self.declared {
            id
        } else {
            // Slots are used again, five-tuples are not.
            let number = self.declared.wrapping_add(self.connections) % NUMBERS;
            self.connections = (self.connections + 1) % NUMBERS;
            number
        };
        self.open.insert(id, Open::new(number, traffic));
    }

    /// A packet is sent, with the step at which its way begins.
    #[cold]
    pub(crate) fn on_sent(&mut self, pkt: &Packet) {
        let flow = pkt.flow_number();
        let open = self.open.get_mut(&flow);
        let (number, tcp) = open.map_or((flow, None), |open| (open.number, open.send(pkt)));
        let labels = Labels {
            id: self.sent,
            number,
            tcp,
            queue: None,
        };
        self.sent += 1;
        self.under_way.insert(pkt, labels);
    }

    /// A packet is offered to the queue of a link; `queue` is the inner queue that it is to join.
    #[cold]
    pub(crate) fn on_offered(&mut self, now: Instant, link: u32, queue: Option<u32>, pkt: &Packet) {
        let Some(labels) = self.under_way.enqueue(pkt, queue) else {
            return;
        };
        let point = self.points[link as usize].enq;
        self.write(now, point, Direction::Inbound, pkt, labels, Verdict::Passed);
    }

    /// The queue of a link marks a packet in it.
    #[cold]
    pub(crate) fn on_mark(&mut self, pkt: &Packet, reason: MarkReason) {
        self.under_way.mark(pkt, reason);
    }

    /// A packet was taken out of the queue of a link.
    #[cold]
    pub(crate) fn on_taken(&mut self, now: Instant, link: u32, pkt: &Packet) {
        let Some((labels, mark)) = self.under_way.dequeue(pkt) else {
            return;
        };
        let verdict = mark.map_or(Verdict::Passed, Verdict::Marked);
        let point = self.points[link as usize].deq;
        self.write(now, point, Direction::Outbound, pkt, labels, verdict);
    }

    /// The queue of a link dropped a packet.
    #[cold]
    pub(crate) fn on_drop(&mut self, now: Instant, link: u32, pkt: &Packet, reason: DropReason) {
        if let Some(labels) = self.under_way.remove_queued(pkt) {
            let point = self.points[link as usize].drop;
            let verdict = Verdict::Dropped(reason);
            self.write(now, point, Direction::Inbound, pkt, labels, verdict);
        }
    }

    /// The wire behind a link lost a packet.
    #[cold]
    pub(crate) fn on_lost(&mut self, now: Instant, link: u32, pkt: &Packet) {
        if let Some(labels) = self.under_way.remove(pkt) {
            let point = self.points[link as usize].drop;
            self.write(now, point, Direction::Outbound, pkt, labels, Verdict::Lost);
        }
    }

    /// The wire behind a link delivers a packet twice.
    #[cold]
    pub(crate) fn on_duplicated(&mut self, pkt: &Packet) {
        self.under_way.duplicate(pkt);
    }

    /// A packet has reached the end of its way.
    #[cold]
    pub(crate) fn on_arrived(&mut self, pkt: &Packet) {
        self.under_way.remove(pkt);
    }

    /// Ends the capture. Whoever provides the output knows of its errors.
    pub(crate) fn finish(self) {
        let _ = self.writer.finish();
    }

    fn write(
        &mut self,
        at: Instant,
        point: Point,
        direction: Direction,
        pkt: &Packet,
        labels: Labels,
        verdict: Verdict,
    ) {
        let written = headers(pkt, &labels).and_then(|headers| headers.write(&mut self.buffer));
        let Some(length) = written else {
            debug_assert!(false, "flow {} has no addresses", labels.number);
            return;
        };
        debug_assert_eq!(u64::from(length) + 14, pkt.size().0, "{pkt:?}");
        let record = Record {
            at,
            id: Some(labels.id),
            direction,
            // Behind a link, a packet is in no queue.
            queue: labels.queue.filter(|_| verdict != Verdict::Lost),
            verdict,
            length,
            data: &self.buffer,
        };
        self.writer.write(point, &record);
    }
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// Names the hosts that several flows share.
fn name_hosts(writer: &mut Writer<&mut (dyn Write + Send)>, config: &Config) {
    let clients = config.flows.iter().filter_map(|flow| flow.client);
    let mut clients: Vec<_> = clients.map(|client| client.number).collect();
    clients.sort_unstable();
    clients.dedup();
    let pair = [(1, "sender".to_owned()), (2, "receiver".to_owned())];
    let clients = clients
        .into_iter()
        .map(|n| (256 + u64::from(n), format!("client-{n}")));
    let hosts: Vec<_> = pair.into_iter().chain(clients).collect();
    let has_ipv6 = config.flows.iter().any(|flow| flow.ip == IpVersion::V6);
    let versions = [Some(IpVersion::V4), has_ipv6.then_some(IpVersion::V6)];
    let hosts: Vec<_> = (versions.into_iter().flatten())
        .flat_map(|ip| {
            (hosts.iter()).filter_map(move |(host, name)| Some((address(*host, ip)?, name)))
        })
        .collect();
    writer.names(
        hosts
            .iter()
            .map(|(address, name)| (*address, name.as_str())),
    );
}

fn points_of(writer: &mut Writer<&mut (dyn Write + Send)>, link: &LinkConfig) -> LinkPoints {
    let (kind, rate) = (link.qdisc.kind(), link.constant_rate());
    LinkPoints::add(writer, &link.name, kind, &link.qdisc, rate)
}

/// Hops left: there are no routers.
const TTL: u8 = 64;
/// Bytes of the header of ICMP.
const ECHO_HEADER: u64 = 8;
const ETHERNET_HEADER: u64 = 14;

/// A flow that has started, or a connection of an application.
#[derive(Debug)]
struct Open {
    /// Determines its ports; unique.
    number: u32,
    /// If it uses TCP.
    connection: Option<Connection>,
    /// It sends ECT(1).
    l4s: bool,
}

impl Open {
    fn new(number: u32, traffic: &Traffic) -> Self {
        let mss = match traffic {
            Traffic::Tcp { params, .. } => Some(params.mss),
            Traffic::App(app) => app.quic().is_none().then(|| app.exchange().tcp.mss),
            Traffic::Quic { .. }
            | Traffic::Datagrams(_)
            | Traffic::Program(_)
            | Traffic::Bridged => None,
        };
        Self {
            number,
            connection: mss.map(Connection::new),
            l4s: false,
        }
    }

    /// The header of a packet that is sent now; `None`: it is not of TCP.
    fn send(&mut self, pkt: &Packet) -> Option<Tcp> {
        let role = match pkt.kind() {
            Kind::Data => Role::Data,
            Kind::Ack => Role::Ack,
            Kind::Request => Role::Request,
            Kind::RequestAck => Role::RequestAck,
            Kind::QuicData | Kind::QuicBack | Kind::Udp | Kind::Ping | Kind::Pong => return None,
        };
        let segment = pkt.segment();
        let mut tcp = self.connection.as_mut()?.send(role, &segment.header());
        self.l4s |= segment.flags.has(Flags::ECT1);
        let l4s = self.l4s;
        tcp.accurate_ecn = segment
            .marked_bytes()
            .map(|ce_bytes| AccurateEcn { ce_bytes, l4s });
        Some(tcp)
    }
}

/// The headers of a packet as it is now; `None`: it has no addresses.
fn headers(pkt: &Packet, labels: &Labels) -> Option<Synth> {
    let (protocol, payload) = match (pkt.kind(), labels.tcp) {
        (_, Some(tcp)) => (Protocol::Tcp(tcp), pkt.payload.len()),
        (Kind::QuicData | Kind::QuicBack, None) => {
            let long = pkt.datagram().is_long();
            (Protocol::Quic { long }, pkt.payload.len())
        }
        (Kind::Ping | Kind::Pong, None) if pkt.payload.len() == 0 => {
            let headers = ETHERNET_HEADER + u64::from(pkt.ip().header()) + ECHO_HEADER;
            let payload = pkt.size().0 - headers;
            (echo(pkt), u16::try_from(payload).ok()?)
        }
        (_, None) => (Protocol::Udp, pkt.payload.len()),
    };
    let key = FlowKey {
        ports: labels.number,
        ..pkt.flow()
    };
    let is_quic = matches!(protocol, Protocol::Quic { .. });
    let ends = Endpoints::of(&key, pkt.ip(), is_quic)?;
    Some(Synth {
        source: ends.source,
        destination: ends.destination,
        ecn: pkt.ecn(),
        dscp: pkt.dscp(),
        ttl: TTL,
        identification: low(labels.id),
        protocol,
        payload,
    })
}

/// An echo request or its reply.
fn echo(pkt: &Packet) -> Protocol {
    let sequence = low(pkt.probe().number.into());
    let identifier = low(pkt.flow_number().into());
    if pkt.kind() == Kind::Ping {
        Protocol::EchoRequest {
            identifier,
            sequence,
        }
    } else {
        Protocol::EchoReply {
            identifier,
            sequence,
        }
    }
}

/// The low 16 bits.
const fn low(number: u64) -> u16 {
    let [a, b, ..] = number.to_le_bytes();
    u16::from_le_bytes([a, b])
}
