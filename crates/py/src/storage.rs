//! Python classes and functions for files that survive a crash.
//!
//! Failures are `OSError`, as those of Python's own functions for files.

#![expect(clippy::needless_pass_by_value, reason = "converted from Python")]

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sojourn_lab::{Scenario, read_table};
use sojourn_store::{Disk, Folder, Links, Replacement, add_derived, open_committed, open_regular};

use crate::errors::{Failure, NotRegularError};
use crate::outcome::PyTable;

/// The exception for an error of a file: its number, its text and the path.
fn os_error(error: &io::Error, path: &Path) -> PyErr {
    let shown = error.to_string();
    // Rust adds the number to the texts of the operating system.
    let end = shown.rfind(" (os error ").unwrap_or(shown.len());
    let text = shown[..end].to_owned();
    let path = path.as_os_str().to_owned();
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text, path)),
        None if error.kind() == ErrorKind::InvalidInput => {
            NotRegularError::new_err((0, text, path))
        }
        None => PyOSError::new_err((0, text, path)),
    }
}

/// The descriptor of a file, which Python closes.
#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the conversion may fail on Windows"
)]
fn descriptor(_py: Python<'_>, file: File) -> PyResult<i32> {
    Ok(std::os::fd::IntoRawFd::into_raw_fd(file))
}

/// The descriptor of a file, which Python closes: here files have handles.
#[cfg(windows)]
fn descriptor(py: Python<'_>, file: File) -> PyResult<i32> {
    const O_BINARY: i32 = 0x8000;
    let handle = std::os::windows::io::IntoRawHandle::into_raw_handle(file) as isize;
    let convert = py.import("msvcrt")?.getattr("open_osfhandle")?;
    convert.call1((handle, O_BINARY))?.extract()
}

/// Open a regular file to read it, and return its descriptor.
///
/// Raises `NotRegularError` for anything else, and for a symbolic link if `follow` is false.
#[pyfunction]
#[pyo3(name = "open_regular", signature = (path, *, follow=true))]
pub(crate) fn open_regular_file(py: Python<'_>, path: PathBuf, follow: bool) -> PyResult<i32> {
    let links = if follow { Links::Follow } else { Links::Refuse };
    let file = py.detach(|| open_regular(&path, links));
    descriptor(py, file.map_err(|e| os_error(&e, &path))?)
}

/// Open a file of a directory, even after an unfinished commit, and return its descriptor.
#[pyfunction]
#[pyo3(name = "open_committed")]
pub(crate) fn open_committed_file(py: Python<'_>, directory: PathBuf, name: &str) -> PyResult<i32> {
    let file = py.detach(|| open_committed(&directory, name));
    descriptor(py, file.map_err(|e| os_error(&e, &directory.join(name)))?)
}

/// Read the content of a Parquet file, whose table takes at most `max_bytes` of memory.
///
/// Raises `DamagedResultError`, whose message begins with a verb, if it has other columns than numbers,
/// text and bytes.
#[pyfunction]
#[pyo3(name = "read_table")]
pub(crate) fn read_saved_table(
    py: Python<'_>,
    content: PyBackedBytes,
    max_bytes: u64,
) -> Result<PyTable, Failure> {
    let table = py.detach(|| read_table(content.to_vec(), max_bytes));
    Ok(PyTable(table.map_err(Failure::Damaged)?))
}

/// The SHA-256 of a scenario in JSON as it was written: keys added since are not part of it.
#[pyfunction]
pub(crate) fn scenario_sha256(text: &str) -> Result<String, Failure> {
    Ok(Scenario::hash_as_written(text)?)
}

/// Add a report or figure to the index of its directory.
#[pyfunction]
#[pyo3(name = "add_derived")]
pub(crate) fn add_derived_file(
    py: Python<'_>,
    path: PathBuf,
    manifest: &str,
    sha256: &str,
) -> PyResult<()> {
    let added = py.detach(|| add_derived(Arc::new(Disk), &path, manifest, sha256));
    added.map_err(|e| os_error(&e, &path))
}

