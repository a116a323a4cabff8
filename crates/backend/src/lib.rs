//! The interface between the laboratory and backends.
//!
//! A [`Backend`] runs one replication of one arm and passes its records to a sink. The laboratory
//! schedules runs, and knows a backend only by this contract: a backend is one crate that
//! implements it and one line that adds it to a [`Registry`].

mod changes;
pub mod linux_tcp;
mod routes;

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sojourn_net::{Duration, Instant, Rng};
use sojourn_records::{FlowKind, RecordSink};
use sojourn_scenario::plan::{FlowConfig, Traffic};
use sojourn_scenario::{ConfigError, Plan};

pub use changes::LinkChanges;
pub use routes::{Direction, NextHop, Passage, Routes, Step};

/// Runs plans: a simulator, or a datapath with real packets.
pub trait Backend: Send + Sync {
    /// Its name in commands, manifests and errors.
    fn name(&self) -> &'static str;

    /// What its results can be relied on for.
    fn properties(&self) -> Properties;

    /// Checks before a run that every feature of the plan is supported.
    ///
    /// # Errors
    /// The features that are not supported.
    fn check(&self, plan: &Plan) -> Result<(), Unsupported>;

    /// Whether a run writes its packets to [`RecordSink::capture`] if it returns an output.
    fn can_capture(&self) -> bool {
        false
    }

    /// Runs a plan and passes its records to `sink`: one per link and one per flow, in the order of
    /// the plan.
    ///
    /// A backend asks `cancellation` at least once per sample interval and before it can take much more memory, with the
    /// time that it has reached. After [`Completion::Cancelled`] the records in the sink are incomplete and must not be
    /// used.
    ///
    /// # Errors
    /// If the plan is not valid or not supported, or the run fails.
    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError>;
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// At its full duration.
    Finished,
    /// On request.
    Cancelled,
}

/// Reports the progress of a run and requests it to stop.
#[derive(Clone, Copy)]
pub struct Cancellation<'a> {
    requested: &'a (dyn Fn() -> bool + Sync),
    reached: &'a (dyn Fn(Instant) + Sync),
}

impl<'a> Cancellation<'a> {
    /// Asks `requested` each time.
    pub const fn new(requested: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            requested,
            reached: &|_| {},
        }
    }

    /// Adds a callback that receives the simulated time at each poll.
    #[must_use]
    pub const fn reporting(self, reached: &'a (dyn Fn(Instant) + Sync)) -> Self {
        Self { reached, ..self }
    }

    /// Whether the run should stop.
    pub fn is_requested(&self) -> bool {
        (self.requested)()
    }

    /// Whether the run should stop; `time` is the simulated time.
    pub fn is_requested_at(&self, time: Instant) -> bool {
        self.report(time);
        self.is_requested()
    }

    /// Reports the simulated time.
    pub fn report(&self, time: Instant) {
        (self.reached)(time);
    }
}

impl fmt::Debug for Cancellation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation")
            .field("requested", &self.is_requested())
            .finish_non_exhaustive()
    }
}

/// What the results of a backend can be relied on for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The same plan gives the same records, bit for bit.
    pub deterministic: bool,
    /// Runs that may be under way at once; `None`: as many as there are processors.
    pub max_concurrency: Option<NonZeroUsize>,
    /// What produced the results.
    pub fingerprint: Fingerprint,
}

/// The versions behind a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Version of the engine.
    pub version: String,
    /// Git commit of the engine; `None`: unknown.
    pub commit: Option<String>,
    /// Release of the kernel that carried the packets; `None`: no kernel took part.
    pub kernel: Option<String>,
}

/// A feature of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Where the plan has it, such as `links[0].medium`; in a message, where the scenario has it.
    pub place: String,
    /// What it is, such as `a wireless link`.
    pub what: Cow<'static, str>,
}

/// Features of a plan that a backend does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The backend.
    pub backend: &'static str,
    /// Each of the features.
    pub features: Vec<Feature>,
}

impl Unsupported {
    /// An error if there are any features.
    ///
    /// # Errors
    /// Names all of them.
    pub fn unless_empty(backend: &'static str, features: Vec<Feature>) -> Result<(), Self> {
        if features.is_empty() {
            return Ok(());
        }
        Err(Self { backend, features })
    }

