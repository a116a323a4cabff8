//! A configured application: its connections and its record.

use std::sync::Arc;

use sojourn_apps::{ApplicationConfig, Transport};
use sojourn_net::{Instant, Rng};
use sojourn_records::{
    AppRecord, ConnectionSum, FlowCounters, FlowKind, FlowRecord, FlowSample, InitialLosses,
};
use sojourn_transport::{SenderParams, quic};

use super::connection::Connection;
use super::quic::End;
use super::{Hosts, User};

/// An application and what is recorded of it.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) app: Box<dyn sojourn_apps::Application>,
    config: Arc<dyn ApplicationConfig>,
    /// Seeds of the congestion controls of its connections.
    seeds: Rng,
    /// Its connections that have not ended, ascending: its number for them, and their slot.
    live: Vec<(u32, u32)>,
    started: Instant,
    /// Totals of the connections that have ended, and of the live ones when last gathered.
    ended: FlowCounters,
    pub(crate) live_counters: FlowCounters,
    before: FlowCounters,
    pub(crate) losses: InitialLosses,
    pub(crate) record: AppRecord,
    /// Bytes of responses in this interval.
    pub(crate) interval_bytes: u64,
    series: Vec<FlowSample>,
    /// The connections at the end of this interval.
    pub(crate) interval: ConnectionSum,
}

impl Application {
    pub(crate) fn new(
        now: Instant,
        flow: u32,
        config: &Arc<dyn ApplicationConfig>,
        rng: &Rng,
    ) -> Self {
        Self {
            app: Arc::clone(config).build(rng),
            config: Arc::clone(config),
            seeds: rng.fork("congestion control"),
            live: Vec::new(),
            started: now,
            ended: FlowCounters::default(),
            live_counters: FlowCounters::default(),
            before: FlowCounters::default(),
            losses: InitialLosses::default(),
            record: AppRecord {
                flow,
                ..AppRecord::default()
            },
            interval_bytes: 0,
            series: Vec::new(),
            interval: ConnectionSum::default(),
        }
    }

    /// Makes the next connection, in `slot`, which the application knows as `number`. Returns its
    /// initial window too.
    pub(crate) fn make_connection(
        &mut self,
        number: u32,
        slot: u32,
        hosts: Hosts,
    ) -> (Connection, u32) {
        let app = self.record.flow;
        let user = User::App { app, number };
        let at = self.live.partition_point(|&(other, _)| other < number);
        self.live.insert(at, (number, slot));
        self.record.connections += 1;
        let seed = self.seeds.next_u64();
        let exchange = self.config.exchange();
        match exchange.transport {
            Transport::Quic => {
                let params = quic::Params {
                    seed,
                    ..self.config.quic_params()
                };
                let connection = Connection::quic(user, &params, End::Far);
                (connection, params.initial_window)
            }
            Transport::Tcp => {
                let params = SenderParams {
                    seed,
                    ..exchange.tcp
                };
                let connection = Connection::two_way_tcp(user, &params, hosts);
                (connection, params.initial_window)
            }
        }
    }

    pub(crate) fn slot(&self, number: u32) -> Option<u32> {
        let at = self.live.binary_search_by_key(&number, |&(n, _)| n).ok()?;
        Some(self.live[at].1)
    }

    /// Removes and returns the slots of all its connections.
    pub(crate) fn take_slots(&mut self) -> Vec<u32> {
        let live = std::mem::take(&mut self.live);
        live.into_iter().map(|(_, slot)| slot).collect()
    }

    /// A connection has ended.
    pub(crate) fn closed(&mut self, number: u32, counters: &FlowCounters, lost: InitialLosses) {
        if let Ok(at) = self.live.binary_search_by_key(&number, |&(n, _)| n) {
            self.live.remove(at);
        }
        if self.live.is_empty() {
            self.live.shrink_to_fit();
        }
        self.ended.add(counters);
        self.count_losses(lost);
    }

    pub(crate) const fn count_losses(&mut self, lost: InitialLosses) {
        self.losses.handshake += lost.handshake;
        self.losses.window += lost.window;
        self.record.handshake_hit += (lost.handshake > 0) as u64;
        self.record.initial_hit += (lost.handshake + lost.window > 0) as u64;
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let delivered_bytes = std::mem::take(&mut self.interval_bytes);
        let connections = std::mem::take(&mut self.interval);
        self.series.push(connections.sample(at, delivered_bytes));
    }

    /// The series so far.
    pub(crate) fn series(&self) -> &[FlowSample] {
        &self.series
    }

    fn counters(&self) -> FlowCounters {
        let mut all = self.ended;
        all.add(&self.live_counters);
        all
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.counters();
        self.ended.rtt_max_micros = 0;
        self.app.begin_measuring();
    }

    pub(crate) fn record(self) -> FlowRecord {
        FlowRecord {
            started: Some(self.started),
            initial_losses: self.losses,
            totals: self.counters().since(&self.before),
            series: self.series,
            ..FlowRecord::blank(FlowKind::App)
        }
    }
}
