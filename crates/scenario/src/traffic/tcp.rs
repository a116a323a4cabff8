//! TCP connections: `type = "tcp"`.

use std::sync::Arc;

use sojourn_apps::{Amount, Transport};
use sojourn_net::{Bytes, Duration, IpVersion, Rate, Rng};
use sojourn_transport::{
    AckPolicy, AfterIdle, BurstLimits, CcSpec, Device, MSS, OnCe, PeerEcn, Reader, ReceiveBuffer,
    ReceiverParams, SMALLEST_MSS, SenderParams, SenderProfile, SlowStart, Writer, full_payload,
};

use super::block::{Source, TrafficProperties, TrafficType};
use crate::declare::{KeyValue, Keys, keys, one_of};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::{Fields, Place};
use crate::plan::{MAX_INITIAL_WINDOW, Traffic};
use crate::value::{Node, Table, Value};

/// Refuses a slow-start exit heuristic that `cc` does not offer.
pub(super) fn check_slow_start_of(
    fields: &Fields<'_>,
    cc: CcSpec,
    chosen: Option<SlowStart>,
) -> Result<(), ScenarioError> {
    let (Some(chosen), Some(place)) = (chosen, fields.get("slow_start")) else {
        return Ok(());
    };
    let cc = cc.kind();
    let known = cc.slow_starts();
    if known.contains(&chosen) {
        return Ok(());
    }
    Err(place.fail(if known.is_empty() {
        format!("not supported by \"{cc}\", which exits slow start by its own rule")
    } else {
        let known: Vec<_> = known.iter().map(|s| format!("\"{s}\"")).collect();
        format!(
            "\"{cc}\" does not support \"{chosen}\"; expected {}{}",
            if known.len() > 1 { "one of " } else { "" },
            known.join(", ")
        )
    }))
}

/// Refuses constants of a slow-start exit heuristic where another one is in use, and one without what it needs.
pub(super) fn check_slow_start_parameters(
    fields: &Fields<'_>,
    cc: CcSpec,
    in_use: Option<SlowStart>,
    (transport, paced): (Transport, bool),
) -> Result<(), ScenarioError> {
    let Some(used) = in_use else {
        return Ok(());
    };
    if let Some(place) = fields.get("cc")
        && let Some((key, needed)) = cc.unused_slow_start(used)
    {
        return Err(place.fail(format!(
            "{key} has no effect with slow_start \"{used}\"; expected slow_start \"{needed}\""
        )));
    }
    let Some(place) = fields.get("slow_start") else {
        return Ok(());
    };
    if used == SlowStart::RapidStart && transport == Transport::Tcp {
        return Err(place.fail(format!("\"{used}\" is for QUIC only")));
    }
    if used == SlowStart::CarefulResume && cc.saved_cwnd().is_none() {
        let cc = cc.kind();
        return Err(place.fail(format!(
            "\"{used}\" needs the window of an earlier connection; expected cc such as \"{cc} saved_cwnd 400 \
             saved_rtt 50ms\""
        )));
    }
    if used == SlowStart::CarefulResume && !paced {
        return Err(place.fail(format!("\"{used}\" needs pacing; expected pacing = true")));
    }
    Ok(())
}

keys! {
    /// What a connection transfers.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Transfer {
        /// Bytes to transfer; by default endless.
        bytes: Option<Amount> = Form::AMOUNT;
    }
}

keys! {
    /// When the sending application writes.
    #[derive(Clone, Copy, Debug)]
    struct Writing {
        /// Rate at which the sender writes; by default it always has data to send.
        rate: Option<Rate> = Form::RATE;
        /// Bytes that a sender with a rate writes at a time.
        block: Bytes = Form::Size(1, Writer::LARGEST as u64), usual "131072b";
    }
}

