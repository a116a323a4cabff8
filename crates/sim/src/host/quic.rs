//! A QUIC connection: a byte stream both ways, or a stream per request and response.

use std::num::NonZeroU32;

use sojourn_apps::{AppEvent, Command, Side};
use sojourn_net::{Duration, Instant};
use sojourn_prefetch::prefetch;
use sojourn_records::{FlowCounters, FlowSample};
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role, State};

use super::limits::LimitClock;
use super::{TimerEvent, User, bytes_of};
use crate::packet::Kind;

/// The stream of [`Command::Write`].
const BYTES: u16 = 0;

/// An end of a connection, which decides the path of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Sends on the forward path: the sender of data, or the server of an application.
    Near,
    /// Sends on the reverse path.
    Far,
}

impl End {
    /// The end whose timer is behind an event.
    pub(crate) const fn of(event: TimerEvent) -> Self {
        match event {
            TimerEvent::Sender => Self::Near,
            TimerEvent::Receiver => Self::Far,
        }
    }

    /// The kind of the QUIC packets that it sends.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Near => Kind::QuicData,
            Self::Far => Kind::QuicBack,
        }
    }
}

/// Both ends of a connection, and the events that its user waits for.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    pub(crate) user: User,
    near: Endpoint,
    far: Endpoint,
    limits: LimitClock,
    client: End,
    connected_reported: bool,
    failed_reported: bool,
    /// The end that closes the connection once everything it wrote is acknowledged.
    closes: Option<End>,
    /// Totals of bytes received by the server and by the client on stream 0, and unsent bytes of the
    /// server on it.
    server_goal: Option<u64>,
    client_goal: Option<u64>,
    writable_goal: Option<u64>,
    /// The user may wait for the connection or for one of these goals.
    is_watched: bool,
    /// Bytes of data up to the last call of [`QuicConnection::take_delivered`].
    taken: u64,
}

impl QuicConnection {
    /// Asks the processor to load what a datagram of `kind` needs.
    #[inline]
    pub(crate) fn prefetch(&self, kind: Kind) {
        match kind {
            Kind::QuicData => prefetch(&self.far),
            _ => prefetch(&self.near),
        }
    }

    /// A connection that `client` will open; it does nothing before.
    pub(crate) fn new(user: User, params: &Params, client: End) -> Self {
        let role = |end| {
            if end == client {
                Role::Client
            } else {
                Role::Server
            }
        };
        Self {
            user,
            near: Endpoint::new(role(End::Near), params),
            far: Endpoint::new(role(End::Far), params),
            limits: LimitClock::default(),
            client,
            connected_reported: false,
            failed_reported: false,
            closes: None,
            server_goal: None,
            client_goal: None,
            writable_goal: None,
            is_watched: true,
            taken: 0,
        }
    }

    const fn end(&self, end: End) -> &Endpoint {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }

