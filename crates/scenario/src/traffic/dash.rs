//! Adaptive video: `type = "dash"`.

use std::sync::Arc;

use sojourn_apps::DashConfig;
use sojourn_net::{Duration, Rate};

use super::block::{TrafficProperties, TrafficType};
use super::transport::{App, EXCHANGE, read_exchange};
use crate::declare::{KeyValue, Keys, keys};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::{Fields, Place};
use crate::value::{Node, list};

keys! {
    /// Settings of a DASH block.
    #[derive(Clone, Debug)]
    struct Dash {
        /// Bit rates of the video, ascending.
        // From 300 kbit/s on, each twice the one below.
        ladder: Ladder = Form::List(1, &Form::RATE), default r#"["300kbit", "600kbit", "1200kbit", "2400kbit", "4800kbit"]"#;
        /// Playback time of a segment.
        segment: Duration = Form::POSITIVE_TIME, default "4s";
        /// Capacity of the buffer, in playback time.
        buffer: Duration = Form::POSITIVE_TIME, default "30s";
        /// Buffer level at which playback begins; by default one segment.
        begin: Option<Duration> = Form::POSITIVE_TIME;
        /// Time from the start of a player to its first request; by default random, within a segment.
        phase: Option<Duration> = Form::TIME;
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "dash",
    keys: &[Dash::KEYS, EXCHANGE[0], EXCHANGE[1]],
    properties: TrafficProperties::transactions("segments"),
    read: |fields, _| Ok(Arc::new(Dash::read(fields)?.app(fields)?)),
};

impl Dash {
    fn app(mut self, fields: &Fields<'_>) -> Result<App<Self>, ScenarioError> {
        let (segment, buffer) = (self.segment, self.buffer);
        let begin = *self.begin.get_or_insert(segment);
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
        let config = DashConfig {
            exchange: read_exchange(fields)?,
            ladder: self.ladder.0.clone(),
            segment,
            buffer,
            start: begin,
            phase: self.phase.into(),
        };
        Ok(App {
            keys: self,
            config: Arc::new(config),
        })
    }
}

/// Rates that grow.
#[derive(Clone, Debug)]
struct Ladder(Vec<Rate>);

impl KeyValue for Ladder {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let places = place.list()?;
        let rates = places
            .iter()
            .map(Place::rate)
            .collect::<Result<Vec<_>, _>>()?;
        if rates.is_empty() {
            return Err(place.fail("empty; expected at least one rate, such as [\"1mbit\"]"));
        }
        match rates.windows(2).position(|pair| pair[0] >= pair[1]) {
            None => Ok(Self(rates)),
            Some(n) => Err(places[n + 1].fail("must be greater than the previous rate")),
        }
    }

    fn write(&self) -> Option<Node> {
        Some(list(&self.0, |rate| rate.to_string().into()))
    }
}
