//! Adaptive video: `type = "dash"`.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::DashConfig;
use sojourn_net::{Rate, Rng};

use super::block::{Source, TrafficProperties, TrafficType};
use super::tcp::PARAMS;
use super::transport;
use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, insert, list, time};

/// Bit rates from 300 kbit/s on, each twice the one below.
const LADDER: &str = r#"["300kbit", "600kbit", "1200kbit", "2400kbit", "4800kbit"]"#;

const KEYS: &[Key] = &[
    transport::KEY,
    Key::optional(
        "ladder",
        Form::List(1, &Form::RATE),
        "Bit rates of the video, ascending.",
    )
    .or(LADDER),
    Key::optional(
        "segment",
        Form::POSITIVE_TIME,
        "Playback time of a segment.",
    )
    .or("4s"),
    Key::optional(
        "buffer",
        Form::POSITIVE_TIME,
        "Capacity of the buffer, in playback time.",
    )
    .or("30s"),
    Key::optional(
        "begin",
        Form::POSITIVE_TIME,
        "Buffer level at which playback begins; by default one segment.",
    ),
    transport::REQUEST,
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "dash",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::transactions("segments"),
    read: |fields, _| Ok(Arc::new(Dash::read(fields)?)),
};

/// Settings of a DASH block.
#[derive(Clone, Debug)]
struct Dash(Arc<DashConfig>);

impl Dash {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let segment = fields.time("segment")?;
        let buffer = fields.time("buffer")?;
        let begin = fields.option("begin", Place::time)?.unwrap_or(segment);
        if let Some(place) = fields.get("buffer")
            && buffer < segment
        {
            return Err(place.fail("must hold at least one segment"));
        }
        if begin > buffer
            && let Some(place) = fields.get("begin").or_else(|| fields.get("buffer"))
        {
            return Err(place.fail("must not exceed buffer"));
        }
        Ok(Self(Arc::new(DashConfig {
            exchange: transport::read_exchange(fields)?,
            ladder: fields.value("ladder", ladder)?,
            segment,
            buffer,
            start: begin,
        })))
    }
}

impl Source for Dash {
    fn write(&self, fields: &mut Table) {
        let config = &self.0;
        transport::write_exchange(config.exchange, fields);
        let ladder = list(&config.ladder, |rate| rate.to_string().into());
        insert(fields, "ladder", Some(ladder));
        insert(fields, "segment", Some(time(config.segment)));
        insert(fields, "buffer", Some(time(config.buffer)));
        insert(fields, "begin", Some(time(config.start)));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(self.0.clone())
    }
}

/// Rates that grow.
fn ladder(place: &Place<'_>) -> Result<Vec<Rate>, ScenarioError> {
    let places = place.list()?;
    let rates = places
        .iter()
        .map(Place::rate)
        .collect::<Result<Vec<_>, _>>()?;
    if rates.is_empty() {
        return Err(place.fail("empty; expected at least one rate, such as [\"1mbit\"]"));
    }
    match rates.windows(2).position(|pair| pair[0] >= pair[1]) {
        None => Ok(rates),
        Some(n) => Err(places[n + 1].fail("must be greater than the previous rate")),
    }
}
