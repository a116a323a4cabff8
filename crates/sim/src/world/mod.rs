//! The state of a simulated network, and its event loop: one clock, one event queue, one `match`.

mod applications;
mod arrivals;
mod connections;
mod control;
mod endpoints;
mod links;
mod media;
mod one_way;
mod prefetch;
mod simulation;

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use sojourn_apps::{AppEvent, AppOutput};
use sojourn_backend::{Direction, Passage, Routes, Step};
use sojourn_backend::{Feature, start_of};
use sojourn_net::{Bytes, Duration, Instant, Rng};
use sojourn_path::links::{Events, Line, Link, LinkProbe, Wire};
use sojourn_qdisc::Qdisc;
use sojourn_records::{CaptureOutput, FlowKind, LinkCounters, Records};
use sojourn_scenario::plan::{Config, ConfigError, Controller, FlowConfig, Traffic};
use sojourn_transport::Ticks;

use crate::agenda::{Agenda, Event, MAX_INDEX};
use crate::host::{Flow, Hosts, Outbox, Source};
use crate::medium::{Medium, Sent};
use crate::packet::{Owner, Packet};
use crate::probe::Observations;
use crate::unsupported;
use applications::Gather;
use arrivals::{Arrivals, Following};
use control::Control;

pub use simulation::{FlowStep, LinkStep, Simulation};

/// The largest granularity of the timer wheel: two hosts' tick counters differ by less, as far
/// as any timer can tell.
const WHEEL: Duration = Duration::from_millis(4_096);

/// Whether a sender has an event for each of its packets or most of them.
fn is_paced(traffic: &Traffic) -> bool {
    match traffic {
        Traffic::Tcp { params, .. } => params.is_paced(),
        Traffic::Datagrams(_) => true,
        // QUIC paces bursts, so it has few events.
        Traffic::Quic { .. } | Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => false,
    }
}

/// The first steps of a flow's routes in both directions, and the index of its lead.
type Way = ((u16, u16), u16);

/// Largest Ethernet frame: what queues take for the MTU.
const FRAME: Bytes = Bytes(1_514);

/// Number of events after which a run asks whether to go on, besides once per interval of the series.
const EVENTS_PER_QUESTION: u32 = 1 << 10;

/// Simulates `config`. `keep_going` is asked once an interval of the series, and every thousand events, with the
/// time reached; when it says no, the run ends and there are no records.
///
/// # Errors
/// If [`Config::check`] finds a fault, or a flow is a program.
pub fn run(
    config: &Config,
    keep_going: &mut dyn FnMut(Instant) -> bool,
) -> Result<Option<Records>, ConfigError> {
    run_captured(config, None, keep_going)
}

/// Simulates `config` as [`run`] does, and writes its packets to `capture`, which does not change the
/// records. The capture of a run that `keep_going` ends is complete up to that time.
///
/// # Errors
/// As [`run`].
pub fn run_captured<'a>(
    config: &'a Config,
    capture: Option<CaptureOutput<'a>>,
    keep_going: &mut dyn FnMut(Instant) -> bool,
) -> Result<Option<Records>, ConfigError> {
    run_controlled(config, None, capture, keep_going)
}

/// A controller, and the time between its calls.
pub type TimedController = (Box<dyn Controller>, Duration);

/// Simulates `config` as [`run_captured`] does, with a controller that is called every interval.
///
/// # Errors
/// As [`run`].
pub fn run_controlled<'a>(
    config: &'a Config,
    controller: Option<TimedController>,
    capture: Option<CaptureOutput<'a>>,
    keep_going: &mut dyn FnMut(Instant) -> bool,
) -> Result<Option<Records>, ConfigError> {
    let mut world = World::new(&RunConfig::Borrowed(config), capture, true)?;
    if let Some((controller, interval)) = controller {
        world.add_controller(controller, interval);
    }
    let finished = world.run(keep_going);
    world.end_capture();
    Ok(finished.then(|| world.finish()))
}

/// Simulates `config` as [`run`] does, but with an event for each packet that reaches a receiver: the reference of
/// receivers that are ahead.
///
/// # Errors
/// As [`run`].
pub fn run_on_wires(config: &Config) -> Result<Records, ConfigError> {
    let mut world = World::new(&RunConfig::Borrowed(config), None, false)?;
    world.run(&mut |_| true);
    Ok(world.finish())
}

