//! Conversion of Rust errors to Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
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
    "A scenario, queue, time, rate or size is not valid; the message says where.\n\n\
     Its parts, each None if it is not known: ``path``, the key; ``value``, the text that is not valid; and\n\
     ``problem``, the message without the two."
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
    "A queue or controller written in Python failed; the cause is the exception that it raised."
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

/// The parts of a `ScenarioError`, which are attributes of the exception.
#[derive(Debug, Default)]
pub(crate) struct Invalid {
    text: String,
    path: Option<String>,
    value: Option<String>,
    problem: Option<String>,
}

impl Invalid {
    fn into_error(self) -> PyErr {
        Python::attach(|py| {
            let error = ScenarioError::new_err(message(&self.text));
            let exception = error.value(py);
            let parts = [
                ("path", self.path),
                ("value", self.value),
                ("problem", self.problem.map(|text| message(&text))),
            ];
            let set = parts
                .into_iter()
                .try_for_each(|(name, part)| exception.setattr(name, part));
            set.map_or_else(|other| other, |()| error)
        })
    }
}

impl Invalid {
    /// The problem of a part.
    pub(crate) fn at(path: String, problem: String) -> Self {
        Self {
            text: format!("{path}: {problem}"),
            path: Some(path),
            value: None,
            problem: Some(problem),
        }
    }
}

impl From<String> for Invalid {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// The failures of functions called from Python.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument is not valid.
    Scenario(Invalid),
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
            Failure::Scenario(invalid) => invalid.into_error(),
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
        Self::Scenario(Invalid {
            text: error.to_string(),
            problem: Some(error.problem()),
            path: (!error.path.is_empty()).then_some(error.path),
            value: None,
        })
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Plan(_) | BackendError::Unsupported(_) => {
                Self::Scenario(error.to_string().into())
            }
            // Python adds the value of the argument.
            BackendError::Memory(problem) => Self::Scenario(Invalid {
                text: problem.clone(),
                path: Some("max_memory".to_owned()),
                problem: Some(problem),
                value: None,
            }),
            BackendError::Environment(problem) => Self::Unavailable(problem),
            BackendError::Failed { .. } => Self::Other(error.to_string()),
        }
    }
}

impl From<UnknownBackend> for Failure {
    fn from(error: UnknownBackend) -> Self {
        Self::Scenario(error.to_string().into())
    }
}

impl From<ParameterError> for Failure {
    fn from(error: ParameterError) -> Self {
        let text = error.to_string();
        let (value, problem) = match error {
            ParameterError::UnknownKind {
                what,
                given,
                instead,
            } => (Some(given), Some(format!("unknown {what}; {instead}"))),
            _ => (None, None),
        };
        Self::Scenario(Invalid {
            text,
            path: None,
            value,
            problem,
        })
    }
}

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Self {
        let value = error.given().map(str::to_owned);
        Self::Scenario(Invalid {
            text: error.to_string(),
            path: None,
            problem: value.as_ref().map(|_| error.problem().to_string()),
            value,
        })
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
