//! Exceptions of queues written in Python, on their way to the caller of a run.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;

use pyo3::prelude::*;
use sojourn_qdisc::QueueFailure;

use crate::errors::{Failure, QueueError};

/// An exception of a queue, on its way to whoever started the run.
pub(super) struct Raised {
    /// Class and method.
    pub(super) place: String,
    pub(super) at_s: f64,
    pub(super) link: Option<Arc<str>>,
    pub(super) error: PyErr,
}

impl Raised {
    /// As the exception that [`crate::run::run`] raises; its cause has the user's traceback.
    fn into_exception(self, py: Python<'_>, run: Option<String>) -> PyErr {
        let Self {
            place,
            at_s,
            link,
            error,
        } = self;
        let link = link.map(|name| format!("link \"{name}\""));
        let context = in_parentheses(link.into_iter().chain(run));
        let message = format!("{place} failed at {at_s:.6} s of simulated time{context}: {error}");
        let raised = QueueError::new_err(message);
        raised.set_cause(py, Some(error));
        raised
    }
}

/// What a queue ended the runs with; any other panic goes on.
pub(crate) fn queue_failure(py: Python<'_>, panic: Box<dyn Any + Send>) -> Failure {
    let failure = panic
        .downcast::<QueueFailure>()
        .unwrap_or_else(|panic| resume_unwind(panic));
    let QueueFailure { cause, run } = *failure;
    match cause.downcast::<Raised>() {
        Ok(raised) => Failure::Python(raised.into_exception(py, run)),
        Err(cause) => {
            let message = cause.downcast_ref::<String>();
            let message = message.map_or("a queue failed", String::as_str);
            Failure::Queue(format!("{message}{}", in_parentheses(run.into_iter())))
        }
    }
}

/// The parts of a place, ready to follow a message.
fn in_parentheses(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({})", parts.join(", "))
}
