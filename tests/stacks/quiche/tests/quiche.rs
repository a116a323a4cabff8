//! quiche: a download over one connection.

mod stand_in;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use boring::asn1::Asn1Time;
use boring::hash::MessageDigest;
use boring::pkey::{PKey, Private};
use boring::rsa::Rsa;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use quiche::CongestionControlAlgorithm::{self, CUBIC, Reno};
use quiche::{Config, Connection, ConnectionId, RecvInfo};
use sojourn_path::{Direction, Ecn, Instant, Path, flow_between};
use sojourn_stacks::{Digest, END, Report, cellular, twice, wired};

const UDP: u8 = 17;
static CHUNK: [u8; 65_536] = [0; 65_536];
const STREAM: u64 = 0;
/// Less room is not used: quiche would fill it with a small packet.
const PACKET: usize = 1_200;

/// A key and a certificate whose sizes do not vary.
fn certificate() -> (PKey<Private>, X509) {
    let key = PKey::from_rsa(Rsa::generate(2_048).expect("a key")).expect("a key");
    let mut builder = X509::builder().expect("a certificate");
    builder.set_version(2).expect("version 3");
    builder.set_pubkey(&key).expect("a key");
    let day = |day| Asn1Time::days_from_now(day).expect("a time");
    builder.set_not_before(&day(0)).expect("a time");
    builder.set_not_after(&day(1)).expect("a time");
    builder.sign(&key, MessageDigest::sha256()).expect("signed");
    (key, builder.build())
}

fn config(is_server: bool, control: CongestionControlAlgorithm) -> Config {
    const MOST: u64 = 1 << 40;
    let mut tls = SslContextBuilder::new(SslMethod::tls()).expect("TLS");
    if is_server {
        let (key, certificate) = certificate();
        tls.set_certificate(&certificate).expect("a certificate");
        tls.set_private_key(&key).expect("its key");
    }
    let version = quiche::PROTOCOL_VERSION;
    let mut config = Config::with_boring_ssl_ctx_builder(version, tls).expect("TLS 1.3");
    config.set_cc_algorithm(control);
    config.verify_peer(false);
    config.set_application_protos(&[b"get"]).expect("a name");
    config.set_initial_max_streams_bidi(1);
    config.set_initial_max_data(MOST);
    config.set_initial_max_stream_data_bidi_local(MOST);
    config.set_initial_max_stream_data_bidi_remote(MOST);
    config.set_max_connection_window(MOST);
    config.set_max_stream_window(MOST);
    config
}

/// Client or server.
struct End {
    connection: Option<Connection>,
    config: Config,
    address: SocketAddr,
    peer: SocketAddr,
    is_server: bool,
    /// Whether the client has sent the request, or the server has got it.
    has_asked: bool,
    received: u64,
    buffer: Vec<u8>,
    /// Packets that wait for the time at which the pacing of quiche wants them sent.
    paced: VecDeque<(std::time::Instant, Vec<u8>)>,
}

