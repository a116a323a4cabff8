//! Users who look at web pages: `type = "web"`.

use std::sync::Arc;

use sojourn_net::{Bytes, Duration};
use sojourn_sim::{AppConfig, Http, Traffic, Wait, WebConfig};

use super::super::decode::choice;
use super::super::encode::{insert, size};
use super::super::error::ScenarioError;
use super::super::page::{Pages, named};
use super::super::place::{Fields, Place};
use super::super::value::Table;
use super::super::wait;
use super::tcp::{read_params, write_params};

/// What users do.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    page: String,
    /// Users of a block share it.
    config: Arc<WebConfig>,
}

impl Web {
    pub(super) const KEYS: [&str; 6] = ["page", "http", "tls", "request", "think", "visits"];

    pub(super) fn read(fields: &Fields<'_>, pages: &Pages) -> Result<Self, ScenarioError> {
        let (name, page) = named(&fields.need("page", "\"large\"")?, pages)?;
        let versions = Http::ALL.map(Http::name);
        let config = WebConfig {
            tcp: read_params(fields)?,
            http: fields.or("http", Http::Two, |p| {
                choice(p, "a version of HTTP", &versions).map(|n| Http::ALL[n])
            })?,
            tls: fields.or("tls", true, Place::flag)?,
            request: fields.or("request", Bytes(400), |p| p.size(1, 1 << 20))?,
            page,
            think: fields.or("think", Wait::Fixed(Duration::from_secs(1)), wait::read)?,
            visits: fields.option("visits", |p| p.count(1, u32::MAX))?,
        };
        Ok(Self {
            page: name,
            config: Arc::new(config),
        })
    }

    pub(super) fn write(&self, fields: &mut Table) {
        let config = &self.config;
        write_params(config.tcp, fields);
        insert(fields, "page", Some(self.page.as_str().into()));
        insert(fields, "http", Some(config.http.name().into()));
        insert(fields, "tls", Some(config.tls.into()));
        insert(fields, "request", Some(size(config.request)));
        insert(fields, "think", Some(wait::write(config.think)));
        insert(fields, "visits", config.visits.map(Into::into));
    }

    pub(super) fn plan(&self) -> Traffic {
        Traffic::App(AppConfig::Web(Arc::clone(&self.config)))
    }
}
