//! A load-generating connection of a test: both endpoints, and the probes over it.

use std::collections::VecDeque;

use sojourn_net::Instant;

use super::{ResponsivenessConfig, Samples, Time};
use crate::contract::{AppOutput, Command, FINISHED, FLIGHT, HELLO, Side};

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
    /// Over QUIC, self probes in progress: stream, and when it was asked for. Ascending.
    streams: VecDeque<(u16, Instant)>,
    /// The stream of the last self probe; that of the data is 0.
    last_stream: u16,
    /// The client was asked how much it has got.
    pub(super) polled: bool,
}

/// The client's flight of TLS.
pub(super) fn greet(n: u32, out: &mut AppOutput) {
    out.write(n, Side::Client, HELLO);
    out.push(Command::Expect(n, Side::Server, HELLO));
}

impl Load {
    /// Connection `n`, which is being opened.
    pub(crate) const fn new(n: u32) -> Self {
        Self {
            n,
            stage: Stage::Connecting,
            asked: 0,
            answered: 0,
            delivered: 0,
            requests: VecDeque::new(),
            responses: VecDeque::new(),
            streams: VecDeque::new(),
            last_stream: 0,
            polled: false,
        }
    }

    pub(super) fn on_connected(&mut self, config: &ResponsivenessConfig, out: &mut AppOutput) {
        if config.has_tls_round_trip() {
            self.stage = Stage::Greeting;
            self.asked = HELLO;
            greet(self.n, out);
        } else {
            self.begin(config, out);
        }
    }

    /// The connection can be used.
    fn begin(&mut self, config: &ResponsivenessConfig, out: &mut AppOutput) {
        self.stage = Stage::Open;
        if config.load {
            self.ask(config.exchange.request.0, None, out);
        }
    }

    pub(super) fn ask(&mut self, request: u64, probe: Option<Instant>, out: &mut AppOutput) {
        self.asked += request;
        self.requests.push_back((self.asked, probe));
        out.write(self.n, Side::Client, request);
        if self.requests.len() == 1 {
            out.push(Command::Expect(self.n, Side::Server, self.asked));
        }
    }

    /// Sends a self probe over QUIC, on a stream of its own as HTTP/3 does; none if the streams are
    /// used up.
    pub(super) fn ask_on_stream(&mut self, now: Instant, request: u64, out: &mut AppOutput) {
        if let Some(stream) = self.last_stream.checked_add(1) {
            self.last_stream = stream;
            self.streams.push_back((stream, now));
            let command = Command::WriteStream(self.n, Side::Client, stream, request);
            out.push(command);
        }
    }

    /// The request of a self probe has reached the server on its stream.
    pub(super) fn on_stream_request(&self, stream: u16, out: &mut AppOutput) {
        let command = Command::WriteStream(self.n, Side::Server, stream, RESPONSE);
        out.push(command);
    }

    /// Its response has reached the client.
    pub(super) fn on_stream_response(&mut self, now: Instant, stream: u16, samples: &mut Samples) {
        let found = self.streams.binary_search_by_key(&stream, |&(id, _)| id);
        if let Some((_, since)) = found.ok().and_then(|at| self.streams.remove(at)) {
            samples.add(now, Time::Own, now.since(since));
        }
    }

    pub(super) fn on_server_received(&mut self, bytes: u64, out: &mut AppOutput) {
        if self.stage == Stage::Greeting {
            self.answered = FLIGHT;
            out.write(self.n, Side::Server, FLIGHT);
            out.push(Command::Expect(self.n, Side::Client, FLIGHT));
            return;
        }
        while let Some(&(end, probe)) = self.requests.front()
            && end <= bytes
        {
            self.requests.pop_front();
            match probe {
                None => self.serve(out),
                Some(since) => {
                    self.answered += RESPONSE;
                    out.write(self.n, Side::Server, RESPONSE);
                    self.responses.push_back((self.answered, since));
                    self.expect(out);
                }
            }
        }
        if let Some(&(end, _)) = self.requests.front() {
            out.push(Command::Expect(self.n, Side::Server, end));
        }
    }

    /// More of the data without end.
    pub(super) fn serve(&mut self, out: &mut AppOutput) {
        self.answered += AHEAD;
        out.write(self.n, Side::Server, AHEAD);
        out.push(Command::ExpectWritable(self.n, LOW));
    }

    /// Requests an event when the client has received the next response to a probe.
    fn expect(&self, out: &mut AppOutput) {
        if let Some(&(end, _)) = self.responses.front() {
            out.push(Command::Expect(self.n, Side::Client, end));
        }
    }

    pub(super) fn on_client_received(
        &mut self,
        now: Instant,
        bytes: u64,
        config: &ResponsivenessConfig,
        samples: &mut Samples,
        out: &mut AppOutput,
    ) {
        self.delivered = bytes;
        if self.stage == Stage::Greeting && bytes >= FLIGHT {
            self.asked += FINISHED;
            out.write(self.n, Side::Client, FINISHED);
            self.begin(config, out);
        } else if self.stage == Stage::Greeting && self.answered == FLIGHT {
            out.push(Command::Expect(self.n, Side::Client, FLIGHT));
        }
        while let Some(&(end, since)) = self.responses.front()
            && end <= bytes
        {
            self.responses.pop_front();
            samples.add(now, Time::Own, now.since(since));
        }
        self.expect(out);
    }
}
