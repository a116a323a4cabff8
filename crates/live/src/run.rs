//! A run: namespaces, the thread of the datapath, built-in applications and programs, and the records of all of them.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::thread;

use sojourn_backend::{BackendError, Cancellation, Completion};
use sojourn_net::{Duration, Instant};
use sojourn_records::{FlowCounters, FlowRecord, LinkRecord, RecordSink, SignalRecord};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{FlowConfig, Program as ProgramConfig, Traffic};

use crate::capture::Capture;
use crate::clock::Clock;
use crate::connections::Connections;
use crate::datapath::{Datapath, Moved};
use crate::error::LiveError;
use crate::flows::Flows;
use crate::hosts::{Finished, Hosts};
use crate::machine::{NAME, kernel_release};
use crate::network::Network;
use crate::observed::FlowProbe;
use crate::program::Program;
use crate::space::{HostSettings, MTU, Space};
use crate::validity;
use crate::view::{LinkView, Shared, Views};

/// Bytes of a buffer: the MTU, and room to notice packets that exceed it.
const BUFFER: usize = 2_048;
/// Buffers of a run: 256 MB.
const BUFFERS: usize = 128 * 1_024;
/// Bytes of all buffers of a run.
pub const BUFFER_BYTES: usize = BUFFERS * BUFFER;
/// How often, and how long each time, a server is waited for to listen: 3 s in all.
const SERVER_ATTEMPTS: u32 = 60;
const SERVER_ATTEMPT: std::time::Duration = std::time::Duration::from_millis(50);
/// Time that a program has to exit by itself when the run is interrupted.
const GRACE: Duration = Duration::from_millis(500);

const _: () = assert!(MTU as usize + 14 < BUFFER, "a packet fits its buffer");

/// Options of a run that are not in its plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The program uses the input and output of this process, and the run ends when the program or the plan ends. A run
    /// that the program starts in the same way is nested in this one. If false, input and output are discarded.
    pub in_foreground: bool,
    /// Connections of programs request ECN.
    pub ecn: bool,
    /// Watchers are shown the flows of each link.
    pub shows_flows: bool,
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

/// Runs a plan with real packets.
///
/// # Errors
/// If the plan is invalid, the machine lacks a required feature, or a program cannot be started.
pub fn run(
    plan: &Plan,
    options: &Options,
    watcher: Option<&Watcher>,
    cancellation: &Cancellation<'_>,
    sink: &mut dyn RecordSink,
) -> Result<Ended, BackendError> {
    plan.config.check()?;
    let config = Arc::new(plan.config.clone());
    let ecn = options.ecn || plan.config.flows.iter().any(offers_ecn);
    let in_foreground = options.in_foreground;
    let space = Space::create(HostSettings { ecn, in_foreground })?;
    let program = plan.config.flows.iter().find_map(program_of);
    let mut running = Running::default();
    let watch = |_| Connections::watch(&space, config.sample, config.flows.len());
    let connections = program.map(watch);
    running.server = start_server(program, &space, cancellation)?;
    let clock = Clock::start();
    let shared = Shared::default();
    let mut hosts = Hosts::new(clock, plan, &space);
    let end = Instant::ZERO + config.duration;
    let stop = AtomicBool::new(false);
    let kernel = kernel_release();
    let names = config.links.iter().map(|link| link.name.as_str());
    let views = watcher.map(|_| Views::new(names, Arc::clone(&shared), options.shows_flows));
    let capture = sink.capture();
    let capture = capture.map(|output| Capture::new(&config.links, space.hosts(), &kernel, output));
    let (moved, followed, seen) = thread::scope(|scope| {
        let config = Arc::clone(&config);
        let (space, stop) = (&space, &stop);
        // The network is created on the thread that runs it: a user-defined queue may be bound to one thread.
        let moving = scope.spawn(move || {
            let network = Network::new(config, (capture, views), BUFFER, BUFFERS)?;
            let ports = [&space.client.port, &space.server.port];
            let datapath = Datapath::new(clock, network, ports, Flows::new(plan));
            datapath
                .run(end, stop)
                .map_err(|e| failure(format!("the datapath cannot read: {e}")))
        });
        // On a thread: the search of a large table takes more than a millisecond, which would delay applications.
        let (programs_end, ended) = channel();
        let listing = connections.map(|connections| scope.spawn(move || connections.run(&ended)));
        // Also if this thread panics; otherwise the scope would wait for the other thread forever.
        let guard = StopOnDrop(stop);
        let followed = start(program, space, *options)
            .map_err(BackendError::from)
            .and_then(|started| {
                running.program = started;
                let shown = watcher.map(|watcher| (watcher, &shared));
                let ends = (clock, end, options.in_foreground);
                let stops: (_, &dyn Fn() -> bool) = (cancellation, &|| moving.is_finished());
                follow(&mut hosts, &mut running, ends, shown, stops)
            });
        drop(programs_end);
        let seen = listing.map(joined);
        drop(guard);
        (joined(moving), followed, seen)
    });
    let status = running.status;
    let server = running.server.is_some().then_some(running.server_failed);
    drop(running);
    let completion = followed?;
    let Moved {
        stopped,
        links,
        flows,
        events,
        counted,
    } = moved?;
    let ended = Ended {
        completion,
        duration: stopped.since(Instant::ZERO),
        status,
    };
    if completion == Completion::Cancelled && !options.in_foreground {
        return Ok(ended);
    }
    let finished = hosts.finish(stopped);
    // After all packets that had arrived were read.
    let lost = space.lost();
    let mut facts = validity::facts(&counted, &links, &finished, (lost.as_ref(), space.devices));
    if program.is_some() {
        facts.push(validity::of_program(status));
    }
    facts.extend(seen.into_iter().flat_map(|seen| {
        let defaults = [space.client.control(), space.server.control()];
        validity::of_connections(&seen, defaults)
    }));
    facts.extend(server.map(validity::of_server));
    if options.in_foreground {
        facts.push(validity::of_end(completion, status));
    }
    for fact in facts {
        sink.validity(fact);
    }
    emit(plan, links, (flows, events), finished, sink);
    Ok(ended)
}

