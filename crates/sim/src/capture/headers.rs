//! The headers of simulated packets, as they are captured.

use sojourn_capture::{AccurateEcn, Connection, Endpoints, Protocol, Role, Synth, Tcp};
use sojourn_net::{FlowKey, Packet as View};
use sojourn_scenario::plan::Traffic;
use sojourn_transport::Flags;

use super::under_way::Labels;
use crate::packet::{Kind, Packet, header};

/// Hops left: there are no routers.
const TTL: u8 = 64;
/// Bytes of IP and ICMP headers.
const ECHO_HEADERS: u64 = 28;
const ETHERNET_HEADER: u64 = 14;

/// A flow that has started, or a connection of an application.
#[derive(Debug)]
pub(super) struct Open {
    /// Determines its ports; unique.
    pub(super) number: u32,
    /// If it uses TCP.
    connection: Option<Connection>,
    /// It sends ECT(1).
    l4s: bool,
}

impl Open {
    pub(super) fn new(number: u32, traffic: &Traffic) -> Self {
        let mss = match traffic {
            Traffic::Tcp { params, .. } => Some(params.mss),
            Traffic::App(app) => app.quic().is_none().then(|| app.tcp().mss),
            Traffic::Quic { .. } | Traffic::Datagrams(_) | Traffic::Program(_) => None,
        };
        Self {
            number,
            connection: mss.map(Connection::new),
            l4s: false,
        }
    }

    /// The header of a packet that is sent now; `None`: it is not of TCP.
    pub(super) fn send(&mut self, pkt: &Packet) -> Option<Tcp> {
        let role = match pkt.kind() {
            Kind::Data => Role::Data,
            Kind::Ack => Role::Ack,
            Kind::Request => Role::Request,
            Kind::RequestAck => Role::RequestAck,
            Kind::QuicData | Kind::QuicBack | Kind::Udp | Kind::Ping | Kind::Pong => return None,
        };
        let segment = pkt.segment();
        let mut tcp = self.connection.as_mut()?.send(role, &header(segment));
        if segment.flags.has(Flags::AE) {
            tcp.flags |= Tcp::AE;
        }
        self.l4s |= segment.flags.has(Flags::ECT1);
        let l4s = self.l4s;
        tcp.accurate_ecn = segment
            .marked_bytes()
            .map(|ce_bytes| AccurateEcn { ce_bytes, l4s });
        Some(tcp)
    }
}

/// The headers of a packet as it is now; `None`: it has no addresses.
pub(super) fn headers(pkt: &Packet, labels: &Labels) -> Option<Synth> {
    let (protocol, payload) = match (pkt.kind(), labels.tcp) {
        (_, Some(tcp)) => (Protocol::Tcp(tcp), pkt.payload.len()),
        (Kind::QuicData | Kind::QuicBack, None) => {
            let long = pkt.datagram().is_long();
            (Protocol::Quic { long }, pkt.payload.len())
        }
        (Kind::Ping | Kind::Pong, None) if pkt.payload.len() == 0 => {
            let payload = pkt.size().0 - ETHERNET_HEADER - ECHO_HEADERS;
            (echo(pkt), u16::try_from(payload).ok()?)
        }
        (_, None) => (Protocol::Udp, pkt.payload.len()),
    };
    let key = FlowKey {
        ports: labels.number,
        ..pkt.flow()
    };
    let ends = Endpoints::of(&key, matches!(protocol, Protocol::Quic { .. }))?;
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