    const fn end_mut(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Near => &mut self.near,
            End::Far => &mut self.far,
        }
    }

    /// The end that is on this side.
    pub(super) const fn end_of(&self, side: Side) -> End {
        match (side, self.client) {
            (Side::Client, end) => end,
            (Side::Server, End::Near) => End::Far,
            (Side::Server, End::Far) => End::Near,
        }
    }

    /// A datagram reached `end`, with a CE mark or not.
    #[inline]
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        end: End,
        datagram: &Datagram,
        ce: bool,
        out: &mut Vec<Datagram>,
    ) {
        self.end_mut(end).on_datagram(now, datagram, ce, out);
    }

    /// When the timer of `end` is due.
    #[inline]
    pub(crate) fn next_timer(&self, end: End) -> Option<Instant> {
        self.end(end).next_timer()
    }

    /// Handles the timer of `end`.
    pub(crate) fn on_timer(&mut self, now: Instant, end: End, out: &mut Vec<Datagram>) {
        self.end_mut(end).on_timer(now, out);
    }

    /// Closes the connection if the end that sends packets of this kind was to do so once everything
    /// is acknowledged, and it is. Returns whether it did.
    #[inline]
    pub(crate) fn close_if_done(
        &mut self,
        now: Instant,
        kind: Kind,
        out: &mut Vec<Datagram>,
    ) -> bool {
        if !self.is_to_close(kind) {
            return false;
        }
        if let Some(end) = self.closes.take() {
            self.end_mut(end).close(now, out);
        }
        true
    }

    /// Executes a command; returns the kind of the packets to send.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        command: Command,
        out: &mut Vec<Datagram>,
    ) -> Option<Kind> {
        self.is_watched = true;
        let end = match command {
            Command::Open(_) => {
                let client = self.client;
                self.end_mut(client).connect(now, out);
                client
            }
            Command::OpenAndWrite { length, end, .. } => {
                let client = self.client;
                let endpoint = self.end_mut(client);
                endpoint.write(now, BYTES, bytes_of(length), end, out);
                endpoint.connect(now, out);
                client
            }
            Command::Write(_, side, length) => {
                let end = self.end_of(side);
                let endpoint = self.end_mut(end);
                endpoint.write(now, BYTES, bytes_of(length), false, out);
                end
            }
            Command::WriteStream(_, side, stream, bytes) => {
                let end = self.end_of(side);
                self.end_mut(end).write(now, stream, bytes, true, out);
                end
            }
            Command::Close(_) => {
                let client = self.client;
                self.end_mut(client).close(now, out);
                client
            }
            Command::Finish(_, side) => {
                self.closes = Some(self.end_of(side));
                return None;
            }
            Command::Expect(_, side, total) => {
                match side {
                    Side::Server => self.server_goal = Some(total),
                    Side::Client => self.client_goal = Some(total),
                }
                return None;
            }
            Command::ExpectWritable(_, unsent) => {
                self.writable_goal = Some(unsent);
                return None;
            }
        };
        Some(end.kind())
    }

    /// Whether the user waits for nothing that a turn of the end that sends packets of this kind may bring, besides
    /// what has not come, and the connection goes on.
    #[inline]
    pub(crate) fn is_quiet(&self, kind: Kind) -> bool {
        let goes_on = |end: &Endpoint| end.state() == State::Established && !end.has_finished();
        goes_on(&self.near)
            && goes_on(&self.far)
            && !(self.is_watched && self.awaits_event())
            && !self.is_to_close(kind)
    }

    /// Whether the user waits for the connection or for a goal.
    const fn awaits_event(&self) -> bool {
        !self.connected_reported
            || self.server_goal.is_some()
            || self.client_goal.is_some()
            || self.writable_goal.is_some()
    }

    /// Whether the end that sends packets of this kind is to close the connection now.
    #[inline]
    fn is_to_close(&self, kind: Kind) -> bool {
        self.closes
            .is_some_and(|end| end.kind() == kind && self.end(end).all_acknowledged())
    }

    /// The next event that its user has not been notified of.
    pub(crate) fn next_event(&mut self) -> Option<AppEvent> {
        let n = self.user.number();
        let (client, server) = (self.client, self.end_of(Side::Server));
        if !self.connected_reported && self.end(client).is_connected() {
            self.connected_reported = true;
            return Some(AppEvent::Connected(n));
        }
        if let Some(stream) = self.end_mut(server).next_finished() {
            return Some(AppEvent::RequestReceived(n, stream));
        }
        if let Some(stream) = self.end_mut(client).next_finished() {
            return Some(AppEvent::ResponseReceived(n, stream));
        }
        if let Some(goal) = self.server_goal {
            let received = self.end(server).delivered_of(BYTES);
            if received >= goal {
                self.server_goal = None;
                return Some(AppEvent::ServerReceived(n, received));
            }
        }
        if let Some(goal) = self.client_goal {
            let received = self.end(client).delivered_of(BYTES);
            if received >= goal {
                self.client_goal = None;
                return Some(AppEvent::ClientReceived(n, received));
            }
        }
        if let Some(limit) = self.writable_goal
            && self.end(server).unsent_of(BYTES) <= limit
        {
            self.writable_goal = None;
            return Some(AppEvent::Writable(n));
        }
        if !self.failed_reported && self.has_failed() {
            self.failed_reported = true;
            return Some(AppEvent::Failed(n));
        }
        self.is_watched = self.awaits_event();
        None
    }

    /// Whether either end has given up.
    pub(crate) fn has_failed(&self) -> bool {
        let aborted = |end: &Endpoint| end.state() == State::Aborted;
        aborted(&self.near) || aborted(&self.far)
    }

    /// Whether nothing more will be sent: an end has closed the connection or given up.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        let gone = |end: &Endpoint| matches!(end.state(), State::Closed | State::Aborted);
        gone(&self.near) || gone(&self.far)
    }

    /// The sender of data gives up.
    pub(crate) const fn abort(&mut self) {
        self.near.abort();
    }

    /// Bytes of data delivered since the last call.
    pub(crate) const fn take_delivered(&mut self) -> u64 {
        let all = self.far.delivered_bytes();
        let new = all - self.taken;
        self.taken = all;
        new
    }

    /// Calls [`QuicConnection::count_limit`] if what limits the sender of data has changed since the last call.
    #[inline]
    pub(crate) fn note_limit(&mut self, now: Instant, waited: impl FnOnce() -> Duration) {
        if self.limit_changed() {
            self.count_limit(now, waited());
        }
    }

    /// Whether what limits the sender of data has changed since [`QuicConnection::count_limit`] was called.
    #[inline]
    fn limit_changed(&self) -> bool {
        !self.limits.is(self.near.limit())
    }

    /// Counts for how long what limits the sender of data has done so; packets of the flow have `waited` in queues
    /// in all.
    #[inline(never)]
    pub(crate) fn count_limit(&mut self, now: Instant, waited: Duration) {
        let established = self.near.state() == State::Established;
        let limit = established.then(|| self.near.limit());
        self.limits.set(now, limit, waited);
    }

    /// Totals: packets of data, which are the responses of an application. Of a bulk transfer,
    /// retransmissions and timeouts of the sender of data; of an application, of both ends.
    pub(crate) fn counters(&self) -> FlowCounters {
        let (near, far) = (self.near.counters(), self.far.counters());
        let (resent, timeouts) = match self.user {
            User::Bulk(_) => (0, 0),
            User::App { .. } => (far.resent, far.probe_timeouts),
        };
        let mut counters = FlowCounters {
            delivered_bytes: self.far.delivered_bytes(),
            sent_packets: near.sent,
            received_packets: far.received,
            retransmits: near.resent + resent,
            timeouts: near.probe_timeouts + timeouts,
            syn_retransmits: near.handshake_resent + far.handshake_resent,
            rtt_samples: near.rtt_samples,
            rtt_micros: near.rtt_micros,
            rtt_max_micros: near.rtt_max_micros.into(),
            ..FlowCounters::default()
        };
        self.limits.store(&mut counters);
        counters
    }

    /// The warm-up has ended; returns the totals then.
    pub(crate) fn begin_measuring(&mut self) -> FlowCounters {
        let counters = self.counters();
        self.near.reset_max_rtt();
        counters
    }

    /// State of the sender of data, with all bytes delivered so far.
    pub(crate) fn state(&self, at: Instant) -> FlowSample {
        FlowSample {
            at,
            delivered_bytes: self.far.delivered_bytes(),
            cwnd: NonZeroU32::new(self.near.cwnd()),
            ssthresh: self.near.ssthresh(),
            srtt: self.near.srtt(),
            in_flight: self.near.in_flight(),
            receive_window: None,
        }
    }
}
