//! A TCP connection: data one way, or requests and responses both ways.
//!
//! Each direction is a sender and a receiver. In a connection with requests the client's sender
//! opens it, and the others join when the handshake is over. Acknowledgements do not ride on data,
//! which costs a packet where both ends have data at once: the first response after a request.

use std::num::NonZeroU32;

use sojourn_apps::{AppEvent, Command, Side};
use sojourn_net::{Duration, Instant};
use sojourn_prefetch::prefetch;
use sojourn_records::{FlowCounters, FlowSample};
use sojourn_transport::{Arrival, Receiver, Segment, Sender, SenderParams, State};

use super::ahead::{Ahead, Received};
use super::limits::LimitClock;
use super::{Hosts, TimerEvent, User, bytes_of};
use crate::packet::Kind;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

/// Both ends of a connection, and the events that its user waits for.
#[derive(Debug)]
pub(crate) struct TcpConnection {
    pub(crate) user: User,
    /// From near to far: responses, or all data.
    pub(crate) data: Direction,
    /// From far to near; `None`: data flows one way only, and its sender is the client.
    request: Option<Box<Requests>>,
    connected_reported: bool,
    /// The end of the data of a connection without requests.
    finished_reported: bool,
    limits: LimitClock,
    /// How far the clock of the receiver of data is ahead of the network.
    pub(super) lead: Duration,
    /// Network time from which on [`Ahead::pass`] must be called before the receiver takes a packet.
    pub(super) look_at: Instant,
    pub(super) ahead: Option<Box<Ahead>>,
    /// Bytes of data up to the last call of [`TcpConnection::take_delivered`].
    taken: u64,
    /// The application waits until the client has received this total.
    client_goal: Option<u64>,
    /// It waits until at most this number of bytes of the server is unsent.
    writable_goal: Option<u64>,
}

/// The direction of requests, and what the application waits for.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
struct Requests {
    direction: Direction,
    established: bool,
    accepted: bool,
    server_closed: bool,
    /// The application has closed the connection: it gets no further events.
    silent: bool,
    /// Total of bytes received by the server.
    server_goal: Option<u64>,
}

impl TcpConnection {
    /// A connection over which the near end, its client, sends data. It does nothing before it is
    /// opened.
    pub(crate) fn one_way(user: User, params: &SenderParams, hosts: Hosts) -> Self {
        Self {
            user,
            data: Direction {
                sender: Sender::new(params, hosts.near),
                receiver: Receiver::answering(params, hosts.far),
            },
            request: None,
            connected_reported: false,
            finished_reported: false,
            limits: LimitClock::default(),
            lead: Duration::ZERO,
            look_at: Instant::MAX,
            ahead: None,
            taken: 0,
            client_goal: None,
            writable_goal: None,
        }
    }

    /// A connection over which the far end, its client, sends requests to the near one. It does
    /// nothing before it is opened.
    pub(crate) fn two_way(user: User, params: &SenderParams, hosts: Hosts) -> Self {
        Self {
            request: Some(Box::new(Requests {
                direction: Direction {
                    sender: Sender::new(params, hosts.far),
                    receiver: Receiver::answering(params, hosts.near),
                },
                established: false,
                accepted: false,
                server_closed: false,
                silent: false,
                server_goal: None,
            })),
            ..Self::one_way(user, params, hosts)
        }
    }

    /// Whether data flows one way only.
    #[inline]
    pub(crate) const fn is_one_way(&self) -> bool {
        self.request.is_none()
    }

    /// Asks the processor to load what a segment of `kind` needs.
    #[inline]
    pub(crate) fn prefetch(&self, kind: Kind) {
        prefetch(&self.user);
        prefetch(&self.request);
        prefetch(&self.client_goal);
        prefetch(&self.writable_goal);
        match kind {
            Kind::Data => prefetch(&self.data.receiver),
            Kind::Ack => prefetch(&self.data.sender),
            _ => {}
        }
    }

