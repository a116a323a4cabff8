//! A run that a program advances step by step, to look at it, measure it and change it between the steps.

use std::sync::Arc;

use sojourn_apps::PingSample;
use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_path::links::Events;
use sojourn_qdisc::Qdisc;
use sojourn_records::{FlowSample, LinkCounters, LinkSample, Records, SignalRecord, StateSample};
use sojourn_scenario::plan::{Change, Config, ConfigError};

use super::{RunConfig, World};

/// A run that is advanced step by step.
///
/// Without changes, the steps do not affect the records, which are those of [`run`](super::run).
#[derive(Debug)]
pub struct Simulation {
    world: World<'static>,
    finished: bool,
    /// Number of changes, which names the random streams of queues that replace others.
    changes: usize,
}

/// What a link did in a step, and its backlog at the end.
#[derive(Clone, Copy, Debug)]
pub struct LinkStep {
    /// Packets and bytes.
    pub counters: LinkCounters,
    /// Mean sojourn time of the packets sent; `None`: none were sent.
    pub sojourn_mean: Option<Duration>,
    /// Longest sojourn time of them.
    pub sojourn_max: Option<Duration>,
    /// Packets in the queue.
    pub backlog_packets: usize,
    /// Bytes in the queue.
    pub backlog_bytes: Bytes,
    /// Rate at the end; of a link that follows a trace, not that of the trace.
    pub rate: Rate,
}

/// A TCP flow at the end of a step. Counts are those since its start.
#[derive(Clone, Copy, Debug)]
pub struct FlowStep {
    /// Window, RTT and bytes delivered.
    pub state: FlowSample,
    /// Data segments sent, retransmissions included.
    pub sent_packets: u64,
    /// Data segments retransmitted.
    pub retransmits: u64,
    /// Number of RTT samples, and their sum in µs.
    pub rtt: (u64, u64),
}

impl Simulation {
    /// A run at time 0.
    ///
    /// # Errors
    /// As [`run`](super::run).
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Ok(Self {
            world: World::new(&RunConfig::Shared(Arc::new(config)), None, true)?,
            finished: false,
            changes: 0,
        })
    }

    /// The time that the run has reached.
    pub const fn now(&self) -> Instant {
        self.world.now
    }

    /// When the run ends.
    pub const fn end(&self) -> Instant {
        self.world.end
    }

    /// Whether the run has reached its end.
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Runs every event up to and including `until`, at most up to the end of the run.
    pub fn advance(&mut self, until: Instant) {
        let until = until.min(self.world.end);
        if until < self.world.now || self.finished {
            return;
        }
        self.world.advance(until, &mut |_| true);
        if until == self.world.end {
            self.finished = true;
            self.world.close_interval();
        }
    }

    /// The series of link number `link` so far, and the states of its queue, if the configuration samples them.
    pub fn link(&self, link: usize) -> (&[LinkSample], &[StateSample]) {
        self.world.observed.probes[link].series()
    }

    /// The series of flow number `flow` so far.
    pub fn flow(&self, flow: usize) -> &[FlowSample] {
        self.world.flows[flow].series()
    }

    /// The echo requests of flow number `flow` so far.
    pub fn pings(&self, flow: usize) -> &[PingSample] {
        self.world.flows[flow].pings()
    }

    /// Drops, marks and losses so far, if the configuration keeps them.
    pub fn events(&self) -> &[SignalRecord] {
        let events = self.world.observed.notes.events.as_ref();
        events.map_or(&[], Events::so_far)
    }

    /// What link number `link` did since the last call.
    pub fn measure_link(&mut self, link: usize) -> LinkStep {
        let counts = self.world.observed.probes[link].count_since_call();
        let link = &self.world.links[link];
        let backlog = link.qdisc.backlog();
        LinkStep {
            counters: counts.counters,
            sojourn_mean: counts.sojourn_mean,
            sojourn_max: counts.sojourn_max,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            rate: link.rate(),
        }
    }

    /// Flow number `flow`; `None`: it is not a bulk transfer over TCP, or it has not started or has ended.
    pub fn measure_flow(&self, flow: usize) -> Option<FlowStep> {
        let connection = self.world.flows[flow].connection()?;
        if !connection.is_one_way_tcp() {
            return None;
        }
        let counters = connection.counters();
        Some(FlowStep {
            state: connection.state(self.world.now),
            sent_packets: counters.sent_packets,
            retransmits: counters.retransmits,
            rtt: (counters.rtt_samples, counters.rtt_micros),
        })
    }

    /// Applies a change to link number `link` now.
    ///
    /// The caller checks it, as by [`Config::check_change`].
    pub fn change(&mut self, link: usize, change: &Change) {
        let link = u32::try_from(link).unwrap_or(u32::MAX);
        self.changes += 1;
        self.world.apply_change(link, self.changes, change);
    }

    /// Sets the congestion window and the slow-start threshold of a bulk transfer over TCP, in segments. It has the
    /// effect with the next acknowledgement.
    pub fn set_window(&mut self, flow: usize, segments: u32) {
        if let Some(connection) = self.world.flows[flow].connection_mut()
            && let Some(tcp) = connection.tcp_mut()
        {
            tcp.data.sender.set_window(segments);
        }
    }

    /// Advances to the end of the run and returns its records.
    pub fn finish(mut self) -> Records {
        self.advance(self.world.end);
        self.world.finish()
    }
}
