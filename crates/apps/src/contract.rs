//! Interface between an application and its driver: configuration and events in, commands and reports out.
//!
//! The driver may be a simulator or real sockets: nothing here knows which, nor which transport a
//! connection uses.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, IpVersion, Rng};
use sojourn_transport::{SMALLEST_MSS, SenderParams, full_payload, quic};

use crate::demand::{Demand, Opportunity, Volume};
use crate::report::{PlayerRecord, ResponsivenessRecord};

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opens the connection.
    Client,
    /// The end that accepts it.
    Server,
}

/// An event that an application reacts to. A connection is named by the number that it was opened
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// The application starts.
    Started,
    /// The time returned by the application's `next_timer` has come.
    Timer,
    /// The connection is established; the client may write.
    Connected(u32),
    /// The server has received the bytes it expected: connection, total received so far.
    ServerReceived(u32, u64),
    /// The client has received the bytes it expected: connection, total received so far.
    ClientReceived(u32, u64),
    /// The server's unsent bytes have fallen to the limit it set.
    Writable(u32),
    /// The server has received a stream in full: connection, stream.
    RequestReceived(u32, u16),
    /// The client has received a stream in full: connection, stream.
    ResponseReceived(u32, u16),
    /// The connection failed: the transport gave up, or it could not be opened.
    Failed(u32),
}

/// How much data a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many bytes.
    Bytes(u64),
    /// Data without an end: the connection always has more to send.
    Endless,
}

impl Length {
    /// This and `bytes` more.
    const fn plus(self, bytes: u64) -> Self {
        match self {
            Self::Bytes(written) => Self::Bytes(written + bytes),
            Self::Endless => Self::Endless,
        }
    }
}

/// An action that an application asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a connection with this number. Numbers are never reused.
    Open(u32),
    /// Open a connection whose client writes at once. Where the transport allows it, the first
    /// flight carries data.
    OpenAndWrite {
        /// Its number.
        number: u32,
        /// What the client sends.
        length: Length,
        /// The client writes nothing more.
        end: bool,
    },
    /// Send data: connection, writing end, how much.
    Write(u32, Side, Length),
    /// Send bytes on a stream and end it: connection, writing end, stream, number of bytes.
    WriteStream(u32, Side, u16, u64),
    /// Report when this end has received this many bytes in total.
    Expect(u32, Side, u64),
    /// Report when the server has at most this many bytes unsent.
    ExpectWritable(u32, u64),
    /// Close the connection once everything that this end wrote is acknowledged.
    Finish(u32, Side),
    /// Close the connection gracefully; no further event of it is reported.
    Close(u32),
}

impl Command {
    /// The number of its connection.
    pub const fn connection(self) -> u32 {
        match self {
            Self::Open(number)
            | Self::OpenAndWrite { number, .. }
            | Self::Write(number, ..)
            | Self::WriteStream(number, ..)
            | Self::Expect(number, ..)
            | Self::ExpectWritable(number, _)
            | Self::Finish(number, _)
            | Self::Close(number) => number,
        }
    }
}

/// One transaction: something that the user of an application waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The application's flow, by its place in the configuration.
    pub flow: u32,
    /// When it started.
    pub started: Instant,
    /// When it completed; `None`: not within the run.
    pub completed: Option<Instant>,
    /// Size of the responses, in bytes.
    pub bytes: u64,
}

/// Commands and reports of applications, collected by the driver.
#[derive(Debug, Default)]
pub struct AppOutput {
    /// Commands to execute, in order.
    pub commands: Vec<Command>,
    /// Transactions that have ended.
    pub transactions: Vec<Transaction>,
    /// The flow of the application that is running.
    pub flow: u32,
}

impl AppOutput {
    pub(crate) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Sends `bytes`. All that one end of a connection writes in one turn leaves as one write.
    pub(crate) fn write(&mut self, n: u32, side: Side, bytes: u64) {
        let same = |command: &&mut Command| match command {
            Command::Write(other, end, _) => (*other, *end) == (n, side),
            _ => false,
        };
        match self.commands.iter_mut().rev().find(same) {
            Some(Command::Write(.., total)) => *total = total.plus(bytes),
            _ => self.push(Command::Write(n, side, Length::Bytes(bytes))),
        }
    }

    pub(crate) fn record(&mut self, started: Instant, completed: Option<Instant>, bytes: u64) {
        self.transactions.push(Transaction {
            flow: self.flow,
            started,
            completed,
            bytes,
        });
    }
}

/// A running application. Its commands and reports go to `out`.
pub trait Application: Debug {
    /// Handles an event.
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput);

    /// When [`AppEvent::Timer`] is due; `None`: no timer is set.
    fn next_timer(&self) -> Option<Instant>;

    /// The warm-up has ended: measurements start now.
    fn begin_measuring(&mut self) {}

    /// The run ends or the application is stopped: reports what has not completed.
    fn finish(&mut self, now: Instant, out: &mut AppOutput);

    /// What a video player has recorded; `None` for other applications.
    fn player(&self) -> Option<PlayerRecord> {
        None
    }

    /// The result of a responsiveness test; `None` for others, or before there is one.
    fn responsiveness(&self) -> Option<ResponsivenessRecord> {
        None
    }
}

