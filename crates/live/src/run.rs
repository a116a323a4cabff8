//! A run: namespaces or interfaces, the thread of the datapath, built-in applications and programs, and the records of
//! all of them.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::{io, thread};

use sojourn_backend::{BackendError, Cancellation, Completion, locked};
use sojourn_capture::LinkType;
use sojourn_net::{Duration, Instant, Rng};
use sojourn_records::{CaptureOutput, FlowCounters, FlowRecord, RecordSink};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, Controlled, FlowConfig, Program as ProgramConfig, Traffic};

use crate::bridge::{Bridge, Interfaces};
use crate::capture::Capture;
use crate::clock::Clock;
use crate::connections::{Connections, Watched};
use crate::control::Changes;
use crate::cross::{Cross, CrossTraffic};
use crate::datapath::{Datapath, Moved};
use crate::error::LiveError;
use crate::flows::Flows;
use crate::hosts::{Finished, Hosts};
use crate::impairment::{Impaired, Impairment};
use crate::namespace::{Port, is_own_user_namespace};
use crate::network::{Ends, Network};
use crate::observed::{FlowProbe, Observers};
use crate::program::Program;
use crate::router::{Networks, Router};
use crate::space::{HostSettings, Lost, MTU, Space};
use crate::traces::Traces;
use crate::view::{LinkView, Shared, Shows, Views};
use crate::{NAME, forwarding, kernel_release, validity};

/// Bytes of a buffer: the MTU, and room to notice packets that exceed it.
const BUFFER: usize = 2_048;
/// Room for an Ethernet header with tags, and to notice packets that exceed the MTU.
const ROOM: usize = 64;
/// Buffers of a run: 256 MB.
const BUFFERS: usize = 128 * 1_024;
/// Bytes of all buffers of a run.
pub const BUFFER_BYTES: usize = BUFFERS * BUFFER;
/// How often, and how long each time, a server is waited for to listen: 3 s in all.
const SERVER_ATTEMPTS: u32 = 60;
const SERVER_ATTEMPT: std::time::Duration = std::time::Duration::from_millis(50);
/// Time that a program has to exit by itself when the run is interrupted.
const GRACE: Duration = Duration::from_millis(500);

const LEFT: &str =
    "compare the files /run/sojourn/forwarding-* with /proc/sys/net/ipv4/conf/*/forwarding";

const _: () = assert!(MTU as usize + 14 < BUFFER, "a packet fits its buffer");

/// Options of a run that are not in its plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program uses the input and output of this process, and the run ends when the program or the plan ends. A run
    /// that the program starts in the same way is nested in this one. If false, input and output are discarded.
    pub in_foreground: bool,
    /// Connections of programs request ECN.
    pub ecn: bool,
    /// What watchers are shown from the start.
    pub shows: Shows,
    /// What its packets reach.
    pub reach: Reach,
}

/// What the packets of a run reach.
#[derive(Clone, Debug, Default)]
pub enum Reach {
    /// The two hosts that the run creates.
    #[default]
    Hosts,
    /// Also the network of the machine: the client reaches it through the links.
    Internet,
    /// The hosts behind two interfaces of the machine.
    Bridge(Interfaces),
    /// The hosts in two networks of the machine, which send to each other over it.
    Router(Box<Routing>),
}

/// Two networks, and what happens to packets between them besides the links.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The interfaces.
    pub networks: Networks,
    /// What happens at the end of the links.
    pub impairment: Impairment,
    /// Traffic of simulated hosts.
    pub cross: Option<Cross>,
    /// Files for the captures of the client's side and of the server's side.
    pub traces: Option<Arc<[File; 2]>>,
}

/// What a run connects.
enum Place {
    Hosts(Box<Space>),
    Interfaces(Box<Bridge>),
    Networks(Box<Router>),
}

impl Place {
    fn open(config: &Config, options: &Options) -> Result<Self, LiveError> {
        if !is_own_user_namespace() {
            forwarding::restore_all_left().map_err(|e| {
                LiveError::environment("cannot restore what a killed run has left", &e, LEFT)
            })?;
        }
        if let Reach::Bridge(interfaces) = &options.reach {
            return Ok(Self::Interfaces(Box::new(Bridge::open(interfaces)?)));
        }
        if let Reach::Router(routing) = &options.reach {
            return Ok(Self::Networks(Box::new(Router::open(&routing.networks)?)));
        }
        let space = Space::create(HostSettings {
            ecn: options.ecn || config.flows.iter().any(offers_ecn),
            in_foreground: options.in_foreground,
            internet: matches!(options.reach, Reach::Internet),
        })?;
        Ok(Self::Hosts(Box::new(space)))
    }

