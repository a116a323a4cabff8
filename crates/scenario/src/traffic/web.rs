//! Web users: `type = "web"`.

use std::sync::Arc;

use sojourn_apps::{ApplicationConfig, Http, Transport, Wait, WebConfig};
use sojourn_net::Rng;

use super::block::{Source, TrafficProperties, TrafficType};
use super::quic::Session;
use super::tcp::{read_params, write_params};
use super::transport::{EXCHANGE, OF_TCP, Requests, check_slow_start};
use crate::declare::{Keys, keys, one_of};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::page::{Pages, built_in_names, named};
use crate::place::Fields;
use crate::plan::Traffic;
use crate::value::Table;

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

keys! {
    /// Settings of a web block, except those of QUIC.
    #[derive(Clone, Debug)]
    struct Browsing {
        /// Name of a built-in page or of one of the scenario's pages.
        page: String = Form::Either(&[Form::Choice(built_in_names), Form::Def("text")]), required "\"large\"";
        /// Version of HTTP.
        http: Http = one_of::<Http>(), default "2";
        /// Begin connections with a TLS 1.3 handshake.
        tls: bool = Form::Flag, default "true";
        /// Time from the completion of a page load to the next visit.
        think: Wait = Form::WAIT, default "1s";
        /// Number of visits.
        visits: Option<u32> = Form::Integer(1, u32::MAX as i64);
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "web",
    keys: &[Browsing::KEYS, Session::KEYS, EXCHANGE[0], EXCHANGE[1]],
    properties: TrafficProperties::transactions("pages"),
    read: |fields, context| Ok(Arc::new(Web::read(fields, context.pages)?)),
};

/// Settings of a web block.
#[derive(Debug)]
struct Web {
    browsing: Browsing,
    /// Of HTTP/3.
    session: Option<Session>,
    /// Users of a block share it.
    config: Arc<WebConfig>,
}

impl Web {
    fn read(fields: &Fields<'_>, pages: &Pages) -> Result<Self, ScenarioError> {
        let mut browsing = Browsing::read(fields)?;
        let (_, page) = named(&fields.need("page", "")?, pages)?;
        let Requests { transport, request } = Requests::read(fields)?;
        if transport == Some(Transport::Quic) && fields.get("http").is_none() {
            browsing.http = Http::Three;
        }
        let session = Session::read(fields)?;
        let config = WebConfig {
            tcp: read_params(fields)?,
            http: browsing.http,
            tls: browsing.tls,
            zero_rtt: session.zero_rtt,
            flow: session.flow(),
            request,
            page,
            think: browsing.think,
            visits: browsing.visits,
        };
        let needed = config.exchange().transport;
        if let Some(place) = fields.get("transport")
            && transport != Some(needed)
        {
            let (http, needed) = (config.http.name(), needed.name());
            return Err(place.fail(format!(
                "http = \"{http}\" runs over {needed}; expected transport = \"{needed}\""
            )));
        }
        if config.http == Http::Three {
            check_quic(fields, &config)?;
        } else if let Some(place) = Session::KEYS.iter().find_map(|key| fields.get(key.name)) {
            return Err(place.fail("requires http = \"3\", which runs over QUIC"));
        }
        check_slow_start(fields, &config.tcp, needed)?;
        Ok(Self {
            browsing,
            session: (config.http == Http::Three).then_some(session),
            config: Arc::new(config),
        })
    }
}

impl Source for Web {
    fn write(&self, fields: &mut Table) {
        let transport = None;
        let request = self.config.request;
        Requests { transport, request }.write(fields);
        write_params(self.config.tcp, fields);
        self.browsing.write(fields);
        if let Some(session) = self.session {
            session.write(fields);
        }
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(Arc::clone(&self.config) as _)
    }
}
