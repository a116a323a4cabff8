//! QUIC, sans-IO: one end of a connection.
//!
//! # Source
//!
//! RFC 9000 (transport), RFC 9002 (loss detection and congestion control), from RFC 9001 what is
//! visible of TLS: which flight goes in which packets, and when keys come and go; the frequency of
//! acknowledgements after draft-ietf-quic-ack-frequency. Cross-checked with the crate quinn-proto,
//! see `docs/quic.md`.
//!
//! Assembly of packets is in `output`, what arrives in `input`, acknowledgements and loss
//! detection in `recovery`, timers in `timers`, the window and pacing in `congestion`, delivery rates in `rate`, streams in
//! `streams`, the form of a datagram in `wire`.
//!
//! # Model
//!
//! Both ends are an [`Endpoint`]; either may write to a stream. The TLS messages are numbers of
//! bytes: the client's hello, the server's hello in Initial packets, its certificate flight in
//! Handshake packets, the client's Finished. The application's packets start when keys would be
//! there; packets that come before their keys are discarded.
//!
//! # Differences from RFC 9000 and RFC 9002
//!
//! | here | RFC | effect |
//! |---|---|---|
//! | windows of flow control stay as they are | a receiver may tune them | – |
//! | no Retry, version negotiation, migration, key update, path MTU discovery, stateless reset | there | datagrams have 1200 B until the handshake is confirmed, then a given size |
//! | no `NEW_CONNECTION_ID`, `NEW_TOKEN`, session ticket | sent after the handshake | one or two packets fewer |
//! | ACK policy agreed beforehand | `ACK_FREQUENCY` frames | none once the first has arrived |
//! | counts of CE alone, which are believed | of ECT(0) and ECT(1) too, to validate them | none on paths that keep ECN |
//! | counts of 1-RTT packets alone; datagrams with Initial or Handshake packets are Not-ECT | of each space | a queue that marks drops these, as it does a SYN, and one with an L4S queue sends them through the other |

mod congestion;
mod input;
mod output;
mod rate;
mod received;
mod recovery;
mod rtt;
mod space;
mod streams;
mod timers;
mod wire;

use sojourn_net::{Duration, Instant};

use crate::cc::{CcKind, SlowStart};
use crate::segment::Flags;
use congestion::Congestion;
use rate::Rates;
pub use received::AckPolicy;
use rtt::Rtt;
use space::{APP, Space};
use streams::{Incoming, Outgoing};
pub use wire::Datagram;

/// UDP payload of every datagram until the handshake is confirmed (RFC 9000 §14.1).
pub const SMALLEST_DATAGRAM: u16 = 1_200;
/// UDP payload that fills an Ethernet frame over IPv4.
pub const LARGEST_DATAGRAM: u16 = 1_472;
/// Most bytes of a certificate flight.
pub const LARGEST_CERTIFICATE: u16 = 60_000;

/// The longest `max_ack_delay` that can be agreed on (RFC 9000 §18.2).
pub const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// `ClientHello` with one key share of X25519 and the usual extensions.
const CLIENT_HELLO: u32 = 300;
/// `ServerHello` with a key share of X25519.
const SERVER_HELLO: u32 = 90;
/// `Finished` with a hash of 32 bytes.
const FINISHED: u32 = 36;
/// The server's flight when a session is resumed: `EncryptedExtensions` and `Finished`.
const RESUMED: u32 = 136;

/// How CUBIC's slow start ends over QUIC: as RFC 9438 §4.10 SHOULD have it. HyStart, which TCP takes from
/// Linux, looks at the lengths of trains of acknowledgements, and those are what pacing makes them.
pub const CUBIC_SLOW_START: SlowStart = SlowStart::HyStartPlusPlus;

/// How much a peer may send before the application has read it (RFC 9000 §4), at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControl {
    /// `initial_max_data`: bytes of all streams together, and from then on beyond what was read.
    pub data: u64,
    /// `initial_max_stream_data`: the same of each.
    pub stream_data: u64,
}

impl Default for FlowControl {
    /// As large as Chromium's windows become, 24 and 16 MiB.
    fn default() -> Self {
        Self {
            data: 24 << 20,
            stream_data: 16 << 20,
        }
    }
}