impl<'a> World<'a> {
    /// The network at time zero; `ahead`: receivers are ahead of it where they can be.
    fn new(
        config: &RunConfig<'a>,
        capture: Option<CaptureOutput<'a>>,
        ahead: bool,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        if let Some(Feature { place, what }) = unsupported(config).next() {
            let rule = format!("not supported: {what}");
            return Err(ConfigError { place, rule });
        }
        let root = Rng::new(config.seed);
        let samples = config.duration.as_nanos() / config.sample.as_nanos();
        let samples = usize::try_from(samples.min(1 << 20)).unwrap_or(0) + 1;
        let host = |name| {
            let phase = root.fork("host").fork(name).below(WHEEL.as_nanos());
            Ticks::new(Duration::from_nanos(phase))
        };
        let mut world = Self {
            config: config.clone(),
            hosts: Hosts {
                near: host("near"),
                far: host("far"),
            },
            flow_rng: root.fork("flow"),
            now: Instant::ZERO,
            end: Instant::ZERO + config.duration,
            sample: config.sample,
            agenda: Agenda::new(0, 0, 0, 0, std::iter::empty()),
            routes: Routes::default(),
            leads: vec![Duration::ZERO],
            links: Vec::new(),
            radios: Vec::new(),
            observed: Observations::new(config, capture),
            wires: Vec::new(),
            lines: Vec::new(),
            media: Vec::new(),
            sent: Sent::default(),
            flows: Vec::with_capacity(config.flows.len()),
            applications: Applications::default(),
            arrivals: Arrivals::new(),
            following: Following::new(),
            outbox: Outbox::default(),
            before: vec![LinkCounters::default(); config.links.len()],
            control: None,
            until_question: EVENTS_PER_QUESTION,
            handled_by_question: EVENTS_PER_QUESTION.into(),
        };
        let ways = world.find_ways(config, ahead)?;
        let (wires, uneven) = (world.wires.len(), world.lines.len());
        let media = world.add_media();
        let paced = config.flows.iter().map(|flow| is_paced(&flow.traffic));
        world.agenda = Agenda::new(config.links.len(), wires, uneven, media, paced);
        world.check_duration()?;
        world.add_links(config, &root.fork("link"), samples);
        world.add_flows(&ways);
        let measure_from = Instant::ZERO + config.measure_from;
        // At the end of an interval the sample begins it: both are to divide events alike.
        let sample = config.sample.as_nanos();
        if !config.measure_from.as_nanos().is_multiple_of(sample) {
            world.agenda.schedule(measure_from, Event::Measure);
        }
        if config.sample < config.duration {
            world
                .agenda
                .schedule(Instant::ZERO + config.sample, Event::Sample);
        }
        Ok(world)
    }

    fn add_controller(&mut self, controller: Box<dyn Controller>, interval: Duration) {
        let control = Control::new(&self.config, controller, interval);
        if let Some(at) = control.next(self.now, self.end) {
            self.agenda.schedule(at, Event::Control);
        }
        self.control = Some(Box::new(control));
    }

    /// Checks that the agenda can hold all events of the run.
    fn check_duration(&self) -> Result<(), ConfigError> {
        let latest = self.agenda.latest();
        if self.end <= latest {
            return Ok(());
        }
        let slots = self.agenda.slots();
        let hours = latest.as_nanos() / Duration::from_secs(3_600).as_nanos();
        Err(ConfigError {
            place: "duration".to_owned(),
            rule: format!(
                "too long for {slots} links, delays and paced flows; expected at most {hours} hours"
            ),
        })
    }

    fn add_links(&mut self, config: &Config, rng: &Rng, samples: usize) {
        for (n, link) in (0..).zip(&config.links) {
            let facts = links::facts(config, link, &link.qdisc, link.rate);
            let rng = rng.fork(&link.name);
            let mut on_link = Link::new(&link.qdisc, (&facts, rng), &link.transmitter())
                .recording(config.keep_events);
            // The medium takes packets out of the queue.
            on_link.awaited = link.radio.is_some();
            self.links.push(on_link);
            self.add_radio(n);
            self.observed.probes.push(LinkProbe::new(samples));
            self.follow_queue_timer(n);
            self.await_change(n, 0);
        }
    }

