//! A connection that carries data both ways: a client asks, a server answers.
//!
//! Each end is a sender and a receiver. The client's sender opens the connection; the others join
//! it when the handshake is over. Acknowledgements do not ride on data, which costs a packet where
//! both ends have data at once: the first answer after a request.

use sojourn_apps::{AppEvent, Side};
use sojourn_net::Instant;
use sojourn_transport::{Arrival, Receiver, Segment, Sender, SenderParams, State};

use super::Hosts;
use crate::packet::Kind;
use sojourn_records::FlowCounters;

/// Both ends of a connection, and what its application wants to be told of.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
pub(crate) struct Duplex {
    /// Whose it is: the flow of the application, and what that calls it.
    pub(crate) app: u32,
    pub(crate) number: u32,
    /// From the client to the server.
    request: Sender,
    heard: Receiver,
    /// From the server to the client.
    response: Sender,
    taken: Receiver,
    connected: bool,
    accepted: bool,
    told_connected: bool,
    /// The application wants to hear nothing more.
    pub(crate) silent: bool,
    client_closed: bool,
    server_closed: bool,
    /// Bytes at the server, at the client, unsent at the server: what is waited for.
    ask_goal: u64,
    answer_goal: u64,
    room_goal: Option<u64>,
    /// Bytes of responses up to the last sample.
    sampled: u64,
}

impl Duplex {
    /// Sends the client's SYN.
    pub(crate) fn open(
        now: Instant,
        (app, number): (u32, u32),
        params: SenderParams,
        hosts: Hosts,
        out: &mut Vec<Segment>,
    ) -> Self {
        // The far host serves, as it sends: `near` is where data comes from.
        let mut request = Sender::new(&params, hosts.far);
        request.connect(now, out);
        Self {
            app,
            number,
            request,
            heard: Receiver::answering(&params, hosts.near),
            response: Sender::new(&params, hosts.near),
            taken: Receiver::answering(&params, hosts.far),
            connected: false,
            accepted: false,
            told_connected: false,
            silent: false,
            client_closed: false,
            server_closed: false,
            ask_goal: u64::MAX,
            answer_goal: u64::MAX,
            room_goal: None,
            sampled: 0,
        }
    }

