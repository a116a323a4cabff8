//! One end of a QUIC connection: its state and its interface.

use sojourn_net::{Duration, Instant};

use super::congestion::Congestion;
use super::params::{CLIENT_HELLO, Params};
use super::rtt::RttEstimator;
use super::space::{self, APP, Space};
use super::streams::{Incoming, Outgoing};
use super::wire::Datagram;
use crate::delivery_rate::{DeliveryRateSampler, Totals};
use crate::limit::Limit;
use crate::segment::Flags;

/// The role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It opens the connection.
    Client,
    /// It accepts the connection.
    Server,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has been sent or received.
    Idle,
    /// The handshake is in progress.
    Connecting,
    /// The handshake is complete.
    Established,
    /// It was closed, by this end or the other.
    Closed,
    /// The idle time-out expired, or it was aborted.
    Aborted,
}

/// The keys of Initial or Handshake packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keys {
    #[default]
    None,
    Ready,
    Discarded,
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent with stream data.
    pub sent: u64,
    /// Of those, packets with retransmitted data.
    pub resent: u64,
    /// Packets with stream data that arrived, duplicates excluded.
    pub received: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Expiries of the probe timer.
    pub probe_timeouts: u64,
    /// Handshake packets with retransmitted data.
    pub handshake_resent: u64,
    /// `DATA_BLOCKED` and `STREAM_DATA_BLOCKED` sent.
    pub blocked: u64,
    /// Occurrences of persistent congestion.
    pub persistent: u64,
    /// Acknowledgements with an RTT sample of application data.
    pub rtt_samples: u64,
    /// Sum of these samples, in µs.
    pub rtt_micros: u64,
    /// The largest of these samples since [`Endpoint::reset_max_rtt`], in µs.
    pub rtt_max_micros: u32,
}

/// What a model-based controller needs to know of deliveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    /// Ack-eliciting packets of application data delivered.
    pub(super) delivered: u64,
    pub(super) sampler: DeliveryRateSampler,
}

impl Delivery {
    /// The sampler, and the totals that it takes, of which `lost` packets are counted elsewhere.
    pub(super) fn parts(&mut self, lost: u64) -> (&mut DeliveryRateSampler, Totals) {
        let delivered = self.delivered;
        (&mut self.sampler, Totals { delivered, lost })
    }
}

