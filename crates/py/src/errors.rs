//! Conversion of Rust errors to Python exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use sojourn_backend::{BackendError, UnknownBackend};
use sojourn_lab::{
    ResultError as FolderError, ScenarioError as InvalidScenario, StatsError, message,
};
use sojourn_net::UnitError;
use sojourn_qdisc::ParameterError;

create_exception!(
    sojourn._core,
    SojournError,
    PyException,
    "Base class of all Sojourn exceptions."
);
create_exception!(
    sojourn._core,
    ScenarioError,
    SojournError,
    "A scenario, queue, time, rate or size is not valid; the message says where."
);
create_exception!(
    sojourn._core,
    ResultError,
    SojournError,
    "A result or study cannot be written, read or queried."
);
create_exception!(
    sojourn._core,
    DamagedResultError,
    ResultError,
    "A saved result is damaged or of a version that cannot be read."
);
create_exception!(
    sojourn._core,
    OccupiedError,
    ResultError,
    "A directory has another result, which may be replaced on request."
);
create_exception!(
    sojourn._core,
    QueueError,
    SojournError,
    "A queue written in Python failed; the cause is the exception that it raised."
);

create_exception!(
    sojourn._core,
    UnavailableError,
    SojournError,
    "The machine lacks something that a live run needs; the message says what to do about it."
);

create_exception!(
    sojourn._core,
    NotRegularError,
    PyOSError,
    "A path is a directory, a pipe, a device, or a symbolic link that may not be followed."
);

/// The failures of functions called from Python.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument is not valid.
    Scenario(String),
    /// A result cannot be read or written.
    Result(String),
    /// A result is damaged.
    Damaged(String),
    /// A directory has another result.
    Occupied(String),
    /// A queue that is not part of Sojourn failed.
    Queue(String),
    /// The machine lacks something.
    Unavailable(String),
    /// Any other failure.
    Other(String),
    /// A Python exception.
    Python(PyErr),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Scenario(text) => ScenarioError::new_err(message(&text)),
            Failure::Result(text) => ResultError::new_err(message(&text)),
            Failure::Damaged(text) => DamagedResultError::new_err(message(&text)),
            Failure::Occupied(text) => OccupiedError::new_err(message(&text)),
            Failure::Queue(text) => QueueError::new_err(message(&text)),
            Failure::Unavailable(text) => UnavailableError::new_err(message(&text)),
            Failure::Other(text) => SojournError::new_err(message(&text)),
            Failure::Python(error) => error,
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<InvalidScenario> for Failure {
    fn from(error: InvalidScenario) -> Self {
        Self::Scenario(error.to_string())
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Plan(_) | BackendError::Unsupported(_) => {
                Self::Scenario(error.to_string())
            }
            BackendError::Environment(problem) => Self::Unavailable(problem),
            BackendError::Failed { .. } => Self::Other(error.to_string()),
        }
    }
}

impl From<UnknownBackend> for Failure {
    fn from(error: UnknownBackend) -> Self {
        Self::Scenario(error.to_string())
    }
}

impl From<ParameterError> for Failure {
    fn from(error: ParameterError) -> Self {
        Self::Scenario(error.to_string())
    }
}

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Self {
        Self::Scenario(error.to_string())
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        if error.is_damage {
            Self::Damaged(error.to_string())
        } else if error.is_occupied {
            Self::Occupied(error.to_string())
        } else {
            Self::Result(error.to_string())
        }
    }
}

impl From<StatsError> for Failure {
    fn from(error: StatsError) -> Self {
        Self::Other(error.to_string())
    }
}
