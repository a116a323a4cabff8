//! quinn-proto: a download over one connection.

// Written for the comparison of QUIC with quinn-proto.
#[allow(dead_code, unreachable_pub)]
#[path = "../../quic-parity/src/stand_in.rs"]
mod stand_in;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamId, TransportConfig, VarInt,
};
use sojourn_path::{Direction, Ecn, Instant, Path, flow_between};
use sojourn_stacks::{Digest, END, Report, cellular, twice, wired};
use stand_in::StandIn;

const UDP: u8 = 17;
const CRYPTO: StandIn = StandIn { certificate: 3_500 };
const CHUNK: [u8; 65_536] = [0; 65_536];

fn transport() -> Arc<TransportConfig> {
    let most = VarInt::from_u64(1 << 40).expect("fits");
    let mut config = TransportConfig::default();
    config
        .initial_mtu(1_200)
        .mtu_discovery_config(None)
        .stream_receive_window(most)
        .receive_window(most)
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .enable_segmentation_offload(false);
    Arc::new(config)
}

/// Client or server.
struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    is_server: bool,
    received: u64,
}

impl End {
    fn new(is_server: bool) -> Self {
        let crypto = Arc::new(CRYPTO);
        let mut config = EndpointConfig::new(crypto.clone());
        config.grease_quic_bit(false);
        let server = is_server.then(|| {
            let mut server = ServerConfig::new(crypto.clone(), crypto);
            server.transport_config(transport());
            Arc::new(server)
        });
        let host = if is_server { 2 } else { 1 };
        Self {
            endpoint: Endpoint::new(Arc::new(config), server, true, Some([host; 32])),
            address: SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 443)),
            connection: None,
            stream: None,
            is_server,
            received: 0,
        }
    }

    fn deliver(&mut self, now: std::time::Instant, from: SocketAddr, bytes: &[u8], ecn: Ecn) {
        let mut reply = Vec::new();
        let ecn = EcnCodepoint::from_bits(ecn.bits());
        let data = BytesMut::from(bytes);
        match self.endpoint.handle(now, from, None, ecn, data, &mut reply) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut reply, None);
                self.connection = Some(accepted.map_err(|error| error.cause).expect("accepted"));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            _ => {}
        }
    }

    /// Runs the application and sends what may be sent.
    fn turn(&mut self, now: std::time::Instant, mut send: impl FnMut(Vec<u8>, Ecn)) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                if matches!(event, Event::Connected) && !self.is_server {
                    let id = connection.streams().open(Dir::Bi).expect("allowed");
                    connection.send_stream(id).write(b"get").expect("room");
                    connection.send_stream(id).finish().expect("open");
                    self.stream = Some(id);
                }
            }
            if self.is_server && self.stream.is_none() {
                self.stream = connection.streams().accept(Dir::Bi);
            }
            if let Some(id) = self.stream {
                let mut stream = connection.recv_stream(id);
                if let Ok(mut chunks) = stream.read(true) {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        self.received += chunk.bytes.len() as u64;
                    }
                    let _ = chunks.finalize();
                }
                if self.is_server {
                    let _ = connection.send_stream(id).write(&CHUNK);
                }
            }
            let mut bytes = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, 1, &mut bytes) else {
                return;
            };
            let ecn = transmit
                .ecn
                .map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
            send(bytes, ecn);
        }
    }

    fn deadline(&mut self) -> Option<std::time::Instant> {
        self.connection.as_mut()?.1.poll_timeout()
    }
}

/// A download in virtual time: the server sends in the forward direction.
fn download(mut path: Path) -> Report {
    let origin = std::time::Instant::now();
    let clock = |now: Instant| origin + std::time::Duration::from_nanos(now.as_nanos());
    let [mut client, mut server] = [End::new(false), End::new(true)];
    let mut config = ClientConfig::new(Arc::new(CRYPTO));
    config.transport_config(transport());
    let opened = client
        .endpoint
        .connect(origin, config, server.address, "server");
    client.connection = Some(opened.expect("a connection"));
    let down = flow_between(server.address, client.address, UDP);
    let up = flow_between(client.address, server.address, UDP);
    let (mut now, mut digest) = (Instant::ZERO, Digest::default());
    while now <= END {
        while let Some(delivery) = path.poll(now) {
            let (to, from) = match delivery.direction {
                Direction::Forward => (&mut client, server.address),
                Direction::Reverse => (&mut server, client.address),
            };
            to.deliver(clock(now), from, &delivery.bytes, delivery.ecn);
        }
        client.turn(clock(now), |bytes, ecn| {
            let _ = path.push_reverse(now, bytes, ecn, up);
        });
        server.turn(clock(now), |bytes, ecn| {
            let _ = path.push(now, bytes, ecn, down);
        });
        digest.add(&mut path);
        let timers = [client.deadline(), server.deadline()].into_iter().flatten();
        let timers = timers.map(|due| {
            let nanos = due.saturating_duration_since(origin).as_nanos();
            Instant::from_nanos(u64::try_from(nanos).expect("584 years"))
        });
        let next = timers.chain(path.deadline()).min().expect("an idle timer");
        now = next.max(now);
    }
    digest.report(path, client.received)
}

#[test]
fn quinn_over_fq_codel() {
    let report = twice("quinn-proto, fq_codel", || download(wired("fq_codel")));
    assert!(
        report.goodput() > 17.0 && report.sojourn_ms_p95 < 20.0,
        "{report:?}"
    );
    assert!(report.counters.marks_aqm > 0, "{report:?}");
}

#[test]
fn quinn_over_dualpi2() {
    let report = twice("quinn-proto, dualpi2", || download(wired("dualpi2")));
    assert!(
        report.goodput() > 17.0 && report.sojourn_ms_p95 < 60.0,
        "{report:?}"
    );
    assert!(report.counters.marks_aqm > 0, "{report:?}");
}

#[test]
fn quinn_over_pie() {
    let report = twice("quinn-proto, pie", || download(wired("pie limit 1000")));
    assert!(
        report.goodput() > 15.0 && report.sojourn_ms_p95 < 60.0,
        "{report:?}"
    );
    assert!(report.counters.drops_aqm > 0, "{report:?}");
}

#[test]
fn quinn_over_a_cellular_link() {
    let report = twice("quinn-proto, trace", || download(cellular("fq_codel")));
    assert!(report.goodput() > 8.0, "{report:?}");
}
