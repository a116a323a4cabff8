//! Web users: `type = "web"`.

use std::sync::Arc;

use crate::key::{Form, Key};
use crate::plan::Traffic;
use sojourn_apps::{ApplicationConfig, Http, Transport, WebConfig};
use sojourn_net::Rng;

use super::block::{Source, TrafficProperties, TrafficType};
use super::quic::{MAX_DATA, MAX_STREAM_DATA, ZERO_RTT, flow_control, write_flow_control};
use super::tcp::{PARAMS, read_params, write_params};
use super::transport::{self, OF_TCP};
use crate::error::ScenarioError;
use crate::page::{Pages, built_in_names, named};
use crate::place::{Fields, Place};
use crate::value::{Table, insert, size};
use crate::wait;

/// Keys that HTTP over TCP has no use for.
const OF_QUIC: [&str; 3] = ["zero_rtt", "max_data", "max_stream_data"];

/// Refuses what HTTP/3 cannot have.
fn check_quic(fields: &Fields<'_>, config: &WebConfig) -> Result<(), ScenarioError> {
    if let Some(place) = OF_TCP.iter().find_map(|key| fields.get(key)) {
        return Err(place
            .fail("is for TCP only, but HTTP/3 runs over QUIC; remove it, or set http = \"2\""));
    }
    if let Some(place) = fields.get("ecn")
        && config.tcp.accurate_ecn
    {
        return Err(place.fail("\"accurate\" is for TCP only; over HTTP/3, expected true or false"));
    }
    if let Some(place) = fields.get("tls")
        && !config.tls
    {
        return Err(place.fail("must be true over HTTP/3, since QUIC always uses TLS"));
    }
    Ok(())
}

const KEYS: &[Key] = &[
    transport::KEY,
    Key::required(
        "page",
        Form::Either(&[Form::Choice(built_in_names), Form::Def("text")]),
        "Name of a built-in page or of one of the scenario's pages.",
    ),
    Key::optional(
        "http",
        Form::Choice(|| Http::ALL.map(Http::name).to_vec()),
        "Version of HTTP.",
    )
    .or("2"),
    transport::TLS,
    ZERO_RTT,
    MAX_DATA,
    MAX_STREAM_DATA,
    transport::REQUEST,
    Key::optional(
        "think",
        Form::WAIT,
        "Time from the completion of a page load to the next visit.",
    )
    .or("1s"),
    Key::optional(
        "visits",
        Form::Integer(1, u32::MAX as i64),
        "Number of visits.",
    ),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "web",
    keys: &[KEYS, PARAMS],
    properties: TrafficProperties::transactions("pages"),
    read: |fields, context| Ok(Arc::new(Web::read(fields, context.pages)?)),
};

/// Settings of a web block.
#[derive(Clone, Debug)]
struct Web {
    page: String,
    /// Users of a block share it.
    config: Arc<WebConfig>,
}

impl Web {
    fn read(fields: &Fields<'_>, pages: &Pages) -> Result<Self, ScenarioError> {
        let (name, page) = named(&fields.need("page", "\"large\"")?, pages)?;
        let over = transport::chosen(fields)?;
        let http = match (over, fields.get("http")) {
            (Some(Transport::Quic), None) => Http::Three,
            _ => fields.one_of("http", "HTTP version", &Http::ALL)?,
        };
        let config = WebConfig {
            tcp: read_params(fields)?,
            http,
            tls: fields.flag("tls")?,
            zero_rtt: fields.flag("zero_rtt")?,
            flow: flow_control(fields)?,
            request: fields.size("request")?,
            page,
            think: fields.value("think", wait::read)?,
            visits: fields.option("visits", Place::integer)?,
        };
        if let Some(place) = fields.get(transport::KEY.name)
            && over.is_some_and(|over| over != config.exchange().transport)
        {
            let (http, needed) = (config.http.name(), config.exchange().transport.name());
            return Err(place.fail(format!(
                "http = \"{http}\" runs over {needed}; expected transport = \"{needed}\""
            )));
        }
        if config.http == Http::Three {
            check_quic(fields, &config)?;
        } else if let Some(place) = OF_QUIC.iter().find_map(|key| fields.get(key)) {
            return Err(place.fail("requires http = \"3\", which runs over QUIC"));
        }
        transport::check_slow_start(fields, &config.tcp, config.exchange().transport)?;
        Ok(Self {
            page: name,
            config: Arc::new(config),
        })
    }
}

impl Source for Web {
    fn write(&self, fields: &mut Table) {
        let config = &self.config;
        write_params(config.tcp, fields);
        insert(fields, "page", Some(self.page.as_str().into()));
        insert(fields, "http", Some(config.http.name().into()));
        insert(fields, "tls", Some(config.tls.into()));
        if config.http == Http::Three {
            insert(fields, "zero_rtt", Some(config.zero_rtt.into()));
            write_flow_control(config.flow, fields);
        }
        insert(fields, "request", Some(size(config.request)));
        insert(fields, "think", Some(wait::write(config.think)));
        insert(fields, "visits", config.visits.map(Into::into));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(self.config.clone())
    }
}
