//! The sans-IO core of the datapath: links and wires of a plan, driven by packets and time.
//!
//! Time is an input. Each event is processed with the time at which it is due, even if the caller is late: a late call
//! delays packets, but changes neither the rate of a link nor what its queue sees.

use std::collections::VecDeque;
use std::sync::Arc;

use sojourn_backend::{Direction, LinkChanges, NextHop, Passage, Routes, Step};
use sojourn_net::{Bytes, Duration, Instant, Rate, Rng, instead_of};
use sojourn_path::links::{Carried, Events, Line, Link, LinkProbe, Verdict, Wire};
use sojourn_qdisc::{LinkFacts, Qdisc, QdiscSpec, QueueChange};
use sojourn_records::{ChangeRecord, Histogram, LinkCounters, LinkRecord};
use sojourn_scenario::changed_keys;
use sojourn_scenario::plan::{Change, Config, ConfigError, LinkConfig, Request};

use crate::control::{MOST_CHANGES, Settings};
use crate::flows::Side;
use crate::frame::{Frame, Pool};
use crate::impairment::Impaired;
use crate::observed::{FlowProbe, Observed, Observers};
use crate::timers::{Timer, Timers};
use crate::view::{State, VIEW_INTERVAL};

/// Largest Ethernet frame, which queues use as the MTU.
const FRAME: Bytes = Bytes(1_514);

/// The first step of the path of a flow's packets, in each direction.
#[derive(Clone, Copy, Debug)]
struct Way {
    forward: u16,
    reverse: u16,
}

/// Links, wires and the packets on them.
#[derive(Debug)]
pub(crate) struct Network<'c> {
    now: Instant,
    config: Arc<Config>,
    pub(crate) pool: Pool,
    routes: Routes,
    ways: Vec<Way>,
    links: Vec<Link<Frame>>,
    wires: Vec<Wire<Frame>>,
    lines: Vec<Line<Frame>>,
    timers: Timers,
    /// The constant delay behind each link.
    delays: Vec<Duration>,
    /// The links behind each wire, if links are behind it for all packets, by wire.
    fed: Vec<Vec<u32>>,
    /// Number of changes of the plan of each link so far.
    changed: Vec<usize>,
    changes: LinkChanges,
    /// Number of changes that were asked for and that the views have shown.
    shown: usize,
    pub(crate) observed: Observed<'c>,
    /// Counters of each link up to the end of the warm-up.
    before: Vec<LinkCounters>,
    /// Packets at the end of their path, oldest first, with their time of arrival.
    delivered: VecDeque<(Instant, Frame)>,
    /// What happens to packets before they are delivered, of a run between networks.
    pub(crate) ends: Option<Ends>,
}

/// What happens at the end of the path.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) impaired: Impaired,
    /// By flow: where its packets arrive, and over which link.
    pub(crate) of_flows: Vec<(Side, u32)>,
}

impl<'c> Network<'c> {
    /// The network of a plan, at time zero, with buffers for `packets` packets of `size` bytes.
    ///
    /// # Errors
    /// If the paths of the flows have too many steps.
    pub(crate) fn new(
        config: Arc<Config>,
        observers: Observers<'c>,
        size: usize,
        packets: usize,
    ) -> Result<Self, ConfigError> {
        let root = Rng::new(config.seed);
        let (uneven, passages) = lines_of(&config, &root.fork("line"));
        let mut routes = Routes::default();
        let ways: Result<Vec<_>, _> = config
            .flows
            .iter()
            .map(|flow| {
                Ok::<_, ConfigError>(Way {
                    forward: routes.add(&flow.forward, &passages, Direction::Forward)?,
                    reverse: routes.add(&flow.reverse, &passages, Direction::Reverse)?,
                })
            })
            .collect();
        let wires: Vec<_> = routes.wire_delays().map(Wire::new).collect();
        let samples = config.duration.as_nanos() / config.sample.as_nanos();
        let samples = usize::try_from(samples.min(1 << 20)).unwrap_or(0) + 1;
        let rng = root.fork("link");
        let links: Vec<_> = (config.links.iter())
            .map(|link| build(link, &config, &rng))
            .collect();
        let ways = ways?;
        let mut network = Self {
            now: Instant::ZERO,
            pool: Pool::new(size, packets),
            delays: passages.iter().map(|link| delay_of(link.behind)).collect(),
            fed: fed_links(&routes, &ways, wires.len()),
            routes,
            ways,
            timers: Timers::new(links.len(), wires.len(), uneven.len()),
            observed: Observed {
                probes: links.iter().map(|_| LinkProbe::new(samples)).collect(),
                flows: config.flows.iter().map(|_| FlowProbe::default()).collect(),
                events: (config.keep_events).then(|| Events::new(config.sample_state)),
                capture: observers.capture,
                views: observers.views,
                traces: observers.traces,
            },
            changed: vec![0; links.len()],
            changes: LinkChanges::new(&config),
            shown: 0,
            before: vec![LinkCounters::default(); links.len()],
            delivered: VecDeque::new(),
            ends: None,
            links,
            wires,
            lines: uneven,
            config,
        };
        network.begin();
        Ok(network)
    }