impl Writing {
    fn writer(&self, fields: &Fields<'_>) -> Result<Option<Writer>, ScenarioError> {
        if let (None, Some(place)) = (self.rate, fields.get("block")) {
            return Err(place.fail("has no effect without rate; set rate"));
        }
        Ok(self.rate.map(|rate| Writer {
            rate,
            block: u32::try_from(self.block.0).unwrap_or(Writer::BLOCK),
        }))
    }

    fn of(writer: Option<Writer>) -> Self {
        Self {
            rate: writer.map(|writer| writer.rate),
            block: Bytes(writer.map_or(Writer::BLOCK, |writer| writer.block).into()),
        }
    }
}

keys! {
    /// When the receiving application reads.
    #[derive(Clone, Debug)]
    struct Reading {
        /// Rate at which the receiver reads, at most 16 KiB at a time; by default it reads data as soon as it arrives.
        read_rate: Option<Rate> = Form::RATE;
        /// Start and end of the time in the run during which the receiver does not read.
        read_pause: Option<Vec<Duration>> = Form::List(2, &Form::TIME);
    }
}

impl Reading {
    fn reader(&self, fields: &Fields<'_>) -> Result<Reader, ScenarioError> {
        let fail = |rule: &str| match fields.get("read_pause") {
            Some(place) => Err(place.fail(rule)),
            None => Ok(None),
        };
        let pause = match self.read_pause.as_deref() {
            None => None,
            Some(&[from, to]) if from < to => Some((from, to)),
            Some([_, _]) => fail("the end must be after the start")?,
            Some(_) => fail("expected two times, such as [\"10s\", \"12s\"]")?,
        };
        Ok(Reader {
            rate: self.read_rate,
            pause,
        })
    }

    fn of(reader: &Reader) -> Self {
        Self {
            read_rate: reader.rate,
            read_pause: reader.pause.map(|(from, to)| vec![from, to]),
        }
    }
}

keys! {
    /// The end that receives.
    #[derive(Clone, Copy, Debug)]
    struct Peer {
        /// ECN that the receiver supports, or a fault of its ECN; by default what the sender offers.
        peer_ecn: Option<PeerEcn> = one_of::<PeerEcn>();
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "tcp",
    keys: &[
        Transfer::KEYS,
        Writing::KEYS,
        Reading::KEYS,
        Peer::KEYS,
        Params::KEYS,
    ],
    properties: TrafficProperties::CONNECTION,
    read: |fields, _| Ok(Arc::new(Tcp::read(fields)?)),
};

/// Settings of a TCP block.
#[derive(Clone, Copy, Debug)]
struct Tcp {
    transfer: Transfer,
    params: SenderParams,
}

/// ECN mode of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EcnMode {
    Off,
    Classic,
    Accurate,
}

/// `ecn` of connections that count marks (RFC 9768).
const COUNTED: &str = "accurate";

impl KeyValue for EcnMode {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        match &place.node.value {
            Value::Bool(false) => Ok(Self::Off),
            Value::Bool(true) => Ok(Self::Classic),
            Value::Text(text) if text == COUNTED => Ok(Self::Accurate),
            _ => {
                let given = place.node.shown();
                Err(place.fail(format!(
                    "unknown ECN mode {given}; expected true, false or \"{COUNTED}\""
                )))
            }
        }
    }

    fn write(&self) -> Option<Node> {
        Some(match self {
            Self::Off => false.into(),
            Self::Classic => true.into(),
            Self::Accurate => COUNTED.into(),
        })
    }
}

