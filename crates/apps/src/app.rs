//! A running application of any kind.

use std::sync::Arc;

use sojourn_net::{Instant, Rng};

use crate::config::AppConfig;
use crate::contract::{AppEvent, AppOutput};
use crate::dash::{Dash, PlayerRecord};
use crate::requests::Requests;
use crate::responsiveness::{Responsiveness, ResponsivenessRecord};
use crate::sessions::Sessions;
use crate::web::Web;

/// A running application.
#[derive(Debug)]
pub enum App {
    /// Web pages.
    Web(Web),
    /// Connections that arrive at random.
    Sessions(Sessions),
    /// Requests over persistent connections.
    Requests(Requests),
    /// Adaptive video.
    Dash(Dash),
    /// A responsiveness test.
    Responsiveness(Box<Responsiveness>),
}

impl App {
    /// The application with this configuration and random stream.
    pub fn new(config: &AppConfig, rng: &Rng) -> Self {
        match config {
            AppConfig::Web(config) => Self::Web(Web::new(Arc::clone(config), rng)),
            AppConfig::Sessions(config) => Self::Sessions(Sessions::new(Arc::clone(config), rng)),
            AppConfig::Requests(config) => Self::Requests(Requests::new(Arc::clone(config), rng)),
            AppConfig::Dash(config) => Self::Dash(Dash::new(Arc::clone(config))),
            AppConfig::Responsiveness(config) => {
                let test = Responsiveness::new(Arc::clone(config), rng);
                Self::Responsiveness(Box::new(test))
            }
        }
    }

    /// Handles an event; commands and reports go to `out`.
    pub fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match self {
            Self::Web(web) => web.on(now, event, out),
            Self::Sessions(sessions) => sessions.on(now, event, out),
            Self::Requests(requests) => requests.on(now, event, out),
            Self::Dash(dash) => dash.on(now, event, out),
            Self::Responsiveness(test) => test.on(now, event, out),
        }
    }

    /// When [`AppEvent::Timer`] is due; `None`: no timer is set.
    pub fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::Web(web) => web.next_timer(),
            Self::Sessions(sessions) => sessions.next_timer(),
            Self::Requests(requests) => requests.next_timer(),
            Self::Dash(dash) => dash.next_timer(),
            Self::Responsiveness(test) => test.next_timer(),
        }
    }

    /// What a video player has recorded; `None` for other applications.
    pub const fn player(&self) -> Option<PlayerRecord> {
        match self {
            Self::Dash(dash) => Some(dash.record()),
            _ => None,
        }
    }

    /// The result of a responsiveness test; `None` for others, or before there is one.
    pub fn responsiveness(&self) -> Option<ResponsivenessRecord> {
        match self {
            Self::Responsiveness(test) => test.record(),
            _ => None,
        }
    }

    /// The warm-up has ended: measurements start now.
    pub fn begin_measuring(&mut self) {
        if let Self::Responsiveness(test) = self {
            test.begin_measuring();
        }
    }

    /// The run ends or the application is stopped: reports what has not completed.
    pub fn finish(&mut self, now: Instant, out: &mut AppOutput) {
        match self {
            Self::Web(web) => web.finish(out),
            Self::Sessions(sessions) => sessions.finish(out),
            Self::Requests(requests) => requests.finish(out),
            Self::Dash(dash) => dash.finish(now, out),
            Self::Responsiveness(test) => test.finish(now),
        }
    }
}
