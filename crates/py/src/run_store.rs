//! Python classes for the run store and its executions.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use sojourn_lab::{Build, Disk, Engine, Invocation, Provenance, RunStore};

use crate::backends::registry;
use crate::errors::Failure;
use crate::metrics::PyMeter;
use crate::scenario::PyScenario;

/// A store of finished runs: a directory.
#[pyclass(name = "RunStore", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyRunStore(RunStore);

#[pymethods]
impl PyRunStore {
    /// Open the store in a directory, which is created if needed.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn new(py: Python<'_>, folder: PathBuf) -> Result<Self, Failure> {
        let store = py.detach(|| RunStore::open(&folder, Arc::new(Disk)));
        let unusable =
            |e: io::Error| Failure::Result(format!("run store {}: {e}", folder.display()));
        Ok(Self(store.map_err(unusable)?))
    }

    /// The directory.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.0.folder().to_owned()
    }

    /// List the scenarios with stored runs, oldest first, as JSON.
    fn scenarios(&self, py: Python<'_>) -> Result<String, Failure> {
        let listed = py.detach(|| sojourn_lab::stored_scenarios(&self.0));
        let listed = listed.map_err(|e| self.unreadable(&e))?;
        let documents = listed.iter().map(|scenario| {
            json!({
                "name": scenario.name,
                "scenario_sha256": scenario.scenario_sha256,
                "commit": scenario.commit,
                "runs": scenario.runs,
                "bytes": scenario.bytes,
                "age_s": scenario.age.as_secs_f64(),
                "active": scenario.is_active,
            })
        });
        Ok(Value::Array(documents.collect()).to_string())
    }

    /// Read all records in a directory: their number, and the files with damaged ones and how many.
    ///
    /// Nothing is repaired before that.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn verify(py: Python<'_>, folder: PathBuf) -> Result<(usize, Vec<(String, usize)>), Failure> {
        let verified = py.detach(|| sojourn_lab::verify_store(&folder));
        let unreadable =
            |e: io::Error| Failure::Result(format!("run store {}: {e}", folder.display()));
        let verified = verified.map_err(unreadable)?;
        Ok((verified.records, verified.damaged))
    }

    /// Remove what was stored at least `age_s` seconds ago by processes that have ended; return the bytes.
    fn collect(&self, py: Python<'_>, age_s: f64) -> Result<u64, Failure> {
        let age = std::time::Duration::try_from_secs_f64(age_s).unwrap_or(std::time::Duration::MAX);
        let removed = py.detach(|| sojourn_lab::collect_garbage(&self.0, age));
        removed.map_err(|e| self.unreadable(&e))
    }

    /// Begin an execution of a scenario, or continue the last interrupted one if `resume` is true.
    ///
    /// `binary` is a digest of the program; it identifies builds that their commit does not.
    #[pyo3(signature = (scenario, *, backend=None, resume=false, binary=None))]
    fn begin(
        &self,
        py: Python<'_>,
        scenario: &Bound<'_, PyScenario>,
        backend: Option<&str>,
        resume: bool,
        binary: Option<String>,
    ) -> Result<PyInvocation, Failure> {
        let registry = registry();
        let engine = Engine {
            provenance: Provenance::of(registry.get(backend)?),
            build: Build::current(),
            binary,
        };
        let scenario = &scenario.get().0;
        let begun = py.detach(|| Invocation::begin(&self.0, scenario, &engine, resume));
        let folder = self.0.folder().display();
        let unusable = |e: io::Error| Failure::Result(format!("run store {folder}: {e}"));
        Ok(PyInvocation(begun.map_err(unusable)?))
    }

    /// Begin an execution that stores rows of a meter, or continue the last interrupted one.
    fn begin_rows(
        &self,
        py: Python<'_>,
        meter: &Bound<'_, PyMeter>,
    ) -> Result<PyInvocation, Failure> {
        let meter = &meter.get().meter;
        let begun = py.detach(|| meter.begin(&self.0, true));
        Ok(PyInvocation(begun.map_err(|e| self.unreadable(&e))?))
    }
}

impl PyRunStore {
    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::Result(format!("run store {}: {error}", self.0.folder().display()))
    }
}

/// One execution of a scenario, whose finished runs are stored.
#[pyclass(name = "Invocation", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyInvocation(pub(crate) Invocation);

#[pymethods]
impl PyInvocation {
    /// Numbers of the runs that need not be repeated, counted arm by arm.
    #[getter]
    fn finished(&self) -> Vec<usize> {
        self.0.finished().collect()
    }

    /// Return a finished run as `run_one` returned it; None if it is damaged.
    fn read<'py>(&self, py: Python<'py>, number: usize) -> Option<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.read(number))?;
        Some(PyBytes::new(py, &bytes))
    }

    /// Store a run that `run_one` returned.
    fn append(&self, py: Python<'_>, number: usize, run: Vec<u8>) {
        py.detach(|| self.0.append(number, run));
    }

    /// Number of runs of this execution that are on the medium; 0 after it was closed.
    #[getter]
    fn committed(&self) -> usize {
        self.0.committed()
    }

    /// Why runs were not stored, if so.
    #[getter]
    fn failure(&self) -> Option<String> {
        self.0.failure()
    }

    /// Wait until all runs are on the medium.
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.0.flush());
    }

    /// End the execution, so that it can be resumed.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    /// Remove the stored runs of the scenario: its result is complete.
    fn discard(&self, py: Python<'_>) {
        // Runs that cannot be removed now expire later.
        let _ = py.detach(|| self.0.discard());
    }
}