/// Replaces a file atomically by what is written to another one in the `with` statement.
#[pyclass(name = "Replacement", module = "sojourn._core")]
#[derive(Debug)]
pub(crate) struct PyReplacement {
    target: PathBuf,
    rest: Option<PathBuf>,
    begun: Option<Replacement>,
}

#[pymethods]
impl PyReplacement {
    #[new]
    #[pyo3(signature = (path, *, rest=None))]
    fn new(path: PathBuf, rest: Option<PathBuf>) -> Self {
        Self {
            target: path,
            rest,
            begun: None,
        }
    }

    /// Create the file to write, with the permissions of the one that it will replace.
    fn __enter__(&mut self, py: Python<'_>) -> PyResult<PathBuf> {
        let begun = py.detach(|| Replacement::begin(Arc::new(Disk), &self.target));
        let begun = begun.map_err(|e| os_error(&e, &self.target))?;
        let temporary = begun.temporary().to_owned();
        self.begun = Some(begun);
        Ok(temporary)
    }

    /// Put the new content into its place, synced to disk.
    ///
    /// After an exception, the file is as before; what was written gets the name `rest`, if given.
    fn __exit__(
        &mut self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let failed = !exception.is_none();
        let Some(mut begun) = self.begun.take() else {
            return Ok(());
        };
        let ended = py.detach(|| {
            let ended = if failed { Ok(()) } else { begun.commit() };
            if (failed || ended.is_err())
                && let Some(rest) = &self.rest
            {
                begun.keep_as(rest);
            }
            ended
        });
        ended.map_err(|e| os_error(&e, &self.target))
    }
}

/// A directory that no other process writes to until the `with` statement ends.
#[pyclass(name = "Folder", module = "sojourn._core")]
#[derive(Debug)]
pub(crate) struct PyFolder {
    path: PathBuf,
    claimed: Option<Folder>,
}

impl PyFolder {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Folder) -> io::Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| match &self.claimed {
            Some(folder) => call(folder),
            None => Err(io::Error::other("is not locked")),
        });
        result.map_err(|e| os_error(&e, &self.path))
    }
}

#[pymethods]
impl PyFolder {
    #[new]
    fn new(path: PathBuf) -> Self {
        let claimed = None;
        Self { path, claimed }
    }

    /// Lock the directory, which is created if needed, and complete an interrupted commit.
    fn __enter__<'a>(mut slf: PyRefMut<'a, Self>, py: Python<'_>) -> PyResult<PyRefMut<'a, Self>> {
        let path = &slf.path;
        let claimed = py.detach(|| Folder::claim_waiting(&(Arc::new(Disk) as _), path));
        slf.claimed = Some(claimed.map_err(|e| os_error(&e, path))?);
        Ok(slf)
    }

    /// Unlock the directory; remove it if it was created and is empty.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        py.detach(|| self.claimed = None);
    }

    /// Whether other processes cannot write to the directory; false on a file system without locks.
    #[getter]
    fn is_exclusive(&self) -> bool {
        self.claimed.as_ref().is_some_and(Folder::is_exclusive)
    }

    /// Whether nothing is in the directory but files of the protocol.
    fn is_vacant(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, Folder::is_vacant)
    }

    /// Check that files of these names can be committed.
    fn check(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        self.with(py, |folder| {
            let mut names = names.iter();
            names.try_for_each(|name| folder.check_place(Path::new(name)))?;
            folder.probe()
        })
    }

    /// Write files, all or none, and remove others with them.
    ///
    /// `manifest` is the digest of the new manifest: reports and figures of another one are removed,
    /// unless they were modified since.
    #[pyo3(signature = (files, *, remove, manifest))]
    fn commit(
        &self,
        py: Python<'_>,
        files: Vec<(String, PyBackedBytes)>,
        remove: Vec<String>,
        manifest: &str,
    ) -> PyResult<()> {
        self.with(py, |folder| {
            folder.commit(|staging| {
                let mut files = files.iter();
                files.try_for_each(|(name, data)| staging.write(name, data))?;
                staging.remove(remove, manifest)
            })
        })
    }
}