    /// Its hosts, if they are its own.
    const fn space(&self) -> Option<&Space> {
        match self {
            Self::Hosts(space) => Some(space),
            Self::Interfaces(_) | Self::Networks(_) => None,
        }
    }

    /// Of the client's side and of the server's side.
    const fn ports(&self) -> [&Port; 2] {
        match self {
            Self::Hosts(space) => [&space.client.port, &space.server.port],
            Self::Interfaces(bridge) => bridge.ports.each_ref(),
            Self::Networks(router) => router.ports.each_ref(),
        }
    }

    /// Bytes of a buffer for its packets.
    fn buffer(&self) -> usize {
        let mtu = match self {
            Self::Hosts(_) => return BUFFER,
            Self::Interfaces(bridge) => bridge.mtu,
            Self::Networks(router) => router.mtu,
        };
        BUFFER.max((mtu + ROOM).next_multiple_of(256))
    }

    /// Packets lost outside the links, except by the datapath; `None`: unknown.
    fn lost(&self) -> Option<Lost> {
        match self {
            Self::Hosts(space) => space.lost(),
            Self::Interfaces(bridge) => bridge.lost().ok().map(Lost::at_devices),
            Self::Networks(router) => router.lost().ok().map(Lost::at_devices),
        }
    }

    /// What packets are written to at the client's side and at the server's.
    fn ends(&self) -> [&str; 2] {
        match self {
            Self::Hosts(_) => ["the client", "the server"],
            Self::Interfaces(bridge) => bridge.names.each_ref().map(String::as_str),
            Self::Networks(router) => router.names.each_ref().map(String::as_str),
        }
    }

    fn devices(&self) -> String {
        match self {
            Self::Hosts(space) => space.devices.to_owned(),
            Self::Interfaces(bridge) => bridge.described(),
            Self::Networks(router) => router.described(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether it ran to completion.
    pub completion: Completion,
    /// Its duration.
    pub duration: Duration,
    /// Exit code of the program, or 128 plus the number of the signal that killed it; `None`: no program, or it was
    /// still running.
    pub status: Option<i32>,
}

/// Is shown all links once per second.
pub type Watcher = dyn Fn(&[LinkView]) + Send + Sync;

/// Runs a plan with real packets; its links can be changed by `changes`.
///
/// # Errors
/// If the plan is invalid, the machine lacks a required feature, or a program cannot be started.
pub fn run(
    plan: &Plan,
    options: &Options,
    watcher: Option<&Watcher>,
    changes: Option<Changes>,
    cancellation: &Cancellation<'_>,
    sink: &mut dyn RecordSink,
) -> Result<Ended, BackendError> {
    plan.config.check()?;
    let config = &plan.config;
    let place = Place::open(config, options)?;
    let space = place.space();
    let program = config.flows.iter().find_map(program_of);
    let connections = space
        .filter(|_| program.is_some())
        .map(|space| Connections::watch(space, config.sample, config.flows.len()));
    let mut programs = Programs::default();
    if let (Some(space), Some(program)) = (space, program) {
        programs.server = start_server(program, space, cancellation)?;
    }
    let run = Run {
        plan,
        options,
        program,
        place: &place,
        clock: Clock::start(),
        end: Instant::ZERO + config.duration,
        cancellation,
    };
    let mut hosts = Hosts::new(run.clock, plan, space);
    let shared = Shared::default();
    let observed_by = run.observers(watcher.map(|_| &shared), sink.capture());
    let display = watcher.map(|watcher| Watching {
        watcher,
        shared: &shared,
        shown: Instant::ZERO,
    });
    let moving = (observed_by, changes);
    let driven = run.drive(&mut hosts, &mut programs, connections, moving, display);
    let status = programs.status;
    let server = programs.server.is_some().then_some(programs.server_failed);
    drop(programs);
    let completion = driven.completion?;
    let moved = driven.moved?;
    let ended = Ended {
        completion,
        duration: moved.stopped.since(Instant::ZERO),
        status,
    };
    if completion == Completion::Cancelled && !options.in_foreground {
        return Ok(ended);
    }
    let finished = hosts.finish(moved.stopped);
    // After all packets that had arrived were read.
    let lost = place.lost();
    let Moved { counted, links, .. } = &moved;
    let lost = validity::lost_outside_queue(counted, lost.as_ref(), place.ends());
    let mut facts = validity::facts(counted, links, &finished, lost, place.devices());
    match space {
        None => facts.push(validity::of_merged(counted)),
        Some(space) => facts.extend(space.way_out.iter().flat_map(validity::of_way_out)),
    }
    facts.extend(validity::of_changes(&moved.changes, config));
    if program.is_some() {
        facts.push(validity::of_program(status));
    }
    if let (Some(space), Some(seen)) = (space, driven.seen) {
        facts.extend(validity::of_connections(&seen, space.controls()));
    }
    facts.extend(server.map(validity::of_server));
    let described = [
        ("impairment", &moved.impairment),
        ("cross_traffic", &moved.cross),
    ];
    facts.extend(described.into_iter().filter_map(validity::of_path));
    if options.in_foreground {
        facts.push(validity::of_end(completion, status));
    }
    for fact in facts {
        sink.validity(fact);
    }
    emit(plan, moved, finished, sink);
    Ok(ended)
}

/// A run that has its namespaces and its clock.
#[derive(Clone, Copy)]
struct Run<'a> {
    plan: &'a Plan,
    options: &'a Options,
    program: Option<&'a ProgramConfig>,
    place: &'a Place,
    clock: Clock,
    /// When it ends, unless it is interrupted.
    end: Instant,
    cancellation: &'a Cancellation<'a>,
}

/// Who is shown the links of a run.
struct Watching<'a> {
    watcher: &'a Watcher,
    shared: &'a Shared,
    /// The time of the views that were shown last.
    shown: Instant,
}

impl Watching<'_> {
    /// Shows the views, if they are newer than those shown last.
    fn show(&mut self) {
        let views = locked(self.shared);
        let at = views.first().map(|view| view.at);
        let Some(at) = at.filter(|at| *at > self.shown) else {
            return;
        };
        let views_now = views.clone();
        drop(views);
        self.shown = at;
        (self.watcher)(&views_now);
    }
}

