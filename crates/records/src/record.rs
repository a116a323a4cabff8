//! What is recorded of a run, its flows and its applications; counters, and the sink that receives it all.

use std::fmt;
use std::io::Write;
use std::num::NonZeroU32;

use sojourn_apps::{
    CallRecord, DatagramKind, MediaRecord, PingSample, PlayerRecord, ResponsivenessRecord,
    Transaction,
};
use sojourn_net::{Duration, Instant, Rate};
use sojourn_path::counters;
use sojourn_path::records::{Histogram, LinkRecord, SignalRecord};

/// Everything a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One for each link of the configuration, in its order.
    pub links: Vec<LinkRecord>,
    /// One for each flow of the configuration, in its order.
    pub flows: Vec<FlowRecord>,
    /// One for each application of the configuration that has begun, in its order.
    pub apps: Vec<AppRecord>,
    /// The transactions that users waited for, in the order in which they ended; those that did not end
    /// within the run come last.
    pub transactions: Vec<Transaction>,
    /// Every drop and mark, if the configuration asked for them.
    pub events: Vec<SignalRecord>,
    /// What a controller or the user of a live run changed, by time.
    pub changes: Vec<ChangeRecord>,
    /// Facts that decide whether the run can be trusted, if the backend has any.
    pub validity: Vec<ValidityFact>,
    /// Events the agenda processed; the work a run cost.
    pub agenda_events: u64,
}

/// A change of a link by a controller or the user of a live run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRecord {
    /// When.
    pub at: Instant,
    /// The number of the link.
    pub link: usize,
    /// The new rate, if it changed.
    pub rate: Option<Rate>,
    /// The new delay of the wire, if it changed.
    pub delay: Option<Duration>,
    /// The whole change, as a line of TOML.
    pub text: String,
}

/// A fact that decides whether a run can be trusted, such as the load of the machine it ran on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidityFact {
    /// Its name, such as `cpu_saturated`.
    pub name: &'static str,
    /// What was found, with its unit.
    pub value: String,
    /// Whether the run passes.
    pub passed: bool,
}

/// What kind of traffic a flow was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A TCP connection.
    Tcp,
    /// A QUIC connection.
    Quic,
    /// Datagrams without a connection, which are no echo requests.
    Datagrams,
    /// Echo requests.
    Echo,
    /// An application or a program, with all its connections; the congestion control of a program is not known.
    App,
}

impl FlowKind {
    /// The kind of a flow of these datagrams.
    pub const fn of_datagrams(kind: DatagramKind) -> Self {
        if kind.is_echo() {
            Self::Echo
        } else {
            Self::Datagrams
        }
    }

    /// Whether it has a connection, with a window.
    pub const fn is_connection(self) -> bool {
        matches!(self, Self::Tcp | Self::Quic)
    }
}

/// What happened to one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The flow's name.
    pub name: String,
    /// What it was.
    pub kind: FlowKind,
    /// When it sent its first packet; `None`: not within the run.
    pub started: Option<Instant>,
    /// When its connection was established (TCP, QUIC).
    pub connected: Option<Instant>,
    /// When its last byte reached the receiving application (finite TCP and QUIC).
    pub completed: Option<Instant>,
    /// Whether an end gave up (TCP, QUIC); one that the scenario stops has not.
    pub aborted: bool,
    /// What queues dropped and wires lost of its beginning (TCP, QUIC), whenever that was.
    pub initial_losses: InitialLosses,
    /// One entry for each interval in which it was at work, by the time that ended (TCP, QUIC,
    /// datagrams).
    pub series: Vec<FlowSample>,
    /// Since the warm-up ended.
    pub totals: FlowCounters,
    /// Whether the packets of `totals` are counted by their IP ECN field: of a simulated TCP connection.
    pub counts_ecn: bool,
    /// Whether time-outs, SYNs sent again and losses of the beginning are counted (TCP, QUIC).
    pub counts_recovery: bool,
    /// Number of datagrams sent after the warm-up that had not arrived by the end, or of echo requests without a
    /// reply; `None` for connections.
    pub missing_packets: Option<u64>,
    /// Of these, those that were dropped, or whose reply was; the others were in flight. `None` for connections.
    pub lost_packets: Option<u64>,
    /// One-way delays of datagrams sent after the warm-up, in nanoseconds; `None` for other kinds.
    pub one_way_delay: Option<Box<Histogram>>,
    /// Each echo request, in order.
    pub pings: Vec<PingSample>,
    /// Target bit rate of media at each sample of `series`, in kbit/s; empty for other kinds.
    pub targets: Vec<u32>,
}

impl FlowRecord {
    /// The record of a flow that has not started.
    pub fn blank(kind: FlowKind) -> Self {
        Self {
            name: String::new(),
            kind,
            started: None,
            connected: None,
            completed: None,
            aborted: false,
            initial_losses: InitialLosses::default(),
            series: Vec::new(),
            totals: FlowCounters::default(),
            counts_ecn: false,
            counts_recovery: true,
            missing_packets: None,
            lost_packets: None,
            one_way_delay: None,
            pings: Vec::new(),
            targets: Vec::new(),
        }
    }
}

