//! The TCP connections of a network namespace, with their congestion control (`sock_diag(7)`).
//!
//! Numbers are those of `linux/inet_diag.h` and `linux/tcp.h`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::namespace::Namespace;
use crate::netlink::{DONE, ERROR, Message, attributes, messages};

const BY_FAMILY: u16 = 20;
const TCP: u8 = 6;
const FAMILIES: [u8; 2] = [2, 10];

/// States of an established or closing connection: all except the states before the end of the handshake,
/// `TIME_WAIT`, `CLOSE` and `LISTEN`.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Attributes of a connection; bit `n - 1` of a request asks for attribute `n`.
const INFO: u16 = 2;
const CONTROL: u16 = 4;

/// Size of the read buffer in bytes: the kernel sends no longer parts of a dump.
const REPLY: usize = 32 << 10;
/// Length of `struct inet_diag_msg`.
const HEAD: usize = 72;

/// Lists the TCP connections of a network namespace.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    sent: u32,
    reply: Vec<u8>,
}

impl SockDiag {
    /// Opens a netlink socket, which belongs to `namespace`.
    ///
    /// # Errors
    /// Those of the system calls.
    pub(crate) fn open(namespace: &Namespace) -> io::Result<Self> {
        let socket = namespace.inside(|| {
            Ok(rustix::net::socket_with(
                AddressFamily::NETLINK,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                Some(netlink::SOCK_DIAG),
            )?)
        })?;
        Ok(Self {
            socket,
            sent: 0,
            reply: vec![0; REPLY],
        })
    }

    /// Calls `each` for every connection.
    ///
    /// # Errors
    /// Those of the system calls; `ENOENT` if the kernel lacks `tcp_diag`.
    pub(crate) fn list(&mut self, mut each: impl FnMut(Connection<'_>)) -> io::Result<()> {
        for family in FAMILIES {
            self.sent += 1;
            let request = request(family).finish(self.sent);
            rustix::net::send(&self.socket, &request, SendFlags::empty())?;
            // Ends: the kernel ends each dump with its last message or an error.
            loop {
                let flags = RecvFlags::empty();
                let (read, _) = rustix::net::recv(&self.socket, &mut *self.reply, flags)?;
                match read_part(&self.reply[..read], &mut each)? {
                    Part::Last => break,
                    Part::More => {}
                }
            }
        }
        Ok(())
    }
}

/// A TCP connection, seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection<'a> {
    /// Identifier of the socket, which no other socket has.
    pub(crate) cookie: u64,
    pub(crate) local: (IpAddr, u16),
    pub(crate) peer: (IpAddr, u16),
    /// Congestion control.
    pub(crate) control: &'a str,
    /// Whether ECN was negotiated.
    pub(crate) ecn: bool,
}

/// Whether more parts of a dump follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    More,
    Last,
}

/// `struct inet_diag_req_v2` for the TCP connections of an address family.
fn request(family: u8) -> Message {
    const ID: usize = 48;
    const EXTENSIONS: u8 = 1 << (INFO - 1) | 1 << (CONTROL - 1);
    let mut head = vec![family, TCP, EXTENSIONS, 0];
    head.extend(STATES.to_ne_bytes());
    head.extend([0; ID]);
    Message::dump(BY_FAMILY, &head)
}

/// Reads one part of a dump.
///
/// # Errors
/// The error of the kernel, if the part contains one.
pub(crate) fn read_part(bytes: &[u8], each: &mut impl FnMut(Connection<'_>)) -> io::Result<Part> {
    for (kind, body) in messages(bytes) {
        match kind {
            // The end of a dump contains the error that ended it: `ENOENT` without `tcp_diag`.
            DONE => match code(body) {
                0.. => return Ok(Part::Last),
                failed => return Err(io::Error::from_raw_os_error(failed.saturating_neg())),
            },
            ERROR => return Err(io::Error::from_raw_os_error(code(body).saturating_neg())),
            BY_FAMILY => {
                if let Some(connection) = connection(body) {
                    each(connection);
                }
            }
            _ => {}
        }
    }
    Ok(Part::More)
}

/// The code at the begin of a message: 0, or a negative error number.
fn code(body: &[u8]) -> i32 {
    body.first_chunk()
        .map_or(0, |code| i32::from_ne_bytes(*code))
}

/// Reads `struct inet_diag_msg` and its attributes; `None`: incomplete, or a connection without congestion control.
fn connection(body: &[u8]) -> Option<Connection<'_>> {
    const OPTIONS: usize = 5;
    const OPTION_ECN: u8 = 8;
    let (head, rest) = body.split_at_checked(HEAD)?;
    let port = |at: usize| Some(u16::from_be_bytes(*head.get(at..)?.first_chunk()?));
    let local = address(head[0], head.get(8..24)?)?;
    let peer = address(head[0], head.get(24..40)?)?;
    let cookie = u64::from_ne_bytes(*head.get(44..)?.first_chunk()?);
    let (mut control, mut ecn) = (None, false);
    for (kind, value) in attributes(rest) {
        match kind {
            INFO => ecn = value.get(OPTIONS)? & OPTION_ECN != 0,
            CONTROL => {
                let name = value.split(|&byte| byte == 0).next()?;
                control = std::str::from_utf8(name).ok();
            }
            _ => {}
        }
    }
    Some(Connection {
        cookie,
        local: (local, port(4)?),
        peer: (peer, port(6)?),
        control: control.filter(|name| !name.is_empty())?,
        ecn,
    })
}

/// An address; one of IPv4 that is mapped to IPv6 is one of IPv4.
fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        2 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        10 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
