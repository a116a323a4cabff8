//! Connections that come at random times: `type = "sessions"`.

use std::sync::Arc;

use sojourn_net::{Bytes, Duration};
use sojourn_sim::{AppConfig, SessionsConfig, Traffic, Wait};

use super::super::amount as amounts;
use super::super::encode::{amount, insert, size};
use super::super::error::ScenarioError;
use super::super::place::Fields;
use super::super::value::Table;
use super::super::wait;
use super::tcp::{read_params, write_params};

/// What is transferred, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Sessions(Arc<SessionsConfig>);

impl Sessions {
    pub(super) const KEYS: [&str; 3] = ["every", "bytes", "request"];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let example = "{ distribution = \"exponential\", mean = \"200ms\" }";
        let place = fields.need("every", example)?;
        let every = wait::read(&place)?;
        if every == Wait::Fixed(Duration::ZERO) {
            return Err(place.fail("must be longer than nothing"));
        }
        let example = "{ distribution = \"pareto\", least = \"4kb\", shape = 1.2 }";
        Ok(Self(Arc::new(SessionsConfig {
            tcp: read_params(fields)?,
            every,
            request: fields.or("request", Bytes(400), |p| p.size(1, 1 << 20))?,
            response: amounts::read(&fields.need("bytes", example)?)?,
        })))
    }

    pub(super) fn write(&self, fields: &mut Table) {
        let config = &self.0;
        write_params(config.tcp, fields);
        insert(fields, "every", Some(wait::write(config.every)));
        insert(fields, "bytes", Some(amount(config.response)));
        insert(fields, "request", Some(size(config.request)));
    }

    pub(super) fn plan(&self) -> Traffic {
        Traffic::App(AppConfig::Sessions(Arc::clone(&self.0)))
    }
}