/// What happened to the connections of an application, whenever that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppRecord {
    /// Index of the flow in the configuration.
    pub flow: u32,
    /// Connections opened.
    pub connections: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Connections that lost a handshake packet in either direction.
    pub handshake_hit: u64,
    /// Connections that lost a handshake packet or a segment of the server's initial window.
    pub initial_hit: u64,
    /// Playback of a video; `None` for other applications.
    pub player: Option<PlayerRecord>,
    /// Quality of a call; `None` for other applications.
    pub call: Option<CallRecord>,
    /// What a media flow sent and its receiver got; `None` for other applications.
    pub media: Option<MediaRecord>,
    /// Result of a responsiveness test; `None` for other applications, and if the run was too short.
    pub responsiveness: Option<ResponsivenessRecord>,
}

/// Packets without which a connection does not get under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialLosses {
    /// Dropped or lost SYNs, or datagrams with Initial or Handshake packets, of either side.
    pub handshake: u32,
    /// Dropped or lost segments of the initial window, sent for the first time or again; of QUIC,
    /// data in as many packets, counted from the first.
    pub window: u32,
}

/// One interval of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// When the interval ended.
    pub at: Instant,
    /// Payload handed to the receiving application within it.
    pub delivered_bytes: u64,
    /// Congestion window then, in segments; of an application, the sum over its established connections. `None`: there
    /// is none.
    pub cwnd: Option<NonZeroU32>,
    /// Slow-start threshold then, in segments, or the sum; `None`: not set yet by each connection.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT then, or the mean over the connections; `None`: no sample yet.
    pub srtt: Option<Duration>,
    /// Segments in flight then, or the sum.
    pub in_flight: u32,
    /// Receive window in bytes that the sender of data knew then, or the sum; `None`: no connection over TCP.
    pub receive_window: Option<u32>,
}

impl FlowSample {
    /// That of a flow without a connection.
    pub const fn without_connection(at: Instant, delivered_bytes: u64) -> Self {
        Self {
            at,
            delivered_bytes,
            cwnd: None,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
            receive_window: None,
        }
    }
}

/// The state of the connections of an application at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSum {
    /// Established connections.
    count: u32,
    cwnd: u32,
    ssthresh: Option<u32>,
    srtts: Duration,
    in_flight: u32,
    receive_window: Option<u32>,
}

impl ConnectionSum {
    /// Adds a connection, unless its handshake is not over.
    pub fn add(&mut self, state: &FlowSample) {
        let (Some(cwnd), Some(srtt)) = (state.cwnd, state.srtt) else {
            return;
        };
        let both = |sum: Option<u32>, one: Option<u32>| match sum {
            _ if self.count == 0 => one,
            sum => Some(sum?.saturating_add(one?)),
        };
        self.ssthresh = both(self.ssthresh, state.ssthresh);
        self.receive_window = both(self.receive_window, state.receive_window);
        self.cwnd = self.cwnd.saturating_add(cwnd.get());
        self.in_flight = self.in_flight.saturating_add(state.in_flight);
        self.srtts += srtt;
        self.count += 1;
    }

    /// The sample of the application.
    pub fn sample(&self, at: Instant, delivered_bytes: u64) -> FlowSample {
        if self.count == 0 {
            return FlowSample::without_connection(at, delivered_bytes);
        }
        FlowSample {
            at,
            delivered_bytes,
            cwnd: NonZeroU32::new(self.cwnd),
            ssthresh: self.ssthresh,
            srtt: Some(Duration::from_nanos(
                self.srtts.as_nanos() / u64::from(self.count),
            )),
            in_flight: self.in_flight,
            receive_window: self.receive_window,
        }
    }
}

counters! {
    /// Packets, data and times counted for a flow.
    pub struct FlowCounters {
        /// Payload handed to the receiving application: no headers, no duplicates.
        delivered_bytes,
        /// Data packets sent, retransmissions included.
        sent_packets,
        /// Of these, those sent ECN-capable, over TCP.
        ect_packets,
        /// Data packets that reached the receiver, duplicates included; datagrams and echo replies without.
        received_packets,
        /// Of these, those that arrived CE-marked, over TCP with ECN.
        ce_packets,
        /// Data packets that the receiver reported as CE-marked, over TCP with Accurate ECN.
        reported_ce_packets,
        /// Retransmitted segments; of QUIC, packets with data that was sent before.
        retransmits,
        /// Retransmission time-outs; of QUIC, probe time-outs of the sender of data.
        timeouts,
        /// Retransmitted SYNs; of QUIC, packets with a part of the handshake that was sent before.
        syn_retransmits,
        /// RTT samples: acknowledgements of data that was sent once, in order.
        rtt_samples,
        /// Sum of the RTT samples, each from the newest of that data, in µs.
        rtt_micros,
        /// Time for which loss recovery limited the connection, in ns. The times for which it was established add up
        /// to this and the next five.
        limited_loss,
        /// The same of the application, which had nothing to send.
        limited_application,
        /// Of the receive window or flow control.
        limited_receive_window,
        /// Of pacing, while the congestion window had room.
        limited_pacing,
        /// Of a link: of the congestion window, while a packet of the connection waited in a queue.
        limited_link,
        /// Of the congestion window, while none waited.
        limited_cwnd,
    }
    maxima {
        /// Largest RTT sample, in µs; 0 without samples.
        rtt_max_micros,
    }
}

