//! Connections that arrive at random times, one request and response each.
//!
//! # Source
//!
//! Sommers and Barford, "Self-Configuring Network Traffic Generation" (Harpoon, IMC 2004): sessions
//! begin at random intervals and transfer files of heavy-tailed sizes. Here the intervals and the
//! sizes have any distribution; exponential and Pareto are meant.
//!
//! # Law
//!
//! New connections are opened whether or not earlier ones have ended, so that the load offered
//! does not depend on the network. Each sends a request, gets its response and closes.

use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rng};

use crate::contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Exchange, Side,
};
use crate::demand::{Demand, Opportunity, Volume};
use crate::distributions::{Amount, Wait};

/// Configuration of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionsConfig {
    /// Its connections and requests.
    pub exchange: Exchange,
    /// Time from one connection to the next.
    pub every: Wait,
    /// Bytes of a response.
    pub response: Amount,
}

impl ApplicationConfig for SessionsConfig {
    fn exchange(&self) -> Exchange {
        self.exchange
    }

    /// Connections do not wait for one another.
    fn demand(&self, opportunity: &Opportunity) -> Demand {
        let sessions = self.every.most_times(opportunity.time, Duration::ZERO);
        Demand {
            connections: sessions,
            open: sessions,
            transactions: sessions,
            client: Volume::of(sessions, self.exchange.request.0),
            server: Volume {
                bytes: self.response.most(sessions),
                messages: sessions,
            },
        }
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        (self.every == Wait::Fixed(Duration::ZERO)).then_some(("every", "must be > 0"))
    }

    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application> {
        Box::new(Sessions::new(self, rng))
    }
}

/// Running sessions.
#[derive(Debug)]
struct Sessions {
    config: Arc<SessionsConfig>,
    rng: Rng,
    opened: u32,
    next: Option<Instant>,
    /// Connections in progress: number, start and size; in ascending order.
    live: Vec<(u32, Instant, u64)>,
}

impl Application for Sessions {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            // The first arrives as the others do: nothing is special about the start.
            AppEvent::Started => self.wait(now),
            AppEvent::Timer => {
                let bytes = self.config.response.draw(&mut self.rng);
                self.live.push((self.opened, now, bytes));
                out.push(Command::Open(self.opened));
                self.opened += 1;
                self.wait(now);
            }
            AppEvent::Connected(n) => {
                let request = self.config.exchange.request.0;
                out.write(n, Side::Client, request);
                out.push(Command::Expect(n, Side::Server, request));
            }
            AppEvent::ServerReceived(n, _) => {
                if let Some(at) = self.find(n) {
                    let (.., bytes) = self.live[at];
                    out.write(n, Side::Server, bytes);
                    out.push(Command::Expect(n, Side::Client, bytes));
                }
            }
            AppEvent::ClientReceived(n, _) => {
                self.end(n, Some(now), out);
                out.push(Command::Close(n));
            }
            AppEvent::Failed(n) => self.end(n, None, out),
            AppEvent::Writable(_)
            | AppEvent::RequestReceived(..)
            | AppEvent::ResponseReceived(..) => {}
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.next
    }

    fn finish(&mut self, _: Instant, out: &mut AppOutput) {
        for (_, since, bytes) in self.live.drain(..) {
            out.record(since, None, bytes);
        }
        self.next = None;
    }
}

impl Sessions {
    fn new(config: Arc<SessionsConfig>, rng: &Rng) -> Self {
        Self {
            config,
            rng: rng.fork("sessions"),
            opened: 0,
            next: None,
            live: Vec::new(),
        }
    }

    fn wait(&mut self, now: Instant) {
        self.next = Some(now + self.config.every.draw(&mut self.rng));
    }

    fn find(&self, n: u32) -> Option<usize> {
        self.live.binary_search_by_key(&n, |&(n, ..)| n).ok()
    }

    fn end(&mut self, n: u32, completed: Option<Instant>, out: &mut AppOutput) {
        if let Some(at) = self.find(n) {
            let (_, since, bytes) = self.live.remove(at);
            out.record(since, completed, bytes);
        }
    }
}
