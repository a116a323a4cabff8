//! Python classes for the metrics of runs.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use sojourn_backend::{BackendError, Cancellation, locked};
use sojourn_lab::{Build, Engine, Measurements, Meter, Provenance, Row, TableKind, read_stream};

use crate::backends::{ATTENTION, attached, registry, threads};
use crate::errors::Failure;
use crate::outcome::{PyTable, scope};
use crate::python_queue::queue_failure;
use crate::scenario::PyScenario;

/// A run and its row for Python.
type Pair<'py> = (usize, Bound<'py, PyBytes>);

/// Computes the metrics of the runs of a scenario, each as soon as it ends.
///
/// The metrics of a run are a row: some hundred bytes, which any process of the same build can read.
/// Runs are numbered arm by arm. `backend` is one of `backend_names()`, by default the first; `binary`
/// is a digest of the program, which identifies builds that their commit does not.
#[pyclass(name = "Meter", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyMeter {
    pub(crate) meter: Arc<Meter>,
    backend: Option<String>,
}

#[pymethods]
impl PyMeter {
    #[new]
    #[pyo3(signature = (scenario, *, backend=None, binary=None))]
    fn new(
        py: Python<'_>,
        scenario: &Bound<'_, PyScenario>,
        backend: Option<String>,
        binary: Option<String>,
    ) -> Result<Self, Failure> {
        let registry = registry();
        let engine = Engine {
            provenance: Provenance::of(registry.get(backend.as_deref())?),
            build: Build::current(),
            binary,
        };
        let scenario = &scenario.get().0;
        let meter = py.detach(|| Arc::new(Meter::new(scenario.clone(), engine)));
        Ok(Self { meter, backend })
    }

    /// Number of runs of the scenario.
    #[getter]
    fn runs(&self) -> usize {
        self.meter.runs()
    }

    /// Names of all metrics that a run may have, in order.
    #[getter]
    fn metrics(&self) -> Vec<String> {
        self.meter.names()
    }

    /// Whether equal keys mean equal rows: the backend is deterministic, and the commit identifies
    /// the build.
    #[getter]
    fn reusable(&self) -> bool {
        self.meter.is_reusable()
    }

    /// Return the key of a row in hexadecimal: a digest of everything that determines it.
    fn key(&self, number: usize) -> Result<String, Failure> {
        self.meter.key(number).ok_or_else(|| self.unknown(number))
    }

    /// Return the keys of all rows for stores that several machines share; None if equal keys would not
    /// mean equal rows, since the backend is not deterministic.
    ///
    /// `binary` is a digest of the program; it identifies builds that their commit does not.
    fn shared_keys(&self, binary: &str) -> Option<Vec<String>> {
        self.meter.shared_keys(binary)
    }

    /// Run one run and return its row.
    fn measure<'py>(&self, py: Python<'py>, number: usize) -> Result<Bound<'py, PyBytes>, Failure> {
        if number >= self.meter.runs() {
            return Err(self.unknown(number));
        }
        let registry = registry();
        let backend = registry.get(self.backend.as_deref())?;
        let cancellation = Cancellation::new(&|| false);
        let measure = || self.meter.measure(backend, number, &cancellation);
        let ran = py.detach(|| catch_unwind(AssertUnwindSafe(measure)));
        let row = ran
            .map_err(|panic| queue_failure(py, panic))?
            .map_err(Failure::from)?;
        let ended = || BackendError::Failed {
            backend: backend.name(),
            reason: "ended the run without a request".to_owned(),
        };
        Ok(PyBytes::new(py, &row.ok_or_else(ended)?))
    }

    /// Start runs on `jobs` threads (default: one per processor).
    #[pyo3(signature = (numbers, *, jobs=None))]
    fn start(&self, numbers: Vec<usize>, jobs: Option<i64>) -> Result<PyMeasurements, Failure> {
        let jobs = jobs.map(threads).transpose()?;
        if let Some(number) = numbers.iter().find(|number| **number >= self.meter.runs()) {
            return Err(self.unknown(*number));
        }
        let meter = Arc::clone(&self.meter);
        let backend = self.backend.as_deref();
        let started = Measurements::start(meter, registry(), backend, numbers, jobs, attached);
        Ok(PyMeasurements(Mutex::new(started?)))
    }

    /// Return whether these bytes are the row of that run.
    fn accepts(&self, number: usize, row: &[u8]) -> bool {
        self.meter.accepts(number, row)
    }

    /// Return rows as a table, in the order of the runs: `arm`, `replication`, and the metrics that
    /// apply to any of the runs.
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn table(&self, py: Python<'_>, rows: Vec<(usize, PyBackedBytes)>) -> Result<PyTable, Failure> {
        let rows = rows.iter().map(|(number, row)| (*number, &row[..]));
        let table = py.detach(|| self.meter.table(rows));
        Ok(PyTable(table.map_err(|e| Failure::Other(e.to_string()))?))
    }
}

