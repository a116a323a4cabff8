//! Connections that arrive at random times: `type = "sessions"`.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::{SessionsConfig, Wait};
use sojourn_net::{Duration, Rng};

use super::block::{Context, Source, TrafficProperties, TrafficType};
use super::tcp::PARAMS;
use super::transport;
use crate::error::ScenarioError;
use crate::place::Fields;
use crate::value::{Table, insert};
use crate::{amount, wait};

/// Connections that a block may open per run: a table has one row per connection.
const MOST_CONNECTIONS: u64 = 10_000_000;

const KEYS: &[Key] = &[
    transport::KEY,
    Key::required("every", Form::WAIT, "Interval between connections."),
    Key::required("bytes", Form::AMOUNT, "Size of a response."),
    transport::REQUEST,
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "sessions",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::transactions("sessions"),
    read: |fields, context| Ok(Arc::new(Sessions::read(fields, context)?)),
};

/// What is transferred, and how often.
#[derive(Clone, Debug)]
struct Sessions(Arc<SessionsConfig>);

impl Sessions {
    /// Every connection is kept, so their number is bounded.
    fn read(fields: &Fields<'_>, context: &Context<'_>) -> Result<Self, ScenarioError> {
        let example = "{ distribution = \"exponential\", mean = \"200ms\" }";
        let place = fields.need("every", example)?;
        let every = wait::read(&place)?;
        if every == Wait::Fixed(Duration::ZERO) {
            return Err(place.fail("must be > 0"));
        }
        let mean = match every {
            Wait::Fixed(time) | Wait::Exponential { mean: time } => time.as_nanos(),
        };
        let all = u128::from(context.duration.as_nanos()) * u128::from(context.count);
        if all > u128::from(MOST_CONNECTIONS) * u128::from(mean) {
            let least_us = all.div_ceil(u128::from(MOST_CONNECTIONS) * 1_000);
            return Err(place.fail(format!(
                "too short; expected at least {least_us}us, since a sessions block opens at most \
                 {MOST_CONNECTIONS} connections"
            )));
        }
        let example = "{ distribution = \"pareto\", least = \"4kb\", shape = 1.2 }";
        Ok(Self(Arc::new(SessionsConfig {
            exchange: transport::read_exchange(fields)?,
            every,
            response: amount::read(&fields.need("bytes", example)?)?,
        })))
    }
}

impl Source for Sessions {
    fn write(&self, fields: &mut Table) {
        let config = &self.0;
        transport::write_exchange(config.exchange, fields);
        insert(fields, "every", Some(wait::write(config.every)));
        insert(fields, "bytes", Some(amount::write(config.response)));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(self.0.clone())
    }
}
