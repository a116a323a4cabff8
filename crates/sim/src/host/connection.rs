//! One connection over TCP or QUIC, as the event loop sees it.

use sojourn_apps::{AppEvent, Command, Length};
use sojourn_net::Instant;

use super::Outbox;
use super::bulk::BulkFlow;
use super::quic::QuicConnection;
use super::tcp::TcpConnection;
use super::user::User;
use crate::packet::Kind;
use sojourn_records::{FlowCounters, FlowRecord, FlowSample};

/// What is written for endless data. At 100 Gbit/s it lasts for 46 years.
const ENDLESS: u64 = u64::MAX;

/// The number of bytes to pass to an endpoint.
pub(super) const fn bytes_of(length: Length) -> u64 {
    match length {
        Length::Bytes(bytes) => bytes,
        Length::Endless => ENDLESS,
    }
}

/// A connection, both ends of it.
#[derive(Debug)]
pub(crate) enum Connection {
    Tcp(Box<TcpConnection>),
    Quic(Box<QuicConnection>),
}

impl Connection {
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

    /// Whether an end has given up.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.has_failed(),
            Self::Quic(quic) => quic.has_failed(),
        }
    }

    /// Whether nothing follows: all is acknowledged, or an end has given up.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.is_over(),
            Self::Quic(quic) => quic.is_over(),
        }
    }

    /// Totals of the connection.
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
    fn state(&self, at: Instant) -> FlowSample {
        match self {
            Self::Tcp(tcp) => tcp.state(at),
            Self::Quic(quic) => quic.state(at),
        }
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        let state = self.state(at);
        if let Some(bulk) = self.bulk_mut() {
            bulk.sample(state);
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        let counters = self.counters();
        if let Some(bulk) = self.bulk_mut() {
            bulk.begin_measuring(counters);
        }
    }

    /// The record of a flow of the configuration, and whether its last sample ends with the
    /// interval in progress; the series moves into it. `None`: an application uses the connection.
    pub(crate) fn record(&mut self, now: Instant) -> Option<(FlowRecord, bool)> {
        let (state, counters) = (self.state(now), self.counters());
        let (over, failed) = (self.is_over(), self.has_failed());
        let bulk = self.bulk_mut()?;
        Some(bulk.record(state, counters, over, failed))
    }
}
