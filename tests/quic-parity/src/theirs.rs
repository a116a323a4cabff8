//! A connection of quinn-proto, whole, in virtual time over the network.

#![expect(clippy::unwrap_used, reason = "this is a test")]
#![expect(
    clippy::disallowed_types,
    reason = "quinn-proto counts in these, from any origin"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event as QuinnEvent, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt, WriteError,
};
use sojourn_net::{Duration, Instant};
use sojourn_transport::CcKind;
use sojourn_transport::quic::{FlowControl, Params};

use crate::network::{Event, Network, To};
use crate::outcome::{Outcome, Transfer};
use crate::stand_in::StandIn;

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Bytes read, and whether all.
    read: (u64, bool),
    /// Bytes to write, as flow control allows; `None`: there is nothing, or the end has been written.
    unwritten: Option<u64>,
    /// All that was written is acknowledged.
    acknowledged: bool,
}

impl End {
    fn write(&mut self) {
        let (Some((_, connection)), Some(id)) = (&mut self.connection, self.stream) else {
            return;
        };
        let Some(left) = &mut self.unwritten else {
            return;
        };
        let data = vec![0; usize::try_from(*left).unwrap()];
        match connection.send_stream(id).write(&data) {
            Ok(written) => *left -= written as u64,
            Err(WriteError::Blocked) => {}
            Err(error) => panic!("{error}"),
        }
        if *left == 0 {
            self.unwritten = None;
            connection.send_stream(id).finish().unwrap();
        }
    }
}

struct Run {
    origin: std::time::Instant,
    client: End,
    server: End,
    network: Network<Vec<u8>>,
    transfer: Transfer,
    outcome: Outcome,
}

fn address(end: To) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 1_000 + end as u16))
}

fn transport(params: &Params) -> Arc<TransportConfig> {
    let FlowControl { data, stream_data } = params.flow;
    let control: Arc<dyn ControllerFactory + Send + Sync> = match params.cc.kind() {
        CcKind::Cubic => Arc::new(CubicConfig::default()),
        _ => Arc::new(NewRenoConfig::default()),
    };
    let mut config = TransportConfig::default();
    config
        .initial_mtu(1_200)
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::from_u64(stream_data).unwrap())
        .receive_window(VarInt::from_u64(data).unwrap())
        .send_window(1 << 40)
        .congestion_controller_factory(control)
        .enable_segmentation_offload(false);
    Arc::new(config)
}

fn end(server: bool, stand_in: StandIn, params: &Params) -> End {
    let mut config = EndpointConfig::new(Arc::new(stand_in));
    config.grease_quic_bit(false);
    let server = server.then(|| {
        let mut config = ServerConfig::new(Arc::new(stand_in), Arc::new(stand_in));
        config.transport_config(transport(params));
        Arc::new(config)
    });
    End {
        endpoint: Endpoint::new(Arc::new(config), server, true, Some([7; 32])),
        connection: None,
        stream: None,
        read: (0, false),
        unwritten: None,
        acknowledged: false,
    }
}

/// Runs a transfer until it is complete and acknowledged, or `limit`.
pub(crate) fn run(
    params: &Params,
    transfer: Transfer,
    network: Network<Vec<u8>>,
    limit: Duration,
) -> Outcome {
    let stand_in = StandIn {
        certificate: params.certificate.into(),
    };
    let mut run = Run {
        #[expect(clippy::disallowed_methods, reason = "the origin of virtual time")]
        origin: std::time::Instant::now(),
        client: end(false, stand_in, params),
        server: end(true, stand_in, params),
        network,
        transfer,
        outcome: Outcome::default(),
    };
    let mut config = ClientConfig::new(Arc::new(stand_in));
    config.transport_config(transport(params));
    let (at, to) = (run.std_now(), address(To::Server));
    let opened = run.client.endpoint.connect(at, config, to, "server");
    run.client.connection = Some(opened.unwrap());
    run.turn(To::Client);
    while !run.is_over() {
        let Some(event) = run.network.next(Instant::ZERO + limit) else {
            break;
        };
        run.handle(event);
    }
    let connection = run.server.connection.as_ref();
    Outcome {
        lost: connection.map_or(0, |(_, c)| c.stats().path.lost_packets),
        sent: run.network.sent,
        ..run.outcome
    }
}