    /// Prefetches what the connection points to. Call it when the connection itself is in a cache.
    #[inline]
    pub(crate) fn prefetch_behind(&self, kind: Kind) {
        if let Some(request) = &self.request {
            match kind {
                Kind::Request => prefetch(&request.direction.receiver),
                Kind::RequestAck => prefetch(&request.direction.sender),
                _ => {}
            }
        }
        match kind {
            Kind::Data => self.data.receiver.prefetch_held(),
            Kind::Ack => self.data.sender.prefetch_segments(),
            _ => {}
        }
    }

    /// A segment arrived; what it causes is of the kind that [`Kind::answer`] names.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        kind: Kind,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        match (kind, &mut self.request) {
            (Kind::Data, _) => self.data.receiver.on_segment(now, seg, arrival, out),
            (Kind::Ack, _) => self.data.sender.on_segment(now, seg, out),
            (Kind::Request, Some(request)) => {
                let receiver = &mut request.direction.receiver;
                receiver.on_segment(now, seg, arrival, out);
                if !request.accepted && receiver.is_established() {
                    request.accepted = true;
                    self.data.sender.join(now, &receiver.handshake(now, seg));
                }
            }
            (Kind::RequestAck, Some(request)) => {
                let sender = &mut request.direction.sender;
                sender.on_segment(now, seg, out);
                if !request.established && sender.state() == State::Established {
                    request.established = true;
                    self.data.receiver.join(now, &sender.handshake());
                }
            }
            _ => debug_assert!(false, "a {kind:?} packet reached a TCP connection"),
        }
    }

    /// Closes the server's end once the client's is closed: it has nothing more to send.
    pub(crate) fn close_server(&mut self, now: Instant, out: &mut Vec<Segment>) -> Option<Kind> {
        let request = self.request.as_mut()?;
        if request.server_closed || !request.direction.receiver.finished() {
            return None;
        }
        request.server_closed = true;
        self.data.sender.close(now, out);
        Some(Kind::Data)
    }

    /// Executes a command; returns the kind of the packets to send.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        command: Command,
        out: &mut Vec<Segment>,
    ) -> Option<Kind> {
        match command {
            Command::Open(_) => {
                let (sender, kind) = self.sender(Side::Client);
                sender.connect(now, out);
                Some(kind)
            }
            Command::OpenAndWrite { length, end, .. } => {
                let (sender, kind) = self.sender(Side::Client);
                sender.write(now, bytes_of(length), out);
                if end {
                    sender.close(now, out);
                }
                sender.connect(now, out);
                Some(kind)
            }
            Command::Write(_, side, length) => {
                let (sender, kind) = self.sender(side);
                sender.write(now, bytes_of(length), out);
                Some(kind)
            }
            Command::Close(_) => {
                if let Some(request) = &mut self.request {
                    request.silent = true;
                }
                let (sender, kind) = self.sender(Side::Client);
                sender.close(now, out);
                Some(kind)
            }
            Command::Expect(_, side, total) => {
                match (side, &mut self.request) {
                    (Side::Server, Some(request)) => request.server_goal = Some(total),
                    (Side::Client, _) => self.client_goal = Some(total),
                    (Side::Server, None) => {}
                }
                None
            }
            Command::ExpectWritable(_, unsent) => {
                self.writable_goal = Some(unsent);
                None
            }
            // Of an application that writes at a rate.
            Command::Finish(_, Side::Client)
                if self.is_one_way() && !self.data.sender.is_closed() =>
            {
                self.data.sender.close(now, out);
                Some(Kind::Data)
            }
            // A FIN follows the data; the connection ends when it is acknowledged.
            Command::Finish(..) => None,
            Command::WriteStream(..) => {
                debug_assert!(false, "{command:?} is not for a TCP connection");
                None
            }
        }
    }

    /// The sender of packets of `kind`.
    pub(super) fn sender_of(&self, kind: Kind) -> Option<&Sender> {
        match (kind, &self.request) {
            (Kind::Data, _) => Some(&self.data.sender),
            (Kind::Request, Some(request)) => Some(&request.direction.sender),
            _ => None,
        }
    }

    fn sender(&mut self, side: Side) -> (&mut Sender, Kind) {
        match (side, &mut self.request) {
            (Side::Client, Some(request)) => (&mut request.direction.sender, Kind::Request),
            _ => (&mut self.data.sender, Kind::Data),
        }
    }

    /// Whether a connection without requests has an event for its user.
    #[inline]
    pub(crate) fn has_event(&self, kind: Kind) -> bool {
        match kind {
            Kind::Data => !self.finished_reported && self.data.receiver.finished(),
            _ => !self.connected_reported && self.data.sender.state() == State::Established,
        }
    }

    /// Whether a segment of `kind`, on a connection with requests whose earlier events have been collected, is known to
    /// have caused nothing but its answer. It reads only the end that the segment has reached: with thousands of
    /// connections, the rest is in no cache.
    #[inline]
    pub(crate) fn is_quiet_after(&self, kind: Kind) -> bool {
        debug_assert!(!self.is_one_way(), "the end of a transfer is an event");
        match kind {
            Kind::Data => {
                let received = self.data.receiver.delivered_bytes();
                self.client_goal.is_none_or(|goal| received < goal)
            }
            Kind::Ack => {
                let sender = &self.data.sender;
                let unsent = sender.unsent_bytes();
                !matches!(sender.state(), State::Done | State::Aborted)
                    && self.writable_goal.is_none_or(|limit| unsent > limit)
            }
            _ => false,
        }
    }

    /// When the timer is due of the end that a segment of `kind`, data or an ACK of data, has reached; `None` also if
    /// it is not before the `pending` event of that end.
    #[inline]
    pub(crate) fn next_timer_after(&self, kind: Kind, pending: Instant) -> Option<Instant> {
        match kind {
            Kind::Data => self.next_data_timer(),
            _ => self.data.sender.next_timer_before(pending),
        }
    }

    /// The next event that its user has not been notified of.
    pub(crate) fn next_event(&mut self) -> Option<AppEvent> {
        let n = self.user.number();
        let Some(request) = &mut self.request else {
            if self.has_event(Kind::Ack) {
                self.connected_reported = true;
                return Some(AppEvent::Connected(n));
            }
            if self.has_event(Kind::Data) {
                self.finished_reported = true;
                return Some(AppEvent::RequestReceived(n, 0));
            }
            return None;
        };
        if request.silent {
            return None;
        }
        if request.established && !self.connected_reported {
            self.connected_reported = true;
            return Some(AppEvent::Connected(n));
        }
        let received = request.direction.receiver.delivered_bytes();
        if request
            .server_goal
            .take_if(|goal| received >= *goal)
            .is_some()
        {
            return Some(AppEvent::ServerReceived(n, received));
        }
        let received = self.data.receiver.delivered_bytes();
        if self.client_goal.take_if(|goal| received >= *goal).is_some() {
            return Some(AppEvent::ClientReceived(n, received));
        }
        let sender = &self.data.sender;
        let writable = |limit: &mut u64| sender.unsent_bytes() <= *limit;
        if self.writable_goal.take_if(writable).is_some() {
            return Some(AppEvent::Writable(n));
        }
        if self.has_failed() {
            if let Some(request) = &mut self.request {
                request.silent = true;
            }
            return Some(AppEvent::Failed(n));
        }
        None
    }

    /// Whether either end has given up.
    pub(crate) fn has_failed(&self) -> bool {
        let aborted = |direction: &Direction| direction.sender.state() == State::Aborted;
        let request = self.request.as_ref();
        aborted(&self.data) || request.is_some_and(|request| aborted(&request.direction))
    }

    /// Whether nothing more will be sent.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        match (&self.request, self.data.sender.state()) {
            // The application may read what is acknowledged later.
            (None, state) => {
                matches!(state, State::Done | State::Aborted)
                    && (state == State::Aborted || self.data.receiver.finished())
            }
            (Some(_), State::Aborted) => true,
            (Some(request), state) => match request.direction.sender.state() {
                State::Aborted => true,
                State::Done => state == State::Done,
                _ => false,
            },
        }
    }

    /// The sender of data gives up.
    pub(crate) fn abort(&mut self) {
        self.data.sender.abort();
    }

    /// When the timer of a sender is due.
    pub(crate) fn next_sender_timer(&self) -> Option<Instant> {
        let request = self.request.as_ref();
        earlier(
            request.and_then(|request| request.direction.sender.next_timer()),
            self.data.sender.next_timer(),
        )
    }

    /// When the timer of a receiver is due.
    pub(crate) fn next_receiver_timer(&self) -> Option<Instant> {
        let request = self.request.as_ref();
        earlier(
            request.and_then(|request| request.direction.receiver.next_timer()),
            self.next_data_timer(),
        )
    }

    /// Handles the timer behind an event of one side of a connection with requests, if it is due. Returns the kind of
    /// the packets that this sends.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        event: TimerEvent,
        side: Side,
        out: &mut Vec<Segment>,
    ) -> Kind {
        debug_assert!(!self.is_one_way(), "it has a path of its own");
        if event == TimerEvent::Sender {
            let (sender, kind) = self.sender(side);
            if sender.next_timer().is_some_and(|due| due <= now) {
                sender.on_timer(now, out);
            }
            return kind;
        }
        let (receiver, kind) = match (side, &mut self.request) {
            (Side::Server, Some(request)) => (&mut request.direction.receiver, Kind::RequestAck),
            _ => (&mut self.data.receiver, Kind::Ack),
        };
        receiver.on_timer(now, out);
        kind
    }

    /// Bytes of data delivered since the last call.
    pub(crate) const fn take_delivered(&mut self) -> u64 {
        let all = self.data.receiver.delivered_bytes();
        let new = all - self.taken;
        self.taken = all;
        new
    }

    /// Calls [`TcpConnection::count_limit`] if what limits the sender of data has changed since the last call.
    #[inline]
    pub(crate) fn note_limit(&mut self, now: Instant, waited: impl FnOnce() -> Duration) {
        if self.limit_changed() {
            self.count_limit(now, waited());
        }
    }

    /// Whether what limits the sender of data has changed since [`TcpConnection::count_limit`] was called.
    #[inline]
    pub(crate) fn limit_changed(&self) -> bool {
        !self.limits.is(self.data.sender.limit())
    }

    /// Counts for how long what limits the sender of data has done so; packets of the flow have `waited` in queues
    /// in all.
    #[inline(never)]
    pub(crate) fn count_limit(&mut self, now: Instant, waited: Duration) {
        let sender = &self.data.sender;
        let limit = (sender.state() == State::Established).then(|| sender.limit());
        self.limits.set(now, limit, waited);
    }

    /// Totals: packets of data, which are the responses of an application; retransmissions and
    /// timeouts of both directions.
    pub(crate) fn counters(&self) -> FlowCounters {
        let data = self.data.sender.counters();
        let request = self.request.as_ref();
        let request = request.map(|request| request.direction.sender.counters());
        let client = request.unwrap_or(data);
        let (resent, timeouts) = request.map_or((0, 0), |r| (r.resent, u64::from(r.timeouts)));
        let mut counters = FlowCounters {
            delivered_bytes: self.data.receiver.delivered_bytes(),
            sent_packets: data.sent,
            ect_packets: data.ect,
            received_packets: self.data.receiver.received_segments(),
            ce_packets: self.data.receiver.marked_segments(),
            reported_ce_packets: data.marked,
            retransmits: data.resent + resent,
            timeouts: u64::from(data.timeouts) + timeouts,
            syn_retransmits: u64::from(client.syn_resent),
            rtt_samples: data.rtt_samples,
            rtt_micros: data.rtt_micros,
            rtt_max_micros: self.data.sender.max_rtt_micros().into(),
            ..FlowCounters::default()
        };
        self.limits.store(&mut counters);
        counters
    }

    /// State of the sender of data, with all bytes delivered so far.
    pub(crate) fn state(&self, at: Instant) -> FlowSample {
        let sender = &self.data.sender;
        FlowSample {
            at,
            delivered_bytes: self.data.receiver.delivered_bytes(),
            cwnd: NonZeroU32::new(sender.cwnd()),
            ssthresh: sender.ssthresh(),
            srtt: sender.srtt(),
            in_flight: sender.in_flight(),
            receive_window: sender.peer_window(),
        }
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Kind {
    /// Of what kind are the packets that an end sends when one of this kind arrives.
    pub(crate) const fn answer(self) -> Self {
        match self {
            Self::Data => Self::Ack,
            Self::Ack => Self::Data,
            Self::Request => Self::RequestAck,
            Self::RequestAck => Self::Request,
            Self::Ping => Self::Pong,
            Self::QuicData => Self::QuicBack,
            Self::QuicBack => Self::QuicData,
            Self::Udp | Self::Pong => self,
        }
    }
}

impl TcpConnection {
    /// Sets the receiver of data ahead of the network.
    pub(crate) fn with_receiver_ahead(mut self, ahead: Ahead) -> Self {
        self.lead = ahead.lead;
        self.look_at = ahead.next();
        self.ahead = Some(Box::new(ahead));
        self
    }

    /// The time on the clock of the receiver of data; `None`: it ignores arrivals from now on.
    #[inline]
    pub(crate) fn receiver_time(&mut self, now: Instant) -> Option<Instant> {
        let at = now + self.lead;
        (now < self.look_at || self.pass(at)).then_some(at)
    }

    #[cold]
    fn pass(&mut self, at: Instant) -> bool {
        let received = self.received();
        let Some(ahead) = &mut self.ahead else {
            return true;
        };
        let takes = ahead.pass(at, received);
        self.look_at = ahead.next();
        takes
    }

    /// What the receiver of data has received up to the time on its clock.
    fn received(&self) -> Received {
        Received {
            bytes: self.data.receiver.delivered_bytes(),
            packets: self.data.receiver.received_segments(),
            marked: self.data.receiver.marked_segments(),
        }
    }

    /// Whether [`TcpConnection::receiver_time`] returns a time and has nothing else to do.
    #[inline]
    pub(crate) fn follows_clock(&self, now: Instant) -> bool {
        now < self.look_at
    }

    /// When the timer of the receiver of data is due.
    #[inline]
    pub(crate) fn next_data_timer(&self) -> Option<Instant> {
        let due = self.data.receiver.next_timer();
        due.map(|due| due.saturating_sub(self.lead))
    }

    /// The warm-up has ended; returns the totals then.
    pub(crate) fn begin_measuring(&mut self) -> FlowCounters {
        let mut counters = self.counters();
        if let Some(ahead) = &mut self.ahead {
            let received = ahead.begin_measuring(Received {
                bytes: counters.delivered_bytes,
                packets: counters.received_packets,
                marked: counters.ce_packets,
            });
            counters.delivered_bytes = received.bytes;
            counters.received_packets = received.packets;
            counters.ce_packets = received.marked;
            self.look_at = ahead.next();
        }
        self.data.sender.reset_max_rtt();
        counters
    }

    /// An interval of the series ends: [`TcpConnection::state`] at that instant of sender and receiver.
    pub(crate) fn sample(&mut self, at: Instant) -> FlowSample {
        let received = self.received();
        let mut state = self.state(at);
        if let Some(ahead) = &mut self.ahead {
            state.delivered_bytes = ahead.sample(received);
            self.look_at = ahead.next();
        }
        state
    }
}
