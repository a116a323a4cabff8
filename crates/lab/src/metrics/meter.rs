//! Computes the metrics of the runs of a scenario, each as soon as it ends.

use std::fmt;
use std::io;

use arrow_schema::ArrowError;
use sojourn_backend::{Backend, BackendError, Cancellation, Completion};
use sojourn_scenario::Scenario;
use sojourn_scenario::digest::hex;
use sojourn_store::RunStore;

use super::cells::{FORMAT, decode, encode};
use super::rows::Window;
use super::runs::Columns;
use crate::invocation::{Engine, Invocation};
use crate::keys::Keys;
use crate::run::{Run, controlled};
use crate::tables::{Table, metric_batches};

/// The metrics of the runs of a scenario as rows of bytes, which any process of the same build can
/// read. Runs are numbered arm by arm.
#[derive(Clone, Debug)]
pub struct Meter {
    scenario: Scenario,
    engine: Engine,
    columns: Columns,
    keys: Keys,
}

impl Meter {
    /// For the runs of `scenario` on `engine`.
    pub fn new(scenario: Scenario, engine: Engine) -> Self {
        let columns = Columns::of_scenario(&scenario);
        let keys = Keys::of(
            &scenario,
            &engine.provenance,
            &engine.build,
            engine.binary.as_deref(),
        );
        // Metrics depend on the flows of all arms, runs do not.
        let keys = keys.refined(&format!("metrics {FORMAT} {}", columns.identity()));
        Self {
            scenario,
            engine,
            columns,
            keys,
        }
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The backend, build and program.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.keys.runs.len()
    }

    /// The names of all metrics that a run may have.
    pub fn names(&self) -> Vec<String> {
        self.columns.names()
    }

    /// The key of a row in hexadecimal: a digest of everything that determines it; `None`: there is
    /// no such run.
    pub fn key(&self, number: usize) -> Option<String> {
        self.keys.runs.get(number).map(|key| hex(key))
    }

    /// The keys of all rows for stores that several machines share, where equal keys mean equal rows;
    /// `None`: the backend is not deterministic. `binary` is a digest of the program.
    pub fn shared_keys(&self, binary: &str) -> Option<Vec<String>> {
        let keys = self.engine.provenance.deterministic;
        let keys = keys.then(|| self.keys.shared(binary))?;
        Some(keys.iter().map(|key| hex(key)).collect())
    }

    /// Whether equal keys mean equal rows: the backend is deterministic, and the commit identifies
    /// the build.
    pub fn is_reusable(&self) -> bool {
        self.keys.reusable
    }

    /// Begins an execution that stores rows, or continues the last interrupted one; see
    /// [`Invocation::begin`].
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn begin(&self, store: &RunStore, resume: bool) -> io::Result<Invocation> {
        let (build, keys) = (&self.engine.build, self.keys.clone());
        Invocation::with_keys(store, &self.scenario, build, keys, resume)
    }

    /// Whether these bytes are the row of that run.
    pub fn accepts(&self, number: usize, row: &[u8]) -> bool {
        let count = self.columns.count();
        let key = self.keys.runs.get(number);
        key.is_some_and(|key| decode(row, key, count).is_some())
    }

    /// Runs one run and returns its row; `None`: it was cancelled.
    ///
    /// # Errors
    /// If the backend does not support the arm, or the run fails.
    ///
    /// # Panics
    /// If there is no such run. A panic of a queue from outside passes through.
    pub fn measure(
        &self,
        backend: &dyn Backend,
        number: usize,
        cancellation: &Cancellation<'_>,
    ) -> Result<Option<Vec<u8>>, BackendError> {
        let run = Run::numbered(backend, &self.scenario, number);
        let plan = run.plan();
        let (completion, records) = run.records(&plan, cancellation, None, 0)?;
        if completion != Completion::Finished {
            return Ok(None);
        }
        let plan = controlled(plan, &records);
        let tables = metric_batches(run.cell(&plan, &records));
        let window = Window::of(plan.config.measure_from, plan.config.duration);
        let failed = |error: &dyn fmt::Display| BackendError::Failed {
            backend: backend.name(),
            reason: error.to_string(),
        };
        let cells = self
            .columns
            .of_run(&tables, window)
            .map_err(|error| failed(&error))?;
        Ok(Some(encode(&cells, &self.keys.runs[number])))
    }

    /// Rows as a table: `arm`, `replication`, and the metrics that apply to any of the runs, in the
    /// order of the runs.
    ///
    /// # Errors
    /// If a row is not that run of this scenario in the same build.
    pub fn table<'a>(
        &self,
        rows: impl Iterator<Item = (usize, &'a [u8])>,
    ) -> Result<Table, ArrowError> {
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|&(number, _)| number);
        let arms: Vec<_> = self.scenario.arms().collect();
        let count = self.columns.count();
        let read = |(number, bytes)| {
            let key = self.keys.runs.get(number)?;
            let (arm, replication) = self.place(number);
            Some(((arms[arm], replication), decode(bytes, key, count)?))
        };
        let rows: Option<Vec<_>> = rows.into_iter().map(read).collect();
        self.columns.table(&rows.ok_or_else(damaged)?)
    }

    fn place(&self, number: usize) -> (usize, u32) {
        let replications = self.scenario.replications() as usize;
        let replication = u32::try_from(number % replications).unwrap_or(u32::MAX);
        (number / replications, replication)
    }
}

fn damaged() -> ArrowError {
    ArrowError::IpcError(
        "invalid row: expected the metrics of this run of this scenario from this build".to_owned(),
    )
}
