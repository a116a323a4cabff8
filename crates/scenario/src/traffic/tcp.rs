//! TCP connections: `type = "tcp"`.

use std::sync::Arc;

use super::block::{Source, TrafficProperties, TrafficType};
use crate::key::{Form, Key, insert_changed};
use crate::plan::{MAX_INITIAL_WINDOW, Traffic};
use sojourn_apps::Amount;
use sojourn_net::Rng;
use sojourn_schema::ParameterError;
use sojourn_transport::{AfterIdle, CcSpec, MSS, OnCe, SMALLEST_MSS, SenderParams, SlowStart};

use crate::amount;
use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, Value, insert};

/// A slow-start exit heuristic that `cc` offers.
pub(super) fn slow_start(place: &Place<'_>, cc: CcSpec) -> Result<SlowStart, ScenarioError> {
    let chosen = place.one_of("slow_start heuristic", &SlowStart::ALL)?;
    let cc = cc.kind();
    let known = cc.slow_starts();
    if known.contains(&chosen) {
        return Ok(chosen);
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

/// A congestion control with its parameters.
pub(super) fn controller(place: &Place<'_>) -> Result<CcSpec, ScenarioError> {
    let spec = place.text()?.parse();
    spec.map_err(|error: ParameterError| place.fail(error.to_string()))
}

/// Refuses constants of HyStart++ where another heuristic is in use.
pub(super) fn check_hystartpp(
    fields: &Fields<'_>,
    cc: CcSpec,
    in_use: Option<SlowStart>,
) -> Result<(), ScenarioError> {
    const NEEDED: SlowStart = SlowStart::HyStartPlusPlus;
    match (fields.get("cc"), cc.changed_hystartpp(), in_use) {
        (Some(place), Some(key), Some(way)) if way != NEEDED => Err(place.fail(format!(
            "{key} has no effect with slow_start \"{way}\"; expected slow_start \"{NEEDED}\""
        ))),
        _ => Ok(()),
    }
}

/// What a connection transfers.
pub(super) const BYTES: Key = Key::optional(
    "bytes",
    Form::AMOUNT,
    "Bytes to transfer; by default endless.",
);

const KEYS: &[Key] = &[BYTES];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "tcp",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::CONNECTION,
    read: |fields, _| Ok(Arc::new(Tcp::read(fields)?)),
};

/// Settings of a TCP block.
#[derive(Clone, Copy, Debug)]
struct Tcp {
    /// `None`: data without end.
    bytes: Option<Amount>,
    params: SenderParams,
}

/// ECN mode of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EcnMode {
    Off,
    Classic,
    Accurate,
}

/// `ecn` of connections that count marks (RFC 9768).
const COUNTED: &str = "accurate";

fn ecn_mode(place: &Place<'_>) -> Result<EcnMode, ScenarioError> {
    match &place.node.value {
        Value::Bool(false) => Ok(EcnMode::Off),
        Value::Bool(true) => Ok(EcnMode::Classic),
        Value::Text(text) if text == COUNTED => Ok(EcnMode::Accurate),
        _ => {
            let given = place.node.shown();
            let rule = format!("unknown ECN mode {given}; expected true, false or \"{COUNTED}\"");
            Err(place.fail(rule))
        }
    }
}

/// Keys of whatever uses TCP.
pub(super) const PARAMS: &[Key] = &[
    Key::optional("cc", Form::CONTROL, "Congestion control.").or("cubic"),
    SLOW_START,
    Key::optional(
        "ecn",
        Form::Either(&[Form::Flag, Form::Choice(|| vec![COUNTED])]),
        "Negotiate ECN (RFC 3168), or Accurate ECN (RFC 9768).",
    )
    .or("false"),
    Key::optional(
        "on_ce",
        Form::Choice(|| OnCe::ALL.map(OnCe::name).to_vec()),
        "Response to an echoed CE mark.",
    )
    .or("reduce"),
    Key::optional(
        "mss",
        Form::Integer(SMALLEST_MSS as i64, MSS as i64),
        "Payload of a full-sized segment in bytes.",
    )
    .or("1448"),
    Key::optional("initial_window", WINDOW, "Initial window in segments.").or("10"),
    Key::optional(
        "after_idle",
        Form::Choice(|| AfterIdle::ALL.map(AfterIdle::name).to_vec()),
        "Policy for the congestion window after an idle period.",
    )
    .or("decay"),
    Key::optional("pacing", Form::Flag, "Pace segments over the round trip.").or("false"),
];

/// An initial window.
pub(super) const WINDOW: Form = Form::Integer(1, MAX_INITIAL_WINDOW as i64);

pub(super) const SLOW_START: Key = Key::optional(
    "slow_start",
    Form::Choice(|| SlowStart::ALL.map(SlowStart::name).to_vec()),
    "Slow-start exit heuristic; by default that of the congestion control.",
);

/// What senders are opened with.
pub(super) fn read_params(fields: &Fields<'_>) -> Result<SenderParams, ScenarioError> {
    let cc = fields.value("cc", controller)?;
    let ecn = fields.value("ecn", ecn_mode)?;
    Ok(SenderParams {
        cc,
        slow_start: fields.option("slow_start", |p| slow_start(p, cc))?,
        ecn: ecn != EcnMode::Off,
        accurate_ecn: ecn == EcnMode::Accurate,
        on_ce: fields.one_of("on_ce", "on_ce policy", &OnCe::ALL)?,
        mss: fields.integer("mss")?,
        initial_window: fields.integer("initial_window")?,
        after_idle: fields.one_of("after_idle", "after_idle policy", &AfterIdle::ALL)?,
        pacing: fields.flag("pacing")?,
        ..SenderParams::default()
    })
}

/// Writes the keys of whatever uses TCP.
pub(super) fn write_params(params: SenderParams, fields: &mut Table) {
    insert(fields, "cc", Some(params.cc.to_string().into()));
    insert(
        fields,
        "slow_start",
        params.slow_start.map(|s| s.name().into()),
    );
    let ecn = if params.accurate_ecn {
        COUNTED.into()
    } else {
        params.ecn.into()
    };
    insert(fields, "ecn", Some(ecn));
    insert(fields, "initial_window", Some(params.initial_window.into()));
    for (key, node) in [
        ("on_ce", params.on_ce.name().into()),
        ("mss", u32::from(params.mss).into()),
        ("after_idle", params.after_idle.name().into()),
        ("pacing", params.pacing.into()),
    ] {
        insert_changed(fields, PARAMS, key, node);
    }
}

impl Tcp {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let params = read_params(fields)?;
        check_hystartpp(fields, params.cc, params.slow_start())?;
        Ok(Self {
            bytes: fields.option("bytes", amount::read)?,
            params,
        })
    }
}

impl Source for Tcp {
    fn write(&self, fields: &mut Table) {
        write_params(self.params, fields);
        insert(fields, "bytes", self.bytes.map(amount::write));
    }

    /// From `rng` comes how much is transferred.
    fn plan(&self, mut rng: Rng) -> Traffic {
        Traffic::Tcp {
            bytes: self.bytes.map(|amount| amount.draw(&mut rng)),
            params: self.params,
        }
    }
}
