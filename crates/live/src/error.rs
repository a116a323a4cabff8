//! Errors of live runs.

use std::fmt;
use std::io;

use sojourn_backend::BackendError;

const RAISE: &str =
    "raise it as root with sysctl -w, or end programs that use such namespaces (lsns lists them)";

/// Why a live run could not take place.
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
    /// A namespace of `kind`, such as `user`, could not be created.
    ///
    /// `ENOSPC` means that a limit is reached, in this user namespace or in one around it: ERRORS in `unshare(2)`.
    pub(crate) fn namespace(
        kind: &str,
        limit: &str,
        error: &io::Error,
        remedy: &'static str,
    ) -> Self {
        let what = format!("cannot create a {kind} namespace");
        if error.raw_os_error() == Some(libc::ENOSPC) {
            return Self::Environment {
                problem: format!("{what}: the limit {limit} is reached"),
                remedy: RAISE,
            };
        }
        Self::environment(&what, error, remedy)
    }

    /// A system call failed that needs a permission or a device.
    pub(crate) fn environment(what: &str, error: &io::Error, remedy: &'static str) -> Self {
        Self::Environment {
            problem: format!("{what}: {}", plain(error)),
            remedy,
        }
    }
}

/// The error without the number that the standard library adds.
pub(crate) fn plain(error: &io::Error) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_limit_of_namespaces_is_named() {
        let said = |number| {
            let error = io::Error::from_raw_os_error(number);
            LiveError::namespace("user", "user.max_user_namespaces", &error, "allow them")
                .to_string()
        };
        let full = said(libc::ENOSPC);
        let expected = "cannot create a user namespace: the limit user.max_user_namespaces is reached; raise it as root";
        assert!(full.starts_with(expected), "{full}");
        assert_eq!(
            said(libc::EPERM),
            "cannot create a user namespace: Operation not permitted; allow them"
        );
    }
}
