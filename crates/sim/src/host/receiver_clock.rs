//! The clock of the receiver of data of a TCP connection, which may be ahead of the network (ADR 23).

use sojourn_net::Instant;
use sojourn_records::{FlowCounters, FlowSample};

use super::ahead::{Ahead, Received};
use super::tcp::TcpConnection;

impl TcpConnection {
    /// Sets the receiver of data ahead of the network.
    pub(crate) fn with_receiver_ahead(mut self, ahead: Ahead) -> Self {
        self.lead = ahead.lead;
        self.look_at = ahead.next();
        self.ahead = Some(Box::new(ahead));
        self
    }

    /// The time on the clock of the receiver of data; `None`: it ignores arrivals from now on.
    #[inline]
    pub(crate) fn receiver_time(&mut self, now: Instant) -> Option<Instant> {
        let at = now + self.lead;
        (now < self.look_at || self.pass(at)).then_some(at)
    }

    #[cold]
    fn pass(&mut self, at: Instant) -> bool {
        let received = self.received();
        let Some(ahead) = &mut self.ahead else {
            return true;
        };
        let takes = ahead.pass(at, received);
        self.look_at = ahead.next();
        takes
    }

    /// What the receiver of data has received up to the time on its clock.
    fn received(&self) -> Received {
        Received {
            bytes: self.data.receiver.delivered_bytes(),
            packets: self.data.receiver.received_segments(),
        }
    }

    /// Whether [`TcpConnection::receiver_time`] returns a time and has nothing else to do.
    #[inline]
    pub(crate) fn follows_clock(&self, now: Instant) -> bool {
        now < self.look_at
    }

    /// When the timer of the receiver of data is due.
    #[inline]
    pub(crate) fn next_data_timer(&self) -> Option<Instant> {
        let due = self.data.receiver.next_timer();
        due.map(|due| due.saturating_sub(self.lead))
    }

    /// The warm-up has ended; returns the totals then.
    pub(crate) fn begin_measuring(&mut self) -> FlowCounters {
        let mut counters = self.counters();
        if let Some(ahead) = &mut self.ahead {
            let received = ahead.begin_measuring(Received {
                bytes: counters.delivered_bytes,
                packets: counters.received_packets,
            });
            counters.delivered_bytes = received.bytes;
            counters.received_packets = received.packets;
            self.look_at = ahead.next();
        }
        self.data.sender.reset_max_rtt();
        counters
    }

    /// An interval of the series ends: [`TcpConnection::state`] at that instant of sender and receiver.
    pub(crate) fn sample(&mut self, at: Instant) -> FlowSample {
        let received = self.received();
        let mut state = self.state(at);
        if let Some(ahead) = &mut self.ahead {
            state.delivered_bytes = ahead.sample(received);
            self.look_at = ahead.next();
        }
        state
    }
}
