//! Outcomes and their tables as Python objects.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatchIterator, RecordBatchReader, StringArray};
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyList, PyString, PyTuple};
use sojourn_backend::locked;
use sojourn_lab::{
    Claim, MOST_BYTES, Means, Outcome, Parts, Provenance, Replace, RunMeans, Scope, Stretch, Table,
    TableKind,
};

use crate::backends::registry;
use crate::errors::Failure;
use crate::scenario::PyScenario;

/// A table of an outcome; polars, pyarrow and `DuckDB` read it without a copy.
#[pyclass(name = "Table", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyTable(pub(crate) Table);

#[pymethods]
impl PyTable {
    /// Export the table by Arrow's `PyCapsule` interface.
    ///
    /// The types are those of the table; the interface allows a producer to ignore the
    /// requested schema.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        // Pieces are counted references, whose values are not copied, or are read when the stream comes to them.
        let (table, schema) = (self.0.clone(), self.0.schema());
        let pieces = (0..table.pieces()).filter_map(move |number| table.piece(number));
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(pieces, schema));
        let stream = FFI_ArrowArrayStream::new(reader);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.rows()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    /// Number of pieces.
    #[getter]
    fn pieces(&self) -> usize {
        self.0.pieces()
    }

    /// Return columns of a piece as lists.
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn columns<'py>(
        &self,
        py: Python<'py>,
        piece: usize,
        names: Vec<String>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let batch = py.detach(|| self.0.piece(piece));
        let batch = batch.ok_or_else(|| PyIndexError::new_err(piece))?;
        let batch = batch.map_err(|e| unreadable(&e))?;
        let of = |name: &String| {
            let column = batch.column_by_name(name);
            values(py, column.ok_or_else(|| PyKeyError::new_err(name.clone()))?)
        };
        names.iter().map(of).collect()
    }

    /// Average a column in each of `parts` parts of the measured time of each run: arm, replication, and the means by
    /// what they are of, in alphabetical order; None where there is no value.
    ///
    /// `of` is the column with what a value is of, and `weight` the column with its weight.
    #[pyo3(signature = (value, *, of=None, weight=None, warmup_s, duration_s, parts))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn part_means(
        &self,
        py: Python<'_>,
        value: &str,
        of: Option<&str>,
        weight: Option<&str>,
        warmup_s: f64,
        duration_s: f64,
        parts: u32,
    ) -> PyResult<Vec<Py<PyTuple>>> {
        let parts = measured(warmup_s, duration_s, parts);
        let mut found = Vec::new();
        let add = |run: RunMeans| {
            let of_run = Python::attach(|py| {
                let arm = PyString::intern(py, &run.arm);
                let of_run = (arm, run.replication, named(py, run.means));
                of_run.into_pyobject(py).map(Bound::unbind)
            });
            found.push(of_run);
        };
        py.detach(|| sojourn_lab::part_means(&self.0, value, of, weight, &parts, add))
            .map_err(|e| unreadable(&e))?;
        found.into_iter().collect()
    }

    /// Average the goodput of each direction, likewise: arm, replication, when each flow of the load sent (start, end and
    /// interval of its series), and the means. This table is `flow_series`.
    fn load_means(
        &self,
        py: Python<'_>,
        flows: &Bound<'_, PyTable>,
        warmup_s: f64,
        duration_s: f64,
        parts: u32,
    ) -> PyResult<Vec<Py<PyTuple>>> {
        let (flows, parts) = (&flows.get().0, measured(warmup_s, duration_s, parts));
        let mut found = Vec::new();
        let add = |run: RunMeans| {
            let of_run = Python::attach(|py| {
                let arm = PyString::intern(py, &run.arm);
                let of_run = (arm, run.replication, run.spans, named(py, run.means));
                of_run.into_pyobject(py).map(Bound::unbind)
            });
            found.push(of_run);
        };
        py.detach(|| sojourn_lab::load_means(flows, &self.0, &parts, add))
            .map_err(|e| unreadable(&e))?;
        found.into_iter().collect()
    }

    /// Return the stretches in which a queue sent nothing although packets waited: arm, replication, link, the end of the
    /// first interval, the number of intervals and the largest backlog in bytes. This table is `link_series`.
    fn stuck(&self, py: Python<'_>) -> PyResult<Vec<Stuck>> {
        let found = py.detach(|| sojourn_lab::stuck(&self.0));
        let found = found.map_err(|e| unreadable(&e))?.into_iter();
        let stuck = |one: Stretch| {
            let Stretch {
                arm,
                replication,
                link,
                begin_s,
                intervals,
                backlog_bytes,
            } = one;
            (arm, replication, link, begin_s, intervals, backlog_bytes)
        };
        Ok(found.map(stuck).collect())
    }

    /// Count the replies to the pings of each run that were sent at or after a time: arm, replication and number. This
    /// table is `pings`.
    fn replies(&self, py: Python<'_>, warmup_s: f64) -> PyResult<Vec<(String, u32, u64)>> {
        let found = py.detach(|| sojourn_lab::replies(&self.0, warmup_s));
        found.map_err(|e| unreadable(&e))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __repr__(&self) -> String {
        let columns = self.column_names().join(", ");
        format!("Table({} rows: {columns})", self.0.rows())
    }
}