    /// A segment arrived; what it causes is of the kind that [`Kind::answer`] tells.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        kind: Kind,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        match kind {
            Kind::Data => self.taken.on_segment(now, seg, arrival, out),
            Kind::Ack => self.response.on_segment(now, seg, out),
            Kind::Request => {
                self.heard.on_segment(now, seg, arrival, out);
                if !self.accepted && self.heard.is_established() {
                    self.accepted = true;
                    let handshake = self.heard.handshake(now, seg);
                    self.response.join(now, &handshake);
                }
            }
            Kind::RequestAck => {
                self.request.on_segment(now, seg, out);
                if !self.connected && self.request.state() == State::Established {
                    self.connected = true;
                    self.taken.join(now, &self.request.handshake());
                }
            }
            Kind::QuicData | Kind::QuicBack | Kind::Udp | Kind::Ping | Kind::Pong => {
                debug_assert!(false, "a {kind:?} packet reached a connection");
            }
        }
    }

    /// Closes the end whose peer has closed: each has nothing more to say.
    pub(crate) fn close_in_turn(&mut self, now: Instant, out: &mut Vec<Segment>) -> Option<Kind> {
        if self.heard.finished() && !self.server_closed {
            return Some(self.close(now, Side::Server, out));
        }
        None
    }

    /// The application at that end has `bytes` more to send.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        side: Side,
        bytes: u64,
        out: &mut Vec<Segment>,
    ) -> Kind {
        let (sender, kind) = self.sender(side);
        sender.write(now, bytes, out);
        kind
    }

    /// The application at that end has nothing more to send.
    pub(crate) fn close(&mut self, now: Instant, side: Side, out: &mut Vec<Segment>) -> Kind {
        match side {
            Side::Client => self.client_closed = true,
            Side::Server => self.server_closed = true,
        }
        let (sender, kind) = self.sender(side);
        sender.close(now, out);
        kind
    }

    const fn sender(&mut self, side: Side) -> (&mut Sender, Kind) {
        match side {
            Side::Client => (&mut self.request, Kind::Request),
            Side::Server => (&mut self.response, Kind::Data),
        }
    }

    pub(crate) const fn expect(&mut self, side: Side, total: u64) {
        match side {
            Side::Server => self.ask_goal = total,
            Side::Client => self.answer_goal = total,
        }
    }

    pub(crate) const fn want_room(&mut self, below: u64) {
        self.room_goal = Some(below);
    }

    /// What the application is to be told next, if anything.
    pub(crate) fn news(&mut self) -> Option<AppEvent> {
        if self.silent {
            return None;
        }
        let n = self.number;
        if self.connected && !self.told_connected {
            self.told_connected = true;
            return Some(AppEvent::Connected(n));
        }
        let (asked, answered) = (self.heard.delivered_bytes(), self.taken.delivered_bytes());
        if asked >= self.ask_goal {
            self.ask_goal = u64::MAX;
            return Some(AppEvent::ServerReceived(n, asked));
        }
        if answered >= self.answer_goal {
            self.answer_goal = u64::MAX;
            return Some(AppEvent::ClientReceived(n, answered));
        }
        if self
            .room_goal
            .is_some_and(|most| self.response.unsent_bytes() <= most)
        {
            self.room_goal = None;
            return Some(AppEvent::Writable(n));
        }
        if self.failed() {
            self.silent = true;
            return Some(AppEvent::Failed(n));
        }
        None
    }

    /// Whether either end has given up.
    pub(crate) fn failed(&self) -> bool {
        [&self.request, &self.response]
            .iter()
            .any(|sender| sender.state() == State::Aborted)
    }

    /// Whether nothing more will be sent.
    pub(crate) fn is_over(&self) -> bool {
        let done = |sender: &Sender| sender.state() == State::Done;
        self.failed() || (done(&self.request) && done(&self.response))
    }

    pub(crate) fn next_sender_timer(&self) -> Option<Instant> {
        earlier(self.request.next_timer(), self.response.next_timer())
    }

    pub(crate) fn next_receiver_timer(&self) -> Option<Instant> {
        earlier(self.heard.next_timer(), self.taken.next_timer())
    }

    /// Does what is due at the sender of that side.
    pub(crate) fn on_sender_timer(
        &mut self,
        now: Instant,
        side: Side,
        out: &mut Vec<Segment>,
    ) -> Kind {
        let (sender, kind) = self.sender(side);
        if sender.next_timer().is_some_and(|due| due <= now) {
            sender.on_timer(now, out);
        }
        kind
    }

    /// Does what is due at the receiver of that side.
    pub(crate) fn on_receiver_timer(
        &mut self,
        now: Instant,
        side: Side,
        out: &mut Vec<Segment>,
    ) -> Kind {
        let (receiver, kind) = match side {
            Side::Client => (&mut self.taken, Kind::Ack),
            Side::Server => (&mut self.heard, Kind::RequestAck),
        };
        receiver.on_timer(now, out);
        kind
    }

    /// Bytes of responses since this was last asked.
    pub(crate) const fn newly_delivered(&mut self) -> u64 {
        let all = self.taken.delivered_bytes();
        let new = all - self.sampled;
        self.sampled = all;
        new
    }

    /// What was counted of it: of data, the responses alone; of what went wrong, both ways.
    pub(crate) fn counters(&self) -> FlowCounters {
        let (there, back) = (self.request.counters(), self.response.counters());
        FlowCounters {
            delivered_bytes: self.taken.delivered_bytes(),
            sent_packets: back.sent,
            received_packets: self.taken.received_segments(),
            retransmits: there.resent + back.resent,
            timeouts: u64::from(there.timeouts) + u64::from(back.timeouts),
            syn_retransmits: u64::from(there.syn_resent),
            rtt_samples: back.rtt_samples,
            rtt_micros: back.rtt_micros,
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
