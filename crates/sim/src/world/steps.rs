//! A run in steps, which shows what it has recorded so far.

use sojourn_apps::PingSample;
use sojourn_net::Instant;
use sojourn_path::links::Events;
use sojourn_records::{FlowSample, LinkSample, Records, SignalRecord, StateSample};
use sojourn_scenario::plan::{Config, ConfigError};

use super::World;

/// A run that advances in steps. They do not change its records, which are those of [`run`](super::run).
#[derive(Debug)]
pub struct Stepped<'a> {
    world: World<'a>,
    finished: bool,
}

impl<'a> Stepped<'a> {
    /// A run of `config` at its start.
    ///
    /// # Errors
    /// As [`run`](super::run).
    pub fn new(config: &'a Config) -> Result<Self, ConfigError> {
        Ok(Self {
            world: World::checked(config, None)?,
            finished: false,
        })
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
            self.world.end_last_interval();
        }
    }

    /// The time that the run has reached.
    pub fn now(&self) -> Instant {
        self.world.now
    }

    /// Whether the run has reached its end.
    pub const fn is_finished(&self) -> bool {
        self.finished
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

    /// Runs the rest, and returns all records.
    pub fn finish(mut self) -> Records {
        self.advance(self.world.end);
        self.world.finish()
    }
}
