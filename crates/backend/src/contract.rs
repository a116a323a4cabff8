//! The contract of a backend: what it can run, and how it runs it.

use std::fmt;
use std::num::NonZeroUsize;

use sojourn_net::Instant;
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;

use crate::error::{BackendError, Unsupported};

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
    /// A backend asks `cancellation` at least once per sample interval, with the time that it has
    /// reached. After [`Completion::Cancelled`] the records in the sink are incomplete and must not be used.
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
        (self.reached)(time);
        self.is_requested()
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
