//! The event loop: one clock, one agenda, one `match`.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Ecn, Instant, Packet as View, Rng};
use sojourn_qdisc::{LinkFacts, Qdisc};
use sojourn_transport::{Arrival, Segment, Ticks};

use crate::agenda::{Agenda, Event, MAX_INDEX};
use crate::config::{Config, ConfigError};
use crate::host::{Flow, Hosts, Source};
use crate::link::{Link, Wire};
use crate::packet::{Kind, Owner, Packet};
use crate::probe::{Beginnings, LinkProbe, Watch};
use crate::records::{FlowRecord, LinkCounters, Records, SignalRecord};
use crate::route::{Routes, Step};

/// The largest granularity of the timer wheel: two hosts' tick counters differ by less, as far
/// as any timer can tell.
const WHEEL: Duration = Duration::from_millis(4_096);

/// Largest Ethernet frame: what queues take for the MTU.
const FRAME: Bytes = Bytes(1_514);

/// Simulates `config`. `keep_going` is asked once an interval of the series with the time
/// reached; when it says no, the run ends and there are no records.
///
/// # Errors
/// If [`Config::check`] finds a fault.
pub fn run(
    config: &Config,
    keep_going: &mut dyn FnMut(Instant) -> bool,
) -> Result<Option<Records>, ConfigError> {
    config.check()?;
    let mut world = World::new(config)?;
    Ok(world.run(keep_going).then(|| world.finish()))
}

/// The whole simulated network: plain vectors, owned in one place, named by index.
#[derive(Debug)]
struct World<'a> {
    config: &'a Config,
    hosts: Hosts,
    /// The parent of the flows' random streams.
    flow_rng: Rng,
    now: Instant,
    end: Instant,
    sample: Duration,
    agenda: Agenda,
    routes: Routes,
    links: Vec<Link>,
    probes: Vec<LinkProbe>,
    beginnings: Beginnings,
    wires: Vec<Wire>,
    flows: Vec<Flow>,
    events: Option<Vec<SignalRecord>>,
    /// Packets at the end of their way, to be handed over before anything else happens.
    arrivals: VecDeque<Packet>,
    /// What an endpoint wants sent; empty between events.
    outbox: Vec<Segment>,
    before: Vec<LinkCounters>,
    handled: u64,
}