impl FlowCounters {
    /// The time in ns for which one of the six causes limited the flow.
    pub const fn limited_nanos(&self) -> u64 {
        self.limited_loss
            + self.limited_application
            + self.limited_receive_window
            + self.limited_pacing
            + self.limited_link
            + self.limited_cwnd
    }
}

/// Where a backend writes the packets of a run, in the format pcapng.
///
/// Whoever provides the output learns of its errors there: a backend goes on without the capture.
pub struct CaptureOutput<'a> {
    /// Buffered: a packet is one call of [`Write::write_all`].
    pub out: &'a mut (dyn Write + Send),
    /// The comment on the section: which run it is.
    pub comment: &'a str,
    /// Whether events, if they are kept, have the state of the queue, as when it is sampled.
    pub with_state: bool,
}

impl fmt::Debug for CaptureOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureOutput")
            .field("comment", &self.comment)
            .finish_non_exhaustive()
    }
}

/// Receives the records of a run as the run yields them.
pub trait RecordSink {
    /// Asked once, before the run: where its packets go; `None`: they are not captured.
    fn capture(&mut self) -> Option<CaptureOutput<'_>> {
        None
    }

    /// One per link, in the order of the plan.
    fn link(&mut self, record: LinkRecord);
    /// One per flow, in the order of the plan.
    fn flow(&mut self, record: FlowRecord);
    /// One per application that has started, in the order of the plan.
    fn application(&mut self, record: AppRecord);
    /// One per transaction, in the order of completion.
    fn transaction(&mut self, record: Transaction);
    /// One per drop or mark, if the plan keeps events.
    fn event(&mut self, record: SignalRecord);
    /// One per change by a controller, in the order of time.
    fn change(&mut self, record: ChangeRecord);
    /// One per fact that decides whether the run can be trusted.
    fn validity(&mut self, fact: ValidityFact);
}

/// Keeps all records in memory.
impl RecordSink for Records {
    fn link(&mut self, record: LinkRecord) {
        self.links.push(record);
    }

    fn flow(&mut self, record: FlowRecord) {
        self.flows.push(record);
    }

    fn application(&mut self, record: AppRecord) {
        self.apps.push(record);
    }

    fn transaction(&mut self, record: Transaction) {
        self.transactions.push(record);
    }

    fn event(&mut self, record: SignalRecord) {
        self.events.push(record);
    }

    fn change(&mut self, record: ChangeRecord) {
        self.changes.push(record);
    }

    fn validity(&mut self, fact: ValidityFact) {
        self.validity.push(fact);
    }
}

impl Records {
    /// Passes all records to `sink`.
    pub fn send(self, sink: &mut dyn RecordSink) {
        self.links.into_iter().for_each(|r| sink.link(r));
        self.flows.into_iter().for_each(|r| sink.flow(r));
        self.apps.into_iter().for_each(|r| sink.application(r));
        self.transactions
            .into_iter()
            .for_each(|r| sink.transaction(r));
        self.events.into_iter().for_each(|r| sink.event(r));
        self.changes.into_iter().for_each(|r| sink.change(r));
        self.validity
            .into_iter()
            .for_each(|fact| sink.validity(fact));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(cwnd: u32, ssthresh: Option<u32>, ms: u64) -> FlowSample {
        FlowSample {
            cwnd: NonZeroU32::new(cwnd),
            ssthresh,
            srtt: (ms > 0).then(|| Duration::from_millis(ms)),
            in_flight: 2,
            receive_window: Some(1_000),
            ..FlowSample::without_connection(Instant::ZERO, 7)
        }
    }

    #[test]
    fn connections_add_up_once_they_are_established() {
        let at = Instant::from_millis(100);
        let sum = |states: &[FlowSample]| {
            let mut sum = ConnectionSum::default();
            for state in states {
                sum.add(state);
            }
            sum.sample(at, 9)
        };
        // No sample of the RTT: its handshake is not over.
        let opening = state(10, None, 0);
        assert_eq!(sum(&[opening]), FlowSample::without_connection(at, 9));
        let both = sum(&[state(3, Some(5), 40), opening, state(4, Some(6), 60)]);
        let wanted = FlowSample {
            at,
            delivered_bytes: 9,
            cwnd: NonZeroU32::new(7),
            ssthresh: Some(11),
            srtt: Some(Duration::from_millis(50)),
            in_flight: 4,
            receive_window: Some(2_000),
        };
        assert_eq!(both, wanted);
        // One without a threshold has an infinite one.
        for states in [[Some(5), None], [None, Some(5)]] {
            let states = states.map(|ssthresh| state(3, ssthresh, 40));
            assert_eq!(sum(&states).ssthresh, None);
        }
    }
}
