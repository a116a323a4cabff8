//! Requests over persistent connections: to one server, or to many that respond at once.
//!
//! # Source
//!
//! Vasudevan et al., "Safe and Effective Fine-grained TCP Retransmissions for Datacenter
//! Communication" (SIGCOMM 2009): a client asks N servers for a part of a block each and asks for
//! the next block when the last part is there (incast). With one server it is request and response.
//!
//! # Law
//!
//! The connections are opened at the start; the first round includes their handshakes. A round is
//! completed when the last response is whole.

use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rng};

use crate::contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Exchange, Side, Timers, Transport,
};
use crate::demand::{Demand, Opportunity, Volume};
use crate::distributions::{Amount, Wait};

/// Configuration of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestsConfig {
    /// Its connections and requests.
    pub exchange: Exchange,
    /// Number of servers that a round asks.
    pub servers: u32,
    /// Bytes of a response; drawn for each.
    pub response: Amount,
    /// Processing time of a server per response.
    pub work: Duration,
    /// Time from one round to the next.
    pub think: Wait,
    /// Number of rounds; `None`: until the run ends.
    pub rounds: Option<u32>,
}

impl ApplicationConfig for RequestsConfig {
    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        (self.servers == 0).then_some(("servers", "must be >= 1"))
    }

    /// A round takes a round trip, the work of a server and the time to think.
    fn demand(&self, opportunity: &Opportunity) -> Demand {
        let Opportunity { time, rtt, .. } = *opportunity;
        let servers = u64::from(self.servers);
        let shortest = Duration::from_nanos(rtt.as_nanos().saturating_add(self.work.as_nanos()));
        let rounds = self.think.most_times(time, shortest);
        let responses = servers.saturating_mul(self.response.least());
        let rounds = rounds.min(opportunity.transactions(responses));
        let rounds = rounds.min(self.rounds.map_or(u64::MAX, u64::from));
        let failures = opportunity.failures(servers);
        let requests = rounds.saturating_mul(servers).saturating_add(failures);
        Demand {
            connections: servers.saturating_add(failures),
            open: servers,
            transactions: rounds,
            client: Volume::of(requests, self.exchange.request.0),
            server: Volume {
                bytes: self.response.most(requests),
                messages: requests,
            },
        }
    }

    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application> {
        Box::new(Requests::new(self, rng))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Round,
    /// A server has done its work: connection.
    Respond(u32),
}

/// A running client and its servers.
#[derive(Debug)]
struct Requests {
    config: Arc<RequestsConfig>,
    rng: Rng,
    timers: Timers<Due>,
    begun: u32,
    since: Option<Instant>,
    /// Bytes of this round, and number of incomplete responses.
    bytes: u64,
    missing: u32,
    servers: Vec<Server>,
}

/// A server and the connection to it.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// The number of its connection is its index plus `generation` times the number of servers.
    generation: u32,
    connected: bool,
    /// There is no connection: it was idle for too long.
    closed: bool,
    /// Its response is still due.
    owes: bool,
    size: u64,
    /// Bytes written over the connection, of requests and of responses.
    requested: u64,
    responded: u64,
}

impl Application for Requests {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            AppEvent::Started => {
                self.begin(now, out);
                for n in 0..self.config.servers {
                    out.push(Command::Open(n));
                }
            }
            AppEvent::Timer => {
                while let Some(due) = self.timers.pop(now) {
                    match due {
                        Due::Round => self.begin(now, out),
                        Due::Respond(n) => self.respond(n, out),
                    }
                }
            }
            AppEvent::Connected(n) => {
                if let Some(at) = self.place(n) {
                    self.servers[at].connected = true;
                    self.request(at, out);
                }
            }
            AppEvent::ServerReceived(n, _) => {
                let work = self.config.work;
                if work == Duration::ZERO {
                    self.respond(n, out);
                } else {
                    self.timers.add(now + work, Due::Respond(n));
                }
            }
            AppEvent::ClientReceived(n, _) => self.on_response(now, n, out),
            AppEvent::Failed(n) => self.on_failed(n, out),
            AppEvent::Writable(_)
            | AppEvent::RequestReceived(..)
            | AppEvent::ResponseReceived(..) => {}
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn finish(&mut self, _: Instant, out: &mut AppOutput) {
        if let Some(since) = self.since.take() {
            out.record(since, None, self.bytes);
        }
    }
}

impl Requests {
    fn new(config: Arc<RequestsConfig>, rng: &Rng) -> Self {
        Self {
            rng: rng.fork("rounds"),
            timers: Timers::new(),
            begun: 0,
            since: None,
            bytes: 0,
            missing: 0,
            servers: vec![Server::default(); config.servers as usize],
            config,
        }
    }

    /// The index of the server whose current connection this is.
    fn place(&self, n: u32) -> Option<usize> {
        let at = (n % self.config.servers) as usize;
        (self.servers[at].generation == n / self.config.servers).then_some(at)
    }

    fn number(&self, at: usize) -> u32 {
        let place = u32::try_from(at).unwrap_or(u32::MAX);
        self.servers[at].generation * self.config.servers + place
    }

    fn begin(&mut self, now: Instant, out: &mut AppOutput) {
        self.begun += 1;
        self.since = Some(now);
        self.bytes = 0;
        self.missing = self.config.servers;
        for at in 0..self.servers.len() {
            let size = self.config.response.draw(&mut self.rng);
            self.bytes += size;
            self.servers[at].size = size;
            self.servers[at].owes = true;
            if std::mem::take(&mut self.servers[at].closed) {
                out.push(Command::Open(self.number(at)));
            }
            self.request(at, out);
        }
    }

    fn request(&mut self, at: usize, out: &mut AppOutput) {
        let (n, request) = (self.number(at), self.config.exchange.request.0);
        let server = &mut self.servers[at];
        if server.connected && server.owes {
            server.requested += request;
            out.write(n, Side::Client, request);
            out.push(Command::Expect(n, Side::Server, server.requested));
        }
    }

    fn respond(&mut self, n: u32, out: &mut AppOutput) {
        let Some(at) = self.place(n) else { return };
        let server = &mut self.servers[at];
        server.responded += server.size;
        out.write(n, Side::Server, server.size);
        out.push(Command::Expect(n, Side::Client, server.responded));
    }

    fn on_response(&mut self, now: Instant, n: u32, out: &mut AppOutput) {
        let Some(at) = self.place(n) else { return };
        self.servers[at].owes = false;
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        if let Some(since) = self.since.take() {
            out.record(since, Some(now), self.bytes);
        }
        if self.config.rounds.is_none_or(|most| self.begun < most) {
            let think = self.config.think.draw(&mut self.rng);
            self.timers.add(now + think, Due::Round);
        } else {
            for at in 0..self.servers.len() {
                out.push(Command::Close(self.number(at)));
            }
        }
    }

    /// A connection has failed: another is opened, over which a missing response is requested again.
    /// A QUIC connection that ended because it was idle is replaced when the next request is due.
    fn on_failed(&mut self, n: u32, out: &mut AppOutput) {
        let Some(at) = self.place(n) else { return };
        let server = &mut self.servers[at];
        *server = Server {
            generation: server.generation + 1,
            owes: server.owes,
            size: server.size,
            closed: self.config.exchange.transport == Transport::Quic && !server.owes,
            ..Server::default()
        };
        if !server.closed {
            out.push(Command::Open(self.number(at)));
        }
    }
}
