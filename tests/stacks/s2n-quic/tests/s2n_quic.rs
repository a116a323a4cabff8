//! s2n-quic: a download over one connection, in its own executor for tests, whose network is a path.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use s2n_quic::client::Connect;
use s2n_quic::provider::io::testing::network::{Buffers, Network, Packet};
use s2n_quic::provider::io::testing::{self as io, primary, spawn, time};
use s2n_quic::provider::{random, tls};
use s2n_quic::{Client, Server};
use s2n_quic_core::crypto::tls::null;
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress};
use s2n_quic_core::path::Tuple;
use s2n_quic_core::random::testing::Generator;
use sojourn_path::{Direction, Duration, Ecn, Headers, Instant, Path, flow_between};
use sojourn_stacks::{Digest, END, Report, SECONDS, cellular, twice, wired};

const UDP: u8 = 17;
/// The clock of s2n-quic counts whole microseconds, from 1.
const MICROSECOND: u64 = 1_000;
/// Rounding of the time of a call, of the wait, and of the first microsecond.
const MOST_LATE: Duration = Duration::from_micros(3);

/// TLS without encryption.
struct Plain;

impl tls::Provider for Plain {
    type Server = null::Endpoint;
    type Client = null::Endpoint;
    type Error = Infallible;

    fn start_server(self) -> Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::new(Some(())))
    }

    fn start_client(self) -> Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::new(Some(())))
    }
}

/// Random numbers that are the same in each run.
struct Seed(u8);

impl random::Provider for Seed {
    type Generator = Generator;
    type Error = Infallible;

    fn start(self) -> Result<Generator, Infallible> {
        Ok(Generator(self.0))
    }
}

/// The network of the executor.
struct Bottleneck {
    shared: Arc<Mutex<Shared>>,
    /// When the executor calls again.
    awaited: Option<Instant>,
}

struct Shared {
    path: Path,
    digest: Digest,
    /// The server sends in the forward direction.
    server: Option<std::net::SocketAddr>,
}

fn now() -> Instant {
    // SAFETY: the time is not before the origin of the executor's clock.
    let since = unsafe { time::now().as_duration() };
    Instant::from_nanos(u64::try_from(since.as_nanos()).expect("584 years"))
}

impl Network for Bottleneck {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let now = now();
        let mut shared = self.shared.lock().expect("one thread");
        let Shared {
            path,
            digest,
            server,
        } = &mut *shared;
        let mut moved = 0;
        while let Some(delivery) = path.poll(now) {
            let late = now.saturating_since(delivery.at);
            assert!(late <= MOST_LATE, "{late} late: a forgotten timer");
            let [from, to] = [delivery.flow.source, delivery.flow.destination];
            let ports = [delivery.flow.ports >> 16, delivery.flow.ports & 0xFFFF];
            let address = |host: u64, port: u32| {
                let host = std::net::Ipv4Addr::from(u32::try_from(host).expect("IPv4"));
                let port = u16::try_from(port).expect("a port");
                SocketAddress::IpV4((host, port).into())
            };
            let (remote, local) = (address(from, ports[0]), address(to, ports[1]));
            let packet = Packet {
                path: Tuple {
                    remote_address: remote.into(),
                    local_address: local.into(),
                },
                ecn: ExplicitCongestionNotification::new(delivery.ecn.bits()),
                payload: delivery.bytes,
            };
            buffers.rx(local, |queue| queue.enqueue(packet));
            moved += 1;
        }
        let mut sent = Vec::new();
        buffers.drain_pending_transmissions(|packet| {
            let from: std::net::SocketAddr = packet.path.local_address.0.into();
            sent.push((from, packet));
            Ok(())
        });
        // The executor has its hosts in a hash map.
        sent.sort_by_key(|(from, _)| *from);
        for (from, packet) in sent {
            let to: std::net::SocketAddr = packet.path.remote_address.0.into();
            let headers = Headers::udp(
                Ecn::from_bits(packet.ecn as u8),
                flow_between(from, to, UDP),
            );
            let direction = if Some(from) == *server {
                Direction::Forward
            } else {
                Direction::Reverse
            };
            let _ = path.push_with(now, direction, packet.payload, &headers);
            moved += 1;
        }
        digest.add(path);
        if let Some(due) = path.deadline()
            && self
                .awaited
                .is_none_or(|awaited| awaited <= now || due < awaited)
        {
            self.awaited = Some(due);
            // Rounded up, so that the call does not come before the deadline.
            let micros = due.saturating_since(now).as_nanos().div_ceil(MICROSECOND) + 1;
            let wait = std::time::Duration::from_micros(micros);
            spawn(async move { time::delay(wait).await });
        }
        moved
    }
}

/// A download in virtual time.
fn download(path: Path) -> Report {
    let shared = Arc::new(Mutex::new(Shared {
        path,
        digest: Digest::default(),
        server: None,
    }));
    let received = Arc::new(AtomicU64::new(0));
    let network = Bottleneck {
        shared: shared.clone(),
        awaited: None,
    };
    let ended = io::test(network, |handle| {
        let mut server = Server::builder()
            .with_io(handle.builder().build()?)?
            .with_tls(Plain)?
            .with_random(Seed(1))?
            .start()?;
        let client = Client::builder()
            .with_io(handle.builder().build()?)?
            .with_tls(Plain)?
            .with_random(Seed(2))?
            .start()?;
        let address = server.local_addr()?;
        shared.lock().expect("one thread").server = Some(address);
        spawn(async move {
            let mut connection = server.accept().await.expect("a connection");
            let stream = connection.accept_bidirectional_stream().await;
            let (_, mut send) = stream.expect("open").expect("a stream").split();
            loop {
                if let Err(error) = send.send(vec![0; 65_536].into()).await {
                    assert_eq!(now(), END, "server: {error:?}");
                    break;
                }
            }
        });
        let counter = received.clone();
        spawn(async move {
            let connect = Connect::new(address).with_server_name("localhost");
            let mut connection = client.connect(connect).await.expect("a connection");
            let stream = connection.open_bidirectional_stream().await.expect("open");
            let (mut receive, mut send) = stream.split();
            send.send("get".into()).await.expect("room");
            loop {
                match receive.receive().await {
                    Ok(Some(data)) => {
                        counter.fetch_add(data.len() as u64, Ordering::Relaxed);
                    }
                    other => {
                        assert_eq!(now(), END, "client: {other:?}");
                        break;
                    }
                }
            }
        });
        primary::spawn(async { time::delay(std::time::Duration::from_secs(SECONDS)).await });
        Ok(())
    });
    let ended = ended.expect("a run").as_nanos();
    assert_eq!(ended, END.as_nanos().into());
    let shared = Arc::into_inner(shared).expect("the executor has ended");
    let Shared { path, digest, .. } = shared.into_inner().expect("one thread");
    digest.report(path, received.load(Ordering::Relaxed))
}

#[test]
fn s2n_quic_over_fq_codel() {
    let report = twice("s2n-quic, fq_codel", || download(wired("fq_codel")));
    assert!(
        report.goodput() > 17.0 && report.sojourn_ms_p95 < 20.0,
        "{report:?}"
    );
}

#[test]
fn s2n_quic_over_dualpi2() {
    let report = twice("s2n-quic, dualpi2", || download(wired("dualpi2")));
    assert!(
        report.goodput() > 15.0 && report.sojourn_ms_p95 < 60.0,
        "{report:?}"
    );
}

#[test]
fn s2n_quic_over_a_cellular_link() {
    let report = twice("s2n-quic, trace", || download(cellular("fq_codel")));
    assert!(report.goodput() > 8.0, "{report:?}");
}
