//! Errors of result directories.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why a result could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub rule: String,
    /// Whether the result exists but is damaged or of an unsupported version.
    pub is_damage: bool,
}

impl ResultError {
    pub(crate) fn new(path: &Path, rule: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            rule: rule.into(),
            is_damage: false,
        }
    }

    pub(crate) fn damaged(path: &Path, rule: impl Into<String>) -> Self {
        Self {
            is_damage: true,
            ..Self::new(path, rule)
        }
    }
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.rule)
    }
}

impl std::error::Error for ResultError {}