keys! {
    /// Keys of whatever uses TCP.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Params {
        /// Implementation that both ends of a connection follow.
        profile: SenderProfile = one_of::<SenderProfile>(), usual "linux";
        /// Congestion control.
        cc: CcSpec = Form::CONTROL, default "cubic";
        /// Slow-start exit heuristic; by default that of the congestion control.
        slow_start: Option<SlowStart> = one_of::<SlowStart>();
        /// Negotiate ECN (RFC 3168), or Accurate ECN (RFC 9768).
        ecn: EcnMode = Form::Either(&[Form::Flag, Form::Choice(|| vec![COUNTED])]), default "false";
        /// Response to an echoed CE mark.
        on_ce: OnCe = one_of::<OnCe>(), usual "reduce";
        /// Payload of a full-sized segment in bytes; over IPv6 at most, and by default, 1428.
        mss: u16 = Form::Integer(SMALLEST_MSS as i64, MSS as i64), usual "1448";
        /// Initial window in segments; by default 3 with the profile linux-2.6.34.
        initial_window: u32 = WINDOW, default "10";
        /// Policy for the congestion window after an idle period.
        after_idle: AfterIdle = one_of::<AfterIdle>(), usual "decay";
        /// Pace segments over the round trip.
        pacing: bool = Form::Flag, usual "false";
        /// Largest receive window, without auto-tuning; by default the window has no limit.
        receive_window: Option<Bytes> = WINDOWS;
        /// Largest receive buffer that auto-tuning may choose; the window is at most half of it.
        receive_buffer: Option<Bytes> = BUFFERS;
        /// Full segments per acknowledgement of the receiver.
        ack_every: u8 = Form::Integer(1, u8::MAX as i64), usual "2";
        /// Longest delay of an acknowledgement; by default as Linux adapts it, 40 to 200 ms.
        ack_delay: Option<Duration> = Form::PositiveTimeUpTo(AckPolicy::LONGEST_DELAY);
        /// The receiver acknowledges each of the first segments, as Linux does.
        quick_acks: bool = Form::Flag, usual "true";
        /// The receiver's device merges segments that arrive together.
        gro: bool = Form::Flag, usual "false";
        /// Time between polls of the receiver's device while packets arrive; by default each arrival causes one.
        gro_flush_timeout: Option<Duration> = Form::PositiveTimeUpTo(Device::LONGEST_POLL);
        /// Minimum number of segments in a burst that the sender hands to its device.
        min_tso_segs: u8 = Form::Integer(1, u8::MAX as i64), usual "2";
        /// Maximum number of segments in a burst that the sender hands to its device; by default up to 64 kB.
        gso_max_segs: Option<u8> = Form::Integer(1, BurstLimits::UNLIMITED as i64 - 1);
    }
}

/// A fixed receive window.
const WINDOWS: Form = Form::Size(
    ReceiveBuffer::WINDOWS.0 as u64,
    ReceiveBuffer::WINDOWS.1 as u64,
);
/// The largest size of a receive buffer.
const BUFFERS: Form = Form::Size(ReceiveBuffer::SIZES.0 as u64, ReceiveBuffer::SIZES.1 as u64);

/// An initial window.
pub(super) const WINDOW: Form = Form::Integer(1, MAX_INITIAL_WINDOW as i64);