impl End {
    fn new(is_server: bool, control: CongestionControlAlgorithm) -> Self {
        let [host, peer] = if is_server { [2, 1] } else { [1, 2] };
        let address = |host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 443));
        Self {
            connection: None,
            config: config(is_server, control),
            address: address(host),
            peer: address(peer),
            is_server,
            has_asked: false,
            received: 0,
            buffer: vec![0; 65_536],
            paced: VecDeque::new(),
        }
    }

    fn deliver(&mut self, mut bytes: Vec<u8>) {
        let (local, peer) = (self.address, self.peer);
        let connection = self.connection.get_or_insert_with(|| {
            let id = ConnectionId::from_ref(&[2; 16]);
            quiche::accept(&id, None, local, peer, &mut self.config).expect("accepted")
        });
        let info = RecvInfo {
            from: peer,
            to: local,
        };
        connection
            .recv(&mut bytes, info)
            .expect("a packet of quiche");
    }

    /// Runs the application and sends what may be sent.
    fn turn(&mut self, now: std::time::Instant, mut send: impl FnMut(Vec<u8>)) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.timeout_instant().is_some_and(|due| due <= now) {
            connection.on_timeout();
        }
        if connection.is_established() {
            if !self.is_server && !self.has_asked {
                self.has_asked = connection.stream_send(STREAM, b"get", true).is_ok();
            }
            while let Ok((size, _)) = connection.stream_recv(STREAM, &mut self.buffer) {
                self.received += size as u64;
                self.has_asked = true;
            }
            if self.is_server && self.has_asked {
                while connection
                    .stream_capacity(STREAM)
                    .is_ok_and(|size| size >= PACKET)
                {
                    connection.stream_send(STREAM, &CHUNK, false).expect("room");
                }
            }
        }
        let mut bytes = [0; 1_500];
        while let Ok((size, info)) = connection.send(&mut bytes) {
            self.paced.push_back((info.at, bytes[..size].to_vec()));
        }
        while let Some((_, bytes)) = self.paced.pop_front_if(|(at, _)| *at <= now) {
            send(bytes);
        }
    }

    fn deadline(&self) -> Option<std::time::Instant> {
        let timer = self.connection.as_ref()?.timeout_instant();
        let paced = self.paced.front().map(|(at, _)| *at);
        timer.into_iter().chain(paced).min()
    }
}

/// A download in virtual time: the server sends in the forward direction.
fn download(mut path: Path, control: CongestionControlAlgorithm) -> Report {
    let clock = stand_in::Clock::start();
    let origin = std::time::Instant::now();
    let [mut client, mut server] = [End::new(false, control), End::new(true, control)];
    let id = ConnectionId::from_ref(&[1; 16]);
    let (local, peer) = (client.address, client.peer);
    let connection = quiche::connect(Some("server"), &id, local, peer, &mut client.config);
    client.connection = Some(connection.expect("a connection"));
    let down = flow_between(server.address, client.address, UDP);
    let up = flow_between(client.address, server.address, UDP);
    let (mut now, mut digest) = (Instant::ZERO, Digest::default());
    while now <= END {
        clock.set(now);
        let instant = std::time::Instant::now();
        while let Some(delivery) = path.poll(now) {
            match delivery.direction {
                Direction::Forward => client.deliver(delivery.bytes),
                Direction::Reverse => server.deliver(delivery.bytes),
            }
        }
        client.turn(instant, |bytes| {
            let _ = path.push_reverse(now, bytes, Ecn::NotEct, up);
        });
        server.turn(instant, |bytes| {
            let _ = path.push(now, bytes, Ecn::NotEct, down);
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
fn quiche_over_fq_codel() {
    // Its CUBIC takes back a reduction after the loss of less than 20 % of the window, which CoDel's drops are.
    let report = twice("quiche, fq_codel", || download(wired("fq_codel"), CUBIC));
    assert!(
        report.goodput() > 15.0 && report.sojourn_ms_p95 < 120.0,
        "{report:?}"
    );
}

#[test]
fn quiche_with_reno_over_fq_codel() {
    let report = twice("quiche with Reno, fq_codel", || {
        download(wired("fq_codel"), Reno)
    });
    assert!(
        report.goodput() > 14.0 && report.sojourn_ms_p95 < 20.0,
        "{report:?}"
    );
}

#[test]
fn quiche_over_dualpi2() {
    let report = twice("quiche, dualpi2", || download(wired("dualpi2"), CUBIC));
    assert!(
        report.goodput() > 15.0 && report.sojourn_ms_p95 < 60.0,
        "{report:?}"
    );
}

#[test]
fn quiche_over_a_cellular_link() {
    let report = twice("quiche, trace", || download(cellular("fq_codel"), CUBIC));
    assert!(report.goodput() > 8.0, "{report:?}");
}