    /// The way there and back of each flow.
    fn find_ways(&mut self, config: &Config, ahead: bool) -> Result<Vec<Way>, ConfigError> {
        if config.flows.len() > MAX_INDEX as usize {
            return Err(ConfigError {
                place: "flows".to_owned(),
                rule: format!("too many flows; expected at most {MAX_INDEX}"),
            });
        }
        let passages = self.add_lines();
        let mut ways = Vec::with_capacity(config.flows.len());
        for flow in &config.flows {
            ways.push(self.find_way(flow, &passages, ahead)?);
        }
        self.wires.extend(self.routes.wire_delays().map(Wire::new));
        Ok(ways)
    }

    /// The way there and back of a flow.
    fn find_way(
        &mut self,
        flow: &FlowConfig,
        passages: &[Passage],
        ahead: bool,
    ) -> Result<Way, ConfigError> {
        let known = self.leads.len();
        if ahead
            && let Traffic::Tcp { bytes, params } = &flow.traffic
            // The last bytes may be read after the sender has finished; the transfer then ends with the clock of its
            // receiver, which must be that of the network.
            && (bytes.is_none() || params.receiver.reader.is_immediate())
            && known < usize::from(u16::MAX)
            && let Some((forward, reverse, lead)) =
                self.routes
                    .add_ahead(&flow.forward, &flow.reverse, passages)?
        {
            let place = self.leads.iter().position(|&other| other == lead);
            let place = place.unwrap_or_else(|| {
                self.leads.push(lead);
                known
            });
            let place = u16::try_from(place).unwrap_or(0);
            return Ok(((forward, reverse), place));
        }
        let forward = (self.routes).add(&flow.forward, passages, Direction::Forward)?;
        let reverse = (self.routes).add(&flow.reverse, passages, Direction::Reverse)?;
        Ok(((forward, reverse), 0))
    }

    fn add_flows(&mut self, ways: &[Way]) {
        for ((id, flow), &(paths, lead)) in (0..).zip(&self.config.flows).zip(ways) {
            let owner = Owner::new(id, flow.client, flow.ip);
            self.flows.push(Flow::new(paths, flow.dscp, owner));
            self.flows[id as usize].lead = lead;
            let start = start_of(flow, &self.flow_rng.fork(&flow.name));
            if start <= self.end {
                self.agenda.schedule(start, Event::Start(id));
            }
            if let Some(stop) = flow.stop {
                let stop = Instant::ZERO + stop;
                self.agenda.schedule(stop, Event::Stop(id));
            }
        }
    }

    /// Runs every event up to and including the end; says whether it got there.
    fn run(&mut self, keep_going: &mut dyn FnMut(Instant) -> bool) -> bool {
        if !self.advance(self.end, keep_going) {
            return false;
        }
        let whole = self.close_interval();
        !whole || keep_going(self.end)
    }

    /// Runs every event up to and including `until`; says whether it got there.
    fn advance(&mut self, until: Instant, keep_going: &mut dyn FnMut(Instant) -> bool) -> bool {
        loop {
            // On a path without delay, a delivery can cause further arrivals at the same instant.
            while !self.arrivals.is_empty() && self.agenda.is_past_arrivals(self.now) {
                self.deliver_arrivals();
            }
            let Some((at, event)) = self.agenda.next_until(until) else {
                break;
            };
            debug_assert!(self.now <= at, "{event:?} was scheduled in the past");
            self.now = at;
            self.until_question -= 1;
            if self.until_question == 0 {
                self.until_question = EVENTS_PER_QUESTION;
                self.handled_by_question += u64::from(EVENTS_PER_QUESTION);
                if !keep_going(at) {
                    return false;
                }
            }
            let again = self.handle(event);
            match again {
                Some(at) => self.agenda.repeat_next(at),
                None => self.agenda.remove_next(),
            }
        }
        self.now = until;
        true
    }

    /// Ends the last interval of the series at the end of the run, if it is a whole one; says whether it is.
    fn close_interval(&mut self) -> bool {
        // The last interval holds whatever happens at its end: nothing follows that could.
        let whole = self
            .config
            .duration
            .as_nanos()
            .is_multiple_of(self.sample.as_nanos());
        if whole {
            self.on_sample();
        }
        whole
    }

