//! One connection over TCP or QUIC, as the event loop sees it.

use sojourn_apps::{AppEvent, Command};
use sojourn_net::{Duration, Instant};
use sojourn_records::{FlowCounters, FlowSample};
use sojourn_transport::{SenderParams, quic};

use super::ahead::Ahead;
use super::bulk::{BulkFlow, BulkRecord};
use super::quic::{End, QuicConnection};
use super::tcp::TcpConnection;
use super::{Hosts, Outbox, TimerEvent, User};
use crate::packet::Kind;

/// A connection, both ends of it.
#[derive(Debug)]
pub(crate) enum Connection {
    Tcp(Box<TcpConnection>),
    Quic(Box<QuicConnection>),
}

impl Connection {
    /// A TCP connection over which its client, the near end, sends data; `ahead`: its receiver is ahead of the network.
    pub(super) fn one_way_tcp(
        user: User,
        params: &SenderParams,
        hosts: Hosts,
        ahead: Option<Ahead>,
    ) -> Self {
        let connection = TcpConnection::one_way(user, params, hosts);
        Self::Tcp(Box::new(match ahead {
            Some(ahead) => connection.with_receiver_ahead(ahead),
            None => connection,
        }))
    }

    /// A TCP connection whose client, the far end, sends requests.
    pub(super) fn two_way_tcp(user: User, params: &SenderParams, hosts: Hosts) -> Self {
        Self::Tcp(Box::new(TcpConnection::two_way(user, params, hosts)))
    }

    /// A QUIC connection that `client` opens.
    pub(super) fn quic(user: User, params: &quic::Params, client: End) -> Self {
        Self::Quic(Box::new(QuicConnection::new(user, params, client)))
    }

