//! Responsiveness tests: `type = "responsiveness"`.

use std::sync::Arc;

use sojourn_apps::ResponsivenessConfig;

use super::block::{TrafficProperties, TrafficType};
use super::transport::{App, EXCHANGE, read_exchange};
use crate::declare::{Keys, keys};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Fields;

const MOST_CONNECTIONS: u32 = 1_000;

keys! {
    /// What is tested.
    #[derive(Clone, Copy, Debug)]
    struct Responsiveness {
        /// Maximum number of load-generating connections.
        // The draft's MNP.
        connections: Option<u32> = Form::Integer(1, MOST_CONNECTIONS as i64), default "16";
        /// Generate load; false: probe one idle connection.
        load: bool = Form::Flag, default "true";
        /// Begin connections with a TLS 1.3 handshake.
        tls: bool = Form::Flag, default "true";
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "responsiveness",
    keys: &[Responsiveness::KEYS, EXCHANGE[0], EXCHANGE[1]],
    properties: TrafficProperties::APPLICATION,
    read: |fields, _| Ok(Arc::new(Responsiveness::read(fields)?.app(fields)?)),
};

impl Responsiveness {
    fn app(mut self, fields: &Fields<'_>) -> Result<App<Self>, ScenarioError> {
        if let Some(place) = fields.get("connections")
            && !self.load
        {
            return Err(
                place.fail("not allowed with load = false, which probes one idle connection")
            );
        }
        let config = ResponsivenessConfig {
            exchange: read_exchange(fields)?,
            connections: self.connections.unwrap_or(1),
            load: self.load,
            tls: self.tls,
        };
        if !self.load {
            self.connections = None;
        }
        Ok(App {
            keys: self,
            config: Arc::new(config),
        })
    }
}