/// What a connection is opened with; both ends are to have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Congestion control.
    pub cc: CcKind,
    /// How slow start ends besides by congestion; `None`: [`CUBIC_SLOW_START`] with CUBIC, with others their own
    /// way. Ways that the controller does not know ([`CcKind::slow_starts`]) change nothing.
    pub slow_start: Option<SlowStart>,
    /// Initial window in datagrams (RFC 9002 §7.2: 10).
    pub initial_window: u32,
    /// The client resumes a session and sends data before the handshake (0-RTT).
    pub zero_rtt: bool,
    /// Packets are ECN-capable; those of controllers that live on marks are anyway.
    pub ecn: bool,
    /// UDP payload of a full datagram once the handshake is confirmed.
    pub max_datagram: u16,
    /// Bytes that the server sends in Handshake packets: mostly its certificates.
    pub certificate: u16,
    /// When packets are acknowledged.
    pub ack: AckPolicy,
    /// Spread packets over the round trip (RFC 9002 §7.7).
    pub pacing: bool,
    /// How much may be sent that was not read.
    pub flow: FlowControl,
    /// `max_idle_timeout`: silence of this length ends the connection.
    pub idle_timeout: Duration,
    /// Of what the controller draws by lot.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            cc: CcKind::Cubic,
            slow_start: None,
            initial_window: 10,
            zero_rtt: false,
            ecn: false,
            max_datagram: 1_452,
            certificate: 3_000,
            ack: AckPolicy::default(),
            pacing: true,
            flow: FlowControl::default(),
            idle_timeout: Duration::from_secs(30),
            seed: 0,
        }
    }
}

impl Params {
    /// The ECN field of datagrams without Initial and Handshake packets: marks are asked for, or the controller cannot do without.
    fn ect(&self) -> Flags {
        match self.cc {
            cc if cc.needs_accurate_ecn() => Flags::ECT.with(Flags::ECT1),
            cc if self.ecn || cc.needs_ecn() => Flags::ECT,
            _ => Flags::NONE,
        }
    }

    /// The way in which slow start ends; `None`: the controller has its own.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let known = self.cc.slow_starts();
        let usual = match self.cc {
            CcKind::Cubic => Some(CUBIC_SLOW_START),
            _ => known.first().copied(),
        };
        self.slow_start.filter(|way| known.contains(way)).or(usual)
    }

    /// Bytes of the server's flight in Handshake packets.
    fn flight(&self) -> u32 {
        if self.zero_rtt {
            RESUMED
        } else {
            self.certificate.into()
        }
    }
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It opens the connection.
    Client,
    /// It answers.
    Server,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has been sent or received.
    Idle,
    /// The handshake is under way.
    Connecting,
    /// The handshake is complete.
    Established,
    /// It was closed, by this end or the other.
    Closed,
    /// Nothing was heard of the peer for too long, or it was given up.
    Aborted,
}

/// The keys of Initial or Handshake packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Keys {
    #[default]
    None,
    Ready,
    Discarded,
}

/// What an end counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent with data of streams.
    pub sent: u64,
    /// Of those, packets with data that was sent before.
    pub resent: u64,
    /// Packets with data of streams that arrived, once each.
    pub received: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Packets deemed lost.
    pub lost: u64,
    /// Expiries of the probe timer.
    pub probe_timeouts: u64,
    /// Packets of the handshake with something that was sent before.
    pub handshake_resent: u64,
    /// `DATA_BLOCKED` and `STREAM_DATA_BLOCKED` sent.
    pub blocked: u64,
    /// How often persistent congestion was found.
    pub persistent: u64,
    /// Acknowledgements that told a round-trip time of application data.
    pub rtt_samples: u64,
    /// Sum of these times, in µs.
    pub rtt_micros: u64,
}

