//! Applications: state machines that open connections and talk over them.
//!
//! An [`App`] is sans-IO, as the transports are: it is told what happens and when, and pushes what
//! it wants done to a [`Net`]. One application is one user, with a client and the servers it talks
//! to; the server's part of it acts on nothing but what has reached the server.

mod amount;
mod dash;
mod page;
mod responsiveness;
mod rounds;
mod sessions;
mod timers;
mod tls;
mod wait;
mod web;

use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rng};
use sojourn_transport::{SenderParams, quic};

use crate::records::{AppKind, PlayerRecord};
pub use amount::Amount;
pub use dash::DashConfig;
pub use page::{Object, Page, PageError};
pub use responsiveness::{Confidence, ResponsivenessConfig, ResponsivenessRecord, RoundTrips};
pub use rounds::RoundsConfig;
pub use sessions::SessionsConfig;
pub use wait::Wait;
pub use web::{Http, WebConfig};

/// Who of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What happened, as an application is told. A connection goes by the number it was opened under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// It begins.
    Started,
    /// The time that [`App::next_timer`] returned has come.
    Timer,
    /// The client may write.
    Connected(u32),
    /// The server got as many bytes in all, no fewer than it had asked to be told of.
    Asked(u32, u64),
    /// The client did.
    Answered(u32, u64),
    /// The server has no more unsent than it had asked to be told of.
    Room(u32),
    /// The server got all that the client wrote on a stream.
    Requested(u32, u16),
    /// The client got all that the server wrote on it.
    Responded(u32, u16),
    /// The connection was given up.
    Failed(u32),
}

/// What an application wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Open connection number `.0`, which has had no other before.
    Open(u32),
    /// Send so many bytes.
    Write(u32, Side, u64),
    /// Send so many bytes, and no more, on a stream.
    Stream(u32, Side, u16, u64),
    /// Tell when this end got so many bytes in all.
    Expect(u32, Side, u64),
    /// Tell when the server has no more than so many bytes unsent.
    Room(u32, u64),
    /// Close in order; nothing more will be told of it.
    Close(u32),
}

/// One thing a user waited for, from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Whose it is, by the flow's place in the configuration.
    pub flow: u32,
    /// When it began.
    pub started: Instant,
    /// When it was whole; `None`: not within the run.
    pub completed: Option<Instant>,
    /// What it was to bring, in bytes of responses.
    pub bytes: u64,
}

/// What applications want done, and what they report.
#[derive(Debug, Default)]
pub(crate) struct Net {
    pub(crate) commands: Vec<Command>,
    pub(crate) transactions: Vec<Transaction>,
    /// Whose turn it is.
    pub(crate) flow: u32,
}

impl Net {
    fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Sends so many bytes; what one end of a connection writes in a turn leaves as one piece.
    fn write(&mut self, n: u32, side: Side, bytes: u64) {
        let same = |command: &&mut Command| match command {
            Command::Write(other, end, _) => (*other, *end) == (n, side),
            _ => false,
        };
        match self.commands.iter_mut().rev().find(same) {
            Some(Command::Write(.., all)) => *all += bytes,
            _ => self.commands.push(Command::Write(n, side, bytes)),
        }
    }

    fn record(&mut self, started: Instant, completed: Option<Instant>, bytes: u64) {
        self.transactions.push(Transaction {
            flow: self.flow,
            started,
            completed,
            bytes,
        });
    }
}

/// What an application does.
#[derive(Clone, Debug, PartialEq)]
pub enum AppConfig {
    /// Web pages.
    Web(Arc<WebConfig>),
    /// Connections that come at random.
    Sessions(Arc<SessionsConfig>),
    /// Requests over connections that stay.
    Rounds(Arc<RoundsConfig>),
    /// Adaptive video.
    Dash(Arc<DashConfig>),
    /// A test of responsiveness.
    Responsiveness(Arc<ResponsivenessConfig>),
}

impl AppConfig {
    /// Which application it is.
    pub fn kind(&self) -> AppKind {
        match self {
            Self::Web(_) => AppKind::Web,
            Self::Sessions(_) => AppKind::Sessions,
            Self::Rounds(rounds) if rounds.servers > 1 => AppKind::Incast,
            Self::Rounds(_) => AppKind::Request,
            Self::Dash(_) => AppKind::Dash,
            Self::Responsiveness(_) => AppKind::Responsiveness,
        }
    }

    /// What its connections are opened with.
    pub fn tcp(&self) -> SenderParams {
        match self {
            Self::Web(web) => web.tcp,
            Self::Sessions(sessions) => sessions.tcp,
            Self::Rounds(rounds) => rounds.tcp,
            Self::Dash(dash) => dash.tcp,
            Self::Responsiveness(test) => test.tcp,
        }
    }

