//! A TCP connection of an application: both of its ends, which are sockets in two namespaces.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use sojourn_apps::{AppEvent, Length, Side};

use super::sockets::Waited;
use crate::sys::{TcpInfo, tcp_info};

/// Most bytes read or written before the next connection is served.
const TURN: usize = 1 << 20;

/// A connection from its opening to its end.
#[derive(Debug)]
pub(super) struct Connection {
    /// Identifier that the application uses.
    pub(super) number: u32,
    client: End,
    /// `None`: not accepted yet.
    server: Option<End>,
    /// Data that the server is to write or expects before it has accepted.
    early: Plan,
    /// Port of the client.
    pub(super) port: u16,
    established: bool,
    /// The application has closed it and receives no further notifications.
    silent: bool,
    failed: bool,
}

/// Pending work of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Plan {
    left: Length,
    /// Close after the remaining data.
    finish: bool,
    expected: Option<u64>,
    writable_below: Option<u64>,
}

impl Plan {
    const NOTHING: Self = Self {
        left: Length::Bytes(0),
        finish: false,
        expected: None,
        writable_below: None,
    };

    fn add(&mut self, more: Length) {
        self.left = match (self.left, more) {
            (Length::Bytes(left), Length::Bytes(more)) => Length::Bytes(left.saturating_add(more)),
            _ => Length::Endless,
        };
    }

    const fn wants_to_write(&self) -> bool {
        !matches!(self.left, Length::Bytes(0))
    }
}

/// The number of bytes that a call moves; `None` if the socket is not ready. Repeats an interrupted call.
fn unless_blocked(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// One endpoint.
#[derive(Debug)]
struct End {
    stream: TcpStream,
    plan: Plan,
    received: u64,
    /// The peer has closed its direction.
    ended: bool,
    shut: bool,
}

impl End {
    const fn new(stream: TcpStream, plan: Plan) -> Self {
        Self {
            stream,
            plan,
            received: 0,
            ended: false,
            shut: false,
        }
    }

    /// Reads the data that has arrived.
    fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        let mut read = 0;
        while !self.ended && read < TURN {
            let Some(length) = unless_blocked(|| self.stream.read(scratch))? else {
                break;
            };
            self.ended = length == 0;
            self.received += length as u64;
            read += length;
        }
        Ok(())
    }

    /// Writes as much as the socket accepts; the content is irrelevant.
    fn write(&mut self, zeros: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while self.plan.wants_to_write() && written < TURN {
            let most = match self.plan.left {
                Length::Bytes(left) => usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len()),
                Length::Endless => zeros.len(),
            };
            let Some(length) = unless_blocked(|| self.stream.write(&zeros[..most]))? else {
                break;
            };
            written += length;
            if let Length::Bytes(left) = &mut self.plan.left {
                *left -= length as u64;
            }
        }
        if self.plan.finish && !self.plan.wants_to_write() && !self.shut {
            self.shut = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    /// Whether the expected amount has arrived; reported once.
    fn takes_expected(&mut self) -> Option<u64> {
        let expected = self
            .plan
            .expected
            .filter(|&expected| self.received >= expected)?;
        self.plan.expected = None;
        debug_assert!(self.received >= expected, "as expected");
        Some(self.received)
    }

    fn poll<'a>(&'a self, is_open: bool, fds: &mut Vec<Waited<'a>>) {
        let mut flags = PollFlags::empty();
        if is_open && !self.ended {
            flags |= PollFlags::IN;
        }
        if !is_open || self.plan.wants_to_write() {
            flags |= PollFlags::OUT;
        }
        if !flags.is_empty() {
            fds.push((self.stream.as_fd(), flags));
        }
    }
}

impl Connection {
    pub(super) fn new(number: u32, client: TcpStream) -> io::Result<Self> {
        let port = client.local_addr()?.port();
        Ok(Self {
            number,
            client: End::new(client, Plan::NOTHING),
            server: None,
            early: Plan::NOTHING,
            port,
            established: false,
            silent: false,
            failed: false,
        })
    }

    /// The server has accepted it.
    pub(super) fn accept(&mut self, stream: TcpStream) {
        self.server = Some(End::new(stream, self.early));
    }

