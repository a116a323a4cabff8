//! A load-generating connection of a test, both of its ends, and the probes over it.

use std::collections::VecDeque;

use sojourn_net::Instant;

use super::super::tls::{FINISHED, FLIGHT, HELLO};
use super::super::{Command, Net, Side};
use super::ResponsivenessConfig;
use super::measures::{Samples, Time};

/// The response to a probe: an object of 1 B in a frame of HTTP/2.
pub(super) const RESPONSE: u64 = 10;
/// A server writes so much ahead of TCP, two frames, and again when no more than `LOW` is unsent.
const AHEAD: u64 = 2 * 16_393;
const LOW: u64 = 16_384;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    Greeting,
    Open,
}

/// A load-generating connection.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) n: u32,
    pub(super) stage: Stage,
    /// Bytes written over it, there and back.
    asked: u64,
    answered: u64,
    /// Bytes at the client.
    pub(super) delivered: u64,
    /// Requests under way, then responses: where each ends, and when it was asked for. `None`: the
    /// request for data without end.
    requests: VecDeque<(u64, Option<Instant>)>,
    responses: VecDeque<(u64, Instant)>,
    /// The client was asked how much it has got.
    pub(super) polled: bool,
}

/// The client's flight of TLS.
pub(super) fn greet(n: u32, net: &mut Net) {
    net.write(n, Side::Client, HELLO);
    net.push(Command::Expect(n, Side::Server, HELLO));
}

impl Load {
    /// Connection `n`, which is being opened.
    pub(super) const fn new(n: u32) -> Self {
        Self {
            n,
            stage: Stage::Connecting,
            asked: 0,
            answered: 0,
            delivered: 0,
            requests: VecDeque::new(),
            responses: VecDeque::new(),
            polled: false,
        }
    }

    pub(super) fn on_connected(&mut self, config: &ResponsivenessConfig, net: &mut Net) {
        if config.tls {
            self.stage = Stage::Greeting;
            self.asked = HELLO;
            greet(self.n, net);
        } else {
            self.begin(config, net);
        }
    }

    /// The connection can be used.
    fn begin(&mut self, config: &ResponsivenessConfig, net: &mut Net) {
        self.stage = Stage::Open;
        if config.load {
            self.ask(config.request.0, None, net);
        }
    }

    pub(super) fn ask(&mut self, request: u64, probe: Option<Instant>, net: &mut Net) {
        self.asked += request;
        self.requests.push_back((self.asked, probe));
        net.write(self.n, Side::Client, request);
        if self.requests.len() == 1 {
            net.push(Command::Expect(self.n, Side::Server, self.asked));
        }
    }

    pub(super) fn on_asked(&mut self, bytes: u64, net: &mut Net) {
        if self.stage == Stage::Greeting {
            self.answered = FLIGHT;
            net.write(self.n, Side::Server, FLIGHT);
            net.push(Command::Expect(self.n, Side::Client, FLIGHT));
            return;
        }
        while let Some(&(end, probe)) = self.requests.front()
            && end <= bytes
        {
            self.requests.pop_front();
            match probe {
                None => self.serve(net),
                Some(since) => {
                    self.answered += RESPONSE;
                    net.write(self.n, Side::Server, RESPONSE);
                    self.responses.push_back((self.answered, since));
                    self.expect(net);
                }
            }
        }
        if let Some(&(end, _)) = self.requests.front() {
            net.push(Command::Expect(self.n, Side::Server, end));
        }
    }

    /// More of the data without end.
    pub(super) fn serve(&mut self, net: &mut Net) {
        self.answered += AHEAD;
        net.write(self.n, Side::Server, AHEAD);
        net.push(Command::Room(self.n, LOW));
    }

    /// Has the client told of the next response to a probe.
    fn expect(&self, net: &mut Net) {
        if let Some(&(end, _)) = self.responses.front() {
            net.push(Command::Expect(self.n, Side::Client, end));
        }
    }

    pub(super) fn on_answered(
        &mut self,
        now: Instant,
        bytes: u64,
        config: &ResponsivenessConfig,
        samples: &mut Samples,
        net: &mut Net,
    ) {
        self.delivered = bytes;
        if self.stage == Stage::Greeting && bytes >= FLIGHT {
            self.asked += FINISHED;
            net.write(self.n, Side::Client, FINISHED);
            self.begin(config, net);
        } else if self.stage == Stage::Greeting && self.answered == FLIGHT {
            net.push(Command::Expect(self.n, Side::Client, FLIGHT));
        }
        while let Some(&(end, since)) = self.responses.front()
            && end <= bytes
        {
            self.responses.pop_front();
            samples.add(now, Time::Own, now.since(since));
        }
        self.expect(net);
    }
}
