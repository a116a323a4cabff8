//! Packets of other machines, which a bridge passes: `type = "bridged"`.

use std::sync::Arc;

use super::block::{Context, Source, TrafficProperties, TrafficType};
use crate::error::ScenarioError;
use crate::place::Fields;
use crate::plan::Traffic;
use crate::value::Table;
use sojourn_net::Rng;

pub(super) const TYPE: TrafficType = TrafficType {
    name: "bridged",
    keys: &[],
    properties: TrafficProperties::UNKNOWN,
    read: |fields, context| Ok(Arc::new(Bridged::read(fields, context)?)),
};

/// A block without settings.
#[derive(Clone, Copy, Debug)]
struct Bridged;

impl Bridged {
    fn read(fields: &Fields<'_>, context: &Context<'_>) -> Result<Self, ScenarioError> {
        match fields.get("count") {
            Some(place) if context.count != 1 => {
                let given = place.node.shown();
                Err(place.fail(format!(
                    "too many: {given}; expected 1, since all packets of a direction are one group"
                )))
            }
            _ => Ok(Self),
        }
    }
}

impl Source for Bridged {
    fn write(&self, _: &mut Table) {}

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::Bridged
    }
}
