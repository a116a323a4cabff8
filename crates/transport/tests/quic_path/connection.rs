//! A QUIC connection of two endpoints over a scripted path, and its log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sojourn_net::{Duration, Instant};
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role, State};

use super::{Path, To};

/// A request and a response on stream 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Of the client, with the end of the stream.
    pub request: u64,
    /// Of the server, once the request is there.
    pub response: u64,
}

/// A datagram that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub at: Instant,
    pub to: To,
    pub payload: u16,
    pub long: bool,
    pub data: bool,
    pub arrives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(To, usize),
    Timer(To),
    Reads(bool),
}

pub(crate) struct Connection {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    pub path: Path,
    pub log: Vec<Entry>,
    /// When both directions of the stream had arrived.
    pub completed: Option<Instant>,
    /// When the client could send 1-RTT packets.
    pub connected: Option<Instant>,
    /// The window of the end that sends more, whenever it changed.
    pub windows: Vec<(Instant, u32)>,
    /// Expiries of probe timers at the client and the server.
    pub probes: Vec<(Instant, To)>,
    transfer: Transfer,
    answered: bool,
    agenda: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    flying: Vec<(Datagram, bool)>,
    due: [Option<Instant>; 2],
}

impl Connection {
    pub(crate) fn open(params: &Params, transfer: Transfer, path: Path) -> Self {
        let mut connection = Self {
            now: Instant::ZERO,
            client: Endpoint::new(Role::Client, params),
            server: Endpoint::new(Role::Server, params),
            path,
            log: Vec::new(),
            completed: None,
            connected: None,
            windows: Vec::new(),
            probes: Vec::new(),
            transfer,
            answered: false,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            flying: Vec::new(),
            due: [None; 2],
        };
        let mut out = Vec::new();
        let request = transfer.request;
        let client = &mut connection.client;
        client.write(Instant::ZERO, 0, request, true, &mut out);
        client.connect(Instant::ZERO, &mut out);
        connection.send(To::Server, &mut out);
        connection
    }

    /// The client's application reads nothing in this time.
    pub(crate) fn pause(&mut self, from: Instant, to: Instant) {
        self.schedule(from, Event::Reads(false));
        self.schedule(to, Event::Reads(true));
    }

    /// Runs until the transfer is complete and acknowledged, an end gives up, or `end`.
    pub(crate) fn run(&mut self, end: Duration) {
        let end = Instant::ZERO + end;
        while let Some(&Reverse((at, _, event))) = self.agenda.peek() {
            if at > end || self.is_over() {
                break;
            }
            self.agenda.pop();
            self.now = at;
            self.handle(event);
        }
    }

    fn is_over(&self) -> bool {
        let gone = |state| matches!(state, State::Closed | State::Aborted);
        let done = self.completed.is_some()
            && self.client.all_acknowledged()
            && self.server.all_acknowledged();
        done || gone(self.client.state()) || gone(self.server.state())
    }

    fn handle(&mut self, event: Event) {
        let mut out = Vec::new();
        let end = match event {
            Event::Arrives(to, n) => {
                let (datagram, ce) = self.flying[n];
                let now = self.now;
                self.end(to).on_datagram(now, &datagram, ce, &mut out);
                to
            }
            Event::Reads(reading) => {
                self.client.set_reading(self.now, reading, &mut out);
                To::Client
            }
            Event::Timer(end) => {
                if self.due[end as usize] != Some(self.now) {
                    return;
                }
                self.due[end as usize] = None;
                let now = self.now;
                let endpoint = self.end(end);
                let before = endpoint.counters().probe_timeouts;
                endpoint.on_timer(now, &mut out);
                if endpoint.counters().probe_timeouts > before {
                    self.probes.push((now, end));
                }
                end
            }
        };
        if self.connected.is_none() && self.client.is_connected() {
            self.connected = Some(self.now);
        }
        if !self.answered && self.server.is_finished(0) {
            self.answered = true;
            let response = self.transfer.response;
            self.server.write(self.now, 0, response, true, &mut out);
        }
        let peer = if end == To::Client {
            To::Server
        } else {
            To::Client
        };
        self.send(peer, &mut out);
        if self.completed.is_none() && self.client.is_finished(0) && self.server.is_finished(0) {
            self.completed = Some(self.now);
        }
    }

    fn end(&mut self, end: To) -> &mut Endpoint {
        match end {
            To::Client => &mut self.client,
            To::Server => &mut self.server,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, self.scheduled, event)));
    }

    /// Puts what was sent to `to` on the path.
    fn send(&mut self, to: To, out: &mut Vec<Datagram>) {
        for datagram in out.drain(..) {
            let (arrivals, ce) = self.path.carry(self.now, to, datagram.payload().into());
            self.log.push(Entry {
                at: self.now,
                to,
                payload: datagram.payload(),
                long: datagram.is_long(),
                data: datagram.has_data(),
                arrives: arrivals[0].is_some(),
            });
            for at in arrivals.into_iter().flatten() {
                self.flying.push((datagram, ce));
                let n = self.flying.len() - 1;
                self.schedule(at, Event::Arrives(to, n));
            }
        }
        let from = if to == To::Client {
            To::Server
        } else {
            To::Client
        };
        let now = self.now;
        if let Some(due) = self.end(from).next_timer() {
            let due = due.max(now);
            if self.due[from as usize].is_none_or(|pending| due < pending) {
                self.due[from as usize] = Some(due);
                self.schedule(due, Event::Timer(from));
            }
        }
        let more = if self.transfer.request > self.transfer.response {
            &self.client
        } else {
            &self.server
        };
        let cwnd = more.cwnd();
        if self.windows.last().is_none_or(|&(_, last)| last != cwnd) {
            self.windows.push((now, cwnd));
        }
    }
}
