//! Echo requests: `type = "ping"`.

use std::sync::Arc;

use super::block::{Context, Measured, Source, TrafficProperties, TrafficType};
use super::udp::PAYLOAD;
use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::{Phase, PingConfig, PingPace, TURNAROUND};
use sojourn_net::Rng;

use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::value::{Table, Value, insert, size, time, time_text};

/// Requests a block may make in a run: some 500 MB of records.
const MOST_REQUESTS: u64 = 10_000_000;
const UDP: &str = "udp";
const PROTOCOLS: [&str; 2] = ["icmp", UDP];
/// The interval of requests that go one at a time.
const BACK_TO_BACK: &str = "back-to-back";

const KEYS: &[Key] = &[
    Key::optional(
        "interval",
        Form::Either(&[Form::POSITIVE_TIME, Form::Choice(|| vec![BACK_TO_BACK])]),
        "Time between requests; back-to-back: send each request when the previous reply arrives.",
    )
    .or("100ms"),
    Key::optional(
        "phase",
        Form::TIME,
        "Time from the start to the first request, with equal intervals after it; by default each request leaves at a random time in its interval.",
    ),
    Key::optional("protocol", Form::Choice(|| PROTOCOLS.to_vec()), "Protocol.").or("icmp"),
    Key::optional(
        "payload",
        PAYLOAD,
        "Payload of a request and its reply, over UDP.",
    )
    .or("1b"),
    Key::optional(
        "timeout",
        Form::POSITIVE_TIME,
        "Time after which a back-to-back request without a reply is abandoned.",
    )
    .or("5s"),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "ping",
    keys: &[KEYS],
    properties: TrafficProperties {
        measured: Measured::Nothing,
        carries_data: false,
        ..TrafficProperties::DATAGRAMS
    },
    read: |fields, context| Ok(Arc::new(Ping::read(fields, context)?)),
};

/// Settings of a ping block.
#[derive(Clone, Copy, Debug)]
struct Ping(PingConfig);

impl Ping {
    /// Every request is kept, so their number is bounded.
    fn read(fields: &Fields<'_>, context: &Context<'_>) -> Result<Self, ScenarioError> {
        let udp = fields.one_of("protocol", "protocol", &PROTOCOLS)? == UDP;
        let payload = fields.size("payload")?;
        if let Some(place) = fields.get("payload")
            && !udp
        {
            return Err(place.fail(
                "requires protocol = \"udp\"; an ICMP echo request carries 56 bytes of payload",
            ));
        }
        let one_at_a_time = fields.get("interval").is_some_and(
            |place| matches!(&place.node.value, Value::Text(text) if text == BACK_TO_BACK),
        );
        let timeout = fields.time("timeout")?;
        let pace = if one_at_a_time {
            PingPace::BackToBack { timeout }
        } else {
            PingPace::Every {
                interval: fields.time("interval")?,
                phase: fields.option("phase", Place::time)?.into(),
            }
        };
        if let Some(place) = fields.get("phase")
            && one_at_a_time
        {
            return Err(place.fail("not allowed with interval = \"back-to-back\""));
        }
        if let Some(place) = fields.get("timeout")
            && !one_at_a_time
        {
            return Err(place.fail("requires interval = \"back-to-back\""));
        }
        if let Some(place) = fields.get("interval")
            && one_at_a_time
            && !udp
        {
            return Err(place.fail("\"back-to-back\" requires protocol = \"udp\""));
        }
        check_number(fields, pace, context)?;
        Ok(Self(PingConfig {
            pace,
            payload: udp.then_some(payload),
        }))
    }
}

impl Source for Ping {
    fn write(&self, fields: &mut Table) {
        match self.0.pace {
            PingPace::Every { interval, phase } => {
                insert(fields, "interval", Some(time(interval)));
                if let Phase::Fixed(phase) = phase {
                    insert(fields, "phase", Some(time(phase)));
                }
            }
            PingPace::BackToBack { timeout } => {
                insert(fields, "interval", Some(BACK_TO_BACK.into()));
                insert(fields, "timeout", Some(time(timeout)));
            }
        }
        let udp = self.0.payload.map(|_| UDP.into());
        insert(fields, "protocol", udp);
        insert(fields, "payload", self.0.payload.map(size));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::datagrams(self.0)
    }
}

/// Refuses more requests than can be kept.
fn check_number(
    fields: &Fields<'_>,
    how: PingPace,
    context: &Context<'_>,
) -> Result<(), ScenarioError> {
    let interval = match how {
        PingPace::Every { interval, .. } => interval,
        PingPace::BackToBack { .. } => TURNAROUND,
    };
    let all = u128::from(context.duration.as_nanos()) * u128::from(context.count);
    let most = u128::from(MOST_REQUESTS) * u128::from(interval.as_nanos());
    let place = fields.get("interval").or_else(|| fields.get("count"));
    let Some(place) = place.filter(|_| all > most) else {
        return Ok(());
    };
    let least_us = all.div_ceil(u128::from(MOST_REQUESTS) * 1_000);
    Err(place.fail(match how {
        PingPace::Every { .. } => format!(
            "too many requests; expected an interval of at least {least_us}us, since a ping block \
             sends at most {MOST_REQUESTS} requests"
        ),
        PingPace::BackToBack { .. } => format!(
            "too many requests; expected an interval of at least {least_us}us, since a ping block \
             sends at most {MOST_REQUESTS} requests and back-to-back requests may be {} apart",
            time_text(TURNAROUND)
        ),
    }))
}
