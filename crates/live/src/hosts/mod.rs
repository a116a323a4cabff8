//! The built-in applications on real sockets: the sans-IO sources of the simulator, driven by the host's TCP and UDP.

mod connection;
mod datagrams;
mod limits;
mod sockets;
mod streams;

use std::io;
use std::sync::Arc;

use rustix::event::PollFd;
use sojourn_apps::{AppEvent, AppOutput, Transaction};
use sojourn_backend::{kind_of, start_of};
use sojourn_net::{Duration, Instant, Rng};
use sojourn_records::{AppRecord, FlowRecord};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, Traffic};

use crate::clock::{Clock, poll_for};
use crate::flows::{FIRST_PORT, Side, source_of};
use crate::space::Space;
use datagrams::Datagrams;
use streams::Streams;

/// All flows of a plan.
pub(crate) struct Hosts<'a> {
    clock: Clock,
    config: Arc<Config>,
    sides: Vec<Side>,
    /// `None`: other machines are the hosts.
    space: Option<&'a Space>,
    flows: Vec<Flow>,
    output: AppOutput,
    next_sample: Instant,
    /// When the warm-up ends, if that is not the end of an interval.
    measure_at: Option<Instant>,
    scratch: Vec<u8>,
}

/// A flow in the course of a run.
struct Flow {
    start: Instant,
    stop: Option<Instant>,
    rng: Rng,
    source: Source,
}

/// What a flow sends now.
enum Source {
    /// It has not started.
    Waiting,
    Streams(Box<Streams>),
    Datagrams(Box<Datagrams>),
    /// Nothing: a program does.
    None,
}

impl<'a> Hosts<'a> {
    pub(crate) fn new(clock: Clock, plan: &Plan, space: Option<&'a Space>) -> Self {
        let root = Rng::new(plan.config.seed).fork("flow");
        let flows = plan.config.flows.iter().map(|flow| {
            let rng = root.fork(&flow.name);
            Flow {
                start: start_of(flow, &rng),
                stop: flow.stop.map(|stop| Instant::ZERO + stop),
                rng,
                source: match flow.traffic {
                    Traffic::Program(_) | Traffic::Bridged => Source::None,
                    _ => Source::Waiting,
                },
            }
        });
        Self {
            clock,
            flows: flows.collect(),
            sides: plan
                .flows
                .iter()
                .map(|label| source_of(label.direction))
                .collect(),
            config: Arc::new(plan.config.clone()),
            space,
            output: AppOutput::default(),
            next_sample: Instant::ZERO + plan.config.sample,
            measure_at: measure_at(&plan.config),
            scratch: vec![0; 1 << 16],
        }
    }

    /// Does what is due, then waits for sockets and time, at most until `end`.
    ///
    /// # Errors
    /// If a socket cannot be created or polled.
    pub(crate) fn turn(&mut self, end: Instant) -> io::Result<()> {
        let now = self.clock.now();
        for number in 0..self.flows.len() {
            self.follow_schedule(number, now)?;
            self.work(number, now)?;
        }
        self.observe(now);
        self.wait(end)
    }

    /// Starts and stops a flow.
    fn follow_schedule(&mut self, number: usize, now: Instant) -> io::Result<()> {
        let flow = &mut self.flows[number];
        if matches!(flow.source, Source::Waiting)
            && now >= flow.start
            && let Some(space) = self.space
        {
            let config = &self.config.flows[number];
            let port = FIRST_PORT + u16::try_from(number).unwrap_or(0);
            let route = sockets::Route::of(space, self.sides[number], port, config.dscp);
            flow.source = match &config.traffic {
                Traffic::Datagrams(datagrams) => {
                    let started = Datagrams::start(now, &**datagrams, &flow.rng, &route)?;
                    Source::Datagrams(Box::new(started))
                }
                traffic => Streams::start(now, number, traffic, &flow.rng, route)?
                    .map_or(Source::None, |streams| Source::Streams(Box::new(streams))),
            };
            if let Source::Streams(streams) = &mut flow.source {
                streams.notify(now, AppEvent::Started, &mut self.output);
            }
        }
        if flow.stop.is_some_and(|stop| now >= stop) {
            flow.stop = None;
            match &mut flow.source {
                Source::Streams(streams) => streams.stop(now, &mut self.output),
                Source::Datagrams(datagrams) => datagrams.stop(),
                Source::Waiting | Source::None => {}
            }
        }
        Ok(())
    }

    /// Reads, writes and processes timers of a flow.
    fn work(&mut self, number: usize, now: Instant) -> io::Result<()> {
        match &mut self.flows[number].source {
            Source::Streams(streams) => {
                streams.work(self.clock, &mut self.scratch, &mut self.output);
                Ok(())
            }
            Source::Datagrams(datagrams) => datagrams.work(now, self.clock, &mut self.scratch),
            Source::Waiting | Source::None => Ok(()),
        }
    }

