//! QUIC connections: `type = "quic"`.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::Amount;
use sojourn_net::{Bytes, Rng};
use sojourn_transport::quic::{
    AckPolicy, FlowControl, LARGEST_CERTIFICATE, LARGEST_DATAGRAM, LONGEST_ACK_DELAY, Params,
    SMALLEST_DATAGRAM,
};

use super::block::{Source, TrafficProperties, TrafficType};
use super::tcp::{BYTES, SLOW_START, WINDOW, check_hystartpp, controller, slow_start};
use crate::amount;
use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, insert, size, time};

/// The end of the data that opens the connection.
const RECEIVER: &str = "receiver";
const SENDER: &str = "sender";
const CLIENTS: [&str; 2] = [RECEIVER, SENDER];
/// A request that names no size: an HTTP/3 request with its headers.
const REQUEST: &str = "400b";
/// The largest request: far beyond the requests of any application.
const LARGEST_REQUEST: u64 = 1 << 30;
/// A flow-control limit: at least about a datagram; above 1 TiB it never limits.
const LIMIT: Form = Form::Size(1_000, 1 << 40);
/// The largest number of packets per acknowledgement: far beyond any implementation.
const MOST_PER_ACK: u32 = 100_000;

pub(super) const ZERO_RTT: Key = Key::optional(
    "zero_rtt",
    Form::Flag,
    "Resume a session: send requests and data directly after the ClientHello.",
)
.or("false");
pub(super) const MAX_DATA: Key = Key::optional(
    "max_data",
    LIMIT,
    "Flow-control limit on unread data, over all streams.",
)
.or("24mb");
pub(super) const MAX_STREAM_DATA: Key = Key::optional(
    "max_stream_data",
    LIMIT,
    "Flow-control limit on unread data, per stream.",
)
.or("16mb");

const KEYS: &[Key] = &[
    Key::optional("cc", Form::CONTROL, "Congestion control.").or("cubic"),
    SLOW_START,
    BYTES,
    Key::optional("ecn", Form::Flag, "Send ECN-capable packets.").or("false"),
    Key::optional("initial_window", WINDOW, "Initial window in datagrams.").or("10"),
    Key::optional(
        "client",
        Form::Choice(|| CLIENTS.to_vec()),
        "Which end opens the connection: the sender or the receiver of the data.",
    )
    .or("receiver"),
    Key::optional(
        "request",
        Form::Size(1, LARGEST_REQUEST),
        "Size of the receiver's request.",
    )
    .or(REQUEST),
    ZERO_RTT,
    Key::optional(
        "certificate",
        Form::Size(1, LARGEST_CERTIFICATE as u64),
        "Bytes that the server sends in Handshake packets.",
    )
    .or("3000b"),
    Key::optional(
        "max_datagram",
        Form::Size(SMALLEST_DATAGRAM as u64, LARGEST_DATAGRAM as u64),
        "UDP payload of a full datagram once the handshake is confirmed.",
    )
    .or("1452b"),
    MAX_DATA,
    MAX_STREAM_DATA,
    Key::optional("pacing", Form::Flag, "Pace datagrams over the round trip.").or("true"),
    Key::optional(
        "ack_every",
        Form::Integer(1, MOST_PER_ACK as i64),
        "Number of packets per acknowledgement.",
    )
    .or("2"),
    Key::optional(
        "max_ack_delay",
        Form::TimeUpTo(LONGEST_ACK_DELAY),
        "Maximum delay of an acknowledgement if fewer than ack_every packets arrive.",
    )
    .or("25ms"),
    Key::optional(
        "idle_timeout",
        Form::POSITIVE_TIME,
        "Idle time after which the connection is closed.",
    )
    .or("30s"),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "quic",
    keys: &[KEYS],
    properties: TrafficProperties::CONNECTION,
    read: |fields, _| Ok(Arc::new(Quic::read(fields)?)),
};

/// Settings of a QUIC block.
#[derive(Clone, Copy, Debug)]
struct Quic {
    /// `None`: data without end.
    bytes: Option<Amount>,
    /// Of the receiver, which then is the client; `None`: the sender is.
    request: Option<Bytes>,
    params: Params,
}

impl Quic {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let usual = Params::default();
        let cc = fields.value("cc", controller)?;
        let params = Params {
            cc,
            slow_start: fields.option("slow_start", |p| slow_start(p, cc))?,
            initial_window: fields.integer("initial_window")?,
            zero_rtt: fields.flag("zero_rtt")?,
            ecn: fields.flag("ecn")?,
            max_datagram: fields.value("max_datagram", Place::size_as)?,
            certificate: fields.value("certificate", Place::size_as)?,
            ack: AckPolicy {
                every: fields.integer("ack_every")?,
                delay: fields.time("max_ack_delay")?,
                ..usual.ack
            },
            flow: flow_control(fields)?,
            pacing: fields.flag("pacing")?,
            idle_timeout: fields.time("idle_timeout")?,
            ..usual
        };
        check_hystartpp(fields, cc, params.slow_start())?;
        Ok(Self {
            bytes: fields.option("bytes", amount::read)?,
            request: request(fields)?,
            params,
        })
    }
}

impl Source for Quic {
    fn write(&self, fields: &mut Table) {
        let params = self.params;
        insert(fields, "cc", Some(params.cc.to_string().into()));
        insert(
            fields,
            "slow_start",
            params.slow_start.map(|s| s.name().into()),
        );
        insert(fields, "bytes", self.bytes.map(amount::write));
        insert(fields, "ecn", Some(params.ecn.into()));
        insert(fields, "initial_window", Some(params.initial_window.into()));
        let client = match self.request {
            Some(_) => RECEIVER,
            None => SENDER,
        };
        insert(fields, "client", Some(client.into()));
        insert(fields, "request", self.request.map(size));
        insert(fields, "zero_rtt", Some(params.zero_rtt.into()));
        let bytes = |n: u16| Some(size(Bytes(n.into())));
        insert(fields, "certificate", bytes(params.certificate));
        insert(fields, "max_datagram", bytes(params.max_datagram));
        write_flow_control(params.flow, fields);
        insert(fields, "pacing", Some(params.pacing.into()));
        insert(fields, "ack_every", Some(params.ack.every.into()));
        insert(fields, "max_ack_delay", Some(time(params.ack.delay)));
        insert(fields, "idle_timeout", Some(time(params.idle_timeout)));
    }

    /// From `rng` comes how much is transferred.
    fn plan(&self, mut rng: Rng) -> Traffic {
        Traffic::Quic {
            bytes: self.bytes.map(|amount| amount.draw(&mut rng)),
            request: self.request.map(|request| request.0),
            params: self.params,
        }
    }
}

/// How much may be sent before it is read.
pub(super) fn flow_control(fields: &Fields<'_>) -> Result<FlowControl, ScenarioError> {
    Ok(FlowControl {
        data: fields.size("max_data")?.0,
        stream_data: fields.size("max_stream_data")?.0,
    })
}

pub(super) fn write_flow_control(flow: FlowControl, fields: &mut Table) {
    insert(fields, "max_data", Some(size(Bytes(flow.data))));
    let stream_data = Some(size(Bytes(flow.stream_data)));
    insert(fields, "max_stream_data", stream_data);
}

fn request(fields: &Fields<'_>) -> Result<Option<Bytes>, ScenarioError> {
    if fields.one_of("client", "client", &CLIENTS)? == RECEIVER {
        return fields.size("request").map(Some);
    }
    match fields.get("request") {
        None => Ok(None),
        Some(place) => Err(place.fail("has no effect if the sender is the client; remove it")),
    }
}
