//! QUIC connections: `type = "quic"`.

use std::sync::Arc;

use sojourn_apps::Transport;
use sojourn_net::{Bytes, Duration, Rng};
use sojourn_transport::quic::{
    AckPolicy, FlowControl, LARGEST_CERTIFICATE, LARGEST_DATAGRAM, LONGEST_ACK_DELAY, Params,
    SMALLEST_DATAGRAM, largest_datagram,
};
use sojourn_transport::{CcSpec, SlowStart};

use super::block::{Source, TrafficProperties, TrafficType};
use super::tcp::{Transfer, WINDOW, check_slow_start_of, check_slow_start_parameters};
use crate::declare::{KeyValue, Keys, choices, keys, one_of};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Fields;
use crate::plan::Traffic;
use crate::value::Table;

/// The end of the data that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Receiver,
    Sender,
}

impl Client {
    const ALL: [Self; 2] = [Self::Receiver, Self::Sender];

    const fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
        }
    }
}

choices! {
    Client: "client";
}

/// The largest request: far beyond the requests of any application.
const LARGEST_REQUEST: u64 = 1 << 30;
/// A flow-control limit: at least about a datagram; above 1 TiB it never limits.
const LIMIT: Form = Form::Size(1_000, 1 << 40);
/// The largest number of packets per acknowledgement: far beyond any implementation.
const MOST_PER_ACK: u32 = 100_000;

keys! {
    /// Keys of QUIC that HTTP/3 has too.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Session {
        /// Resume a session: send requests and data directly after the ClientHello.
        zero_rtt: bool = Form::Flag, default "false";
        /// Flow-control limit on unread data, over all streams.
        max_data: Bytes = LIMIT, default "24mb";
        /// Flow-control limit on unread data, per stream.
        max_stream_data: Bytes = LIMIT, default "16mb";
    }
}

keys! {
    /// Keys of connections.
    #[derive(Clone, Copy, Debug)]
    struct Connection {
        /// Congestion control.
        cc: CcSpec = Form::CONTROL, default "cubic";
        /// Slow-start exit heuristic; by default that of the congestion control.
        slow_start: Option<SlowStart> = one_of::<SlowStart>();
        /// Send ECN-capable packets.
        ecn: bool = Form::Flag, default "false";
        /// Initial window in datagrams.
        initial_window: u32 = WINDOW, default "10";
        /// Which end opens the connection: the sender or the receiver of the data.
        client: Client = one_of::<Client>(), default "receiver";
        /// Size of the receiver's request.
        request: Option<Bytes> = Form::Size(1, LARGEST_REQUEST), default "400b";
        /// Bytes that the server sends in Handshake packets.
        certificate: Bytes = Form::Size(1, LARGEST_CERTIFICATE as u64), default "3000b";
        /// UDP payload of a full datagram once the handshake is confirmed; over IPv6 at most 1452b.
        max_datagram: Bytes = Form::Size(SMALLEST_DATAGRAM as u64, LARGEST_DATAGRAM as u64), default "1452b";
        /// Pace datagrams over the round trip.
        pacing: bool = Form::Flag, default "true";
        /// Number of packets per acknowledgement.
        ack_every: u32 = Form::Integer(1, MOST_PER_ACK as i64), default "2";
        /// Maximum delay of an acknowledgement if fewer than ack_every packets arrive.
        max_ack_delay: Duration = Form::TimeUpTo(LONGEST_ACK_DELAY), default "25ms";
        /// Idle time after which the connection is closed.
        idle_timeout: Duration = Form::POSITIVE_TIME, default "30s";
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "quic",
    keys: &[Transfer::KEYS, Connection::KEYS, Session::KEYS],
    properties: TrafficProperties::CONNECTION,
    read: |fields, _| Ok(Arc::new(Quic::read(fields)?)),
};

/// Settings of a QUIC block.
#[derive(Clone, Copy, Debug)]
struct Quic {
    transfer: Transfer,
    session: Session,
    /// Without a request if the sender is the client.
    connection: Connection,
}

impl Quic {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let mut quic = Self {
            transfer: Transfer::read(fields)?,
            session: Session::read(fields)?,
            connection: Connection::read(fields)?,
        };
        let Connection { cc, slow_start, .. } = quic.connection;
        check_slow_start_of(fields, cc, slow_start)?;
        let most = largest_datagram(fields.value("ip", KeyValue::read)?);
        if let Some(place) = fields.get("max_datagram")
            && quic.connection.max_datagram.0 > u64::from(most)
        {
            let given = place.node.shown();
            return Err(place.fail(format!(
                "{given} is out of range over IPv6; expected {SMALLEST_DATAGRAM}b to {most}b"
            )));
        }
        let params = quic.params();
        let way = (Transport::Quic, params.pacing);
        check_slow_start_parameters(fields, cc, params.slow_start(), way)?;
        if quic.connection.client == Client::Sender {
            if let Some(place) = fields.get("request") {
                return Err(place.fail("has no effect if the sender is the client; remove it"));
            }
            quic.connection.request = None;
        }
        Ok(quic)
    }

    fn params(&self) -> Params {
        let usual = Params::default();
        let keys = self.connection;
        Params {
            cc: keys.cc,
            slow_start: keys.slow_start,
            initial_window: keys.initial_window,
            zero_rtt: self.session.zero_rtt,
            ecn: keys.ecn,
            max_datagram: small(keys.max_datagram),
            certificate: small(keys.certificate),
            ack: AckPolicy {
                every: keys.ack_every,
                delay: keys.max_ack_delay,
                ..usual.ack
            },
            flow: self.session.flow(),
            pacing: keys.pacing,
            idle_timeout: keys.idle_timeout,
            ..usual
        }
    }
}

/// A size whose key allows no more than 65,535 bytes.
fn small(size: Bytes) -> u16 {
    u16::try_from(size.0).unwrap_or(u16::MAX)
}

impl Source for Quic {
    fn write(&self, fields: &mut Table) {
        self.transfer.write(fields);
        self.session.write(fields);
        self.connection.write(fields);
    }

    /// From `rng` comes how much is transferred.
    fn plan(&self, mut rng: Rng) -> Traffic {
        Traffic::Quic {
            bytes: self.transfer.bytes.map(|amount| amount.draw(&mut rng)),
            request: self.connection.request.map(|request| request.0),
            params: self.params(),
        }
    }
}

impl Session {
    /// How much may be sent before it is read.
    pub(super) const fn flow(self) -> FlowControl {
        FlowControl {
            data: self.max_data.0,
            stream_data: self.max_stream_data.0,
        }
    }
}