    /// Does what is due; returns when the same is due again, if it is known.
    #[inline]
    fn handle(&mut self, event: Event) -> Option<Instant> {
        match event {
            Event::Link(id) => return self.on_link(id),
            Event::Wire(id) => {
                let wire = &mut self.wires[id as usize];
                let pkt = *wire.first();
                let next = wire.remove_first();
                if self.routes.step(pkt.step()) == Step::End {
                    self.prefetch_flows(id);
                    let follows = next == Some(self.now) && pkt.is_tcp_data() && {
                        let others = self.wires[id as usize].due(self.now);
                        let place = (self.now, Some(id));
                        self.following.follows(place, &pkt, others)
                    };
                    self.deliver(&pkt, follows);
                } else {
                    self.forward(&pkt);
                }
                return next;
            }
            Event::Line(id) => self.on_line(id),
            Event::Medium(id) => self.on_medium(id),
            Event::Change(id) => self.on_change(id),
            Event::Control => return self.on_control(),
            Event::Queue(id) => self.on_queue_timer(id),
            Event::Start(id) => self.on_start(id),
            Event::Stop(id) => self.on_stop(id),
            Event::Sender(id) => return self.on_sender(id),
            Event::Receiver(id) => return self.on_receiver(id),
            Event::Sample => {
                self.ask_next();
                return self.on_sample();
            }
            Event::Measure => self.begin_measuring(),
            Event::Write(id) => self.on_write(id),
        }
        None
    }

    /// Lets the next event ask whether to go on, so that no event has to be compared with a sample.
    fn ask_next(&mut self) {
        self.handled_by_question -= u64::from(self.until_question - 1);
        self.until_question = 1;
    }

    /// Delivers the packets that have reached the end of their path without a wire.
    #[inline]
    fn deliver_arrivals(&mut self) {
        match self.arrivals.take_only() {
            Some(pkt) => self.deliver(&pkt, false),
            None => self.deliver_several(),
        }
    }

    #[inline(never)]
    fn deliver_several(&mut self) {
        let arrived = self.arrivals.take_all();
        for (n, pkt) in arrived.iter().enumerate() {
            let others = arrived.get(n + 1..).unwrap_or_default();
            let place = (self.now, None);
            let follows = pkt.is_tcp_data() && self.following.follows(place, pkt, others.iter());
            self.deliver(pkt, follows);
        }
        self.following.forget();
        self.arrivals.reuse(arrived);
    }

    fn on_sample(&mut self) -> Option<Instant> {
        for (probe, link) in self.observed.probes.iter_mut().zip(&self.links) {
            probe.sample(self.now, link.qdisc.backlog());
        }
        if self.config.sample_state {
            self.sample_state();
        }
        self.gather_connections(Gather::Interval);
        for flow in &mut self.flows[..self.config.flows.len()] {
            flow.sample(self.now);
        }
        if self.now == Instant::ZERO + self.config.measure_from {
            self.begin_measuring();
        }
        let next = self.now + self.sample;
        (next < self.end).then_some(next)
    }

    #[inline(never)]
    fn sample_state(&mut self) {
        let links = self.links.iter().zip(&self.radios);
        for (probe, (link, &place)) in self.observed.probes.iter_mut().zip(links) {
            let radio = media::counters(place, &self.media);
            probe.sample_state(self.now, &link.qdisc, radio.into_iter().flatten());
        }
    }

    fn begin_measuring(&mut self) {
        for (probe, before) in self.observed.probes.iter_mut().zip(&mut self.before) {
            *before = probe.begin_measuring();
        }
        for link in &mut self.links {
            link.begin_measuring(self.now);
        }
        for radio in self.media.iter_mut().flat_map(|medium| &mut medium.radios) {
            radio.begin_measuring();
        }
        self.count_limits();
        self.gather_connections(Gather::Totals);
        for (id, flow) in self.flows[..self.config.flows.len()].iter_mut().enumerate() {
            flow.begin_measuring();
            if let Source::Datagrams(datagrams) = &flow.source {
                let first = datagrams.counted.first_measured();
                self.observed.notes.starts.begin_measuring(id, first);
            }
        }
        for slot in &mut self.flows[self.config.flows.len()..] {
            slot.begin_measuring();
        }
    }