    /// Ends the warm-up and the intervals that are over.
    fn observe(&mut self, now: Instant) {
        if self.measure_at.is_some_and(|at| at <= now) {
            self.measure_at = None;
            self.begin_measuring(now);
        }
        // Ends: each turn is an interval later.
        while self.next_sample <= now {
            self.sample();
        }
    }

    /// An interval ends: it is recorded with the time at which it should have ended.
    fn sample(&mut self) {
        let at = self.next_sample;
        for flow in &mut self.flows {
            match &mut flow.source {
                Source::Streams(streams) => streams.sample(at),
                Source::Datagrams(datagrams) => datagrams.counted.sample(at),
                Source::Waiting | Source::None => {}
            }
        }
        if at == Instant::ZERO + self.config.measure_from {
            self.begin_measuring(at);
        }
        self.next_sample = at + self.config.sample;
    }

    fn begin_measuring(&mut self, now: Instant) {
        for flow in &mut self.flows {
            match &mut flow.source {
                Source::Streams(streams) => streams.begin_measuring(now),
                Source::Datagrams(datagrams) => datagrams.counted.begin_measuring(),
                Source::Waiting | Source::None => {}
            }
        }
    }

    /// Waits until a socket is ready or something is due.
    fn wait(&self, end: Instant) -> io::Result<()> {
        // A stop of the run takes effect within this time.
        const LONGEST: Duration = Duration::from_millis(20);
        let mut due = self.next_sample.min(end);
        due = due.min(self.measure_at.unwrap_or(Instant::MAX));
        let mut fds = Vec::new();
        for flow in &self.flows {
            match &flow.source {
                Source::Waiting => due = due.min(flow.start),
                Source::Streams(streams) => {
                    due = due.min(streams.due());
                    streams.poll(&mut fds);
                }
                Source::Datagrams(datagrams) => {
                    due = due.min(datagrams.due());
                    datagrams.poll(&mut fds);
                }
                Source::None => {}
            }
            due = due.min(flow.stop.unwrap_or(Instant::MAX));
        }
        let time = due.saturating_since(self.clock.now());
        let mut fds: Vec<_> = fds
            .iter()
            .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        poll_for(&mut fds, time.min(LONGEST))
    }

    /// Ends all flows at `end`, after what has arrived until then.
    pub(crate) fn finish(mut self, end: Instant) -> Finished {
        for number in 0..self.flows.len() {
            // A socket that fails now has no more to say.
            let _ = self.work(number, end);
        }
        self.observe(end);
        for (number, flow) in (0..).zip(&mut self.flows) {
            if let Source::Streams(streams) = &mut flow.source {
                self.output.flow = number;
                streams.finish(end, &mut self.output);
            }
        }
        let mut finished = Finished {
            flows: Vec::new(),
            applications: Vec::new(),
            transactions: std::mem::take(&mut self.output.transactions),
            controls: Vec::new(),
            with_ecn: (0, 0),
        };
        for (number, (flow, config)) in (0..).zip(self.flows.into_iter().zip(&self.config.flows)) {
            let mut record = match flow.source {
                Source::Streams(streams) => {
                    let used = streams.used();
                    finished.controls.extend(used.controls.iter().cloned());
                    finished.with_ecn.0 += used.with_ecn;
                    finished.with_ecn.1 += used.connections;
                    finished.applications.extend(streams.application_record());
                    streams.record()
                }
                Source::Datagrams(datagrams) => {
                    finished
                        .applications
                        .extend(datagrams.counted.call(end).map(|call| AppRecord {
                            flow: number,
                            call: Some(call),
                            ..AppRecord::default()
                        }));
                    datagrams.counted.record()
                }
                Source::Waiting | Source::None => FlowRecord::blank(kind_of(&config.traffic)),
            };
            record.name.clone_from(&config.name);
            finished.flows.push(record);
        }
        finished
    }
}

/// What the hosts recorded.
pub(crate) struct Finished {
    /// One per flow of the plan.
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) applications: Vec<AppRecord>,
    pub(crate) transactions: Vec<Transaction>,
    /// Congestion controls that connections used.
    pub(crate) controls: Vec<String>,
    /// Connections that negotiated ECN, and all of them.
    pub(crate) with_ecn: (u64, u64),
}

/// When the warm-up ends, unless an interval ends then, too: both divide packets alike.
fn measure_at(config: &Config) -> Option<Instant> {
    let sample = config.sample.as_nanos();
    let apart = !config.measure_from.as_nanos().is_multiple_of(sample);
    apart.then_some(Instant::ZERO + config.measure_from)
}