/// Refuses Alternative Backoff with ECN of a control for which RFC 8511 has no value.
fn check_abe(fields: &Fields<'_>, params: &Params) -> Result<(), ScenarioError> {
    let cc = params.cc.kind();
    match fields.get("on_ce") {
        Some(place) if params.on_ce == OnCe::Abe && cc.abe_percent().is_none() => {
            Err(place.fail(format!(
                "\"abe\" is not supported by \"{cc}\"; expected the control \"reno\" or \"cubic\""
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses what a profile does not have.
fn check_profile(fields: &Fields<'_>, params: &Params) -> Result<(), ScenarioError> {
    let (profile, cc) = (params.profile, params.cc.kind());
    if let Some(place) = fields.get("pacing")
        && params.pacing
        && !profile.paces()
    {
        return Err(place.fail(format!(
            "not supported by the profile \"{profile}\", which does not pace; expected false"
        )));
    }
    if let Some(place) = fields.get("cc")
        && cc.is_model_based()
        && !profile.supports_models()
    {
        let profiles = SenderProfile::ALL
            .into_iter()
            .filter(|p| p.supports_models());
        let profiles: Vec<_> = profiles.map(|p| format!("\"{p}\"")).collect();
        return Err(place.fail(format!(
            "\"{cc}\" sets a pacing rate, which the profile \"{profile}\" does not support; expected the profile {}",
            profiles.join(" or ")
        )));
    }
    Ok(())
}

/// Keys that only the profile of the usual Linux has.
const OF_LINUX: [&str; 9] = [
    "receive_window",
    "receive_buffer",
    "ack_every",
    "ack_delay",
    "quick_acks",
    "gro",
    "gro_flush_timeout",
    "min_tso_segs",
    "gso_max_segs",
];

/// Refuses keys that another profile than the usual one does not have.
fn check_usual_profile(fields: &Fields<'_>, profile: SenderProfile) -> Result<(), ScenarioError> {
    let usual = SenderProfile::default();
    match OF_LINUX.iter().find_map(|key| fields.get(key)) {
        Some(place) if profile != usual => Err(place.fail(format!(
            "not supported by the profile \"{profile}\"; expected the profile \"{usual}\""
        ))),
        _ => Ok(()),
    }
}

/// How the receiver acknowledges, and its device.
fn read_acks(fields: &Fields<'_>, params: &Params) -> Result<(AckPolicy, Device), ScenarioError> {
    if let Some(place) = fields.get("gro_flush_timeout")
        && !params.gro
    {
        return Err(place.fail("needs a device that merges segments; set gro = true"));
    }
    let acks = AckPolicy {
        every: params.ack_every,
        delay: params.ack_delay,
        quick: params.quick_acks,
    };
    let device = Device {
        merges: params.gro,
        poll: params.gro_flush_timeout,
    };
    Ok((acks, device))
}

/// The bursts of the sender.
fn read_bursts(fields: &Fields<'_>, params: &Params) -> Result<BurstLimits, ScenarioError> {
    let cc = params.cc.kind();
    if let Some(place) = fields.get("min_tso_segs")
        && cc.is_model_based()
    {
        return Err(place.fail(format!(
            "not supported by \"{cc}\", which has a minimum of its own"
        )));
    }
    let least = params.min_tso_segs;
    let most = params.gso_max_segs.unwrap_or(BurstLimits::UNLIMITED);
    Ok(BurstLimits { least, most })
}

/// The receive buffer that the keys describe.
fn read_buffer(fields: &Fields<'_>, params: &Params) -> Result<ReceiveBuffer, ScenarioError> {
    let bytes = |size: Bytes| u32::try_from(size.0).unwrap_or(u32::MAX);
    let (window, buffer) = (params.receive_window, params.receive_buffer);
    if let (Some(_), Some(_), Some(place)) = (window, buffer, fields.get("receive_buffer")) {
        return Err(place.fail(
            "not allowed with receive_window, which fixes the buffer; expected one of the two",
        ));
    }
    Ok(match (window, buffer) {
        (Some(window), _) => ReceiveBuffer::Fixed(bytes(window)),
        (None, Some(size)) => ReceiveBuffer::Tuned(bytes(size)),
        (None, None) => ReceiveBuffer::Unlimited,
    })
}

/// The payload of a full-sized segment, of which `given` is the key or its default.
fn read_mss(fields: &Fields<'_>, given: u16, ip: IpVersion) -> Result<u16, ScenarioError> {
    let most = full_payload(ip);
    match fields.get("mss") {
        None => Ok(most),
        Some(place) if given > most => {
            let version = ip.number();
            Err(place.fail(format!(
                "{given} is out of range over IPv{version}; expected a whole number from {SMALLEST_MSS} to {most}"
            )))
        }
        Some(_) => Ok(given),
    }
}

/// What senders are opened with.
pub(super) fn read_params(fields: &Fields<'_>) -> Result<SenderParams, ScenarioError> {
    let mut params = Params::read(fields)?;
    check_slow_start_of(fields, params.cc, params.slow_start)?;
    check_profile(fields, &params)?;
    check_abe(fields, &params)?;
    if fields.get("initial_window").is_none() {
        params.initial_window = params.profile.initial_window();
    }
    check_usual_profile(fields, params.profile)?;
    let ip = fields.value("ip", KeyValue::read)?;
    params.mss = read_mss(fields, params.mss, ip)?;
    let buffer = read_buffer(fields, &params)?;
    let (acks, device) = read_acks(fields, &params)?;
    let bursts = read_bursts(fields, &params)?;
    Ok(SenderParams {
        profile: params.profile,
        cc: params.cc,
        slow_start: params.slow_start,
        ecn: params.ecn != EcnMode::Off,
        accurate_ecn: params.ecn == EcnMode::Accurate,
        on_ce: params.on_ce,
        ip,
        mss: params.mss,
        initial_window: params.initial_window,
        after_idle: params.after_idle,
        pacing: params.pacing,
        bursts,
        receiver: ReceiverParams {
            buffer,
            acks,
            device,
            ..ReceiverParams::default()
        },
        ..SenderParams::default()
    })
}

/// Writes the keys of whatever uses TCP.
pub(super) fn write_params(params: SenderParams, fields: &mut Table) {
    let ecn = match (params.ecn, params.accurate_ecn) {
        (_, true) => EcnMode::Accurate,
        (true, false) => EcnMode::Classic,
        (false, false) => EcnMode::Off,
    };
    let size = |bytes: u32| Some(Bytes(bytes.into()));
    let (receive_window, receive_buffer) = match params.receiver.buffer {
        ReceiveBuffer::Unlimited => (None, None),
        ReceiveBuffer::Fixed(window) => (size(window), None),
        ReceiveBuffer::Tuned(most) => (None, size(most)),
    };
    let most = params.bursts.most;
    let (acks, device) = (params.receiver.acks, params.receiver.device);
    let keys = Params {
        profile: params.profile,
        cc: params.cc,
        slow_start: params.slow_start,
        ecn,
        on_ce: params.on_ce,
        // The default of IPv6 is not written either.
        mss: if params.mss == full_payload(params.ip) {
            MSS
        } else {
            params.mss
        },
        initial_window: params.initial_window,
        after_idle: params.after_idle,
        pacing: params.pacing,
        receive_window,
        receive_buffer,
        ack_every: acks.every,
        ack_delay: acks.delay,
        quick_acks: acks.quick,
        gro: device.merges,
        gro_flush_timeout: device.poll,
        min_tso_segs: params.bursts.least,
        gso_max_segs: (most != BurstLimits::UNLIMITED).then_some(most),
    };
    keys.write(fields);
}

impl Tcp {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let mut params = read_params(fields)?;
        check_slow_start_parameters(
            fields,
            params.cc,
            params.slow_start(),
            (Transport::Tcp, params.pacing),
        )?;
        params.receiver.reader = Reading::read(fields)?.reader(fields)?;
        if params.receiver.buffer == ReceiveBuffer::Unlimited
            && !params.receiver.reader.is_immediate()
        {
            let key = ["read_rate", "read_pause"];
            if let Some(place) = key.iter().find_map(|key| fields.get(key)) {
                return Err(place.fail(
                    "needs a limited receive buffer; set receive_window, or receive_buffer = \"6mb\" as in Linux",
                ));
            }
        }
        params.writer = Writing::read(fields)?.writer(fields)?;
        params.peer_ecn = Peer::read(fields)?.peer_ecn;
        Ok(Self {
            transfer: Transfer::read(fields)?,
            params,
        })
    }
}

impl Source for Tcp {
    fn write(&self, fields: &mut Table) {
        write_params(self.params, fields);
        Writing::of(self.params.writer).write(fields);
        Reading::of(&self.params.receiver.reader).write(fields);
        let peer_ecn = self.params.peer_ecn;
        Peer { peer_ecn }.write(fields);
        self.transfer.write(fields);
    }

    /// From `rng` comes how much is transferred.
    fn plan(&self, mut rng: Rng) -> Traffic {
        Traffic::Tcp {
            bytes: self.transfer.bytes.map(|amount| amount.draw(&mut rng)),
            params: self.params,
        }
    }
}
