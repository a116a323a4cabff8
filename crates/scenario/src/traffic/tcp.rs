//! TCP connections: `type = "tcp"`.

use std::sync::Arc;

use sojourn_apps::Amount;
use sojourn_net::Rng;
use sojourn_transport::{
    AfterIdle, CcSpec, MSS, OnCe, SMALLEST_MSS, SenderParams, SenderProfile, SlowStart,
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

keys! {
    /// What a connection transfers.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Transfer {
        /// Bytes to transfer; by default endless.
        bytes: Option<Amount> = Form::AMOUNT;
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "tcp",
    keys: &[Transfer::KEYS, Params::KEYS],
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
        /// Payload of a full-sized segment in bytes.
        mss: u16 = Form::Integer(SMALLEST_MSS as i64, MSS as i64), usual "1448";
        /// Initial window in segments; by default 3 with the profile linux-2.6.34.
        initial_window: u32 = WINDOW, default "10";
        /// Policy for the congestion window after an idle period.
        after_idle: AfterIdle = one_of::<AfterIdle>(), usual "decay";
        /// Pace segments over the round trip.
        pacing: bool = Form::Flag, usual "false";
    }
}

/// An initial window.
pub(super) const WINDOW: Form = Form::Integer(1, MAX_INITIAL_WINDOW as i64);

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

/// What senders are opened with.
pub(super) fn read_params(fields: &Fields<'_>) -> Result<SenderParams, ScenarioError> {
    let mut params = Params::read(fields)?;
    check_slow_start_of(fields, params.cc, params.slow_start)?;
    check_profile(fields, &params)?;
    if fields.get("initial_window").is_none() {
        params.initial_window = params.profile.initial_window();
    }
    Ok(SenderParams {
        profile: params.profile,
        cc: params.cc,
        slow_start: params.slow_start,
        ecn: params.ecn != EcnMode::Off,
        accurate_ecn: params.ecn == EcnMode::Accurate,
        on_ce: params.on_ce,
        mss: params.mss,
        initial_window: params.initial_window,
        after_idle: params.after_idle,
        pacing: params.pacing,
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
    let keys = Params {
        profile: params.profile,
        cc: params.cc,
        slow_start: params.slow_start,
        ecn,
        on_ce: params.on_ce,
        mss: params.mss,
        initial_window: params.initial_window,
        after_idle: params.after_idle,
        pacing: params.pacing,
    };
    keys.write(fields);
}

impl Tcp {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let params = read_params(fields)?;
        check_hystartpp(fields, params.cc, params.slow_start())?;
        Ok(Self {
            transfer: Transfer::read(fields)?,
            params,
        })
    }
}

impl Source for Tcp {
    fn write(&self, fields: &mut Table) {
        write_params(self.params, fields);
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