/// Means with names of which equal ones are one object, whatever the run.
fn named(py: Python<'_>, means: Means) -> Vec<(Bound<'_, PyString>, Vec<Option<f64>>)> {
    let named = |(of, means): (String, _)| (PyString::intern(py, &of), means);
    means.into_iter().map(named).collect()
}

/// Arm, replication, link, begin, intervals and backlog of a stretch.
type Stuck = (String, u32, String, f64, u32, f64);

const fn measured(warmup_s: f64, duration_s: f64, count: u32) -> Parts {
    Parts {
        warmup_s,
        duration_s,
        count,
    }
}

/// The error of a piece that the run store does not return, or of a loaded table that lacks a column.
fn unreadable(error: &ArrowError) -> PyErr {
    match error {
        ArrowError::SchemaError(_) => PyKeyError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// The values of a column; `None` for null.
fn values<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    if let Some(column) = column.as_string_opt() {
        return texts(py, column);
    }
    if let Some(column) = column.as_boolean_opt() {
        return PyList::new(py, column);
    }
    if let Some(column) = column.as_primitive_opt::<Float64Type>() {
        return PyList::new(py, column);
    }
    if let Some(column) = column.as_primitive_opt::<UInt64Type>() {
        return PyList::new(py, column);
    }
    if let Some(column) = column.as_primitive_opt::<UInt32Type>() {
        return PyList::new(py, column);
    }
    Err(PyTypeError::new_err(column.data_type().to_string()))
}

/// The values of a column of texts: equal ones are one object.
fn texts<'py>(py: Python<'py>, column: &StringArray) -> PyResult<Bound<'py, PyList>> {
    let mut known: BTreeMap<&str, Bound<'py, PyString>> = BTreeMap::new();
    let shared = column.iter().map(|text| {
        let text = text?;
        let object = known.entry(text);
        Some(object.or_insert_with(|| PyString::new(py, text)).clone())
    });
    PyList::new(py, shared)
}

/// A directory that is reserved for a result until `release` is called.
#[pyclass(name = "Claim", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyClaim(Mutex<Option<Claim>>);

impl PyClaim {
    fn held(&self) -> MutexGuard<'_, Option<Claim>> {
        // A panic leaves the claim as it was.
        locked(&self.0)
    }
}

#[pymethods]
impl PyClaim {
    /// Reserve a directory, and check that a result can be saved in it.
    ///
    /// `continued` is the hash of a scenario whose result in the directory may be replaced.
    #[new]
    #[pyo3(signature = (directory, force=false, continued=None))]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        force: bool,
        continued: Option<String>,
    ) -> Result<Self, Failure> {
        let new = || Claim::new(&directory, replace(force), continued.as_deref());
        let claim = py.detach(new)?;
        Ok(Self(Mutex::new(Some(claim))))
    }

    /// Whether other processes cannot write to the directory; false on a file system without locks.
    #[getter]
    fn is_exclusive(&self) -> bool {
        self.held().as_ref().is_some_and(Claim::is_exclusive)
    }

    /// Let other processes use the directory; remove it if it was created and is empty.
    fn release(&self) {
        *self.held() = None;
    }
}

fn replace(force: bool) -> Replace {
    if force {
        Replace::Result
    } else {
        Replace::Nothing
    }
}

/// The results of all runs of a scenario.
#[pyclass(name = "Outcome", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyOutcome(pub(crate) Outcome);