    fn begin(&mut self) {
        for link in 0..self.link_count() {
            self.follow_queue_timer(link);
            self.await_change(link);
        }
        let config = &self.config;
        // If the warm-up ends with an interval, the sample starts the measurement, so that both divide packets alike.
        let sample = config.sample.as_nanos();
        let apart = !config.measure_from.as_nanos().is_multiple_of(sample);
        let measure = apart.then_some(Instant::ZERO + config.measure_from);
        self.timers.set(Timer::Measure, measure);
        let first = Instant::ZERO + config.sample;
        self.timers.set(Timer::Sample, Some(first));
        let watched = (self.observed.views.as_ref()).is_some_and(|views| views.active);
        let first = watched.then_some(Instant::ZERO + VIEW_INTERVAL);
        self.timers.set(Timer::View, first);
    }

    fn link_count(&self) -> u32 {
        u32::try_from(self.links.len()).unwrap_or(u32::MAX)
    }

    /// When to call [`Network::on_timer`] next: no packet reaches the end of its path before. Other events may be due
    /// earlier, since they are processed with the time at which they are due: a packet that reaches a link which is busy
    /// is processed with the end of the transmission, and one that a link has sent when it reaches the end of the wire.
    pub(crate) fn next_call(&self) -> Instant {
        let calls = self.timers.set_timers().map(|(due, timer)| match timer {
            Timer::Link(id) => due + self.delays[id as usize],
            Timer::Wire(id) if self.waits_for_links(id) => Instant::MAX,
            _ => due,
        });
        calls.min().unwrap_or(Instant::MAX)
    }

    /// Whether the packets of a wire reach links that are busy, each of which has a timer.
    fn waits_for_links(&self, wire: u32) -> bool {
        let fed = &self.fed[wire as usize];
        !fed.is_empty() && fed.iter().all(|&id| self.links[id as usize].awaited)
    }

    /// Processes the events due up to and including `now`. `lateness` records how late packets reach the end of their
    /// path and intervals of the series end, in ns.
    pub(crate) fn on_timer(&mut self, now: Instant, lateness: &mut Histogram) {
        loop {
            let (due, timer) = self.timers.first();
            if due > now {
                break;
            }
            self.timers.set(timer, None);
            self.now = self.now.max(due);
            let delivered = self.delivered.len();
            self.on_due(timer);
            if self.delivered.len() > delivered || timer == Timer::Sample {
                lateness.record(now.since(due).as_nanos());
            }
        }
        self.now = self.now.max(now);
    }

    fn on_due(&mut self, timer: Timer) {
        match timer {
            Timer::Measure => self.begin_measuring(),
            Timer::Sample => self.sample(self.now),
            Timer::View => self.show(),
            Timer::Link(id) => self.run_link(id),
            Timer::Queue(id) => self.on_queue_timer(id),
            Timer::Change(id) => self.on_change(id),
            Timer::Wire(id) => {
                let wire = &mut self.wires[id as usize];
                let frame = *wire.first();
                let next = wire.remove_first();
                self.timers.set(timer, next);
                self.forward(&frame);
            }
            Timer::Line(id) => {
                let frame = self.lines[id as usize].pop();
                self.timers.set(timer, self.lines[id as usize].next());
                if let Some(frame) = frame {
                    self.forward(&frame);
                }
            }
        }
    }

    /// A packet of `flow` was read at `now`, which must not precede the time of an earlier call. The packet travels in
    /// the direction of the data of the flow, or in the opposite direction.
    pub(crate) fn on_packet(&mut self, now: Instant, mut frame: Frame, flow: u32, forward: bool) {
        self.now = self.now.max(now);
        let way = self.ways[flow as usize];
        frame.flow = flow;
        frame.forward = forward;
        frame.step = if forward { way.forward } else { way.reverse };
        frame.entered = self.now;
        self.observed.flows[flow as usize].on_sent(self.now, forward);
        self.forward(&frame);
    }

    /// The oldest packet at the end of its path; the caller releases its buffer.
    pub(crate) fn next_delivered(&mut self) -> Option<(Instant, Frame)> {
        self.delivered.pop_front()
    }

