//! Voice calls: `type = "voip"`.

use std::sync::Arc;

use super::block::{Source, TrafficProperties, TrafficType};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::plan::Traffic;
use crate::value::{Table, Value, insert, time};
use sojourn_apps::{JitterBuffer, Phase, VoipConfig};
use sojourn_net::Rng;

const ADAPTIVE: &str = "adaptive";

const KEYS: &[Key] = &[
    Key::optional(
        "jitter_buffer",
        Form::Either(&[Form::Choice(|| vec![ADAPTIVE]), Form::TIME]),
        "Jitter buffer: adaptive, or a fixed playout delay above the shortest delay of the call.",
    )
    .or(ADAPTIVE),
    Key::optional(
        "phase",
        Form::TIME,
        "Time from the start of a call to its first packet; by default random, within 20 ms.",
    ),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "voip",
    keys: &[KEYS],
    properties: TrafficProperties {
        constant_rate: true,
        ..TrafficProperties::APPLICATION
    },
    read: |fields, _| Ok(Arc::new(Voip::read(fields)?)),
};

/// Settings of a block of calls.
#[derive(Clone, Copy, Debug)]
struct Voip(VoipConfig);

impl Voip {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Ok(Self(VoipConfig {
            jitter_buffer: fields.value(
                "jitter_buffer",
                |place| match &place.node.value {
                    Value::Text(text) if text == ADAPTIVE => Ok(JitterBuffer::Adaptive),
                    _ => place.time().map(JitterBuffer::Fixed).map_err(|_| {
                        let given = place.node.shown();
                        place.fail(format!(
                            "{given} is not a jitter buffer; expected \"adaptive\" or a time such as \"60ms\""
                        ))
                    }),
                },
            )?,
            phase: fields.option("phase", Place::time)?.into(),
        }))
    }
}

impl Source for Voip {
    fn write(&self, fields: &mut Table) {
        let buffer = match self.0.jitter_buffer {
            JitterBuffer::Adaptive => ADAPTIVE.into(),
            JitterBuffer::Fixed(more) => time(more),
        };
        insert(fields, "jitter_buffer", Some(buffer));
        if let Phase::Fixed(phase) = self.0.phase {
            insert(fields, "phase", Some(time(phase)));
        }
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::datagrams(self.0)
    }
}
