//! A QUIC connection of an application: a client asks on streams, a server answers on the same.

use sojourn_apps::{AppEvent, Side};
use sojourn_net::Instant;
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role, State};

use super::End;
use sojourn_records::FlowCounters;

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Talk {
    /// Whose it is: the flow of the application, and what that calls it.
    pub(crate) app: u32,
    pub(crate) number: u32,
    client: Endpoint,
    server: Endpoint,
    told_connected: bool,
    told_failed: bool,
    /// Bytes of responses up to the last sample.
    sampled: u64,
}

impl Talk {
    /// Sends the client's Initial.
    pub(crate) fn open(
        now: Instant,
        (app, number): (u32, u32),
        params: &Params,
        out: &mut Vec<Datagram>,
    ) -> Self {
        let mut client = Endpoint::new(Role::Client, params);
        client.connect(now, out);
        Self {
            app,
            number,
            client,
            server: Endpoint::new(Role::Server, params),
            told_connected: false,
            told_failed: false,
            sampled: 0,
        }
    }

    /// The server sends the data, so it is the near end.
    pub(crate) const fn end(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Near => &mut self.server,
            End::Far => &mut self.client,
        }
    }

    /// One end writes all of its part of a stream; returns which.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        side: Side,
        (stream, bytes): (u16, u64),
        out: &mut Vec<Datagram>,
    ) -> End {
        let end = match side {
            Side::Client => End::Far,
            Side::Server => End::Near,
        };
        self.end(end).write(now, stream, bytes, true, out);
        end
    }

    /// What the application is to be told next, if anything.
    pub(crate) fn news(&mut self) -> Option<AppEvent> {
        let n = self.number;
        if !self.told_connected && self.client.is_connected() {
            self.told_connected = true;
            return Some(AppEvent::Connected(n));
        }
        if let Some(stream) = self.server.next_finished() {
            return Some(AppEvent::RequestReceived(n, stream));
        }
        if let Some(stream) = self.client.next_finished() {
            return Some(AppEvent::ResponseReceived(n, stream));
        }
        if !self.told_failed && self.failed() {
            self.told_failed = true;
            return Some(AppEvent::Failed(n));
        }
        None
    }

    /// Whether either end has given up.
    pub(crate) fn failed(&self) -> bool {
        [&self.client, &self.server]
            .iter()
            .any(|end| end.state() == State::Aborted)
    }

    /// Bytes of responses since this was last asked.
    pub(crate) const fn newly_delivered(&mut self) -> u64 {
        let all = self.client.delivered_bytes();
        let new = all - self.sampled;
        self.sampled = all;
        new
    }

    /// What was counted of it: of data, the responses alone; of what went wrong, both ways.
    pub(crate) fn counters(&self) -> FlowCounters {
        let (there, back) = (self.client.counters(), self.server.counters());
        FlowCounters {
            delivered_bytes: self.client.delivered_bytes(),
            sent_packets: back.sent,
            received_packets: there.received,
            retransmits: there.resent + back.resent,
            timeouts: there.probe_timeouts + back.probe_timeouts,
            syn_retransmits: there.handshake_resent + back.handshake_resent,
            rtt_samples: back.rtt_samples,
            rtt_micros: back.rtt_micros,
        }
    }
}
