//! Configuration of an application: which one, and its parameters.

use std::sync::Arc;

use sojourn_net::Duration;
use sojourn_transport::{SenderParams, quic};

use crate::dash::DashConfig;
use crate::requests::RequestsConfig;
use crate::responsiveness::ResponsivenessConfig;
use crate::sessions::SessionsConfig;
use crate::transport::{Transport, quic_params};
use crate::wait::Wait;
use crate::web::WebConfig;

/// Kind of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppKind {
    /// Web pages.
    Web,
    /// Connections that arrive at random.
    Sessions,
    /// Requests to one server.
    Request,
    /// Requests to many servers at once.
    Incast,
    /// Adaptive video.
    Dash,
    /// Voice over UDP.
    Voip,
    /// A responsiveness test.
    Responsiveness,
}

impl AppKind {
    /// Its name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Sessions => "sessions",
            Self::Request => "request",
            Self::Incast => "incast",
            Self::Dash => "dash",
            Self::Voip => "voip",
            Self::Responsiveness => "responsiveness",
        }
    }
}

/// Configuration of an application.
#[derive(Clone, Debug, PartialEq)]
pub enum AppConfig {
    /// Web pages.
    Web(Arc<WebConfig>),
    /// Connections that arrive at random.
    Sessions(Arc<SessionsConfig>),
    /// Requests over persistent connections.
    Requests(Arc<RequestsConfig>),
    /// Adaptive video.
    Dash(Arc<DashConfig>),
    /// A responsiveness test.
    Responsiveness(Arc<ResponsivenessConfig>),
}

impl AppConfig {
    /// Kind of application.
    pub fn kind(&self) -> AppKind {
        match self {
            Self::Web(_) => AppKind::Web,
            Self::Sessions(_) => AppKind::Sessions,
            Self::Requests(requests) if requests.servers > 1 => AppKind::Incast,
            Self::Requests(_) => AppKind::Request,
            Self::Dash(_) => AppKind::Dash,
            Self::Responsiveness(_) => AppKind::Responsiveness,
        }
    }

    /// Parameters of its TCP connections.
    pub fn tcp(&self) -> SenderParams {
        match self {
            Self::Web(web) => web.tcp,
            Self::Sessions(sessions) => sessions.tcp,
            Self::Requests(requests) => requests.tcp,
            Self::Dash(dash) => dash.tcp,
            Self::Responsiveness(test) => test.tcp,
        }
    }

    /// Parameters of its QUIC connections; `None`: it uses TCP.
    pub fn quic(&self) -> Option<quic::Params> {
        let transport = match self {
            Self::Web(web) => return web.quic(),
            Self::Sessions(sessions) => sessions.transport,
            Self::Requests(requests) => requests.transport,
            Self::Dash(dash) => dash.transport,
            Self::Responsiveness(test) => test.transport,
        };
        (transport == Transport::Quic).then(|| quic_params(&self.tcp()))
    }

    /// The first broken rule: the key and what it must be.
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        let request = match self {
            Self::Web(web) => web.request,
            Self::Sessions(sessions) => sessions.request,
            Self::Requests(requests) => requests.request,
            Self::Dash(dash) => dash.request,
            Self::Responsiveness(test) => test.request,
        };
        match self {
            Self::Sessions(sessions) if sessions.every == Wait::Fixed(Duration::ZERO) => {
                return Some(("every", "must be > 0"));
            }
            Self::Requests(requests) if requests.servers == 0 => {
                return Some(("servers", "must be >= 1"));
            }
            Self::Responsiveness(test) if test.connections == 0 => {
                return Some(("connections", "must be >= 1"));
            }
            Self::Dash(dash) => {
                if let Some(broken) = dash.check() {
                    return Some(broken);
                }
            }
            _ => {}
        }
        match (request.0, self.tcp().initial_window) {
            (0, _) => Some(("request", "must be > 0")),
            (_, 0) => Some(("initial_window", "must be >= 1")),
            _ => None,
        }
    }
}