impl<'a> World<'a> {
    fn new(config: &'a Config) -> Result<Self, ConfigError> {
        let root = Rng::new(config.seed);
        let samples = config.duration.as_nanos() / config.sample.as_nanos();
        let samples = usize::try_from(samples.min(1 << 20)).unwrap_or(0) + 1;
        let host = |name| {
            let phase = root.fork("host").fork(name).below(WHEEL.as_nanos());
            Ticks::new(Duration::from_nanos(phase))
        };
        let mut world = Self {
            config,
            hosts: Hosts {
                near: host("near"),
                far: host("far"),
            },
            flow_rng: root.fork("flow"),
            now: Instant::ZERO,
            end: Instant::ZERO + config.duration,
            sample: config.sample,
            agenda: Agenda::new(config.links.len(), 0),
            routes: Routes::default(),
            links: Vec::new(),
            probes: Vec::new(),
            beginnings: Beginnings::new(&config.flows),
            wires: Vec::new(),
            flows: Vec::with_capacity(config.flows.len()),
            events: config.keep_events.then(Vec::new),
            arrivals: VecDeque::new(),
            outbox: Vec::new(),
            before: vec![LinkCounters::default(); config.links.len()],
            handled: 0,
        };
        let ways = world.find_ways(config)?;
        world.agenda = Agenda::new(config.links.len(), world.wires.len());
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

    fn add_links(&mut self, config: &Config, rng: &Rng, samples: usize) {
        for (n, link) in (0..).zip(&config.links) {
            let facts = LinkFacts {
                rate: Some(link.rate),
                mtu: FRAME,
            };
            let qdisc = link.qdisc.build(&facts, rng.fork(&link.name));
            let link = Link::new(qdisc, link.rate, link.overhead, link.shaper);
            self.links.push(link);
            self.probes.push(LinkProbe::new(samples));
            self.follow_queue_timer(n);
        }
    }

    /// The way there and back of each flow.
    fn find_ways(&mut self, config: &Config) -> Result<Vec<(u16, u16)>, ConfigError> {
        if config.flows.len() > MAX_INDEX as usize {
            return Err(ConfigError {
                place: "flows".to_owned(),
                rule: format!("at most {MAX_INDEX} flows"),
            });
        }
        let delays: Vec<Duration> = config.links.iter().map(|link| link.delay).collect();
        let mut ways = Vec::with_capacity(config.flows.len());
        for flow in &config.flows {
            let forward = self.routes.add(&flow.forward, &delays)?;
            ways.push((forward, self.routes.add(&flow.reverse, &delays)?));
        }
        for &delay in self.routes.wire_delays() {
            self.wires.push(Wire::new(delay));
        }
        Ok(ways)
    }

    fn add_flows(&mut self, ways: &[(u16, u16)]) {
        for ((id, flow), &way) in (0..).zip(&self.config.flows).zip(ways) {
            self.flows
                .push(Flow::new(way, flow.dscp, Owner::new(id, flow.client)));
            let start = Flow::start_of(flow, &self.flow_rng.fork(&flow.name));
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
        while let Some((at, event)) = self.agenda.next_until(self.end) {
            debug_assert!(self.now <= at, "{event:?} was scheduled in the past");
            self.now = at;
            self.handled += 1;
            if event == Event::Sample && !keep_going(at) {
                return false;
            }
            let again = self.handle(event);
            if !self.arrivals.is_empty() {
                self.deliver_arrivals();
            }
            match again {
                Some(at) => self.agenda.repeat_next(at, event),
                None => self.agenda.remove_next(event),
            }
        }
        self.now = self.end;
        // The last interval holds whatever happens at its end: nothing follows that could.
        let whole = self
            .config
            .duration
            .as_nanos()
            .is_multiple_of(self.sample.as_nanos());
        if whole {
            self.on_sample();
        }
        !whole || keep_going(self.end)
    }

    /// Does what is due; returns when the same is due again, if it is known.
    #[inline]
    fn handle(&mut self, event: Event) -> Option<Instant> {
        match event {
            Event::Link(id) => return self.on_link(id),
            Event::Wire(id) => {
                let (pkt, next) = self.wires[id as usize].pop();
                if self.routes.step(pkt.step) == Step::End {
                    let follows = next == Some(self.now)
                        && self.wires[id as usize].next_flow() == Some(pkt.owner);
                    self.deliver(&pkt, follows);
                } else {
                    self.forward(&pkt);
                }
                return next;
            }
            Event::Queue(id) => self.on_queue_timer(id),
            Event::Start(id) => self.on_start(id),
            Event::Stop(id) => self.flows[id as usize].stop(),
            Event::Sender(id) => self.on_sender(id),
            Event::Receiver(id) => self.on_receiver(id),
            Event::Sample => return self.on_sample(),
            Event::Measure => self.begin_measuring(),
        }
        None
    }

    fn deliver_arrivals(&mut self) {
        while let Some(pkt) = self.arrivals.pop_front() {
            let follows = self.arrivals.front().is_some_and(|p| p.owner == pkt.owner);
            self.deliver(&pkt, follows);
        }
    }

    /// Sends a packet on from where it is.
    #[inline]
    fn forward(&mut self, pkt: &Packet) {
        match self.routes.step(pkt.step) {
            Step::Link(id) => self.offer(id, pkt),
            Step::Wire(id) => {
                let on_wire = Packet {
                    step: pkt.step + 1,
                    ..*pkt
                };
                if let Some(at) = self.wires[id as usize].push(self.now, on_wire) {
                    self.agenda.schedule(at, Event::Wire(id));
                }
            }
            Step::End => self.arrivals.push_back(*pkt),
        }
    }

    #[inline]
    fn offer(&mut self, id: u32, pkt: &Packet) {
        let n = id as usize;
        let queued = Packet {
            entered: self.now,
            step: pkt.step + 1,
            ..*pkt
        };
        let mut watch = Watch {
            probe: &mut self.probes[n],
            events: self.events.as_mut(),
            beginnings: &mut self.beginnings,
            link: id,
        };
        self.links[n].qdisc.enqueue(self.now, queued, &mut watch);
        self.follow_queue_timer(id);
        if !self.links[n].awaited
            && let Some(at) = self.on_link(id)
        {
            self.agenda.schedule(at, Event::Link(id));
        }
    }

    /// A link's turn; returns when it is its turn again, which the caller sees to.
    #[inline]
    fn on_link(&mut self, id: u32) -> Option<Instant> {
        let n = id as usize;
        loop {
            let mut watch = Watch {
                probe: &mut self.probes[n],
                events: self.events.as_mut(),
                beginnings: &mut self.beginnings,
                link: id,
            };
            let turn = self.links[n].turn(self.now, &mut watch);
            if let Some(taken) = &turn.taken {
                self.probes[n].on_taken(taken);
            }
            self.links[n].awaited = turn.again.is_some();
            self.follow_queue_timer(id);
            if let Some(pkt) = &turn.left {
                self.forward(pkt);
            }
            match turn.again {
                // A bucket with credit left goes on at once.
                Some(at) if at <= self.now => {}
                again => return again,
            }
        }
    }

    fn on_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if link.timer_at != self.now {
            return;
        }
        link.timer_at = Instant::MAX;
        if link.qdisc.next_timer().is_some_and(|due| due <= self.now) {
            link.qdisc.on_timer(self.now);
        }
        // A queue that held its packets back may let one go.
        if !link.awaited
            && link.qdisc.backlog().packets > 0
            && let Some(at) = self.on_link(id)
        {
            self.agenda.schedule(at, Event::Link(id));
        }
        self.follow_queue_timer(id);
    }

    /// Sees to it that an event is pending no later than the queue's timer.
    #[inline]
    fn follow_queue_timer(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        if let Some(due) = link.qdisc.next_timer()
            && due < link.timer_at
        {
            link.timer_at = due.max(self.now);
            self.agenda.schedule(link.timer_at, Event::Queue(id));
        }
    }

    fn on_start(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let config = &self.config.flows[id as usize];
        let rng = self.flow_rng.fork(&config.name);
        flow.start(self.now, config, self.hosts, &rng, &mut self.outbox);
        let way = flow.forward;
        if let Source::Tcp(_) = flow.source {
            self.send(id, Kind::Data, way);
            self.follow_sender(id);
        } else {
            self.on_probe(id);
        }
    }

    fn on_probe(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Some((mut pkt, next)) = flow.next_probe(self.now) {
            pkt.step = flow.forward;
            let pkt = pkt.in_class(flow.class);
            self.agenda.schedule(next, Event::Sender(id));
            self.forward(&pkt);
        }
    }

    fn on_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        let Source::Tcp(tcp) = &mut flow.source else {
            self.on_probe(id);
            return;
        };
        // A later event stands for this one.
        if flow.sender_due != self.now {
            return;
        }
        flow.sender_due = Instant::MAX;
        if tcp.sender.next_timer().is_some_and(|due| due <= self.now) {
            tcp.sender.on_timer(self.now, &mut self.outbox);
            let way = flow.forward;
            flow.settle();
            self.send(id, Kind::Data, way);
        }
        self.follow_sender(id);
    }

