//! Outcomes and their tables as Python objects.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatchIterator, RecordBatchReader, StringArray};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyList, PyString};
use sojourn_backend::locked;
use sojourn_lab::{Claim, MOST_BYTES, Outcome, Provenance, Replace, Scope, Table, TableKind};

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
        // Batches are counted references: their values are not copied.
        let batches = self.0.batches().to_vec().into_iter().map(Ok);
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.0.schema()));
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
        self.0.batches().len()
    }

    /// Return columns of a piece as lists.
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn columns<'py>(
        &self,
        py: Python<'py>,
        piece: usize,
        names: Vec<String>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let batch = self.0.batches().get(piece);
        let batch = batch.ok_or_else(|| PyIndexError::new_err(piece))?;
        let of = |name: &String| {
            let column = batch.column_by_name(name);
            values(py, column.ok_or_else(|| PyKeyError::new_err(name.clone()))?)
        };
        names.iter().map(of).collect()
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __repr__(&self) -> String {
        let columns = self.column_names().join(", ");
        format!("Table({} rows: {columns})", self.0.rows())
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

/// The values of a column of texts: equal ones that follow each other are one object.
fn texts<'py>(py: Python<'py>, column: &StringArray) -> PyResult<Bound<'py, PyList>> {
    let mut last: Option<(&str, Bound<'py, PyString>)> = None;
    let shared = column.iter().map(|text| {
        let text = text?;
        match &last {
            Some((same, object)) if *same == text => Some(object.clone()),
            _ => {
                let object = PyString::new(py, text);
                last = Some((text, object.clone()));
                Some(object)
            }
        }
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
