//! UDP streams at a mean bit rate: `type = "udp"`.

use std::sync::Arc;

use super::block::{Source, TrafficProperties, TrafficType};
use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::{MAX_UDP_PAYLOAD, Spacing, UdpConfig};
use sojourn_net::Rng;

use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, Value, insert, size};

/// The payload of a datagram.
pub(super) const PAYLOAD: Form = Form::Size(1, MAX_UDP_PAYLOAD.0);

const EVEN: &str = "even";
const POISSON: &str = "poisson";
const SPACINGS: [&str; 2] = [EVEN, POISSON];

/// How datagrams are spaced: evenly, unless it says otherwise.
fn spacing(fields: &Fields<'_>) -> Result<Spacing, ScenarioError> {
    let even = Spacing::Even {
        spread: fields.value("spread", Place::number)?,
    };
    if fields.one_of("spacing", "spacing", &SPACINGS)? == EVEN {
        return Ok(even);
    }
    match fields.get("spread") {
        Some(place) => Err(place.fail("not allowed with spacing = \"poisson\"")),
        None => Ok(Spacing::Poisson),
    }
}

const KEYS: &[Key] = &[
    Key::required("rate", Form::RATE, "Rate of the payload."),
    Key::optional("payload", PAYLOAD, "Payload of a datagram.").or("1448b"),
    Key::optional(
        "spread",
        Form::Number(0.0, 1.0),
        "Each gap is multiplied by a random factor between 1 - spread and 1 + spread.",
    )
    .or("0"),
    Key::optional(
        "spacing",
        Form::Choice(|| SPACINGS.to_vec()),
        "Gaps between datagrams: even, or exponential (poisson).",
    )
    .or("even"),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "udp",
    keys: &[KEYS],
    properties: TrafficProperties::DATAGRAMS,
    read: |fields, _| Ok(Arc::new(Udp::read(fields)?)),
};

/// Settings of a UDP block.
#[derive(Clone, Copy, Debug)]
struct Udp(UdpConfig);

impl Udp {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Ok(Self(UdpConfig {
            rate: fields.need("rate", "\"1mbit\"")?.rate()?,
            payload: fields.size("payload")?,
            spacing: spacing(fields)?,
        }))
    }
}

impl Source for Udp {
    fn write(&self, fields: &mut Table) {
        insert(fields, "rate", Some(self.0.rate.to_string().into()));
        insert(fields, "payload", Some(size(self.0.payload)));
        match self.0.spacing {
            Spacing::Even { spread } => {
                insert(fields, "spread", Some(Value::Float(spread).into()));
            }
            Spacing::Poisson => insert(fields, "spacing", Some(POISSON.into())),
        }
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::datagrams(self.0)
    }
}
