//! Errors of live runs.

use std::fmt;
use std::io;

use sojourn_backend::BackendError;

/// Why a live run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveError {
    /// The machine lacks a required feature.
    Environment {
        /// What is missing or not permitted.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A program could not be started.
    Program {
        /// The program.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl LiveError {
    /// An error of a system call that needs a permission or a device.
    pub(crate) fn environment(what: &str, error: &io::Error, remedy: &'static str) -> Self {
        Self::Environment {
            problem: format!("{what}: {}", plain(error)),
            remedy,
        }
    }
}

/// The error without the number that the standard library adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment { problem, remedy } => write!(f, "{problem}; {remedy}"),
            Self::Program { name, reason } => write!(f, "cannot start {name}: {reason}"),
        }
    }
}

impl std::error::Error for LiveError {}

impl From<LiveError> for BackendError {
    fn from(error: LiveError) -> Self {
        Self::Environment(error.to_string())
    }
}
