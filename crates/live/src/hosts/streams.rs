//! Flows over TCP connections: bulk transfers, and applications that open connections as they go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use sojourn_apps::{AppEvent, AppOutput, Application, Bulk, Command, Side};
use sojourn_net::{Duration, Instant, Rng};
use sojourn_records::{AppRecord, FlowCounters, FlowKind, FlowRecord, FlowSample};
use sojourn_scenario::plan::Traffic;

use super::connection::Connection;
use super::limits::Limits;
use super::sockets::{Route, Waited};
use crate::clock::Clock;

/// The slow-start threshold of a connection that has none yet.
const NO_THRESHOLD: u32 = 0x7FFF_FFFF;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A flow over TCP.
pub(super) struct Streams {
    flow: u32,
    app: App,
    /// The namespaces of the end that opens connections and of the end that accepts them are held by the run.
    opener: Opener,
    listener: TcpListener,
    connections: BTreeMap<u32, Connection>,
    started: Instant,
    stopped: bool,
    failed: bool,
    /// Bytes of connections that have ended.
    ended_bytes: u64,
    sampled_bytes: u64,
    series: Vec<FlowSample>,
    /// Bytes delivered and segments retransmitted up to the end of the warm-up.
    before: (u64, u64),
    retransmits: u64,
    rtt: FlowCounters,
    /// Of a bulk transfer.
    limits: Limits,
    record: AppRecord,
    /// What the senders of its connections used in the end.
    used: Used,
}

/// What connections used.
#[derive(Debug, Default)]
pub(super) struct Used {
    /// Congestion controls.
    pub(super) controls: BTreeSet<String>,
    /// Connections that were established.
    pub(super) connections: u64,
    /// Those that have negotiated ECN.
    pub(super) with_ecn: u64,
}

impl Used {
    /// A connection has ended, or the flow has.
    fn add(&mut self, connection: &Connection, is_bulk: bool) {
        let sender = sender_of(is_bulk);
        if let Some(control) = connection.control(sender) {
            self.controls.insert(control);
            self.connections += 1;
            self.with_ecn += u64::from(connection.info(sender).is_some_and(|info| info.ecn));
        }
    }
}

/// The end that sends the data of a flow.
const fn sender_of(is_bulk: bool) -> Side {
    if is_bulk { Side::Client } else { Side::Server }
}

/// What drives the connections.
enum App {
    Bulk(Bulk),
    Other(Box<dyn Application>),
}

/// Opens connections of a flow.
type Opener = Box<dyn Fn() -> io::Result<TcpStream> + Send>;

impl App {
    fn get(&mut self) -> &mut dyn Application {
        match self {
            Self::Bulk(bulk) => bulk,
            Self::Other(app) => &mut **app,
        }
    }
}

/// Duplicates of the handles with which connections are opened.
fn opener(route: Route<'_>, control: &'static str) -> io::Result<Opener> {
    let namespace = route.source.namespace.duplicate()?;
    let server = SocketAddrV4::new(route.sink.addresses.v4, route.port);
    let dscp = route.dscp();
    Ok(Box::new(move || {
        super::sockets::connect(&namespace, server, dscp, control)
    }))
}