/// What the threads of a run have returned.
struct Driven {
    moved: Result<Moved, BackendError>,
    completion: Result<Completion, BackendError>,
    /// Connections of programs at both ends.
    seen: Option<Watched>,
}

impl Run<'_> {
    /// The views for a watcher, and the capture.
    fn observers<'c>(
        &self,
        shared: Option<&Shared>,
        capture: Option<CaptureOutput<'c>>,
    ) -> Observers<'c> {
        let links = &self.plan.config.links;
        let names = links.iter().map(|link| link.name.as_str());
        let shows = self.options.shows;
        let views = shared.map(|shared| Views::new(names, Arc::clone(shared), shows));
        let kernel = kernel_release();
        let capture = capture.map(|output| match self.place.space() {
            Some(space) => Capture::new(links, &space.hosts(), LinkType::Raw, &kernel, output),
            None => Capture::new(links, &[], LinkType::Ethernet, &kernel, output),
        });
        Observers {
            capture,
            views,
            traces: None,
        }
    }

    /// Runs the datapath and the list of connections on threads, the applications and programs on this one.
    fn drive(
        &self,
        hosts: &mut Hosts<'_>,
        programs: &mut Programs,
        connections: Option<Connections>,
        (observers, changes): (Observers<'_>, Option<Changes>),
        watching: Option<Watching<'_>>,
    ) -> Driven {
        let run = *self;
        let stop = &AtomicBool::new(false);
        thread::scope(|scope| {
            let moving = scope.spawn(move || run.move_packets(observers, changes.as_ref(), stop));
            // On a thread: the search of a large table takes more than a millisecond, which would delay applications.
            let (programs_end, ended) = channel();
            let listing =
                connections.map(|connections| scope.spawn(move || connections.run(&ended)));
            // Also if this thread panics; otherwise the scope would wait for the other thread forever.
            let guard = StopOnDrop(stop);
            let completion = self
                .start_program()
                .map_err(BackendError::from)
                .and_then(|started| {
                    programs.program = started;
                    self.follow(hosts, programs, watching, &|| moving.is_finished())
                });
            drop(programs_end);
            let seen = listing.map(joined);
            drop(guard);
            Driven {
                moved: joined(moving),
                completion,
                seen,
            }
        })
    }

    /// Runs the datapath until the end or `stop`.
    fn move_packets(
        &self,
        mut observers: Observers<'_>,
        changes: Option<&Changes>,
        stop: &AtomicBool,
    ) -> Result<Moved, BackendError> {
        // The network is created on the thread that runs it: a user-defined queue may be bound to one thread.
        let mut config = self.plan.config.clone();
        if changes.is_some() {
            for link in &mut config.links {
                link.controlled = Controlled::All;
            }
        }
        let config = Arc::new(config);
        let size = self.place.buffer();
        let flows = Flows::new(self.plan);
        let routing = match (&self.options.reach, self.place) {
            (Reach::Router(routing), Place::Networks(router)) => Some((routing, router)),
            _ => None,
        };
        if let Some((routing, _)) = routing
            && let Some(files) = &routing.traces
        {
            let begun = Traces::begin(files, flows.senders(&config));
            let begun = begun.map_err(|e| failure(format!("a capture cannot be written: {e}")))?;
            observers.traces = Some(begun);
        }
        let mut network = Network::new(Arc::clone(&config), observers, size, BUFFER_BYTES / size)?;
        network.ends = routing.map(|(routing, router)| {
            let rng = Rng::new(config.seed).fork("impairment");
            let own = router.own.clone();
            Ends {
                impaired: Impaired::new(routing.impairment.clone(), own, rng),
                of_flows: flows.ends(&config),
            }
        });
        let mut datapath = Datapath::new(self.clock, network, self.place.ports(), flows);
        datapath.cross = routing
            .and_then(|(routing, _)| routing.cross)
            .map(|cross| Box::new(CrossTraffic::new(cross)));
        datapath
            .run(self.end, stop, changes)
            .map_err(|e| failure(format!("the datapath cannot read: {e}")))
    }

    fn start_program(&self) -> Result<Option<Program>, LiveError> {
        let (Some(program), Some(space)) = (self.program, self.place.space()) else {
            return Ok(None);
        };
        let words = program.expanded(&space.target.v4.to_string());
        let quiet = !self.options.in_foreground;
        Program::start(space, &space.client, &words, quiet).map(Some)
    }

    /// Drives the applications and watches the program until the run ends.
    fn follow(
        &self,
        hosts: &mut Hosts<'_>,
        programs: &mut Programs,
        mut watching: Option<Watching<'_>>,
        datapath_has_ended: &dyn Fn() -> bool,
    ) -> Result<Completion, BackendError> {
        let in_foreground = self.options.in_foreground;
        let mut cancelled = None;
        loop {
            let now = self.clock.now();
            // The datapath cannot go on, and says why.
            if datapath_has_ended() {
                return Ok(Completion::Finished);
            }
            if cancelled.is_none() {
                let noted = programs.watch_server(now);
                noted.map_err(|e| failure(e.to_string()))?;
            }
            if now >= self.end {
                return Ok(Completion::Finished);
            }
            if self.cancellation.is_requested_at(now) {
                let since = *cancelled.get_or_insert(now);
                // A signal to the terminal ends the server, too, maybe before it is seen here.
                let by_signal = |(_, at): &mut (i32, Instant)| since.saturating_since(*at) < GRACE;
                programs.server_failed.take_if(by_signal);
                let waits =
                    in_foreground && programs.status.is_none() && programs.program.is_some();
                if !waits || now.saturating_since(since) >= GRACE {
                    return Ok(Completion::Cancelled);
                }
            }
            // After the question for a signal: what watches a run would take it for its own.
            if let Some(watching) = &mut watching {
                watching.show();
            }
            if programs.status.is_none()
                && let Some(program) = &mut programs.program
            {
                let status = program.ended().map_err(|e| failure(e.to_string()))?;
                programs.status = status.map(exit_code);
                if programs.status.is_some() && in_foreground {
                    return Ok(match cancelled {
                        Some(_) => Completion::Cancelled,
                        None => Completion::Finished,
                    });
                }
            }
            hosts
                .turn(self.end)
                .map_err(|e| failure(format!("a built-in application: {e}")))?;
        }
    }
}

