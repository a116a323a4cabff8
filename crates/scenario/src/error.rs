//! Errors of scenarios: the place, the problem and what is accepted.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

use sojourn_net::nearest;

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

impl ScenarioError {
    /// The rule and the line, without the key.
    pub fn problem(&self) -> String {
        let line = self.line.map(|line| format!(" (line {line})"));
        format!("{}{}", self.rule, line.unwrap_or_default())
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem();
        let text = if self.path.is_empty() {
            problem
        } else {
            format!("{}: {problem}", self.path)
        };
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

// Sanitises messages: escapes control characters and limits lengths.
//
// Scenarios, results and file names are untrusted, and terminals interpret escape sequences. Messages quote their
// input, so every message passes through this module before it is printed.

/// Maximum number of characters of a quoted value.
const MAX_VALUE: usize = 200;
/// Maximum number of characters of a message.
const MAX_MESSAGE: usize = 1_000;
/// What replaces the rest of a value.
const CUT: char = '…';

/// Escapes control characters and characters that change the writing direction, as in TOML and JSON.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal interprets the character instead of showing it.
fn is_hidden(c: char) -> bool {
    let directs = matches!(
        c,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || directs
}

/// A message on one line, of bounded length, in which quoted values and long words are cut.
pub fn message(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len().min(4 * MAX_MESSAGE));
    for (n, part) in text.split('"').enumerate() {
        if n > 0 {
            out.push('"');
        }
        if n % 2 == 1 {
            out.push_str(&cut(part));
        } else {
            // Between quotations stand paths and numbers of the user, without spaces.
            for (n, word) in part.split(' ').enumerate() {
                if n > 0 {
                    out.push(' ');
                }
                out.push_str(&cut(word));
            }
        }
    }
    shortened(&out)
}

/// The start of a value.
pub(crate) fn cut(value: &str) -> Cow<'_, str> {
    // What is cut already stays as it is.
    match value.char_indices().nth(MAX_VALUE) {
        Some((at, c)) if value.len() > at + c.len_utf8() || c != CUT => {
            Cow::Owned(format!("{}{CUT}", &value[..at]))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Removes the middle of a long message; the end states what is accepted.
fn shortened(text: &str) -> String {
    const END: usize = MAX_MESSAGE / 4;
    let length = text.chars().count();
    if length <= MAX_MESSAGE {
        return text.to_owned();
    }
    let start = text.chars().take(MAX_MESSAGE - END - 3);
    let end = text.chars().skip(length - END);
    start.chain([' ', CUT, ' ']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("\u{1b}[2J\r\n\u{9b}\u{202e}ü"),
            "\\u001b[2J\\u000d\\n\\u009b\\u202eü"
        );
        assert_eq!(message("x\u{7f}: \"\u{7}\""), "x\\u007f: \"\\u0007\"");
    }

    #[test]
    fn a_value_is_cut_after_200_characters_and_the_rule_stays() {
        let value = "ä".repeat(100_000);
        for message in [
            message(&format!("x: \"{value}\" is not a rate (line 3)")),
            message(&format!("{value}: unknown key (line 3)")),
        ] {
            assert!(
                message.contains(&format!("{}…", "ä".repeat(200))),
                "{message}"
            );
            assert!(!message.contains(&"ä".repeat(201)), "{message}");
            assert!(message.ends_with("(line 3)"), "{message}");
        }
    }

    #[test]
    fn a_message_is_bounded_and_a_second_pass_changes_nothing() {
        for part in ["a\"b ", "\\\"", "words and words ", "x"] {
            let once = message(&format!("p: {} (line 7)", part.repeat(9_999)));
            assert!(once.chars().count() <= MAX_MESSAGE, "{once}");
            assert!(once.ends_with("(line 7)"), "{once}");
            assert_eq!(message(&once), once);
        }
        let short = "links.up.rate: \"10\" is not a rate: the unit is missing";
        assert_eq!(message(short), short);
    }
}