    fn finish(mut self) -> Records {
        self.count_limits();
        self.gather_connections(Gather::Totals);
        let net = self.finish_applications();
        let apps = self.flows.iter();
        let apps = apps.filter_map(|flow| flow.application_record(self.end));
        let apps = apps.collect();
        let (config, end) = (self.config, self.end);
        let from = Instant::ZERO + config.measure_from;
        let named = config.links.iter().map(|link| link.name.clone());
        let links = named
            .zip(&self.links)
            .zip(self.radios)
            .zip(self.observed.probes)
            .zip(&self.before);
        let flows = self.flows.into_iter().zip(&config.flows);
        let flows = flows.zip(self.observed.notes.starts.finish());
        let media = self.media;
        Records {
            links: links
                .map(|((((name, link), place), probe), before)| {
                    let record = link.record(name, probe, before, from, end);
                    media::with_radio_counters(record, place, &media)
                })
                .collect(),
            flows: flows
                .map(|((flow, config), (initial_losses, lost))| {
                    let mut record = flow.finish(end, config);
                    if record.kind != FlowKind::App {
                        record.initial_losses = initial_losses;
                    }
                    // Of two copies of a datagram, one may have arrived.
                    record.lost_packets = record.missing_packets.map(|missing| lost.min(missing));
                    record
                })
                .collect(),
            apps,
            transactions: net.transactions,
            events: (self.observed.notes.events).map_or_else(Vec::new, Events::finish),
            changes: self
                .control
                .map_or_else(Vec::new, |control| control.into_changes()),
            validity: Vec::new(),
            agenda_events: self.handled_by_question - u64::from(self.until_question),
        }
    }
}

/// The whole simulated network: plain vectors, owned in one place, named by index.
#[derive(Debug)]
struct World<'a> {
    config: RunConfig<'a>,
    hosts: Hosts,
    /// The parent of the flows' random streams.
    flow_rng: Rng,
    now: Instant,
    end: Instant,
    sample: Duration,
    agenda: Agenda,
    routes: Routes,
    /// How far receivers are ahead of the network, indexed by `Flow::lead`; the first is zero.
    leads: Vec<Duration>,
    links: Vec<Link<Packet>>,
    /// Of each link: its medium and its number there, if it is wireless; the medium then determines when it sends.
    radios: Vec<Option<(u32, usize)>>,
    observed: Observations<'a>,
    wires: Vec<Wire<Packet>>,
    lines: Vec<Line<Packet>>,
    media: Vec<Medium>,
    /// What a medium has just delivered; empty between events.
    sent: Sent,
    /// Those of the configuration, then slots for connections of applications.
    flows: Vec<Flow>,
    applications: Applications,
    arrivals: Arrivals,
    following: Following,
    outbox: Outbox,
    before: Vec<LinkCounters>,
    control: Option<Box<Control>>,
    /// The number of events until the next question whether to go on, and how many will have been handled by then.
    until_question: u32,
    handled_by_question: u64,
}

/// The configuration of a run: of its caller, or shared with a run that outlives the caller.
#[derive(Clone, Debug)]
enum RunConfig<'a> {
    Borrowed(&'a Config),
    Shared(Arc<Config>),
}

impl Deref for RunConfig<'_> {
    type Target = Config;

    fn deref(&self) -> &Config {
        match self {
            Self::Borrowed(config) => config,
            Self::Shared(config) => config,
        }
    }
}

/// State shared by all applications.
#[derive(Debug, Default)]
struct Applications {
    /// Commands, of which there are none between events, and reports.
    output: AppOutput,
    /// Applications to notify of events, the oldest first.
    pending: VecDeque<(u32, AppEvent)>,
    /// Slots of connections that have ended, the oldest first.
    ended: VecDeque<u32>,
}

impl World<'_> {
    /// Puts a packet on its way.
    fn launch(&mut self, pkt: &Packet) {
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.on_sent(pkt);
        }
        self.forward(pkt);
    }

    /// Ends the capture at the time that the run has reached.
    fn end_capture(&mut self) {
        if let Some(capture) = self.observed.notes.capture.take() {
            capture.finish();
        }
    }
}