/// The value that a thread returned; if the thread has panicked, this one panics, too.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let done = thread.join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The programs of a run.
#[derive(Default)]
struct Programs {
    server: Option<Program>,
    program: Option<Program>,
    status: Option<i32>,
    /// Exit code of a server that ended with an error, and when.
    server_failed: Option<(i32, Instant)>,
}

impl Programs {
    /// Notes whether the server has ended with an error.
    fn watch_server(&mut self, now: Instant) -> io::Result<()> {
        if let Some(server) = &mut self.server
            && self.server_failed.is_none()
            && let Some(status) = server.ended()?
            && !status.success()
        {
            self.server_failed = Some((exit_code(status), now));
        }
        Ok(())
    }
}

/// The exit code, or 128 and the number of the signal.
fn exit_code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|number| 128 + number);
    status.code().or(signal).unwrap_or(1)
}

/// Starts the server of a program, if it has one, and waits for it.
fn start_server(
    program: &ProgramConfig,
    space: &Space,
    cancellation: &Cancellation<'_>,
) -> Result<Option<Program>, LiveError> {
    let Some(words) = &program.server else {
        return Ok(None);
    };
    if space.level > 0 {
        let reason = "a nested run uses the server of the outermost run";
        return Err(LiveError::Program {
            name: "the server".to_owned(),
            reason: reason.to_owned(),
        });
    }
    let mut server = Program::start(space, &space.server, words, true)?;
    wait_for_server(space, &mut server, cancellation)?;
    Ok(Some(server))
}