/// What all applications set that send requests over connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Transport of the connections.
    pub transport: Transport,
    /// Parameters of both ends of each connection; over QUIC, those that QUIC has too.
    pub tcp: SenderParams,
    /// Bytes of a request.
    pub request: Bytes,
}

/// Configuration of an application.
pub trait ApplicationConfig: Comparable + Debug + RefUnwindSafe + Send + Sync {
    /// Its connections and requests.
    fn exchange(&self) -> Exchange;

    /// Parameters of its connections if they are of QUIC: of TCP's, those that both have.
    fn quic_params(&self) -> quic::Params {
        quic_params(&self.exchange().tcp)
    }

    /// Time from the start of the flow to that of the application, if it is periodic; `rng` is a stream of its own.
    fn phase(&self, _rng: &mut Rng) -> Duration {
        Duration::ZERO
    }

    /// The most that it sends, whatever the network loses or delays.
    fn demand(&self, opportunity: &Opportunity) -> Demand;

    /// The first broken rule of those that only this application has: the key and what it must be.
    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The application, before it starts; its random streams derive from `rng`.
    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application>;
}

impl dyn ApplicationConfig {
    /// Parameters of its QUIC connections; `None`: it uses TCP.
    pub fn quic(&self) -> Option<quic::Params> {
        (self.exchange().transport == Transport::Quic).then(|| self.quic_params())
    }

    /// The first broken rule: the key and what it must be.
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        let Exchange { tcp, request, .. } = self.exchange();
        self.broken_rule()
            .or_else(|| match (request.0, tcp.initial_window) {
                (0, _) => Some(("request", "must be > 0")),
                (_, 0) => Some(("initial_window", "must be >= 1")),
                _ if !(SMALLEST_MSS..=full_payload(tcp.ip)).contains(&tcp.mss) => match tcp.ip {
                    IpVersion::V4 => Some(("mss", "must be 128 to 1448 bytes")),
                    IpVersion::V6 => Some(("mss", "must be 128 to 1428 bytes")),
                },
                _ => None,
            })
    }
}

/// Values that can be compared without knowing their types; those of two types differ.
pub trait Comparable: Any {
    /// Whether `other` has the same type and the same value.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> Comparable for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

impl PartialEq for dyn ApplicationConfig {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

/// What an application's connections run over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC, whose handshake contains that of TLS.
    Quic,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Quic];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Quic => "quic",
        }
    }
}

/// Parameters of QUIC connections: of TCP's, those that both have; defaults for the others.
pub fn quic_params(tcp: &SenderParams) -> quic::Params {
    quic::Params {
        cc: tcp.cc,
        slow_start: tcp.slow_start,
        initial_window: tcp.initial_window,
        ecn: tcp.ecn,
        ..quic::Params::default()
    }
}

/// A client's first flight, which browsers pad to this (RFC 7685 gives the means).
pub(crate) const HELLO: u64 = 517;
/// A server's: its part of the key, and a chain of two certificates of usual size; assumed.
pub(crate) const FLIGHT: u64 = 3_500;
/// A client's last: its Finished and a change of cipher for old middleboxes.
pub(crate) const FINISHED: u64 = 64;

impl Demand {
    /// This and the handshake of TLS on each connection.
    pub(crate) const fn with_tls(self) -> Self {
        let client = self.client.and(Volume::of(self.connections, HELLO));
        Self {
            client: client.and(Volume::of(self.connections, FINISHED)),
            server: self.server.and(Volume::of(self.connections, FLIGHT)),
            ..self
        }
    }
}

/// Things to do in the order of their time; those of the same instant as they were added.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Instant, u32, T)>>,
    added: u32,
}

impl<T: Ord + Copy> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }

    pub(crate) fn add(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse((at, self.added, what)));
        self.added = self.added.wrapping_add(1);
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// What is due `now`, one at a time.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((.., what))| what)
    }

    /// Forgets everything, and gives back the memory.
    pub(crate) fn clear(&mut self) {
        self.heap = BinaryHeap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_one_end_are_joined_and_endless_data_stays_endless() {
        let mut out = AppOutput::default();
        out.write(3, Side::Client, 100);
        out.write(3, Side::Client, 20);
        let written = Command::Write(3, Side::Client, Length::Bytes(120));
        assert_eq!(out.commands, [written]);
        let endless = Command::Write(4, Side::Server, Length::Endless);
        out.push(endless);
        out.write(4, Side::Server, 20);
        assert_eq!(out.commands, [written, endless]);
    }

    #[test]
    fn what_is_due_at_once_comes_as_it_was_added() {
        let mut timers = Timers::new();
        let at = Instant::from_millis;
        for (ms, what) in [(5, 'c'), (3, 'z'), (5, 'a'), (3, 'b')] {
            timers.add(at(ms), what);
        }
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.pop(at(2)), None);
        let order: Vec<_> = std::iter::from_fn(|| timers.pop(at(5))).collect();
        assert_eq!(order, ['z', 'b', 'c', 'a']);
    }
}
