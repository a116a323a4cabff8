//! A flow from its start to its record.

use sojourn_apps::Bulk;
use sojourn_net::{Dscp, Duration, Instant, Rng};
use sojourn_transport::SenderParams;
use sojourn_transport::quic as transport;

use super::ahead::{Ahead, Recorded};
use super::application::Application;
use super::bulk::{BulkFlow, BulkRecord};
use super::connection::Connection;
use super::datagrams::Datagrams;
use super::quic::End;
use super::ticks::Hosts;
use super::timer::Pending;
use super::user::User;
use crate::packet::{Kind, Owner, Template};
use sojourn_records::{AppRecord, FlowKind, FlowRecord};
use sojourn_scenario::plan::{FlowConfig, Traffic};

/// A flow. Before its start and after its end it takes a few dozen bytes, so that a million fit.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) forward: u16,
    pub(crate) reverse: u16,
    /// How far its receiver is ahead of the network: an index into `World::leads`.
    pub(crate) lead: u16,
    pub(crate) stopped: bool,
    /// Of all its packets, in both directions.
    pub(crate) class: Dscp,
    pub(crate) owner: Owner,
    /// The pending timer events.
    pub(crate) sender_event: Pending,
    pub(crate) receiver_event: Pending,
    pub(crate) source: Source,
}

/// What a flow is made of.
#[derive(Debug)]
pub(crate) enum Source {
    /// It has not started, or it is a slot without a connection.
    None,
    /// A bulk transfer, or in a slot a connection of an application.
    Connection(Connection),
    /// Datagrams without a connection.
    Datagrams(Box<Datagrams>),
    /// An application, whose connections are in slots.
    App(Box<Application>),
    /// A bulk transfer that has ended.
    Finished(Box<BulkRecord>),
}

impl Flow {
    /// The fields that all packets of `kind` share that an endpoint of this flow sends at one instant.
    #[inline]
    pub(crate) const fn template(&self, kind: Kind) -> Template {
        let step = match kind {
            Kind::Data | Kind::RequestAck | Kind::QuicData => self.forward,
            _ => self.reverse,
        };
        Template {
            owner: self.owner,
            kind,
            step,
            class: self.class,
        }
    }

    /// A flow that has not started.
    pub(crate) const fn new(paths: (u16, u16), class: Dscp, owner: Owner) -> Self {
        Self {
            forward: paths.0,
            reverse: paths.1,
            lead: 0,
            stopped: false,
            class,
            owner,
            sender_event: Pending::NONE,
            receiver_event: Pending::NONE,
            source: Source::None,
        }
    }

    /// When a flow with this configuration starts; `rng` is its own.
    pub(crate) fn start_of(config: &FlowConfig, rng: &Rng) -> Instant {
        let mut rng = rng.fork("start");
        let start = Instant::ZERO + config.start + config.start_jitter.scaled(rng.uniform());
        match config.traffic {
            Traffic::Datagrams(ref datagrams) => start + datagrams.phase().scaled(rng.uniform()),
            Traffic::Tcp { .. } | Traffic::Quic { .. } | Traffic::App(_) | Traffic::Program(_) => {
                start
            }
        }
    }

