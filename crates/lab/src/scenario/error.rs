//! Why a scenario is refused, told so that it can be put right.

use std::fmt;

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
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.rule)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// `did you mean "rate"?`, or all of `known` where none is near.
pub(crate) fn instead_of(given: &str, known: &[&str]) -> String {
    let nearest = known.iter().min_by_key(|name| edits(given, name));
    match nearest {
        Some(name) if edits(given, name) <= 1 + given.chars().count() / 3 => {
            format!("did you mean \"{name}\"?")
        }
        Some(_) => format!("known are {}", known.join(", ")),
        None => "none is known here".to_owned(),
    }
}

/// How many insertions, deletions and substitutions lead from `a` to `b` (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_those_of_levenshtein() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("rate", "rate"), 0);
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let known = ["rate", "delay"];
        assert_eq!(instead_of("rat", &known), "did you mean \"rate\"?");
        assert_eq!(instead_of("colour", &known), "known are rate, delay");
    }
}
