//! Sockets in the namespaces of a run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use sojourn_net::Dscp;

use crate::flows::Side;
use crate::namespace::Namespace;
use crate::space::{End, Space};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A socket to wait for.
pub(super) type Waited<'a> = (BorrowedFd<'a>, PollFlags);

/// The ends of a flow.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    /// Where its data comes from.
    pub(super) source: &'a End,
    /// Where its data goes.
    pub(super) sink: &'a End,
    /// Its port.
    pub(super) port: u16,
    dscp: Dscp,
}

impl<'a> Route<'a> {
    pub(super) fn of(space: &'a Space, source: Side, port: u16, dscp: Dscp) -> Self {
        let (source, sink) = match source {
            Side::Client => (&space.client, &space.server),
            Side::Server => (&space.server, &space.client),
        };
        Self {
            source,
            sink,
            port,
            dscp,
        }
    }

    /// The same, seen from the other end.
    pub(super) const fn reversed(self) -> Self {
        Self {
            source: self.sink,
            sink: self.source,
            ..self
        }
    }

    fn class(&self, socket: &OwnedFd) -> io::Result<()> {
        set_class(socket, self.dscp)
    }

    /// Listens on the sink; accepted connections use this congestion control.
    pub(super) fn listen(&self, control: &str) -> io::Result<TcpListener> {
        self.sink.namespace.inside(|| {
            let socket =
                rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)?;
            sockopt::set_tcp_congestion(&socket, control)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            self.class(&socket)?;
            rustix::net::bind(&socket, &any(self.port))?;
            rustix::net::listen(&socket, 1_024)?;
            Ok(socket.into())
        })
    }

    pub(super) const fn dscp(&self) -> Dscp {
        self.dscp
    }

    /// A socket for datagrams at the sink.
    pub(super) fn receiver(&self) -> io::Result<UdpSocket> {
        self.sink.namespace.inside(|| {
            let socket =
                rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, None)?;
            self.class(&socket)?;
            enlarge(&socket);
            rustix::net::bind(&socket, &any(self.port))?;
            Ok(socket.into())
        })
    }

    /// A socket for datagrams to the sink, or for echo requests.
    pub(super) fn sender(&self, icmp: bool) -> io::Result<UdpSocket> {
        self.source.namespace.inside(|| {
            let protocol = icmp.then_some(ipproto::ICMP);
            let socket =
                rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, protocol)?;
            self.class(&socket)?;
            enlarge(&socket);
            if icmp {
                // The port of a ping socket is the identifier of its requests.
                rustix::net::bind(&socket, &any(self.port))?;
            }
            let server = SocketAddr::new(IpAddr::V4(self.sink.addresses.v4), self.port);
            rustix::net::connect(&socket, &server)?;
            Ok(socket.into())
        })
    }
}

/// Opens a connection from a namespace; it is not established yet.
pub(super) fn connect(
    namespace: &Namespace,
    server: SocketAddrV4,
    dscp: Dscp,
    control: &str,
) -> io::Result<TcpStream> {
    namespace.inside(|| {
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)?;
        sockopt::set_tcp_congestion(&socket, control)?;
        set_class(&socket, dscp)?;
        match rustix::net::connect(&socket, &server) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
            Err(error) => Err(error.into()),
        }
    })
}

fn set_class(socket: &OwnedFd, dscp: Dscp) -> io::Result<()> {
    if dscp != Dscp::default() {
        sockopt::set_ip_tos(socket, dscp.number() << 2)?;
    }
    Ok(())
}

fn any(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)
}

/// Enlarges the buffers for data that arrives while the thread is busy; a smaller buffer works too.
fn enlarge(socket: &OwnedFd) {
    if sockopt::set_socket_recv_buffer_size_force(socket, 4 << 20).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, 4 << 20);
    }
    let _ = sockopt::set_socket_send_buffer_size(socket, 4 << 20);
}