    /// Gets its source. An application is to be notified, and the first datagram is due.
    ///
    /// `ahead`: how far the receiver of TCP is ahead of the network, if it is, and when the run records the flow.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        config: &FlowConfig,
        (hosts, ahead): (Hosts, Option<(Duration, Recorded)>),
        rng: &Rng,
    ) {
        let seed = || rng.fork("congestion control").next_u64();
        match config.traffic {
            Traffic::Tcp { bytes, params } => {
                let seed = seed();
                let params = SenderParams { seed, ..params };
                let flow = BulkFlow::new(now, FlowKind::Tcp, Bulk::new(bytes, None));
                let user = User::Bulk(Box::new(flow));
                let stop = config.stop.map(|stop| Instant::ZERO + stop);
                let ahead = ahead.map(|(lead, recorded)| Ahead::new(lead, (now, stop), recorded));
                let connection = Connection::one_way_tcp(user, &params, hosts, ahead);
                self.source = Source::Connection(connection);
            }
            Traffic::Quic {
                bytes,
                request,
                params,
            } => {
                let seed = seed();
                let params = transport::Params { seed, ..params };
                let flow = BulkFlow::new(now, FlowKind::Quic, Bulk::new(bytes, request));
                let client = request.map_or(End::Near, |_| End::Far);
                let user = User::Bulk(Box::new(flow));
                let connection = Connection::quic(user, &params, client);
                self.source = Source::Connection(connection);
            }
            Traffic::App(ref app) => {
                let application = Application::new(now, self.owner.flow(), app, rng);
                self.source = Source::App(Box::new(application));
            }
            Traffic::Datagrams(ref config) => {
                let datagrams = Datagrams::new(now, &**config, rng);
                self.source = Source::Datagrams(Box::new(datagrams));
            }
            // `run` rejects programs.
            Traffic::Program(_) => {}
        }
    }

    /// The application of a flow of the configuration; `None`: it has none, or has ended.
    pub(crate) fn application(&mut self) -> Option<&mut dyn sojourn_apps::Application> {
        match &mut self.source {
            Source::App(application) => Some(&mut *application.app),
            Source::Connection(connection) => Some(&mut connection.bulk_mut()?.transfer),
            Source::None | Source::Datagrams(_) | Source::Finished(_) => None,
        }
    }

    /// Where the connection is that its application knows by this number. That of a bulk transfer
    /// is in the flow itself: a slot would cost it memory and instructions.
    pub(crate) fn slot(&self, number: u32) -> Option<u32> {
        match &self.source {
            Source::App(application) => application.slot(number),
            Source::Connection(_) => Some(self.owner.flow()),
            Source::None | Source::Datagrams(_) | Source::Finished(_) => None,
        }
    }

    /// The scenario stops the flow: its packets in flight are discarded on arrival.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        if let Source::Connection(connection) = &mut self.source {
            connection.stop();
        }
        self.release(now);
    }

    /// Frees the memory of a bulk transfer that has ended.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant) {
        if let Source::Connection(connection) = &self.source
            && connection.is_over()
        {
            self.release_ended(now);
        }
    }

    #[cold]
    fn release_ended(&mut self, now: Instant) {
        if let Source::Connection(connection) = &mut self.source
            && let Some(record) = connection.record(now)
        {
            self.stopped = true;
            self.source = Source::Finished(Box::new(record));
        }
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        match &mut self.source {
            Source::Connection(connection) => connection.sample(at),
            Source::Datagrams(datagrams) => datagrams.counted.sample(at),
            Source::App(application) => application.sample(at),
            Source::Finished(record) => record.sample(at),
            Source::None => {}
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        match &mut self.source {
            Source::Connection(connection) => connection.begin_measuring(),
            Source::Datagrams(datagrams) => datagrams.counted.begin_measuring(),
            Source::App(application) => application.begin_measuring(),
            Source::Finished(record) => record.begin_measuring(),
            Source::None => {}
        }
    }

    /// The record of the connections of an application, or of a call.
    pub(crate) fn application_record(&self, end: Instant) -> Option<AppRecord> {
        match &self.source {
            Source::App(application) => Some(AppRecord {
                player: application.app.player(),
                responsiveness: application.app.responsiveness(),
                ..application.record
            }),
            Source::Datagrams(datagrams) => datagrams.counted.call(end).map(|call| AppRecord {
                flow: self.owner.flow(),
                call: Some(call),
                ..AppRecord::default()
            }),
            _ => None,
        }
    }

    /// The record of the flow.
    pub(crate) fn finish(self, now: Instant, config: &FlowConfig) -> FlowRecord {
        let blank = || FlowRecord::blank(kind_of(&config.traffic));
        let mut record = match self.source {
            Source::Connection(mut connection) => {
                let record = connection.record(now);
                record.map_or_else(blank, BulkRecord::finish)
            }
            Source::Datagrams(datagrams) => datagrams.counted.record(),
            Source::App(application) => application.record(),
            Source::Finished(record) => record.finish(),
            Source::None => blank(),
        };
        record.name.clone_from(&config.name);
        record
    }
}

/// The kind that a flow is recorded as.
fn kind_of(traffic: &Traffic) -> FlowKind {
    match traffic {
        Traffic::Tcp { .. } => FlowKind::Tcp,
        Traffic::Quic { .. } => FlowKind::Quic,
        Traffic::Datagrams(datagrams) => FlowKind::of_datagrams(datagrams.kind()),
        Traffic::App(_) | Traffic::Program(_) => FlowKind::App,
    }
}