    fn plan(&mut self, side: Side) -> &mut Plan {
        match (side, &mut self.server) {
            (Side::Client, _) => &mut self.client.plan,
            (Side::Server, Some(server)) => &mut server.plan,
            (Side::Server, None) => &mut self.early,
        }
    }

    pub(super) fn write(&mut self, side: Side, length: Length) {
        self.plan(side).add(length);
    }

    pub(super) fn expect(&mut self, side: Side, bytes: u64) {
        self.plan(side).expected = Some(bytes);
    }

    pub(super) fn expect_writable(&mut self, bytes: u64) {
        self.plan(Side::Server).writable_below = Some(bytes);
    }

    pub(super) fn finish(&mut self, side: Side) {
        self.plan(side).finish = true;
    }

    /// Both endpoints write their remaining data, then close.
    pub(super) fn close(&mut self) {
        self.silent = true;
        self.finish(Side::Client);
        self.finish(Side::Server);
    }

    /// Whether nothing more can happen.
    pub(super) fn is_over(&self) -> bool {
        let done = |end: &End| end.ended && end.shut;
        self.failed || (done(&self.client) && self.server.as_ref().is_some_and(done))
    }

    /// Bytes received by the client and by the server.
    pub(super) fn received(&self) -> (u64, u64) {
        (
            self.client.received,
            self.server.as_ref().map_or(0, |server| server.received),
        )
    }

    /// TCP state of an endpoint as sender.
    pub(super) fn info(&self, side: Side) -> Option<TcpInfo> {
        let end = match side {
            Side::Client => Some(&self.client),
            Side::Server => self.server.as_ref(),
        };
        tcp_info(end?.stream.as_fd()).ok()
    }

    /// Congestion control of an end; `None` before the connection is established.
    pub(super) fn control(&self, side: Side) -> Option<String> {
        let end = match side {
            Side::Client => Some(&self.client).filter(|_| self.established),
            Side::Server => self.server.as_ref(),
        };
        rustix::net::sockopt::tcp_congestion(&end?.stream).ok()
    }

    pub(super) fn poll<'a>(&'a self, fds: &mut Vec<Waited<'a>>) {
        if self.failed {
            return;
        }
        self.client.poll(self.established, fds);
        if let Some(server) = &self.server {
            server.poll(true, fds);
        }
    }

    /// Reads and writes at both endpoints; reports the events that the application waits for.
    pub(super) fn work(&mut self, scratch: &mut [u8], zeros: &[u8], events: &mut Vec<AppEvent>) {
        if self.failed {
            return;
        }
        let before = events.len();
        if let Err(error) = self.try_work(scratch, zeros, events)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            self.failed = true;
            events.push(AppEvent::Failed(self.number));
        }
        if self.silent {
            events.truncate(before);
        }
    }

    fn try_work(
        &mut self,
        scratch: &mut [u8],
        zeros: &[u8],
        events: &mut Vec<AppEvent>,
    ) -> io::Result<()> {
        if !self.established {
            if let Some(error) = self.client.stream.take_error()? {
                return Err(error);
            }
            match self.client.stream.peer_addr() {
                Ok(_) => self.established = true,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
            let _ = self.client.stream.set_nodelay(true);
            events.push(AppEvent::Connected(self.number));
        }
        self.client.write(zeros)?;
        self.client.read(scratch)?;
        if let Some(total) = self.client.takes_expected() {
            events.push(AppEvent::ClientReceived(self.number, total));
        }
        if let Some(server) = &mut self.server {
            let had_ended = server.ended;
            server.write(zeros)?;
            server.read(scratch)?;
            if let Some(total) = server.takes_expected() {
                events.push(AppEvent::ServerReceived(self.number, total));
            }
            if server.ended && !had_ended {
                events.push(AppEvent::RequestReceived(self.number, 0));
            }
            if let (Some(below), Length::Bytes(left)) =
                (server.plan.writable_below, server.plan.left)
                && left <= below
            {
                server.plan.writable_below = None;
                events.push(AppEvent::Writable(self.number));
            }
        }
        Ok(())
    }
}
