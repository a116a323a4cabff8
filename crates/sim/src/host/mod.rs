//! Flows: a source of traffic, its peer, and what is recorded of them.

mod application;
mod duplex;
mod ping;
mod quic;
mod talk;
mod tcp;
mod udp;
mod voip;

use sojourn_apps::{AppKind, PingPace, UdpSource};
use sojourn_net::{Dscp, Instant, Rng};
use sojourn_transport::quic::{Datagram, Endpoint};
use sojourn_transport::{Segment, SenderParams, Ticks, quic as transport};

use crate::packet::{Kind, Owner, Packet};
pub(crate) use application::Application;
pub(crate) use duplex::Duplex;
use ping::Ping;
pub(crate) use quic::{End, Quic};
use sojourn_records::{AppRecord, FlowCounters, FlowKind, FlowRecord, InitialLosses};
use sojourn_scenario::plan::{FlowConfig, Traffic};
pub(crate) use talk::Talk;
pub(crate) use tcp::Tcp;
use udp::Udp;
use voip::Voip;

/// A flow at work. While it waits for its start and after its end it is a few dozen bytes, so
/// that a million fit.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) forward: u16,
    pub(crate) reverse: u16,
    pub(crate) stopped: bool,
    /// Of all its packets, in both directions.
    pub(crate) class: Dscp,
    pub(crate) owner: Owner,
    /// What its pending timer events are for; [`Instant::MAX`]: none is pending.
    pub(crate) sender_due: Instant,
    pub(crate) receiver_due: Instant,
    pub(crate) source: Source,
}

/// What a flow is made of.
#[derive(Debug)]
pub(crate) enum Source {
    /// It has not started, or it is a slot that no connection has.
    Waiting,
    Tcp(Box<Tcp>),
    Quic(Box<Quic>),
    Udp(Box<Udp>),
    Ping(Box<Ping>),
    Voip(Box<Voip>),
    App(Box<Application>),
    /// In a slot: one of an application's.
    Connection(Box<Duplex>),
    Talk(Box<Talk>),
    /// It has nothing more to say.
    Over(Box<FlowRecord>),
}

/// What endpoints want sent; empty between events.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) segments: Vec<Segment>,
    pub(crate) datagrams: Vec<Datagram>,
}

/// The two hosts' tick counters: where data comes from, and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    pub(crate) near: Ticks,
    pub(crate) far: Ticks,
}

impl Flow {
    /// A flow that waits for its start.
    pub(crate) const fn new(ways: (u16, u16), class: Dscp, owner: Owner) -> Self {
        Self {
            forward: ways.0,
            reverse: ways.1,
            stopped: false,
            class,
            owner,
            sender_due: Instant::MAX,
            receiver_due: Instant::MAX,
            source: Source::Waiting,
        }
    }

    /// When a flow of this configuration starts; `rng` is its own.
    pub(crate) fn start_of(config: &FlowConfig, rng: &Rng) -> Instant {
        let mut rng = rng.fork("start");
        let start = Instant::ZERO + config.start + config.start_jitter.scaled(rng.uniform());
        match config.traffic {
            Traffic::Ping { interval }
            | Traffic::UdpPing {
                pace: PingPace::Every(interval),
                ..
            } => start + interval.scaled(rng.uniform()),
            Traffic::Tcp { .. }
            | Traffic::Quic { .. }
            | Traffic::Udp { .. }
            | Traffic::UdpPing { .. }
            | Traffic::Voip { .. }
            | Traffic::App(_) => start,
        }
    }