    /// What connections that are QUIC's are opened with; `None`: they are TCP's.
    pub(crate) fn quic(&self) -> Option<quic::Params> {
        match self {
            Self::Web(web) => web.quic(),
            Self::Sessions(_) | Self::Rounds(_) | Self::Dash(_) | Self::Responsiveness(_) => None,
        }
    }

    /// The first rule that is broken, and of which key.
    pub(crate) fn check(&self) -> Option<(&'static str, &'static str)> {
        let request = match self {
            Self::Web(web) => web.request,
            Self::Sessions(sessions) => sessions.request,
            Self::Rounds(rounds) => rounds.request,
            Self::Dash(dash) => dash.request,
            Self::Responsiveness(test) => test.request,
        };
        match self {
            Self::Sessions(sessions) if sessions.every == Wait::Fixed(Duration::ZERO) => {
                return Some(("every", "must be longer than nothing"));
            }
            Self::Rounds(rounds) if rounds.servers == 0 => {
                return Some(("servers", "must be at least 1"));
            }
            Self::Responsiveness(test) if test.connections == 0 => {
                return Some(("connections", "must be at least 1"));
            }
            Self::Dash(dash) => {
                if let Some(broken) = dash.check() {
                    return Some(broken);
                }
            }
            _ => {}
        }
        match (request.0, self.tcp().initial_window) {
            (0, _) => Some(("request", "must be positive")),
            (_, 0) => Some(("initial_window", "must be at least 1")),
            _ => None,
        }
    }
}

/// An application at work.
#[derive(Debug)]
pub(crate) enum App {
    Web(web::Web),
    Sessions(sessions::Sessions),
    Rounds(rounds::Rounds),
    Dash(dash::Dash),
    Responsiveness(Box<responsiveness::Responsiveness>),
}

impl App {
    /// The application that `config` tells of; `rng` is its own.
    pub(crate) fn new(config: &AppConfig, rng: &Rng) -> Self {
        match config {
            AppConfig::Web(config) => Self::Web(web::Web::new(Arc::clone(config), rng)),
            AppConfig::Sessions(config) => {
                Self::Sessions(sessions::Sessions::new(Arc::clone(config), rng))
            }
            AppConfig::Rounds(config) => Self::Rounds(rounds::Rounds::new(Arc::clone(config), rng)),
            AppConfig::Dash(config) => Self::Dash(dash::Dash::new(Arc::clone(config))),
            AppConfig::Responsiveness(config) => {
                let test = responsiveness::Responsiveness::new(Arc::clone(config), rng);
                Self::Responsiveness(Box::new(test))
            }
        }
    }

    pub(crate) fn on(&mut self, now: Instant, what: Happening, net: &mut Net) {
        match self {
            Self::Web(web) => web.on(now, what, net),
            Self::Sessions(sessions) => sessions.on(now, what, net),
            Self::Rounds(rounds) => rounds.on(now, what, net),
            Self::Dash(dash) => dash.on(now, what, net),
            Self::Responsiveness(test) => test.on(now, what, net),
        }
    }

    /// When [`Happening::Timer`] is due; `None` if nothing is waited for.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::Web(web) => web.next_timer(),
            Self::Sessions(sessions) => sessions.next_timer(),
            Self::Rounds(rounds) => rounds.next_timer(),
            Self::Dash(dash) => dash.next_timer(),
            Self::Responsiveness(test) => test.next_timer(),
        }
    }

    /// What a player has to say.
    pub(crate) const fn player(&self) -> Option<PlayerRecord> {
        match self {
            Self::Dash(dash) => Some(dash.record()),
            _ => None,
        }
    }

    /// What a test of responsiveness has found.
    pub(crate) fn responsiveness(&self) -> Option<ResponsivenessRecord> {
        match self {
            Self::Responsiveness(test) => test.record(),
            _ => None,
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self) {
        if let Self::Responsiveness(test) = self {
            test.begin_measuring();
        }
    }

    /// The run ends, or the application is stopped: what is not whole is reported as such.
    pub(crate) fn finish(&mut self, now: Instant, net: &mut Net) {
        match self {
            Self::Web(web) => web.finish(net),
            Self::Sessions(sessions) => sessions.finish(net),
            Self::Rounds(rounds) => rounds.finish(net),
            Self::Dash(dash) => dash.finish(now, net),
            Self::Responsiveness(test) => test.finish(now),
        }
    }
}