    /// Forwards a packet to its next step.
    fn forward(&mut self, frame: &Frame) {
        match self.routes.step(frame.step) {
            Step::Link(id) | Step::Driver(id) => self.offer(id, frame),
            Step::Wire(id) => {
                if let Some(at) = self.wires[id as usize].push(self.now, frame) {
                    self.timers.set(Timer::Wire(id), Some(at));
                }
            }
            Step::Line(id) => self.put_on_line(id, frame),
            Step::End => self.deliver(frame),
        }
    }

    /// A packet has reached the end of its path.
    fn deliver(&mut self, frame: &Frame) {
        if let Some(ends) = &mut self.ends {
            let (to, link) = ends.of_flows[frame.flow as usize];
            let packet = &mut self.pool.packet_mut(frame)[usize::from(frame.header)..];
            if frame.is_ip && !ends.impaired.pass(self.now, to, packet) {
                let mut watch = self.observed.watch(link, &mut self.pool);
                return watch.on_lost(self.now, frame);
            }
            if let Some(traces) = &mut self.observed.traces {
                traces.on_received(self.now, to, packet);
            }
        }
        self.observed.flows[frame.flow as usize].on_delivered(self.now, frame);
        self.delivered.push_back((self.now, *frame));
    }

    fn offer(&mut self, id: u32, frame: &Frame) {
        let mut frame = *frame;
        let link = &mut self.links[id as usize];
        if let Some(capture) = &mut self.observed.capture {
            frame.queue = link.qdisc.queue_of(&frame);
            capture.on_offered(self.now, id, &frame, self.pool.packet(&frame));
        }
        let mut watch = self.observed.watch(id, &mut self.pool);
        watch.enter(self.now, &frame);
        link.enqueue(self.now, frame.onward(self.now), &mut watch);
        let (packets_affect_timer, awaited) = (link.packets_affect_timer, link.awaited);
        let has_ring = link.has_ring();
        if packets_affect_timer {
            self.follow_queue_timer(id);
        }
        if has_ring {
            self.fill_ring(id);
        } else if !awaited {
            self.run_link(id);
        }
    }

    /// The ring of a link takes the packets that it has room for.
    fn fill_ring(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        let mut watch = self.observed.watch(id, &mut self.pool);
        if let Some(at) = link.fill_ring(self.now, &mut watch) {
            self.timers.set(Timer::Link(id), Some(at));
        }
        if link.packets_affect_timer {
            self.follow_queue_timer(id);
        }
    }

    /// Asks the queue of an idle link for packets that it held back.
    fn send_held(&mut self, id: u32) {
        let link = &self.links[id as usize];
        if link.has_ring() {
            self.fill_ring(id);
        } else if !link.awaited && link.qdisc.backlog().packets > 0 {
            self.run_link(id);
        }
    }

    /// Sends the packets that a link may send now, and sets its timer.
    fn run_link(&mut self, id: u32) {
        loop {
            let link = &mut self.links[id as usize];
            let mut left = None;
            let again = link.turn(
                self.now,
                &mut self.observed.watch(id, &mut self.pool),
                &mut left,
            );
            link.awaited = again.is_some();
            if link.packets_affect_timer {
                self.follow_queue_timer(id);
            }
            if let Some(frame) = &left {
                self.forward(frame);
            }
            match again {
                // A bucket with remaining credit sends at once.
                Some(at) if at <= self.now => {}
                again => {
                    self.timers.set(Timer::Link(id), again);
                    return;
                }
            }
        }
    }