#[pymethods]
impl PyOutcome {
    /// Whether every run of every arm finished.
    #[getter]
    fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Number of finished runs.
    #[getter]
    fn finished(&self) -> usize {
        self.0.finished()
    }

    /// Number of runs of the scenario.
    #[getter]
    fn total(&self) -> usize {
        self.0.total()
    }

    /// Version, commit, scenario, seed and hash, as JSON.
    #[getter]
    fn manifest(&self) -> String {
        self.0.manifest().to_json()
    }

    /// The names that `table` takes.
    #[getter]
    #[expect(clippy::unused_self, reason = "a property is asked of an object")]
    fn table_names(&self) -> Vec<&'static str> {
        TableKind::ALL.map(TableKind::name).to_vec()
    }

    /// Return the table called `name`.
    fn table(&self, name: &str) -> Result<PyTable, Failure> {
        let kind = TableKind::named(name).ok_or_else(|| {
            let names = TableKind::ALL.map(TableKind::name).join(", ");
            Failure::Result(format!("unknown table {name:?}; expected one of {names}"))
        })?;
        Ok(PyTable(self.0.table(kind).clone()))
    }

    /// Return the metrics of every finished run, by run, group, class, application or link.
    fn metrics(&self, py: Python<'_>, by: &str) -> Result<PyTable, Failure> {
        let by = scope(by)?;
        let table = py.detach(|| self.0.metrics(by));
        Ok(PyTable(table.map_err(|e| Failure::Damaged(e.to_string()))?))
    }

    /// Write manifest.json and one Parquet file per table; return the digest of the manifest.
    ///
    /// A different result is replaced if `force` is true, but not a complete one by an incomplete one.
    #[pyo3(signature = (directory, force=false))]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn save(&self, py: Python<'_>, directory: PathBuf, force: bool) -> Result<String, Failure> {
        Ok(py.detach(|| self.0.save(&directory, replace(force)))?)
    }

    /// Write the result to a directory that was claimed; return the digest of the manifest.
    fn save_to(&self, py: Python<'_>, claim: &Bound<'_, PyClaim>) -> Result<String, Failure> {
        let claim = claim.get();
        py.detach(|| {
            let claim = claim.held();
            let claim = claim.as_ref().ok_or_else(|| {
                Failure::Result("the claim of the directory was released".to_owned())
            })?;
            Ok(self.0.save_to(claim)?)
        })
    }

    /// The digest of the manifest that the result was loaded with, or None.
    #[getter]
    fn loaded_digest(&self) -> Option<&str> {
        self.0.loaded_digest()
    }

    /// Read a result that `save` wrote, if its tables need at most `max_bytes` of memory.
    #[staticmethod]
    #[pyo3(signature = (directory, max_bytes=MOST_BYTES))]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn load(py: Python<'_>, directory: PathBuf, max_bytes: u64) -> Result<Self, Failure> {
        Ok(Self(
            py.detach(|| Outcome::load_within(&directory, max_bytes))?,
        ))
    }

    /// Combine runs of a scenario: pairs of a number, counted arm by arm, and what `run_one`
    /// returned.
    ///
    /// `backend` is the backend that executed all of them, by default the first of `backend_names()`.
    #[staticmethod]
    #[pyo3(signature = (scenario, parts, backend=None))]
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn assemble(
        py: Python<'_>,
        scenario: &Bound<'_, PyScenario>,
        parts: Vec<(usize, PyBackedBytes)>,
        backend: Option<&str>,
    ) -> Result<Self, Failure> {
        let registry = registry();
        let provenance = Provenance::of(registry.get(backend)?);
        let scenario = &scenario.get().0;
        let parts = parts.iter().map(|(number, part)| (*number, &part[..]));
        let whole = py.detach(|| Outcome::assemble(scenario, provenance, parts));
        Ok(Self(whole.map_err(|e| Failure::Other(e.to_string()))?))
    }

    fn __repr__(&self) -> String {
        let name = self.0.scenario().name();
        format!(
            "Outcome({name:?}, {} of {} runs)",
            self.0.finished(),
            self.0.total()
        )
    }
}

/// What the rows of a table of metrics are about.
pub(crate) fn scope(by: &str) -> Result<Scope, Failure> {
    Scope::named(by).ok_or_else(|| {
        let names = Scope::ALL.map(Scope::name).join(", ");
        Failure::Result(format!("by: unknown {by:?}; expected one of {names}"))
    })
}
