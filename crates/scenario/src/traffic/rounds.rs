//! Requests over persistent connections: `type = "request"` to one server, `type = "incast"` to
//! many.

use std::sync::Arc;

use sojourn_apps::{Amount, RequestsConfig, Wait};
use sojourn_net::Duration;

use super::block::{TrafficProperties, TrafficType};
use super::transport::{App, EXCHANGE, read_exchange};
use crate::declare::{Keys, keys};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::Fields;
use crate::value::Table;

/// Most servers of a client: some 30 MB of connections.
const MOST_SERVERS: u32 = 10_000;

keys! {
    /// What is requested, and how often.
    #[derive(Clone, Copy, Debug)]
    struct Asking {
        /// Size of a response.
        bytes: Amount = Form::AMOUNT, required "\"32kb\"";
        /// Server processing time of a request.
        work: Duration = Form::TIME, default "0s";
        /// Pause between rounds.
        think: Wait = Form::WAIT, default "0s";
        /// Number of rounds.
        rounds: Option<u32> = Form::Integer(1, u32::MAX as i64);
    }
}

keys! {
    /// The key that only `incast` has.
    #[derive(Clone, Copy, Debug)]
    struct Servers {
        /// Number of servers queried simultaneously.
        servers: u32 = Form::Integer(2, MOST_SERVERS as i64), required "32";
    }
}

/// The keys of both.
#[derive(Clone, Copy, Debug)]
struct Incast(Servers, Asking);

impl Keys for Incast {
    const KEYS: &'static [Key] = Servers::KEYS;

    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Ok(Self(Servers::read(fields)?, Asking::read(fields)?))
    }

    fn write(&self, fields: &mut Table) {
        self.0.write(fields);
        self.1.write(fields);
    }
}

/// A client that asks one server.
pub(super) const REQUEST: TrafficType = TrafficType {
    name: "request",
    keys: &[Asking::KEYS, EXCHANGE[0], EXCHANGE[1]],
    properties: TrafficProperties::transactions("responses"),
    read: |fields, _| {
        let keys = Asking::read(fields)?;
        let config = Arc::new(keys.config(1, fields)?);
        Ok(Arc::new(App { keys, config }))
    },
};

/// A client that asks many servers at once.
pub(super) const INCAST: TrafficType = TrafficType {
    name: "incast",
    keys: &[Asking::KEYS, EXCHANGE[0], EXCHANGE[1], Servers::KEYS],
    properties: TrafficProperties::transactions("rounds"),
    read: |fields, _| {
        let keys = Incast::read(fields)?;
        let config = Arc::new(keys.1.config(keys.0.servers, fields)?);
        Ok(Arc::new(App { keys, config }))
    },
};

impl Asking {
    fn config(self, servers: u32, fields: &Fields<'_>) -> Result<RequestsConfig, ScenarioError> {
        Ok(RequestsConfig {
            exchange: read_exchange(fields)?,
            servers,
            response: self.bytes,
            work: self.work,
            think: self.think,
            rounds: self.rounds,
        })
    }
}