/// One end of a QUIC connection.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
pub struct Endpoint {
    params: Params,
    role: Role,
    state: State,
    spaces: [Space; 3],
    /// Of Initial and Handshake packets.
    keys: [Keys; 2],
    /// 1-RTT packets can be sent, and read.
    app_send: bool,
    app_read: bool,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    confirmed: bool,
    /// `HANDSHAKE_DONE` is to be sent.
    done_pending: bool,
    /// A server: the client's address is no longer in doubt. A client: the server has told so.
    validated: bool,
    /// Nothing that asks to be acknowledged has been sent since a packet last arrived.
    silent: bool,
    probe_count: u8,
    rtt: Rtt,
    /// When the first RTT sample was taken.
    first_sample: Option<Instant>,
    congestion: Congestion,
    /// For a controller that models the path.
    rates: Option<Box<Rates>>,
    outgoing: Outgoing,
    incoming: Incoming,
    ce_seen: u32,
    bytes_received: u64,
    bytes_sent: u64,
    /// Loss detection or a probe is due.
    recovery_due: Option<Instant>,
    pacing_due: Option<Instant>,
    idle_from: Instant,
    counters: Counters,
}

impl Endpoint {
    /// An end that has sent nothing; a server waits for its client.
    pub fn new(role: Role, params: &Params) -> Self {
        let mut endpoint = Self {
            params: *params,
            role,
            state: State::Idle,
            spaces: Default::default(),
            keys: Default::default(),
            app_send: false,
            app_read: false,
            confirmed: false,
            done_pending: false,
            validated: false,
            silent: false,
            probe_count: 0,
            rtt: Rtt::new(),
            first_sample: None,
            congestion: Congestion::new(params),
            rates: None,
            outgoing: Outgoing::new(&params.flow),
            incoming: Incoming::new(&params.flow),
            ce_seen: 0,
            bytes_received: 0,
            bytes_sent: 0,
            recovery_due: None,
            pacing_due: None,
            idle_from: Instant::ZERO,
            counters: Counters::default(),
        };
        if endpoint.congestion.is_model_based() {
            endpoint.rates = Some(Box::default());
        }
        endpoint
    }

    /// A client sends its first flight.
    pub fn connect(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        debug_assert!(self.role == Role::Client && self.state == State::Idle);
        self.state = State::Connecting;
        self.idle_from = now;
        self.keys[space::INITIAL] = Keys::Ready;
        self.spaces[space::INITIAL].crypto.total = CLIENT_HELLO;
        self.flush(now, out);
    }

    /// Appends `bytes` to stream number `id`; `fin`: nothing follows. Data goes out as keys and
    /// window allow.
    pub fn write(&mut self, now: Instant, id: u16, bytes: u64, fin: bool, out: &mut Vec<Datagram>) {
        self.outgoing.write(id, bytes, fin);
        if self.is_alive() {
            self.flush(now, out);
        }
    }

    /// The application at this end stops reading, or reads again: what arrives is kept, and the peer
    /// may send no more than it was told.
    pub fn set_reading(&mut self, now: Instant, reading: bool, out: &mut Vec<Datagram>) {
        self.incoming.set_reading(reading);
        if self.is_alive() {
            self.flush(now, out);
        }
    }

    /// Closes the connection with a `CONNECTION_CLOSE`; nothing is waited for.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        if self.is_alive() {
            self.send_close(now, out);
            self.state = State::Closed;
        }
    }

    /// Gives up without a word.
    pub const fn abort(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Aborted;
        }
    }

    const fn is_alive(&self) -> bool {
        matches!(self.state, State::Connecting | State::Established)
    }

    /// Which end it is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Where the connection is in its life.
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

    /// Bytes of all streams handed to the application.
    pub const fn delivered_bytes(&self) -> u64 {
        self.incoming.delivered
    }

    /// Bytes of stream `id` handed to the application.
    pub fn delivered_of(&self, id: u16) -> u64 {
        self.incoming.delivered(id)
    }

    /// Whether stream `id` has arrived whole.
    pub fn is_finished(&self, id: u16) -> bool {
        self.incoming.is_finished(id)
    }

    /// The next stream that has arrived whole, each told once.
    pub fn next_finished(&mut self) -> Option<u16> {
        self.incoming.next_finished()
    }

    /// Congestion window, in full-sized datagrams.
    pub const fn cwnd(&self) -> u32 {
        self.congestion.window().cwnd
    }

    /// Slow-start threshold, in full-sized datagrams; `None` until the first congestion.
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

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    fn app(&mut self) -> &mut Space {
        &mut self.spaces[APP]
    }
}