/// The value that a thread returned; if the thread has panicked, this one panics, too.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let done = thread.join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The programs of a run.
#[derive(Default)]
struct Running {
    server: Option<Program>,
    program: Option<Program>,
    status: Option<i32>,
    /// Exit code of a server that ended with an error, and when.
    server_failed: Option<(i32, Instant)>,
}

impl Running {
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

fn start(
    program: Option<&ProgramConfig>,
    space: &Space,
    options: Options,
) -> Result<Option<Program>, LiveError> {
    let server = space.target.v4.to_string();
    let words = program.map(|program| program.expanded(&server));
    words
        .map(|words| Program::start(space, &space.client, &words, !options.in_foreground))
        .transpose()
}

/// Starts the server of a program, if it has one, and waits for it.
fn start_server(
    program: Option<&ProgramConfig>,
    space: &Space,
    cancellation: &Cancellation<'_>,
) -> Result<Option<Program>, LiveError> {
    let Some(words) = program.and_then(|program| program.server.as_ref()) else {
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
        Traffic::App(app) => app.tcp().offers_ecn(),
        _ => false,
    }
}

/// Drives the applications and watches the program until the run ends.
fn follow(
    hosts: &mut Hosts<'_>,
    running: &mut Running,
    (clock, end, in_foreground): (Clock, Instant, bool),
    watched: Option<(&Watcher, &Shared)>,
    (cancellation, has_stopped): (&Cancellation<'_>, &dyn Fn() -> bool),
) -> Result<Completion, BackendError> {
    let (mut shown, mut cancelled) = (Instant::ZERO, None);
    loop {
        let now = clock.now();
        // The datapath cannot go on, and says why.
        if has_stopped() {
            return Ok(Completion::Finished);
        }
        if cancelled.is_none() {
            let watched = running.watch_server(now);
            watched.map_err(|e| failure(e.to_string()))?;
        }
        if now >= end {
            return Ok(Completion::Finished);
        }
        if cancellation.is_requested_at(now) {
            let since = *cancelled.get_or_insert(now);
            // A signal to the terminal ends the server, too, maybe before it is seen here.
            let by_signal = |(_, at): &mut (i32, Instant)| since.saturating_since(*at) < GRACE;
            running.server_failed.take_if(by_signal);
            let waits = in_foreground && running.status.is_none() && running.program.is_some();
            if !waits || now.saturating_since(since) >= GRACE {
                return Ok(Completion::Cancelled);
            }
        }
        // After the question for a signal: what watches a run would take it for its own.
        if let Some((watcher, shared)) = watched
            && let Some(views) = newer_than(shown, shared)
        {
            shown = views.first().map_or(shown, |view| view.at);
            watcher(&views);
        }
        if running.status.is_none()
            && let Some(program) = &mut running.program
        {
            let status = program.ended().map_err(|e| failure(e.to_string()))?;
            running.status = status.map(exit_code);
            if running.status.is_some() && in_foreground {
                let is_cancelled = cancelled.is_some();
                return Ok(if is_cancelled {
                    Completion::Cancelled
                } else {
                    Completion::Finished
                });
            }
        }
        hosts
            .turn(end)
            .map_err(|e| failure(format!("a built-in application: {e}")))?;
    }
}

/// The views, if they are newer than those shown last.
fn newer_than(shown: Instant, shared: &Shared) -> Option<Vec<LinkView>> {
    let views = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let is_newer = views.first().is_some_and(|view| view.at > shown);
    is_newer.then(|| views.clone())
}

/// Passes the records of a run to `sink`; what the network counted of a flow completes what its hosts know.
fn emit(
    plan: &Plan,
    links: Vec<LinkRecord>,
    (probes, events): (Vec<FlowProbe>, Vec<SignalRecord>),
    finished: Finished,
    sink: &mut dyn RecordSink,
) {
    for record in links {
        sink.link(record);
    }
    let counted = finished.flows.into_iter().zip(probes);
    for ((record, probe), config) in counted.zip(&plan.config.flows) {
        sink.flow(completed(record, probe, config));
    }
    for record in finished.applications {
        sink.application(record);
    }
    for transaction in finished.transactions {
        sink.transaction(transaction);
    }
    for event in events {
        sink.event(event);
    }
}

fn completed(record: FlowRecord, probe: FlowProbe, config: &FlowConfig) -> FlowRecord {
    let packets = FlowCounters {
        sent_packets: probe.totals.sent_packets,
        received_packets: probe.totals.received_packets,
        ..record.totals
    };
    match config.traffic {
        Traffic::Program(_) => FlowRecord {
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
