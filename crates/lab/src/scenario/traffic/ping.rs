//! Echo requests: `type = "ping"`.

use sojourn_net::Duration;
use sojourn_sim::Traffic;

use super::super::encode::{insert, time};
use super::super::error::ScenarioError;
use super::super::place::{Fields, Place};
use super::super::value::Table;

/// Echo requests a block may make in a run: some 500 MB of records.
const MOST_REQUESTS: u64 = 10_000_000;

/// What pings do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ping {
    pub(crate) interval: Duration,
}

impl Ping {
    pub(super) const KEYS: [&str; 1] = ["interval"];

    /// Every request is kept, so their number is bounded.
    pub(super) fn read(
        fields: &Fields<'_>,
        count: u32,
        duration: Duration,
    ) -> Result<Self, ScenarioError> {
        let interval = fields.or("interval", Duration::from_millis(100), Place::positive_time)?;
        let all = u128::from(duration.as_nanos()) * u128::from(count);
        if all > u128::from(MOST_REQUESTS) * u128::from(interval.as_nanos())
            && let Some(place) = fields.get("interval").or_else(|| fields.get("count"))
        {
            let least_us = all.div_ceil(u128::from(MOST_REQUESTS) * 1_000);
            return Err(place.fail(format!(
                "a block of pings keeps {MOST_REQUESTS} requests at most, so use an interval of \
                 {least_us}us or more"
            )));
        }
        Ok(Self { interval })
    }

    pub(super) fn write(self, fields: &mut Table) {
        insert(fields, "interval", Some(time(self.interval)));
    }

    pub(super) const fn plan(self) -> Traffic {
        Traffic::Ping {
            interval: self.interval,
        }
    }
}
