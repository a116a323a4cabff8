//! Errors of backends: why a plan was not run.

use std::fmt;

use sojourn_scenario::ConfigError;

/// Features of a plan that a backend does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The backend.
    pub backend: &'static str,
    /// Each feature with its place, such as `links[0].medium: a wireless link`.
    pub features: Vec<String>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = self.features.join(", ");
        write!(
            f,
            "backend \"{}\" does not support {features}",
            self.backend
        )
    }
}

impl std::error::Error for Unsupported {}

/// Why a run did not take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// The plan is not valid.
    Plan(ConfigError),
    /// The plan needs more than the backend has.
    Unsupported(Unsupported),
    /// The backend failed.
    Failed {
        /// The backend.
        backend: &'static str,
        /// What happened.
        reason: String,
    },
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Unsupported(error) => error.fmt(f),
            Self::Failed { backend, reason } => write!(f, "backend \"{backend}\": {reason}"),
        }
    }
}

impl std::error::Error for BackendError {}

impl From<ConfigError> for BackendError {
    fn from(error: ConfigError) -> Self {
        Self::Plan(error)
    }
}

impl From<Unsupported> for BackendError {
    fn from(error: Unsupported) -> Self {
        Self::Unsupported(error)
    }
}