impl Streams {
    /// Starts the flow and its listener; `None`: it has no TCP connections.
    pub(super) fn start(
        now: Instant,
        number: usize,
        traffic: &Traffic,
        rng: &Rng,
        route: Route<'_>,
    ) -> io::Result<Option<Self>> {
        let (app, route, control) = match traffic {
            Traffic::Tcp { bytes, params } => {
                let mut transfer = Bulk::new(*bytes, None);
                if let Some(writer) = params.writer {
                    transfer = transfer.written_by(writer);
                }
                let app = App::Bulk(transfer);
                (app, route, params.cc.kind().name())
            }
            Traffic::App(config) => {
                // The client asks for the data.
                let app = App::Other(Arc::clone(config).build(rng));
                (
                    app,
                    route.reversed(),
                    config.exchange().tcp.cc.kind().name(),
                )
            }
            Traffic::Quic { .. }
            | Traffic::Datagrams(_)
            | Traffic::Program(_)
            | Traffic::Bridged => return Ok(None),
        };
        let flow = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Some(Self {
            flow,
            app,
            listener: route.listen(control)?,
            opener: opener(route, control)?,
            connections: BTreeMap::new(),
            started: now,
            stopped: false,
            failed: false,
            ended_bytes: 0,
            sampled_bytes: 0,
            series: Vec::new(),
            before: (0, 0),
            retransmits: 0,
            rtt: FlowCounters::default(),
            limits: Limits::default(),
            record: AppRecord {
                flow,
                ..AppRecord::default()
            },
            used: Used::default(),
        }))
    }

    const fn is_bulk(&self) -> bool {
        matches!(self.app, App::Bulk(_))
    }

    /// Notifies the application of an event and executes its commands.
    pub(super) fn notify(&mut self, now: Instant, event: AppEvent, output: &mut AppOutput) {
        let mut events = vec![event];
        // Ends: an event leads to commands, and only a connection that cannot be opened to another event.
        while let Some(event) = events.pop() {
            output.flow = self.flow;
            self.app.get().on(now, event, output);
            for command in std::mem::take(&mut output.commands) {
                events.extend(self.execute(command));
            }
        }
    }

    /// Executes a command; returns the event that follows at once.
    fn execute(&mut self, command: Command) -> Option<AppEvent> {
        let number = command.connection();
        if let Command::Open(_) | Command::OpenAndWrite { .. } = command {
            let opened = (self.opener)().and_then(|stream| Connection::new(number, stream));
            let Ok(connection) = opened else {
                self.record.failed += 1;
                return Some(AppEvent::Failed(number));
            };
            self.record.connections += 1;
            self.connections.insert(number, connection);
        }
        let connection = self.connections.get_mut(&number)?;
        match command {
            Command::Open(_) => {}
            Command::OpenAndWrite { length, end, .. } => {
                connection.write(Side::Client, length);
                if end {
                    connection.finish(Side::Client);
                }
            }
            Command::Write(_, side, length) => connection.write(side, length),
            Command::WriteStream(_, side, _, bytes) => {
                connection.write(side, sojourn_apps::Length::Bytes(bytes));
            }
            Command::Expect(_, side, bytes) => connection.expect(side, bytes),
            Command::ExpectWritable(_, bytes) => connection.expect_writable(bytes),
            Command::Finish(_, side) => connection.finish(side),
            Command::Close(_) => connection.close(),
        }
        None
    }

    /// When the application's timer is due.
    pub(super) fn due(&self) -> Instant {
        let timer = match &self.app {
            _ if self.stopped => None,
            App::Other(app) => app.next_timer(),
            App::Bulk(bulk) => bulk.next_timer(),
        };
        timer.unwrap_or(Instant::MAX)
    }

    pub(super) fn poll<'a>(&'a self, fds: &mut Vec<Waited<'a>>) {
        if !self.stopped {
            fds.push((self.listener.as_fd(), PollFlags::IN));
        }
        for connection in self.connections.values() {
            connection.poll(fds);
        }
    }

    /// Accepts, reads and writes, and notifies the application.
    pub(super) fn work(&mut self, clock: Clock, scratch: &mut [u8], output: &mut AppOutput) {
        self.accept();
        if self.due() <= clock.now() {
            self.notify(clock.now(), AppEvent::Timer, output);
        }
        let mut events = Vec::new();
        for connection in self.connections.values_mut() {
            connection.work(scratch, &ZEROS, &mut events);
        }
        for event in events {
            if matches!(event, AppEvent::RequestReceived(..)) && !self.is_bulk() {
                continue;
            }
            if let AppEvent::Failed(_) = event {
                self.record.failed += 1;
                self.failed = true;
            }
            if !self.stopped {
                self.notify(clock.now(), event, output);
            }
        }
        self.remove_ended(clock.now());
    }

    fn accept(&mut self) {
        // Ends: the listener does not block.
        while let Ok((stream, peer)) = self.listener.accept() {
            let mut waiting = self.connections.values_mut();
            if let Some(connection) = waiting.find(|c| c.port == peer.port())
                && stream.set_nonblocking(true).is_ok()
            {
                let _ = stream.set_nodelay(true);
                connection.accept(stream);
            }
        }
    }

    fn remove_ended(&mut self, now: Instant) {
        if !self.connections.values().any(Connection::is_over) {
            return;
        }
        self.count_limits(now);
        let (is_bulk, mut bytes, mut again) = (self.is_bulk(), 0, 0);
        let used = &mut self.used;
        self.connections.retain(|_, connection| {
            let over = connection.is_over();
            if over {
                used.add(connection, is_bulk);
                bytes += delivered(connection, is_bulk);
                again += retransmitted(connection, is_bulk);
            }
            !over
        });
        self.ended_bytes += bytes;
        self.retransmits += again;
    }

    /// Bytes delivered since the start.
    fn delivered(&self) -> u64 {
        let live = self
            .connections
            .values()
            .map(|c| delivered(c, self.is_bulk()));
        self.ended_bytes + live.sum::<u64>()
    }

    fn all_retransmits(&self) -> u64 {
        let live = self
            .connections
            .values()
            .map(|c| retransmitted(c, self.is_bulk()));
        self.retransmits + live.sum::<u64>()
    }

    pub(super) fn sample(&mut self, at: Instant) {
        self.count_limits(at);
        let total = self.delivered();
        let mut sample = FlowSample::without_connection(at, total - self.sampled_bytes);
        self.sampled_bytes = total;
        if self.is_bulk() {
            let Some(connection) = self.connections.values().next() else {
                return;
            };
            if let Some(info) = connection.info(Side::Client) {
                sample.cwnd = std::num::NonZeroU32::new(info.cwnd);
                sample.ssthresh = (info.ssthresh < NO_THRESHOLD).then_some(info.ssthresh);
                sample.srtt = (info.rtt_us > 0).then(|| Duration::from_micros(info.rtt_us.into()));
                sample.in_flight = info.in_flight;
                if info.rtt_us > 0 {
                    self.rtt.rtt_samples += 1;
                    self.rtt.rtt_micros += u64::from(info.rtt_us);
                    self.rtt.rtt_max_micros = self.rtt.rtt_max_micros.max(info.rtt_us.into());
                }
            }
        }
        self.series.push(sample);
    }

    /// Counts for how long each cause has limited a bulk transfer. The connections of applications are too short for
    /// intervals.
    fn count_limits(&mut self, now: Instant) {
        if let App::Bulk(bulk) = &self.app
            && let Some(connection) = self.connections.values().next()
            && let Some(info) = connection.info(Side::Client)
        {
            self.limits.count(now, bulk.connected(), &info);
        }
    }

    pub(super) fn begin_measuring(&mut self, now: Instant) {
        self.count_limits(now);
        self.limits.begin_measuring();
        self.before = (self.delivered(), self.all_retransmits());
        self.rtt = FlowCounters::default();
        self.app.get().begin_measuring();
    }

    /// The scenario stops the flow.
    pub(super) fn stop(&mut self, now: Instant, output: &mut AppOutput) {
        output.flow = self.flow;
        self.count_limits(now);
        self.app.get().finish(now, output);
        output.commands.clear();
        self.stopped = true;
        self.ended_bytes = self.delivered();
        self.retransmits = self.all_retransmits();
        self.note_used();
        self.connections.clear();
    }

    /// The run ends.
    pub(super) fn finish(&mut self, now: Instant, output: &mut AppOutput) {
        self.count_limits(now);
        if !self.stopped {
            self.app.get().finish(now, output);
        }
        output.commands.clear();
        self.note_used();
    }

    fn note_used(&mut self) {
        let is_bulk = self.is_bulk();
        for connection in self.connections.values() {
            self.used.add(connection, is_bulk);
        }
    }

    /// What its connections used, after its end.
    pub(super) const fn used(&self) -> &Used {
        &self.used
    }

    pub(super) fn application_record(&self) -> Option<AppRecord> {
        let App::Other(app) = &self.app else {
            return None;
        };
        Some(AppRecord {
            player: app.player(),
            responsiveness: app.responsiveness(),
            ..self.record
        })
    }

    pub(super) fn record(self) -> FlowRecord {
        let totals = FlowCounters {
            delivered_bytes: self.delivered() - self.before.0,
            retransmits: self.all_retransmits().saturating_sub(self.before.1),
            rtt_samples: self.rtt.rtt_samples,
            rtt_micros: self.rtt.rtt_micros,
            rtt_max_micros: self.rtt.rtt_max_micros,
            ..self.limits.totals()
        };
        let (kind, connected, completed) = match &self.app {
            App::Bulk(bulk) => (FlowKind::Tcp, bulk.connected(), bulk.completed()),
            App::Other(_) => (FlowKind::App, None, None),
        };
        FlowRecord {
            started: Some(self.started),
            connected,
            completed,
            aborted: self.is_bulk() && !self.stopped && self.failed,
            series: self.series,
            totals,
            ..FlowRecord::blank(kind)
        }
    }
}

/// Bytes delivered to the receiver of the data: the server of a bulk transfer, otherwise the client.
fn delivered(connection: &Connection, is_bulk: bool) -> u64 {
    let (client, server) = connection.received();
    if is_bulk { server } else { client }
}

fn retransmitted(connection: &Connection, is_bulk: bool) -> u64 {
    connection
        .info(sender_of(is_bulk))
        .map_or(0, |info| info.retransmits.into())
}
