//! smoltcp: a download over one TCP connection.
//!
//! smoltcp 0.12 has no selective acknowledgements and sends everything again after a loss, so its goodput is far below
//! the rate.

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant as Clock;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use sojourn_path::{Direction, Duration, Instant, Path};
use sojourn_stacks::{Digest, END, Report, cellular, twice, wired};

const PORT: u16 = 443;
const CHUNK: [u8; 65_536] = [0; 65_536];

/// Packets that a host has received and will send.
#[derive(Default)]
struct Ports {
    received: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sending<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Ports {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _at: Clock) -> Option<(Received, Sending<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _at: Clock) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1_500;
        capabilities
    }
}

/// Client or server.
struct Host {
    ports: Ports,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Host {
    fn new(number: u8) -> Self {
        let mut ports = Ports::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = number.into();
        let mut interface = Interface::new(config, &mut ports, Clock::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::new(IpAddress::v4(10, 0, 0, number), 24);
            addresses.push(own).expect("room for an address");
        });
        let buffer = || SocketBuffer::new(vec![0; 128 << 10]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Cubic);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Self {
            ports,
            interface,
            sockets,
            socket,
        }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn poll(&mut self, now: Instant) {
        let Self {
            ports,
            interface,
            sockets,
            ..
        } = self;
        interface.poll(clock(now), ports, sockets);
    }
}

/// The clock of smoltcp counts microseconds.
fn clock(now: Instant) -> Clock {
    Clock::from_micros(i64::try_from(now.as_micros()).expect("292,000 years"))
}

/// A download in virtual time: the server sends in the forward direction.
fn download(mut path: Path) -> Report {
    let [mut client, mut server] = [1, 2].map(Host::new);
    server.socket().listen(PORT).expect("a closed socket");
    let Host {
        interface,
        sockets,
        socket,
        ..
    } = &mut client;
    let remote = (IpAddress::v4(10, 0, 0, 2), PORT);
    let opening = sockets.get_mut::<Socket>(*socket);
    opening
        .connect(interface.context(), remote, 50_000)
        .expect("a closed socket");

    let (mut now, mut digest, mut received) = (Instant::ZERO, Digest::default(), 0);
    while now <= END {
        while let Some(delivery) = path.poll(now) {
            let host = match delivery.direction {
                Direction::Forward => &mut client,
                Direction::Reverse => &mut server,
            };
            host.ports.received.push_back(delivery.bytes);
        }
        let mut next = Instant::MAX;
        let both = [
            (&mut client, Direction::Reverse),
            (&mut server, Direction::Forward),
        ];
        for (host, direction) in both {
            host.poll(now);
            let socket = host.socket();
            if socket.can_recv() {
                let read = socket.recv(|bytes| (bytes.len(), bytes.len()));
                received += read.expect("an open connection") as u64;
            }
            if direction == Direction::Forward && socket.can_send() {
                socket.send_slice(&CHUNK).expect("an open connection");
            }
            // What the application did: a window update, or data.
            host.poll(now);
            for packet in host.ports.sent.drain(..) {
                path.push_ip(now, direction, packet).expect("an IP packet");
            }
            if let Some(due) = host.interface.poll_at(clock(now), &host.sockets) {
                let micros = u64::try_from(due.total_micros()).unwrap_or(0);
                let due = Instant::ZERO + Duration::from_micros(micros);
                // The clock of smoltcp does not resolve less than a microsecond.
                next = next.min(due.max(now + Duration::from_micros(1)));
            }
        }
        digest.add(&mut path);
        let deadline = path.deadline().unwrap_or(Instant::MAX);
        now = next.min(deadline).max(now);
    }
    digest.report(path, received)
}

#[test]
fn smoltcp_over_fq_codel() {
    let report = twice("smoltcp, fq_codel", || download(wired("fq_codel")));
    assert!(report.goodput() > 8.0, "{report:?}");
    assert!(report.counters.drops_aqm > 0, "{report:?}");
}

#[test]
fn smoltcp_over_dualpi2() {
    let report = twice("smoltcp, dualpi2", || download(wired("dualpi2")));
    assert!(report.goodput() > 2.5, "{report:?}");
}

#[test]
fn smoltcp_over_a_cellular_link() {
    let report = twice("smoltcp, trace", || download(cellular("fq_codel")));
    assert!(report.goodput() > 4.0, "{report:?}");
}