    fn on_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if link.qdisc.next_timer().is_some_and(|due| due <= self.now) {
            link.qdisc.on_timer(self.now);
        }
        self.send_held(id);
        self.follow_queue_timer(id);
    }

    /// Sets the timer of the queue of a link.
    fn follow_queue_timer(&mut self, id: u32) {
        let due = self.links[id as usize].qdisc.next_timer();
        let due = due.map(|due| due.max(self.now));
        self.timers.set(Timer::Queue(id), due);
    }

    fn put_on_line(&mut self, id: u32, frame: &Frame) {
        let line = &mut self.lines[id as usize];
        let behind = line.link;
        match line.push(self.now, frame.onward(self.now)) {
            Verdict::Lost => self
                .observed
                .watch(behind, &mut self.pool)
                .on_lost(self.now, frame),
            Verdict::Arrives(copies) => {
                for _ in 1..copies {
                    self.pool.retain(frame.slot);
                    self.observed.probes[behind as usize].on_duplicated();
                }
                self.timers.set(Timer::Line(id), line.next());
            }
        }
    }

    /// Sets the timer of the next change of a link.
    fn await_change(&mut self, id: u32) {
        let next = self.config.links[id as usize]
            .changes
            .get(self.changed[id as usize]);
        let at = next.map(|change| Instant::ZERO + change.at);
        self.timers.set(Timer::Change(id), at);
    }

    fn on_change(&mut self, id: u32) {
        let config = Arc::clone(&self.config);
        let change = &config.links[id as usize].changes[self.changed[id as usize]];
        self.changed[id as usize] += 1;
        self.apply_change(id, change);
        self.await_change(id);
    }

    /// Changes links now, each by its name with the keys of a change as JSON: all or none. Returns the settings of all
    /// links afterwards.
    ///
    /// # Errors
    /// The key that is at fault, and the rule.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        asked: &[(String, String)],
    ) -> Result<Settings, String> {
        self.now = self.now.max(now);
        let config = Arc::clone(&self.config);
        let requests: Result<Vec<_>, String> = asked
            .iter()
            .map(|(name, change)| {
                let mut links = config.links.iter();
                let link = links.position(|link| link.name == *name).ok_or_else(|| {
                    let names = config.links.iter().map(|link| link.name.as_str());
                    format!("links.{name}: unknown link; {}", instead_of(name, names))
                })?;
                let change = change.clone();
                Ok(Request { link, change })
            })
            .collect();
        let requests = requests?;
        if self.changes.records().len() + requests.len() > MOST_CHANGES {
            return Err(format!("a run can be changed {MOST_CHANGES} times"));
        }
        let rates: Vec<_> = self.links.iter().map(Link::rate).collect();
        let accepted = (self.changes).accept_all(&config, self.now, &rates, &requests)?;
        for (link, change) in &accepted {
            self.apply_change(u32::try_from(*link).unwrap_or(u32::MAX), change);
        }
        Ok(self.settings())
    }

    /// Shows the links with their flows from now on.
    pub(crate) fn watch(&mut self) {
        if let Some(views) = &mut self.observed.views {
            if !views.active {
                self.timers.set(Timer::View, Some(self.now + VIEW_INTERVAL));
            }
            views.show_flows();
        }
    }

    /// The settings of all links.
    fn settings(&self) -> Settings {
        let links = self.config.links.iter().enumerate();
        Settings {
            at: self.now,
            links: links
                .map(|(n, link)| (link.name.clone(), changed_keys(&self.changes.settings(n))))
                .collect(),
        }
    }

    /// Applies a change to a link.
    fn apply_change(&mut self, id: u32, change: &Change) {
        let n = self.changes.on_change(id, change);
        if let Some(rate) = change.rate {
            if let Some(at) = self.links[id as usize].change_rate(self.now, rate) {
                self.timers.set(Timer::Link(id), Some(at.max(self.now)));
            }
            self.follow_queue_timer(id);
        }
        for line in self.lines.iter_mut().filter(|line| line.link == id) {
            line.change(&change.wire);
        }
        if let Some(queue) = &change.queue {
            self.change_queue(id, n, queue);
        }
    }

    /// Change number `n` of a link changes its queue.
    fn change_queue(&mut self, id: u32, n: usize, change: &QueueChange) {
        let config = &self.config.links[id as usize];
        let link = &mut self.links[id as usize];
        let facts = facts(&self.config, config, change.spec(), link.rate());
        let rng = Rng::new(self.config.seed).fork("link").fork(&config.name);
        let rng = rng.fork(&format!("change/{n}"));
        let mut watch = self.observed.watch(id, &mut self.pool);
        link.change_queue(self.now, change, (&facts, rng), &mut watch);
        if let QueueChange::Replacement(_) = change {
            self.observed.probes[id as usize].on_replaced();
        }
        self.send_held(id);
        self.follow_queue_timer(id);
    }

    fn begin_measuring(&mut self) {
        for (n, link) in self.links.iter_mut().enumerate() {
            link.begin_measuring(self.now);
            self.before[n] = self.observed.probes[n].begin_measuring();
        }
        for flow in &mut self.observed.flows {
            flow.begin_measuring(self.now);
        }
    }

    fn show(&mut self) {
        let Some(views) = &mut self.observed.views else {
            return;
        };
        let changes = &self.changes;
        let made = &changes.records()[self.shown..];
        let states = self.links.iter().enumerate().map(|(n, link)| State {
            backlog: link.qdisc.backlog(),
            settings: changed_keys(&changes.settings(n)),
            changes: made
                .iter()
                .filter(|change| change.link == n)
                .map(|change| (change.at, change.text.clone()))
                .collect(),
        });
        views.show(self.now, states);
        self.shown = changes.records().len();
        self.timers.set(Timer::View, Some(self.now + VIEW_INTERVAL));
    }

    fn sample(&mut self, at: Instant) {
        for (probe, link) in self.observed.probes.iter_mut().zip(&self.links) {
            probe.sample(at, link.qdisc.backlog());
            if self.config.sample_state {
                probe.sample_state(at, &link.qdisc, []);
            }
        }
        for flow in &mut self.observed.flows {
            flow.sample(at);
        }
        if at == Instant::ZERO + self.config.measure_from {
            self.begin_measuring();
        }
        if let Some(traces) = &mut self.observed.traces {
            traces.flush();
        }
        let next = at + self.config.sample;
        let last = Instant::ZERO + self.config.duration;
        self.timers
            .set(Timer::Sample, (next < last).then_some(next));
    }

    /// The changes that were asked for so far.
    pub(crate) fn take_changes(&mut self) -> Vec<ChangeRecord> {
        let none = LinkChanges::new(&self.config);
        std::mem::replace(&mut self.changes, none).into_records()
    }

    /// Ends the run at `end`: the record of each link, and the flows.
    pub(crate) fn finish(mut self, end: Instant) -> (Vec<LinkRecord>, Observed<'c>) {
        // As in the simulator, only whole intervals are recorded.
        let elapsed = end.since(Instant::ZERO).as_nanos();
        if elapsed.is_multiple_of(self.config.sample.as_nanos()) {
            self.sample(end);
        }
        self.now = self.now.max(end);
        let from = Instant::ZERO + self.config.measure_from;
        let probes = std::mem::take(&mut self.observed.probes);
        let records = self
            .config
            .links
            .iter()
            .zip(&self.links)
            .zip(probes)
            .zip(&self.before);
        let records = records
            .map(|(((config, link), probe), before)| {
                link.record(config.name.clone(), probe, before, from, end)
            })
            .collect();
        (records, self.observed)
    }
}