    /// Begins. The first packets of TCP and QUIC go to `out`, the others' is due now. Returns which
    /// end of a QUIC connection speaks first.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        config: &FlowConfig,
        hosts: Hosts,
        rng: &Rng,
        out: &mut Outbox,
    ) -> Option<End> {
        self.source = match config.traffic {
            Traffic::Tcp { bytes, params } => {
                let seed = rng.fork("congestion control").next_u64();
                let params = SenderParams { seed, ..params };
                let out = &mut out.segments;
                Source::Tcp(Box::new(Tcp::open(now, params, bytes, hosts, out)))
            }
            Traffic::Quic {
                bytes,
                request,
                params,
            } => {
                let seed = rng.fork("congestion control").next_u64();
                let params = transport::Params { seed, ..params };
                let (quic, end) = Quic::open(now, &params, bytes, request, &mut out.datagrams);
                self.source = Source::Quic(Box::new(quic));
                return Some(end);
            }
            Traffic::Udp {
                rate,
                payload,
                spacing,
            } => {
                let rng = rng.fork("spacing");
                let source = UdpSource::new(rate, payload, spacing, rng);
                Source::Udp(Box::new(Udp::new(now, source)))
            }
            Traffic::Ping { interval } => {
                Source::Ping(Box::new(Ping::new(now, PingPace::Every(interval), None)))
            }
            Traffic::UdpPing { pace, payload } => {
                Source::Ping(Box::new(Ping::new(now, pace, Some(payload))))
            }
            Traffic::Voip { jitter_buffer } => {
                Source::Voip(Box::new(Voip::new(now, jitter_buffer)))
            }
            Traffic::App(ref app) => {
                let application = Application::new(now, self.owner.flow(), app, rng);
                Source::App(Box::new(application))
            }
        };
        None
    }

    /// Aborts the flow: its packets still under way are nobody's.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        if let Source::Tcp(tcp) = &mut self.source {
            tcp.stop();
        }
        if let Source::Quic(quic) = &mut self.source {
            quic.stop();
        }
        self.settle();
    }

    /// Gives back the memory of a connection that has ended.
    pub(crate) fn settle(&mut self) {
        if let Source::Tcp(tcp) = &mut self.source
            && tcp.is_over()
        {
            self.stopped = true;
            self.source = Source::Over(Box::new(tcp.record()));
        }
        if let Source::Quic(quic) = &mut self.source
            && quic.is_over()
        {
            self.stopped = true;
            self.source = Source::Over(Box::new(quic.record()));
        }
    }

    /// The next datagram or request of a flow paced by the clock, and when one follows.
    pub(crate) fn next_probe(&mut self, now: Instant) -> Option<(Packet, Instant)> {
        match &mut self.source {
            Source::Udp(udp) => Some(udp.next(self.owner, now)),
            Source::Ping(ping) => Some(ping.next(self.owner, now)),
            Source::Voip(voip) => Some(voip.next(self.owner, now)),
            _ => None,
        }
    }

    /// A packet that is not TCP's reached the end of its way; the reply to a request is returned.
    pub(crate) fn deliver_probe(&mut self, now: Instant, pkt: &Packet) -> Option<Packet> {
        match (&mut self.source, pkt.kind()) {
            (Source::Udp(udp), Kind::Udp) => udp.on_arrival(now, pkt),
            (Source::Voip(voip), Kind::Udp) => voip.on_arrival(now, pkt),
            (Source::Ping(_), Kind::Ping) => {
                return Some(pkt.turned(Kind::Pong, self.reverse));
            }
            (Source::Ping(ping), Kind::Pong) => ping.on_reply(now, pkt),
            (_, kind) => debug_assert!(false, "a {kind:?} packet reached the wrong flow"),
        }
        None
    }

    /// An end of its QUIC connection, if it has one.
    pub(crate) const fn quic_end(&mut self, end: End) -> Option<&mut Endpoint> {
        match &mut self.source {
            Source::Quic(quic) => Some(quic.end(end)),
            Source::Talk(talk) => Some(talk.end(end)),
            _ => None,
        }
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        match &mut self.source {
            Source::Tcp(tcp) => tcp.sample(at),
            Source::Quic(quic) => quic.sample(at),
            Source::Udp(udp) => udp.sample(at),
            Source::Voip(voip) => voip.sample(at),
            Source::Over(record) => tcp::sample_remainder(record, at),
            Source::App(application) => application.sample(at),
            Source::Waiting | Source::Ping(_) | Source::Connection(_) | Source::Talk(_) => {}
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self) {
        match &mut self.source {
            Source::Tcp(tcp) => tcp.begin_measuring(),
            Source::Quic(quic) => quic.begin_measuring(),
            Source::Udp(udp) => udp.begin_measuring(),
            Source::Voip(voip) => voip.begin_measuring(),
            Source::Ping(ping) => ping.begin_measuring(),
            Source::App(application) => application.begin_measuring(),
            Source::Over(record) => record.totals = FlowCounters::default(),
            Source::Waiting | Source::Connection(_) | Source::Talk(_) => {}
        }
    }

    /// What is to be said of the connections of an application.
    pub(crate) fn application_record(&self, end: Instant) -> Option<AppRecord> {
        match &self.source {
            Source::App(application) => Some(AppRecord {
                player: application.app.player(),
                responsiveness: application.app.responsiveness(),
                ..application.record
            }),
            Source::Voip(voip) => Some(AppRecord {
                flow: self.owner.flow(),
                call: Some(voip.call(end)),
                ..AppRecord::default()
            }),
            _ => None,
        }
    }

    /// What is to be said of the flow.
    pub(crate) fn finish(self, config: &FlowConfig) -> FlowRecord {
        let mut record = match self.source {
            Source::Tcp(mut tcp) => tcp.record(),
            Source::Quic(mut quic) => quic.record(),
            Source::Udp(udp) => udp.record(),
            Source::Voip(voip) => voip.record(),
            Source::Ping(ping) => ping.record(),
            Source::App(application) => application.record(),
            Source::Over(record) => *record,
            Source::Waiting | Source::Connection(_) | Source::Talk(_) => {
                blank(match config.traffic {
                    Traffic::Tcp { .. } => FlowKind::Tcp,
                    Traffic::Quic { .. } => FlowKind::Quic,
                    Traffic::Udp { .. } => FlowKind::Udp,
                    Traffic::Ping { .. } | Traffic::UdpPing { .. } => FlowKind::Ping,
                    Traffic::Voip { .. } => FlowKind::App(AppKind::Voip),
                    Traffic::App(ref app) => FlowKind::App(app.kind()),
                })
            }
        };
        tcp::drop_remainder(&mut record);
        record.name.clone_from(&config.name);
        record
    }
}

/// The record of a flow of which nothing has been seen.
fn blank(kind: FlowKind) -> FlowRecord {
    FlowRecord {
        name: String::new(),
        kind,
        started: None,
        connected: None,
        completed: None,
        aborted: false,
        initial_losses: InitialLosses::default(),
        series: Vec::new(),
        totals: FlowCounters::default(),
        one_way_delay: None,
        pings: Vec::new(),
    }
}
