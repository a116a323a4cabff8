//! Responsiveness tests: `type = "responsiveness"`.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::ResponsivenessConfig;
use sojourn_net::Rng;

use super::block::{Source, TrafficProperties, TrafficType};
use super::tcp::PARAMS;
use super::transport;
use crate::error::ScenarioError;
use crate::place::Fields;
use crate::value::{Table, insert};

/// The draft's MNP.
const DEFAULT_CONNECTIONS: &str = "16";
const MOST_CONNECTIONS: u32 = 1_000;

const KEYS: &[Key] = &[
    transport::KEY,
    Key::optional(
        "connections",
        Form::Integer(1, MOST_CONNECTIONS as i64),
        "Maximum number of load-generating connections.",
    )
    .or(DEFAULT_CONNECTIONS),
    Key::optional(
        "load",
        Form::Flag,
        "Generate load; false: probe one idle connection.",
    )
    .or("true"),
    transport::TLS,
    transport::REQUEST,
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "responsiveness",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::APPLICATION,
    read: |fields, _| Ok(Arc::new(Responsiveness::read(fields)?)),
};

/// What is tested.
#[derive(Clone, Debug)]
struct Responsiveness(Arc<ResponsivenessConfig>);

impl Responsiveness {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let load = fields.flag("load")?;
        if let Some(place) = fields.get("connections")
            && !load
        {
            return Err(
                place.fail("not allowed with load = false, which probes one idle connection")
            );
        }
        Ok(Self(Arc::new(ResponsivenessConfig {
            exchange: transport::read_exchange(fields)?,
            connections: fields.integer("connections")?,
            load,
            tls: fields.flag("tls")?,
        })))
    }
}

impl Source for Responsiveness {
    fn write(&self, fields: &mut Table) {
        let config = &self.0;
        transport::write_exchange(config.exchange, fields);
        let connections = config.load.then(|| config.connections.into());
        insert(fields, "connections", connections);
        insert(fields, "load", Some(config.load.into()));
        insert(fields, "tls", Some(config.tls.into()));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(self.0.clone())
    }
}
