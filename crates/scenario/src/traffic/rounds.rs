//! Requests over connections that stay: `type = "request"`, of one server, and `type = "incast"`,
//! of many at once.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::{AppConfig, RequestsConfig, Wait};
use sojourn_net::{Bytes, Duration};

use super::tcp::{read_params, write_params};
use super::transport;
use crate::amount as amounts;
use crate::encode::{amount, insert, size, time};
use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::Table;
use crate::wait;

/// Most servers of a client: some 30 MB of connections.
const MOST_SERVERS: u32 = 10_000;

/// What is asked for, of whom and how often.
#[derive(Clone, Debug)]
pub(crate) struct Rounds(Arc<RequestsConfig>);

impl Rounds {
    /// Keys of `request`; those of `incast` are these and [`Rounds::SERVERS`].
    pub(super) const KEYS: &[Key] = &[
        transport::KEY,
        Key::required("bytes", Form::AMOUNT, "Size of a response."),
        Key::optional("request", Form::SIZE, "Size of a request.").or("400b"),
        Key::optional("work", Form::TIME, "How long a server works on a request.").or("0s"),
        Key::optional("think", Form::WAIT, "Time until the next round.").or("0s"),
        Key::optional(
            "rounds",
            Form::Integer(1, u32::MAX as i64),
            "Number of rounds.",
        ),
    ];
    pub(super) const SERVERS: Key = Key::required(
        "servers",
        Form::Integer(2, MOST_SERVERS as i64),
        "Number of servers that are asked at once.",
    );

    /// The client of one server.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Self::of(fields, 1)
    }

    /// The client of many.
    pub(super) fn read_incast(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let servers = fields.need(Self::SERVERS.name, "32")?;
        Self::of(fields, servers.count(2, MOST_SERVERS)?)
    }

    fn of(fields: &Fields<'_>, servers: u32) -> Result<Self, ScenarioError> {
        let tcp = read_params(fields)?;
        Ok(Self(Arc::new(RequestsConfig {
            transport: transport::read(fields, &tcp)?,
            tcp,
            servers,
            request: fields.or("request", Bytes(400), |p| p.size(1, 1 << 20))?,
            response: amounts::read(&fields.need("bytes", "\"32kb\"")?)?,
            work: fields.or("work", Duration::ZERO, Place::time)?,
            think: fields.or("think", Wait::Fixed(Duration::ZERO), wait::read)?,
            rounds: fields.option("rounds", |p| p.count(1, u32::MAX))?,
        })))
    }

    pub(super) fn is_incast(&self) -> bool {
        self.0.servers > 1
    }

    pub(super) fn write(&self, fields: &mut Table) {
        let config = &self.0;
        transport::write(config.transport, fields);
        write_params(config.tcp, fields);
        let servers = self.is_incast().then(|| config.servers.into());
        insert(fields, Self::SERVERS.name, servers);
        insert(fields, "bytes", Some(amount(config.response)));
        insert(fields, "request", Some(size(config.request)));
        insert(fields, "work", Some(time(config.work)));
        insert(fields, "think", Some(wait::write(config.think)));
        insert(fields, "rounds", config.rounds.map(Into::into));
    }

    pub(super) fn plan(&self) -> Traffic {
        Traffic::App(AppConfig::Requests(Arc::clone(&self.0)))
    }
}