impl Run {
    fn std_now(&self) -> std::time::Instant {
        self.origin + std::time::Duration::from_nanos(self.network.now.as_nanos())
    }

    fn end(&mut self, end: To) -> &mut End {
        match end {
            To::Client => &mut self.client,
            To::Server => &mut self.server,
        }
    }

    fn is_over(&self) -> bool {
        self.client.read.1 && self.server.acknowledged && self.client.acknowledged
    }

    fn handle(&mut self, event: Event<Vec<u8>>) {
        match event {
            Event::Arrives(to, datagram) => self.deliver(to, &datagram),
            Event::Timer(of) => {
                let at = self.std_now();
                if let Some((_, connection)) = &mut self.end(of).connection
                    && connection.poll_timeout().is_some_and(|due| due <= at)
                {
                    connection.handle_timeout(at);
                }
                self.turn(of);
            }
        }
    }

    fn deliver(&mut self, to: To, datagram: &[u8]) {
        let data = BytesMut::from(datagram);
        let now = self.std_now();
        let mut out = Vec::new();
        let end = self.end(to);
        let from = address(to.peer());
        let event = end.endpoint.handle(now, from, None, None, data, &mut out);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = end.endpoint.accept(incoming, now, &mut out, None);
                end.connection = Some(accepted.map_err(|error| error.cause).unwrap());
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_event(event);
                }
            }
            // Answers to what belongs to no connection.
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.turn(to);
    }

    /// Lets the application of an end act, and sends.
    fn turn(&mut self, of: To) {
        let now = self.std_now();
        loop {
            self.pass_events(of);
            self.act(of);
            let mut data = Vec::new();
            let end = self.end(of);
            let Some((_, connection)) = &mut end.connection else {
                return;
            };
            if connection.poll_transmit(now, 1, &mut data).is_none() {
                break;
            }
            self.network.send(of.peer(), data);
        }
        self.follow(of);
        if of == To::Server
            && let Some((_, connection)) = &self.server.connection
        {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
            let window = connection.congestion_state().window() as f64 / 1_200.0;
            self.outcome.note_window(self.network.now, window);
        }
    }

    fn pass_events(&mut self, of: To) {
        let end = self.end(of);
        if let Some((handle, connection)) = &mut end.connection {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = end.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
        }
    }

    fn act(&mut self, of: To) {
        let Transfer { request, response } = self.transfer;
        let now = self.network.now;
        let end = self.end(of);
        let Some((_, connection)) = &mut end.connection else {
            return;
        };
        let mut connected = false;
        while let Some(event) = connection.poll() {
            match event {
                QuinnEvent::Connected => connected = true,
                QuinnEvent::Stream(StreamEvent::Finished { .. }) => end.acknowledged = true,
                _ => {}
            }
        }
        if connected && of == To::Client {
            let id = connection.streams().open(Dir::Bi).unwrap();
            end.stream = Some(id);
            end.unwritten = Some(request);
            end.write();
            self.outcome.connected = Some(now);
            return;
        }
        if end.stream.is_none() {
            end.stream = connection.streams().accept(Dir::Bi);
        }
        let Some(id) = end.stream else { return };
        if end.read.1 {
            end.write();
            return;
        }
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => end.read.0 += chunk.bytes.len() as u64,
                Ok(None) => {
                    end.read.1 = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
        if end.read.1 && of == To::Server {
            assert_eq!(end.read.0, request);
            end.unwritten = Some(response);
            end.write();
        } else if end.read.1 {
            assert_eq!(end.read.0, response);
            self.outcome.completed = Some(now);
        }
    }

    fn follow(&mut self, of: To) {
        let origin = self.origin;
        let Some((_, connection)) = &mut self.end(of).connection else {
            return;
        };
        let due = connection.poll_timeout().map(|due| {
            let nanos = due.saturating_duration_since(origin).as_nanos();
            Instant::from_nanos(u64::try_from(nanos).unwrap())
        });
        self.network.set_timer(of, due);
    }
}