impl PyMeter {
    fn unknown(&self, number: usize) -> Failure {
        let runs = self.meter.runs();
        Failure::Other(format!("no run {number}; expected a number below {runs}"))
    }
}

/// Runs under way: an iterator over lists of pairs of a number and a row, in the order of completion.
///
/// A list has the runs that finished within some 50 ms; it may be empty.
#[pyclass(name = "Measurements", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyMeasurements(Mutex<Measurements>);

#[pymethods]
impl PyMeasurements {
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Wait for the next list; Ctrl-C raises `KeyboardInterrupt`.
    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Vec<Pair<'py>>>, Failure> {
        py.check_signals()?;
        let take = || self.held().take(ATTENTION);
        let taken = py.detach(|| catch_unwind(AssertUnwindSafe(take)));
        let rows = taken.map_err(|panic| queue_failure(py, panic))??;
        Ok(rows.map(|rows| pairs(py, rows)))
    }

    /// End the runs, and return the rows of finished ones that were not returned before.
    fn stop<'py>(&self, py: Python<'py>) -> Vec<Pair<'py>> {
        let rows = py.detach(|| self.held().stop());
        pairs(py, rows)
    }
}

impl PyMeasurements {
    fn held(&self) -> MutexGuard<'_, Measurements> {
        // A panic leaves the runs as they were.
        locked(&self.0)
    }
}

fn pairs(py: Python<'_>, rows: Vec<Row>) -> Vec<Pair<'_>> {
    let rows = rows.into_iter();
    rows.map(|(number, row)| (number, PyBytes::new(py, &row)))
        .collect()
}

/// Compute the metrics of every run of some tables, given by name as Arrow IPC streams; times are in seconds.
#[pyfunction]
#[pyo3(signature = (by, tables, *, warmup_s, measured_s))]
#[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
pub(crate) fn table_metrics(
    py: Python<'_>,
    by: &str,
    tables: BTreeMap<String, PyBackedBytes>,
    warmup_s: f64,
    measured_s: f64,
) -> Result<PyTable, Failure> {
    let by = scope(by)?;
    let table = py.detach(|| {
        let mut read = BTreeMap::new();
        for (name, bytes) in &tables {
            read.insert(name.as_str(), read_stream(bytes)?);
        }
        let of = |kind: TableKind| read.get(kind.name()).map_or(&[][..], Vec::as_slice);
        sojourn_lab::metrics(by, &of, warmup_s, measured_s)
    });
    Ok(PyTable(table.map_err(|e| Failure::Other(e.to_string()))?))
}

/// Return Jain's index of fairness of the known values; None if all are 0 or there are none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
pub(crate) fn jain(values: Vec<Option<f64>>) -> Option<f64> {
    sojourn_lab::jain(values.iter().flatten().copied())
}

/// Average the pings of every run of a table, which is an Arrow IPC stream, as flent does.
#[pyfunction]
pub(crate) fn averaged_pings(py: Python<'_>, pings: &[u8]) -> Result<PyTable, Failure> {
    let averaged = || sojourn_lab::averaged_pings(&read_stream(pings)?);
    let table = py.detach(averaged);
    Ok(PyTable(table.map_err(|e| Failure::Other(e.to_string()))?))
}
