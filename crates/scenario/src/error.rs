//! Errors of scenarios: the place, the problem and what is accepted.

use std::fmt::{self, Write as _};

use sojourn_net::nearest;

use crate::message::message;

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The key, such as `traffic[2].rate`; empty where the text itself is not TOML or JSON.
    pub path: String,
    /// What was given and what would be right.
    pub rule: String,
    /// The line of the text it was read from, where that is known.
    pub line: Option<usize>,
}

impl ScenarioError {
    pub(crate) fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
            line: None,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if !self.path.is_empty() {
            write!(text, "{}: ", self.path)?;
        }
        text.push_str(&self.rule);
        if let Some(line) = self.line {
            write!(text, " (line {line})")?;
        }
        f.write_str(&message(&text))
    }
}

impl std::error::Error for ScenarioError {}

/// That a table has a key under its older and its present name.
pub(crate) fn renamed_to(older: &str, present: &str) -> String {
    format!("\"{older}\" was renamed to \"{present}\"; set only \"{present}\"")
}

/// `did you mean "rate"?`, or `expected a, b or c` if no name is near or there are few.
pub(crate) fn instead_of(given: &str, known: &[&str]) -> String {
    const FEW: usize = 3;
    match nearest(given, known.iter().copied()) {
        Some(name) if known.len() > FEW => format!("did you mean \"{name}\"?"),
        _ => match known {
            [] => "none are defined".to_owned(),
            [only] => format!("expected {only}"),
            [others @ .., last] => format!("expected {} or {last}", others.join(", ")),
        },
    }
}
