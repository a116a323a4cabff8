//! Requests over persistent connections: `type = "request"` to one server, `type = "incast"` to
//! many.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::RequestsConfig;
use sojourn_net::Rng;

use super::block::{Source, TrafficProperties, TrafficType};
use super::tcp::PARAMS;
use super::transport;
use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, insert, time};
use crate::{amount, wait};

/// Most servers of a client: some 30 MB of connections.
const MOST_SERVERS: u32 = 10_000;

/// Keys of both types.
const KEYS: &[Key] = &[
    transport::KEY,
    Key::required("bytes", Form::AMOUNT, "Size of a response."),
    transport::REQUEST,
    Key::optional("work", Form::TIME, "Server processing time of a request.").or("0s"),
    Key::optional("think", Form::WAIT, "Pause between rounds.").or("0s"),
    Key::optional(
        "rounds",
        Form::Integer(1, u32::MAX as i64),
        "Number of rounds.",
    ),
];

/// The key that only `incast` has.
const SERVERS: Key = Key::required(
    "servers",
    Form::Integer(2, MOST_SERVERS as i64),
    "Number of servers queried simultaneously.",
);

/// A client that asks one server.
pub(super) const REQUEST: TrafficType = TrafficType {
    name: "request",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::transactions("responses"),
    read: |fields, _| Ok(Arc::new(Rounds::read(fields, 1)?)),
};

/// A client that asks many servers at once.
pub(super) const INCAST: TrafficType = TrafficType {
    name: "incast",
    keys: &[KEYS, PARAMS, &[SERVERS]],
    properties: TrafficProperties::transactions("rounds"),
    read: |fields, _| {
        let servers = fields.need(SERVERS.name, "32")?.integer()?;
        Ok(Arc::new(Rounds::read(fields, servers)?))
    },
};

/// What is asked for, of whom and how often.
#[derive(Clone, Debug)]
struct Rounds(Arc<RequestsConfig>);

impl Rounds {
    fn read(fields: &Fields<'_>, servers: u32) -> Result<Self, ScenarioError> {
        Ok(Self(Arc::new(RequestsConfig {
            exchange: transport::read_exchange(fields)?,
            servers,
            response: amount::read(&fields.need("bytes", "\"32kb\"")?)?,
            work: fields.time("work")?,
            think: fields.value("think", wait::read)?,
            rounds: fields.option("rounds", Place::integer)?,
        })))
    }
}

impl Source for Rounds {
    fn write(&self, fields: &mut Table) {
        let config = &self.0;
        transport::write_exchange(config.exchange, fields);
        let servers = (config.servers > 1).then(|| config.servers.into());
        insert(fields, SERVERS.name, servers);
        insert(fields, "bytes", Some(amount::write(config.response)));
        insert(fields, "work", Some(time(config.work)));
        insert(fields, "think", Some(wait::write(config.think)));
        insert(fields, "rounds", config.rounds.map(Into::into));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(self.0.clone())
    }
}