    fn on_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Tcp(tcp) = &mut flow.source else {
            return;
        };
        if flow.receiver_due != self.now {
            return;
        }
        flow.receiver_due = Instant::MAX;
        if tcp.receiver.next_timer().is_some_and(|due| due <= self.now) {
            tcp.receiver.on_timer(self.now, &mut self.outbox);
            let way = flow.reverse;
            self.send(id, Kind::Ack, way);
        }
        self.follow_receiver(id);
    }

    /// Sees to it that an event is pending no later than the sender's timer. A timer that moves
    /// back is looked at when the event comes.
    #[inline]
    fn follow_sender(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Tcp(tcp) = &flow.source else {
            return;
        };
        if let Some(due) = tcp.sender.next_timer_before(flow.sender_due) {
            flow.sender_due = due.max(self.now);
            self.agenda.schedule(flow.sender_due, Event::Sender(id));
        }
    }

    /// The same for the receiver's.
    #[inline]
    fn follow_receiver(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Source::Tcp(tcp) = &flow.source else {
            return;
        };
        if let Some(due) = tcp.receiver.next_timer()
            && due < flow.receiver_due
        {
            flow.receiver_due = due.max(self.now);
            self.agenda.schedule(flow.receiver_due, Event::Receiver(id));
        }
    }

    /// Hands a packet to the endpoint it has reached; `follows`: another of its flow comes at the
    /// same instant.
    #[inline]
    fn deliver(&mut self, pkt: &Packet, follows: bool) {
        let id = pkt.owner.flow();
        let flow = &mut self.flows[id as usize];
        if flow.stopped {
            return;
        }
        match (&mut flow.source, pkt.kind) {
            (Source::Tcp(tcp), Kind::Data) => {
                let arrival = Arrival {
                    ce: pkt.ecn() == Ecn::Ce,
                    more: follows,
                };
                tcp.on_data(self.now, &pkt.segment, arrival, &mut self.outbox);
                let way = flow.reverse;
                self.send(id, Kind::Ack, way);
                self.follow_receiver(id);
            }
            (Source::Tcp(tcp), Kind::Ack) => {
                let over = tcp.on_ack(self.now, &pkt.segment, &mut self.outbox);
                let way = flow.forward;
                if over {
                    flow.settle();
                }
                self.send(id, Kind::Data, way);
                self.follow_sender(id);
            }
            _ => {
                if let Some(reply) = flow.deliver_probe(self.now, pkt) {
                    self.forward(&reply);
                }
            }
        }
    }

    /// Puts what an endpoint wants sent on its way.
    #[inline]
    fn send(&mut self, id: u32, kind: Kind, way: u16) {
        let Flow { class, owner, .. } = self.flows[id as usize];
        for n in 0..self.outbox.len() {
            let pkt = Packet::tcp(owner, kind, way, &self.outbox[n]).in_class(class);
            self.forward(&pkt);
        }
        self.outbox.clear();
    }

    fn on_sample(&mut self) -> Option<Instant> {
        for (probe, link) in self.probes.iter_mut().zip(&self.links) {
            probe.sample(self.now, link.qdisc.backlog());
        }
        for flow in &mut self.flows {
            flow.sample(self.now);
        }
        if self.now == Instant::ZERO + self.config.measure_from {
            self.begin_measuring();
        }
        let next = self.now + self.sample;
        (next < self.end).then_some(next)
    }

    fn begin_measuring(&mut self) {
        for (probe, before) in self.probes.iter_mut().zip(&mut self.before) {
            *before = probe.begin_measuring();
        }
        for flow in &mut self.flows {
            flow.begin_measuring();
        }
    }

    fn finish(self) -> Records {
        let config = self.config;
        let statistics = self.links.iter().map(|link| link.qdisc.statistics());
        let named = config.links.iter().map(|link| link.name.clone());
        let links = named.zip(statistics).zip(self.probes).zip(&self.before);
        let flows = self.flows.into_iter().zip(&config.flows);
        let flows = flows.zip(self.beginnings.finish());
        Records {
            links: links
                .map(|(((name, numbers), probe), before)| probe.finish(name, before, numbers))
                .collect(),
            flows: flows
                .map(|((flow, config), initial_losses)| FlowRecord {
                    initial_losses,
                    ..flow.finish(config)
                })
                .collect(),
            events: self.events.unwrap_or_default(),
            agenda_events: self.handled,
        }
    }
}