fn build(link: &LinkConfig, config: &Config, rng: &Rng) -> Link<Frame> {
    let facts = facts(config, link, &link.qdisc, link.rate);
    let rng = rng.fork(&link.name);
    Link::new(&link.qdisc, (&facts, rng), &link.transmitter()).recording(config.keep_events)
}

/// The properties of a link that sends at `rate`, for `queue`.
fn facts(config: &Config, link: &LinkConfig, queue: &QdiscSpec, rate: Rate) -> LinkFacts {
    LinkFacts {
        // The future capacity of a trace is unknown to the queue.
        rate: (!link.follows_trace()).then_some(rate),
        mtu: FRAME,
        name: Some(link.name.as_str().into()),
        flows: config.flow_facts(queue),
    }
}

/// The least delay of a hop.
const fn delay_of(hop: NextHop) -> Duration {
    match hop {
        NextHop::Wire(delay) => delay,
        NextHop::Line(_) => Duration::ZERO,
    }
}

/// The links behind each wire; none if some packets of the wire do not reach a link without a driver next.
fn fed_links(routes: &Routes, ways: &[Way], wires: usize) -> Vec<Vec<u32>> {
    let mut behind = vec![(Vec::new(), true); wires];
    for first in ways.iter().flat_map(|way| [way.forward, way.reverse]) {
        let mut at = first;
        while routes.step(at) != Step::End {
            let (step, next) = (routes.step(at), routes.step(at + 1));
            if let Step::Wire(wire) = step {
                let (links, only_links) = &mut behind[wire as usize];
                match next {
                    Step::Link(link) => links.push(link),
                    _ => *only_links = false,
                }
            }
            at += 1;
        }
    }
    let fed = behind.into_iter().map(|(mut links, only_links)| {
        links.sort_unstable();
        links.dedup();
        if only_links { links } else { Vec::new() }
    });
    fed.collect()
}

/// The imperfect wires behind links, and the routing properties of each link.
fn lines_of(config: &Config, rng: &Rng) -> (Vec<Line<Frame>>, Vec<Passage>) {
    let (mut lines, mut passages) = (Vec::new(), Vec::new());
    for (n, link) in (0..).zip(&config.links) {
        let behind = if link.is_uneven() {
            let id = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            lines.push(Line::new(n, link.delay, &link.line, &rng.fork(&link.name)));
            NextHop::Line(id)
        } else {
            NextHop::Wire(link.delay)
        };
        passages.push(Passage {
            has_driver: link.has_driver(),
            behind,
        });
    }
    (lines, passages)
}

#[cfg(test)]
mod tests;