/// One end of a QUIC connection.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
pub struct Endpoint {
    pub(super) params: Params,
    /// [`Params::ect`] of them.
    pub(super) ect: Flags,
    pub(super) role: Role,
    pub(super) state: State,
    pub(super) spaces: [Space; 3],
    /// Keys of Initial and Handshake packets.
    pub(super) keys: [Keys; 2],
    /// 1-RTT packets can be sent, and received.
    pub(super) app_send: bool,
    pub(super) app_read: bool,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    pub(super) confirmed: bool,
    /// `HANDSHAKE_DONE` is to be sent.
    pub(super) done_pending: bool,
    /// The client's address is validated, as far as this end knows.
    pub(super) validated: bool,
    /// No ack-eliciting packet was sent since a packet last arrived: the next one restarts the idle
    /// timer (RFC 9000 §10.1).
    pub(super) idle_restarts_on_send: bool,
    pub(super) probe_count: u8,
    pub(super) rtt: RttEstimator,
    /// When the first RTT sample was taken.
    pub(super) first_sample: Option<Instant>,
    pub(super) congestion: Congestion,
    /// With a model-based controller.
    pub(super) delivery: Option<Box<Delivery>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) ce_seen: u32,
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    /// When loss detection or a probe is due.
    pub(super) recovery_due: Option<Instant>,
    pub(super) pacing_due: Option<Instant>,
    /// The earliest of all timers, while the connection is alive.
    pub(super) timer_due: Option<Instant>,
    pub(super) idle_since: Instant,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// An end that has sent nothing; a server waits for a client.
    pub fn new(role: Role, params: &Params) -> Self {
        let mut endpoint = Self {
            params: *params,
            ect: params.ect(),
            role,
            state: State::Idle,
            spaces: Default::default(),
            keys: Default::default(),
            app_send: false,
            app_read: false,
            confirmed: false,
            done_pending: false,
            validated: false,
            idle_restarts_on_send: false,
            probe_count: 0,
            rtt: RttEstimator::new(),
            first_sample: None,
            congestion: Congestion::new(params),
            delivery: None,
            outgoing: Outgoing::new(&params.flow),
            incoming: Incoming::new(&params.flow),
            ce_seen: 0,
            bytes_received: 0,
            bytes_sent: 0,
            recovery_due: None,
            pacing_due: None,
            timer_due: None,
            idle_since: Instant::ZERO,
            counters: Counters::default(),
        };
        if endpoint.congestion.is_model_based() {
            endpoint.delivery = Some(Box::default());
        }
        endpoint
    }

    /// A client sends its first flight.
    pub fn connect(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        debug_assert!(self.role == Role::Client && self.state == State::Idle);
        self.state = State::Connecting;
        self.idle_since = now;
        self.keys[space::INITIAL] = Keys::Ready;
        self.spaces[space::INITIAL].crypto.total = CLIENT_HELLO;
        self.flush(now, out);
    }

    /// Appends `bytes` to stream number `id`; `fin`: nothing follows. Data is sent as keys and
    /// window allow.
    pub fn write(&mut self, now: Instant, id: u16, bytes: u64, fin: bool, out: &mut Vec<Datagram>) {
        self.outgoing.write(id, bytes, fin);
        if self.is_alive() {
            self.flush(now, out);
        }
    }

    /// The application at this end stops or resumes reading: received data is kept, and flow control
    /// stops the peer.
    pub fn set_reading(&mut self, now: Instant, reading: bool, out: &mut Vec<Datagram>) {
        self.incoming.set_reading(reading);
        if self.is_alive() {
            self.flush(now, out);
        }
    }

    /// Closes the connection with a `CONNECTION_CLOSE` and does not wait for an answer.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        if self.is_alive() {
            self.send_close(now, out);
            self.state = State::Closed;
        }
    }

    /// Gives up without notice to the peer.
    pub const fn abort(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Aborted;
        }
    }

    pub(super) const fn is_alive(&self) -> bool {
        matches!(self.state, State::Connecting | State::Established)
    }

    /// The role of this end.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether the handshake is complete at this end.
    pub const fn is_connected(&self) -> bool {
        self.app_send && self.app_read
    }

    /// Whether the handshake is confirmed at this end.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether all that was written has been acknowledged.
    pub fn all_acknowledged(&self) -> bool {
        self.outgoing.is_done()
    }

    /// Bytes of all streams delivered to the application.
    pub const fn delivered_bytes(&self) -> u64 {
        self.incoming.delivered
    }

    /// Bytes of stream `id` delivered to the application.
    pub fn delivered_of(&self, id: u16) -> u64 {
        self.incoming.delivered(id)
    }

    /// Bytes written to stream `id` that have not been sent for the first time.
    pub fn unsent_of(&self, id: u16) -> u64 {
        self.outgoing.unsent(id)
    }

    /// Whether stream `id` has arrived completely.
    pub fn is_finished(&self, id: u16) -> bool {
        self.incoming.is_finished(id)
    }

    /// Whether [`Endpoint::next_finished`] will return a stream.
    #[inline]
    pub fn has_finished(&self) -> bool {
        self.incoming.has_finished()
    }

    /// The next stream that has arrived completely; each is returned once.
    pub fn next_finished(&mut self) -> Option<u16> {
        self.incoming.next_finished()
    }

    /// Congestion window, in full-sized datagrams.
    pub const fn cwnd(&self) -> u32 {
        self.congestion.window().cwnd
    }

    /// Slow-start threshold, in full-sized datagrams; `None` while it is unset, by default until
    /// the first congestion.
    pub const fn ssthresh(&self) -> Option<u32> {
        self.congestion.window().ssthresh.segments()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.has_sample().then(|| self.rtt.smoothed())
    }

    /// Full-sized datagrams in flight, rounded up.
    pub fn in_flight(&self) -> u32 {
        self.congestion.in_flight()
    }

    /// Why no more data is sent now. Only of an established connection.
    #[inline]
    pub fn limit(&self) -> Limit {
        if self.congestion.repairs_loss() {
            Limit::Recovery
        } else if self.congestion.limited {
            if self.pacing_due.is_some() {
                Limit::Pacing
            } else {
                Limit::CongestionWindow
            }
        } else if self.outgoing.is_blocked() {
            Limit::ReceiveWindow
        } else {
            Limit::Application
        }
    }

    /// The largest RTT sample counts from now.
    pub const fn reset_max_rtt(&mut self) {
        self.counters.rtt_max_micros = 0;
    }

    /// The counters of this end.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether nothing but 1-RTT packets is left to send or to wait for.
    #[inline]
    pub(super) fn is_past_handshake(&self) -> bool {
        self.confirmed && self.keys == [Keys::Discarded; 2]
    }

    pub(super) fn app(&mut self) -> &mut Space {
        &mut self.spaces[APP]
    }
}
