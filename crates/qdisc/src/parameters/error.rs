//! Errors in the specification of a discipline.

use std::error::Error;
use std::fmt;

/// Why a discipline was not built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// There is no such discipline.
    UnknownKind {
        /// What was given.
        given: String,
        /// What exists: the nearest name, or all names.
        instead: String,
    },
    /// The discipline has no such parameter.
    UnknownKey {
        /// The discipline.
        kind: &'static str,
        /// What was given.
        given: String,
        /// What exists: the nearest key, or all keys.
        instead: String,
    },
    /// The value is missing, unreadable or out of range.
    Value {
        /// The discipline.
        kind: &'static str,
        /// The parameter.
        key: &'static str,
        /// What is wrong with the value given.
        flaw: String,
        /// What would be right.
        range: String,
    },
    /// A parameter occurs twice.
    Twice {
        /// The discipline.
        kind: &'static str,
        /// The parameter.
        key: &'static str,
        /// The shorthand that gave it first, if one did.
        shorthand: Option<String>,
    },
    /// A queue inside it was not built.
    Leaf {
        /// The discipline.
        kind: &'static str,
        /// Which of its leaves, from 1.
        number: usize,
        /// Why.
        error: Box<ParameterError>,
    },
    /// Two parameters contradict each other.
    Conflict {
        /// The discipline.
        kind: &'static str,
        /// Which, and why.
        why: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { given, instead } => {
                write!(f, "unknown queue \"{given}\"; {instead}")
            }
            Self::UnknownKey {
                kind,
                given,
                instead,
            } => write!(f, "{kind}: unknown parameter \"{given}\"; {instead}"),
            Self::Value {
                kind,
                key,
                flaw,
                range,
            } => write!(f, "{kind}: {key} {flaw}; expected {range}"),
            Self::Twice {
                kind,
                key,
                shorthand,
            } => {
                write!(f, "{kind}: {key} is given twice")?;
                match shorthand {
                    Some(word) => write!(f, ", once by the keyword \"{word}\""),
                    None => Ok(()),
                }
            }
            Self::Leaf {
                kind,
                number,
                error,
            } => write!(f, "{kind}: leaf {number}: {error}"),
            Self::Conflict { kind, why } => write!(f, "{kind}: {why}"),
        }
    }
}

impl Error for ParameterError {}

/// What is wrong with the value of a parameter.
#[derive(Debug)]
pub enum Flaw {
    /// This.
    Value(String),
    /// The leaf of this number cannot be built.
    Leaf(usize, Box<ParameterError>),
}

impl From<String> for Flaw {
    fn from(flaw: String) -> Self {
        Self::Value(flaw)
    }
}