    /// The connection if it is of TCP.
    pub(super) const fn tcp(&self) -> Option<&TcpConnection> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }

    /// The connection if it is of TCP, to change it.
    #[inline]
    pub(crate) fn tcp_mut(&mut self) -> Option<&mut TcpConnection> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }

    /// The connection if it is of TCP and its data flows one way.
    #[inline]
    pub(super) fn one_way_mut(&mut self) -> Option<&mut TcpConnection> {
        self.tcp_mut().filter(|tcp| tcp.is_one_way())
    }

    /// Asks the processor to load what the arrival of a packet of `kind` needs.
    #[inline]
    pub(crate) fn prefetch(&self, kind: Kind) {
        match self {
            Self::Tcp(tcp) => tcp.prefetch(kind),
            Self::Quic(quic) => quic.prefetch(kind),
        }
    }

    /// Prefetches what the connection points to. Call it when the connection itself is in a cache.
    #[inline]
    pub(crate) fn prefetch_behind(&self, kind: Kind) {
        match self {
            Self::Tcp(tcp) => tcp.prefetch_behind(kind),
            Self::Quic(_) => {}
        }
    }

    /// Whether it is of TCP and its data flows one way.
    #[inline]
    pub(crate) const fn is_one_way_tcp(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.is_one_way())
    }

    /// Whether it is of QUIC.
    #[inline]
    pub(crate) const fn is_quic(&self) -> bool {
        matches!(self, Self::Quic(_))
    }

    /// The connection if it is of QUIC.
    #[inline]
    pub(crate) fn quic_mut(&mut self) -> Option<&mut QuicConnection> {
        match self {
            Self::Tcp(_) => None,
            Self::Quic(quic) => Some(quic),
        }
    }

    /// The application that uses it: its flow, and its number for the connection. `None`: a bulk
    /// transfer uses it, whose flow it is in.
    pub(crate) const fn app(&self) -> Option<(u32, u32)> {
        let user = match self {
            Self::Tcp(tcp) => &tcp.user,
            Self::Quic(quic) => &quic.user,
        };
        match user {
            User::App { app, number } => Some((*app, *number)),
            User::Bulk(_) => None,
        }
    }

    /// The bulk transfer that uses it.
    pub(crate) const fn bulk(&self) -> Option<&BulkFlow> {
        let user = match self {
            Self::Tcp(tcp) => &tcp.user,
            Self::Quic(quic) => &quic.user,
        };
        match user {
            User::Bulk(bulk) => Some(bulk),
            User::App { .. } => None,
        }
    }

    /// The same to change it.
    pub(crate) const fn bulk_mut(&mut self) -> Option<&mut BulkFlow> {
        let user = match self {
            Self::Tcp(tcp) => &mut tcp.user,
            Self::Quic(quic) => &mut quic.user,
        };
        match user {
            User::Bulk(bulk) => Some(bulk),
            User::App { .. } => None,
        }
    }

    /// Closes the server's end of a TCP connection once the client's is closed. Returns the kind of
    /// the packets to send, if any.
    pub(crate) fn close_server(&mut self, now: Instant, out: &mut Outbox) -> Option<Kind> {
        match self {
            Self::Tcp(tcp) => tcp.close_server(now, &mut out.segments),
            Self::Quic(_) => None,
        }
    }

    /// When the timers behind an event are due.
    pub(crate) fn next_timer(&self, now: Instant, event: TimerEvent) -> Option<Instant> {
        match (self, event) {
            (Self::Tcp(tcp), TimerEvent::Sender) => tcp.next_sender_timer(),
            (Self::Tcp(tcp), TimerEvent::Receiver) => tcp.next_receiver_timer(),
            // One that is overdue needs no second event now.
            (Self::Quic(quic), _) => {
                let timer = quic.next_timer(End::of(event));
                timer.map(|due| due.max(now))
            }
        }
    }

    /// Whether a turn of the end that sends packets of this kind may set the timers behind an event.
    pub(crate) fn may_set(&self, kind: Kind, event: TimerEvent) -> bool {
        match self {
            // With a request or its ACK, the other direction of the connection may begin or end.
            Self::Tcp(_) => match kind {
                Kind::Data => event == TimerEvent::Sender,
                Kind::Ack => event == TimerEvent::Receiver,
                _ => true,
            },
            Self::Quic(_) => End::of(event).kind() == kind,
        }
    }

    /// Executes a command of its user. Returns the kind of the packets to send, if any.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        command: Command,
        out: &mut Outbox,
    ) -> Option<Kind> {
        match self {
            Self::Tcp(tcp) => tcp.execute(now, command, &mut out.segments),
            Self::Quic(quic) => quic.execute(now, command, &mut out.datagrams),
        }
    }

    /// Closes a QUIC connection from the end that sends packets of this kind, if that was to do so
    /// once everything is acknowledged, and it is. Returns whether it did.
    pub(crate) fn close_if_done(&mut self, now: Instant, kind: Kind, out: &mut Outbox) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Quic(quic) => quic.close_if_done(now, kind, &mut out.datagrams),
        }
    }

    /// The next event that its user has not been notified of.
    pub(crate) fn next_event(&mut self) -> Option<AppEvent> {
        match self {
            Self::Tcp(tcp) => tcp.next_event(),
            Self::Quic(quic) => quic.next_event(),
        }
    }

    /// Whether a turn of the end that sends packets of this kind is known to have nothing for the user and not to
    /// have ended the connection.
    #[inline]
    pub(crate) fn is_quiet(&self, kind: Kind) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Quic(quic) => quic.is_quiet(kind),
        }
    }

    /// Whether an end has given up.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.has_failed(),
            Self::Quic(quic) => quic.has_failed(),
        }
    }

    /// Whether nothing follows: all is acknowledged, or an end has given up.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.is_over(),
            Self::Quic(quic) => quic.is_over(),
        }
    }

    /// Calls [`Connection::count_limit`] if what limits the sender of data has changed since the last call.
    pub(crate) fn note_limit(&mut self, now: Instant, waited: impl FnOnce() -> Duration) {
        match self {
            Self::Tcp(tcp) => tcp.note_limit(now, waited),
            Self::Quic(quic) => quic.note_limit(now, waited),
        }
    }

    /// Counts for how long what limits the sender of data has done so; packets of the flow have `waited` in queues
    /// in all.
    pub(crate) fn count_limit(&mut self, now: Instant, waited: Duration) {
        match self {
            Self::Tcp(tcp) => tcp.count_limit(now, waited),
            Self::Quic(quic) => quic.count_limit(now, waited),
        }
    }

    /// Totals of the connection. Call [`Connection::count_limit`] first.
    pub(crate) fn counters(&self) -> FlowCounters {
        match self {
            Self::Tcp(tcp) => tcp.counters(),
            Self::Quic(quic) => quic.counters(),
        }
    }

    /// Bytes of data delivered since the last call.
    pub(crate) const fn take_delivered(&mut self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.take_delivered(),
            Self::Quic(quic) => quic.take_delivered(),
        }
    }

    /// The scenario stops the flow: the sender of data aborts.
    pub(crate) fn stop(&mut self) {
        if let Some(bulk) = self.bulk_mut() {
            bulk.stop();
        }
        match self {
            Self::Tcp(tcp) => tcp.abort(),
            Self::Quic(quic) => quic.abort(),
        }
    }

    /// State of the sender of data, with all bytes delivered so far.
    pub(crate) fn state(&self, at: Instant) -> FlowSample {
        match self {
            Self::Tcp(tcp) => tcp.state(at),
            Self::Quic(quic) => quic.state(at),
        }
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        let state = match self {
            Self::Tcp(tcp) => tcp.sample(at),
            Self::Quic(quic) => quic.state(at),
        };
        if let Some(bulk) = self.bulk_mut() {
            bulk.sample(state);
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        let counters = match self {
            Self::Tcp(tcp) => tcp.begin_measuring(),
            Self::Quic(quic) => quic.begin_measuring(),
        };
        if let Some(bulk) = self.bulk_mut() {
            bulk.begin_measuring(counters);
        }
    }

    /// The record of a flow of the configuration; the series moves into it. `None`: an application uses the connection.
    pub(crate) fn record(&mut self, now: Instant) -> Option<BulkRecord> {
        let (state, counters) = (self.state(now), self.counters());
        let (over, failed) = (self.is_over(), self.has_failed());
        let bulk = self.bulk_mut()?;
        Some(bulk.record(state, counters, over, failed))
    }
}
