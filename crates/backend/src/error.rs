//! Errors of backends: why a plan was not run.

use std::borrow::Cow;
use std::fmt;

use sojourn_scenario::ConfigError;

/// A feature of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Where the plan has it, such as `links[0].medium`; in a message, where the scenario has it.
    pub place: String,
    /// What it is, such as `a wireless link`.
    pub what: Cow<'static, str>,
}

/// Features of a plan that a backend does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The backend.
    pub backend: &'static str,
    /// Each of the features.
    pub features: Vec<Feature>,
}

impl Unsupported {
    /// The same with other places: those of the scenario that the plan was made from.
    #[must_use]
    pub fn with_places(mut self, place: impl Fn(&str) -> String) -> Self {
        for feature in &mut self.features {
            feature.place = place(&feature.place);
        }
        self
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backend \"{}\" does not support ", self.backend)?;
        self.features
            .iter()
            .enumerate()
            .try_for_each(|(n, feature)| {
                // Features may contain commas.
                let separator = if n == 0 { "" } else { "; " };
                write!(f, "{separator}{}: {}", feature.place, feature.what)
            })
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
    /// The machine lacks something that the backend needs; the text says what, and what to do about it.
    Environment(String),
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
            Self::Environment(problem) => f.write_str(problem),
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
