//! Errors in a specification.

use std::error::Error;
use std::fmt;

/// Why a specification was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// There is no such kind.
    UnknownKind {
        /// What was sought, such as `queue`.
        what: &'static str,
        /// What was given.
        given: String,
        /// What exists: the nearest name, or all names.
        instead: String,
    },
    /// The kind has no such parameter.
    UnknownKey {
        /// The kind.
        kind: &'static str,
        /// What was given.
        given: String,
        /// What exists: the nearest key, or all keys.
        instead: String,
    },
    /// The value is missing, unreadable or out of range.
    Value {
        /// The kind.
        kind: &'static str,
        /// The parameter.
        key: &'static str,
        /// What is wrong with the value given.
        flaw: String,
        /// What is accepted.
        expected: String,
    },
    /// A parameter occurs twice.
    Twice {
        /// The kind.
        kind: &'static str,
        /// The parameter.
        key: &'static str,
        /// The shorthand that gave it first, if one did.
        shorthand: Option<String>,
    },
    /// A specification inside it was refused.
    Leaf {
        /// The kind.
        kind: &'static str,
        /// Which of its leaves, from 1.
        number: usize,
        /// Why.
        error: Box<ParameterError>,
    },
    /// An entry of a list was refused.
    Entry {
        /// The kind.
        kind: &'static str,
        /// The parameter that is the list.
        key: &'static str,
        /// Which of its entries, from 1.
        number: usize,
        /// Why, and what is accepted.
        why: String,
    },
    /// Values contradict each other.
    Conflict {
        /// The kind.
        kind: &'static str,
        /// Which, and why.
        why: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind {
                what,
                given,
                instead,
            } => write!(f, "unknown {what} \"{given}\"; {instead}"),
            Self::UnknownKey {
                kind,
                given,
                instead,
            } => write!(f, "{kind}: unknown parameter \"{given}\"; {instead}"),
            Self::Value {
                kind,
                key,
                flaw,
                expected,
            } => write!(f, "{kind}: {key} {flaw}; expected {expected}"),
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
            Self::Entry {
                kind,
                key,
                number,
                why,
            } => write!(f, "{kind}: {key} {number}: {why}"),
            Self::Conflict { kind, why } => write!(f, "{kind}: {why}"),
        }
    }
}

impl Error for ParameterError {}

/// What is wrong with the value of a parameter.
#[derive(Debug, PartialEq, Eq)]
pub enum Flaw {
    /// This.
    Value(String),
    /// The leaf of this number is wrong.
    Leaf(usize, Box<ParameterError>),
    /// The entry of this number is wrong; why, and what is accepted.
    Entry(usize, String),
}

impl Flaw {
    /// `word` is none of those that are accepted.
    pub fn unknown(word: &str) -> Self {
        Self::Value(format!("\"{word}\" is unknown"))
    }

    /// The error about parameter `key` of `kind`, which accepts what `expected` says.
    pub fn at(self, kind: &'static str, key: &'static str, expected: String) -> ParameterError {
        match self {
            Self::Value(flaw) => ParameterError::Value {
                kind,
                key,
                flaw,
                expected,
            },
            Self::Leaf(number, error) => ParameterError::Leaf {
                kind,
                number,
                error,
            },
            Self::Entry(number, why) => ParameterError::Entry {
                kind,
                key,
                number,
                why,
            },
        }
    }
}

impl From<String> for Flaw {
    fn from(flaw: String) -> Self {
        Self::Value(flaw)
    }
}