    /// The same with other places: those of the scenario that the plan was made from, in which several places of the
    /// plan may be one.
    #[must_use]
    pub fn with_places(mut self, place: impl Fn(&str) -> String) -> Self {
        for mut feature in std::mem::take(&mut self.features) {
            feature.place = place(&feature.place);
            if !self.features.contains(&feature) {
                self.features.push(feature);
            }
        }
        self
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backend \"{}\" does not support ", self.backend)?;
        self.features
            .iter()
            .enumerate()
            .try_for_each(|(n, feature)| {
                // Features may contain commas.
                let separator = if n == 0 { "" } else { "; " };
                write!(f, "{separator}{}: {}", feature.place, feature.what)
            })
    }
}

impl std::error::Error for Unsupported {}

/// Why a run did not take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// The plan is not valid.
    Plan(ConfigError),
    /// The plan needs more than the backend has.
    Unsupported(Unsupported),
    /// The run was stopped before the process took more memory than it may; the text says which run and when.
    Memory(String),
    /// The machine lacks something that the backend needs; the text says what, and what to do about it.
    Environment(String),
    /// The backend failed.
    Failed {
        /// The backend.
        backend: &'static str,
        /// What happened.
        reason: String,
    },
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Unsupported(error) => error.fmt(f),
            Self::Memory(problem) | Self::Environment(problem) => f.write_str(problem),
            Self::Failed { backend, reason } => write!(f, "backend \"{backend}\": {reason}"),
        }
    }
}

impl std::error::Error for BackendError {}

impl From<ConfigError> for BackendError {
    fn from(error: ConfigError) -> Self {
        Self::Plan(error)
    }
}

impl From<Unsupported> for BackendError {
    fn from(error: Unsupported) -> Self {
        Self::Unsupported(error)
    }
}

/// The backends of a program; the first one is the default.
#[derive(Default)]
pub struct Registry {
    backends: Vec<Box<dyn Backend>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Registry {
    /// Without backends.
    pub const fn new() -> Self {
        Self {
            backends: Vec::new(),
        }
    }

    /// Adds `backend`; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, backend: Box<dyn Backend>) -> Self {
        let name = backend.name();
        match self.backends.iter().position(|other| other.name() == name) {
            Some(at) => self.backends[at] = backend,
            None => self.backends.push(backend),
        }
        self
    }

    /// The names, the default first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.backends.iter().map(|backend| backend.name())
    }

    /// The backend called `name`; `None`: the default.
    ///
    /// # Errors
    /// If there is no such backend.
    pub fn get(&self, name: Option<&str>) -> Result<&dyn Backend, UnknownBackend> {
        let found = match name {
            Some(name) => self.backends.iter().find(|b| b.name() == name),
            None => self.backends.first(),
        };
        found.map(Box::as_ref).ok_or_else(|| UnknownBackend {
            name: name.unwrap_or_default().to_owned(),
            known: self.names().collect(),
        })
    }
}

/// A name that no backend has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBackend {
    /// The name.
    pub name: String,
    /// The names of the backends.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.join(", ");
        write!(
            f,
            "unknown backend \"{}\"; expected one of {known}",
            self.name
        )
    }
}

impl std::error::Error for UnknownBackend {}

/// Locks a mutex; a thread that panicked while it held the lock has ended its run anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a flow starts. `rng` is its own; all backends draw the same random numbers.
pub fn start_of(config: &FlowConfig, rng: &Rng) -> Instant {
    let jitter = config.start_jitter.scaled(rng.fork("start").uniform());
    let mut rng = rng.fork("phase");
    let phase = match &config.traffic {
        Traffic::Datagrams(datagrams) => datagrams.phase(&mut rng),
        Traffic::App(app) => app.phase(&mut rng),
        Traffic::Tcp { .. } | Traffic::Quic { .. } | Traffic::Program(_) | Traffic::Bridged => {
            Duration::ZERO
        }
    };
    Instant::ZERO + config.start + jitter + phase
}

/// The kind that the flow of this traffic is recorded as.
pub fn kind_of(traffic: &Traffic) -> FlowKind {
    match traffic {
        Traffic::Tcp { .. } => FlowKind::Tcp,
        Traffic::Quic { .. } => FlowKind::Quic,
        Traffic::Datagrams(datagrams) => FlowKind::of_datagrams(datagrams.kind()),
        Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => FlowKind::App,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_plan_that_are_one_of_the_scenario_are_named_once() {
        let feature = |place: &str| Feature {
            place: place.to_owned(),
            what: "no such control".into(),
        };
        let features = vec![feature("flows[0].cc"), feature("flows[1].cc")];
        let error = Unsupported::unless_empty("linux", features).unwrap_err();
        assert_eq!(
            error
                .with_places(|_| "traffic[0].cc".to_owned())
                .to_string(),
            "backend \"linux\" does not support traffic[0].cc: no such control"
        );
    }
}
