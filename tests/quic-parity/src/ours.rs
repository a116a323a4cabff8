//! A connection of `sojourn-transport` over the network.

use sojourn_net::{Duration, Instant};
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role, State};

use crate::network::{Event, Network, To};
use crate::outcome::{Outcome, Transfer};

/// A datagram, whose bytes are zeros.
#[derive(Clone, Debug)]
pub(crate) struct Carried(Datagram);

impl AsRef<[u8]> for Carried {
    fn as_ref(&self) -> &[u8] {
        static ZEROS: [u8; 65_536] = [0; 65_536];
        &ZEROS[..self.0.payload().into()]
    }
}

struct Run {
    network: Network<Carried>,
    client: Endpoint,
    server: Endpoint,
    transfer: Transfer,
    answered: bool,
    outcome: Outcome,
}

/// Runs a transfer until it is complete and acknowledged, an end gives up, or `limit`.
pub(crate) fn run(
    params: &Params,
    transfer: Transfer,
    network: Network<Carried>,
    limit: Duration,
) -> Outcome {
    let mut run = Run {
        network,
        client: Endpoint::new(Role::Client, params),
        server: Endpoint::new(Role::Server, params),
        transfer,
        answered: false,
        outcome: Outcome::default(),
    };
    let (mut out, start) = (Vec::new(), Instant::ZERO);
    run.client.write(start, 0, transfer.request, true, &mut out);
    run.client.connect(start, &mut out);
    run.send(To::Client, out);
    while !run.is_over() {
        let Some(event) = run.network.next(start + limit) else {
            break;
        };
        run.handle(&event);
    }
    Outcome {
        sent: run.network.sent,
        lost: run.server.counters().lost,
        ..run.outcome
    }
}

impl Run {
    fn is_over(&self) -> bool {
        let gone = |state| matches!(state, State::Closed | State::Aborted);
        let done = self.outcome.completed.is_some()
            && self.client.all_acknowledged()
            && self.server.all_acknowledged();
        done || gone(self.client.state()) || gone(self.server.state())
    }

    fn end(&mut self, end: To) -> &mut Endpoint {
        match end {
            To::Client => &mut self.client,
            To::Server => &mut self.server,
        }
    }

    fn handle(&mut self, event: &Event<Carried>) {
        let (now, mut out) = (self.network.now, Vec::new());
        let end = match event {
            Event::Arrives(to, Carried(datagram)) => {
                self.end(*to).on_datagram(now, datagram, false, &mut out);
                *to
            }
            Event::Timer(of) => {
                self.end(*of).on_timer(now, &mut out);
                *of
            }
        };
        if self.outcome.connected.is_none() && self.client.is_connected() {
            self.outcome.connected = Some(now);
        }
        if !self.answered && self.server.is_finished(0) {
            self.answered = true;
            let response = self.transfer.response;
            self.server.write(now, 0, response, true, &mut out);
        }
        self.send(end, out);
        let finished = self.client.is_finished(0) && self.server.is_finished(0);
        if self.outcome.completed.is_none() && finished {
            self.outcome.completed = Some(now);
        }
    }

    /// Sends what an end has to send, and sets its timer.
    fn send(&mut self, from: To, out: Vec<Datagram>) {
        for datagram in out {
            self.network.send(from.peer(), Carried(datagram));
        }
        let due = self.end(from).next_timer();
        self.network.set_timer(from, due);
        let window = self.server.cwnd().into();
        self.outcome.note_window(self.network.now, window);
    }
}
