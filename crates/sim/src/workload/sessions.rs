//! Connections that come at random times and bring one thing each.
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

use sojourn_net::{Bytes, Instant, Rng};
use sojourn_transport::SenderParams;

use super::amount::Amount;
use super::wait::Wait;
use super::{Command, Happening, Net, Side};

/// What is transferred, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionsConfig {
    /// Of every connection, at both ends.
    pub tcp: SenderParams,
    /// From one connection to the next.
    pub every: Wait,
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of a response.
    pub response: Amount,
}

/// Sessions at work.
#[derive(Debug)]
pub(crate) struct Sessions {
    config: Arc<SessionsConfig>,
    rng: Rng,
    opened: u32,
    next: Option<Instant>,
    /// Under way: number, beginning and size; ascending.
    live: Vec<(u32, Instant, u64)>,
}

impl Sessions {
    pub(super) fn new(config: Arc<SessionsConfig>, rng: &Rng) -> Self {
        Self {
            config,
            rng: rng.fork("sessions"),
            opened: 0,
            next: None,
            live: Vec::new(),
        }
    }

    pub(super) const fn next_timer(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn finish(&mut self, net: &mut Net) {
        for (_, since, bytes) in self.live.drain(..) {
            net.record(since, None, bytes);
        }
        self.next = None;
    }

    pub(super) fn on(&mut self, now: Instant, what: Happening, net: &mut Net) {
        match what {
            // The first comes as the others do: nothing is special about the start.
            Happening::Started => self.wait(now),
            Happening::Timer => {
                let bytes = self.config.response.draw(&mut self.rng);
                self.live.push((self.opened, now, bytes));
                net.push(Command::Open(self.opened));
                self.opened += 1;
                self.wait(now);
            }
            Happening::Connected(n) => {
                let request = self.config.request.0;
                net.write(n, Side::Client, request);
                net.push(Command::Expect(n, Side::Server, request));
            }
            Happening::Asked(n, _) => {
                if let Some(at) = self.find(n) {
                    let (.., bytes) = self.live[at];
                    net.write(n, Side::Server, bytes);
                    net.push(Command::Expect(n, Side::Client, bytes));
                }
            }
            Happening::Answered(n, _) => {
                self.end(n, Some(now), net);
                net.push(Command::Close(n));
            }
            Happening::Failed(n) => self.end(n, None, net),
            Happening::Room(_) | Happening::Requested(..) | Happening::Responded(..) => {}
        }
    }

    fn wait(&mut self, now: Instant) {
        self.next = Some(now + self.config.every.draw(&mut self.rng));
    }

    fn find(&self, n: u32) -> Option<usize> {
        self.live.binary_search_by_key(&n, |&(n, ..)| n).ok()
    }

    fn end(&mut self, n: u32, completed: Option<Instant>, net: &mut Net) {
        if let Some(at) = self.find(n) {
            let (_, since, bytes) = self.live.remove(at);
            net.record(since, completed, bytes);
        }
    }
}