/// Waits until a server listens; a server that takes longer is not waited for.
#[expect(clippy::disallowed_methods, reason = "a server runs in real time")]
fn wait_for_server(
    space: &Space,
    server: &mut Program,
    cancellation: &Cancellation<'_>,
) -> Result<(), LiveError> {
    let failed = |reason: String| LiveError::Program {
        name: "the server".to_owned(),
        reason,
    };
    for _ in 0..SERVER_ATTEMPTS {
        thread::sleep(SERVER_ATTEMPT);
        match server.ended() {
            Ok(Some(status)) if status.success() => {
                let reason =
                    "it ended before anything listened; a server must stay in the foreground";
                return Err(failed(reason.to_owned()));
            }
            Ok(Some(status)) => return Err(failed(format!("it ended with {status}"))),
            Ok(None) if space.server.listens() => return Ok(()),
            Ok(None) => {}
            Err(_) => return Ok(()),
        }
        if cancellation.is_requested() {
            return Ok(());
        }
    }
    Ok(())
}

fn program_of(flow: &FlowConfig) -> Option<&ProgramConfig> {
    match &flow.traffic {
        Traffic::Program(program) => Some(program),
        _ => None,
    }
}

fn offers_ecn(flow: &FlowConfig) -> bool {
    match &flow.traffic {
        Traffic::Tcp { params, .. } => params.offers_ecn(),
        Traffic::App(app) => app.exchange().tcp.offers_ecn(),
        _ => false,
    }
}

/// Passes the records of a run to `sink`; what the network counted of a flow completes what its hosts know.
fn emit(plan: &Plan, moved: Moved, finished: Finished, sink: &mut dyn RecordSink) {
    for record in moved.links {
        sink.link(record);
    }
    for record in moved.changes {
        sink.change(record);
    }
    let counted = finished.flows.into_iter().zip(moved.flows);
    for ((record, probe), config) in counted.zip(&plan.config.flows) {
        sink.flow(completed(record, probe, config, moved.stopped));
    }
    for record in finished.applications {
        sink.application(record);
    }
    for transaction in finished.transactions {
        sink.transaction(transaction);
    }
    for event in moved.events {
        sink.event(event);
    }
}

fn completed(
    record: FlowRecord,
    probe: FlowProbe,
    config: &FlowConfig,
    end: Instant,
) -> FlowRecord {
    // While packets wait, it is mostly the congestion window that keeps the flow from sending more.
    let link = (record.totals.limited_cwnd).min(probe.waited(end).as_nanos());
    let packets = FlowCounters {
        sent_packets: probe.totals.sent_packets,
        received_packets: probe.totals.received_packets,
        limited_link: link,
        limited_cwnd: record.totals.limited_cwnd - link,
        ..record.totals
    };
    match config.traffic {
        Traffic::Program(_) | Traffic::Bridged => FlowRecord {
            started: probe.started,
            series: probe.series,
            totals: FlowCounters {
                delivered_bytes: probe.totals.delivered_bytes,
                ..packets
            },
            missing_packets: Some(probe.lost),
            lost_packets: Some(probe.lost),
            one_way_delay: Some(Box::new(probe.delay)),
            ..record
        },
        Traffic::Datagrams(_) => FlowRecord {
            lost_packets: record
                .missing_packets
                .map(|missing| missing.min(probe.lost)),
            ..record
        },
        _ => FlowRecord {
            totals: packets,
            ..record
        },
    }
}

/// Stops the datapath when dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn failure(reason: String) -> BackendError {
    BackendError::Failed {
        backend: NAME,
        reason,
    }
}
