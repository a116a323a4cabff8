//! Connections that arrive at random times: `type = "sessions"`.

use std::sync::Arc;

use sojourn_apps::{Amount, SessionsConfig, Wait};
use sojourn_net::Duration;

use super::block::{Context, TrafficProperties, TrafficType};
use super::transport::{App, EXCHANGE, read_exchange};
use crate::declare::{Keys, keys};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Fields;

/// Connections that a block may open per run: a table has one row per connection.
const MOST_CONNECTIONS: u64 = 10_000_000;

keys! {
    /// What is transferred, and how often.
    #[derive(Clone, Copy, Debug)]
    struct Sessions {
        /// Interval between connections.
        every: Wait = Form::WAIT, required "{ distribution = \"exponential\", mean = \"200ms\" }";
        /// Size of a response.
        bytes: Amount = Form::AMOUNT, required "{ distribution = \"pareto\", least = \"4kb\", shape = 1.2 }";
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "sessions",
    keys: &[Sessions::KEYS, EXCHANGE[0], EXCHANGE[1]],
    properties: TrafficProperties::transactions("sessions"),
    read: |fields, context| Ok(Arc::new(Sessions::read(fields)?.app(fields, context)?)),
};

impl Sessions {
    /// Every connection is kept, so their number is bounded.
    fn app(self, fields: &Fields<'_>, context: &Context<'_>) -> Result<App<Self>, ScenarioError> {
        let Self { every, bytes } = self;
        let place = fields.need("every", "")?;
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
        let config = SessionsConfig {
            exchange: read_exchange(fields)?,
            every,
            response: bytes,
        };
        Ok(App {
            keys: self,
            config: Arc::new(config),
        })
    }
}
