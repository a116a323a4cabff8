//! Specifications inside a specification: the leaves of a classful queue.
//!
//! `leaf codel target 5ms` puts that queue into every class, `leaf codel / sfq limit 50 / pfifo` one into
//! each. The leaves are the last parameter: all words that follow belong to them. Parentheses keep the
//! leaves of a leaf together: `prio leaf (drr leaf codel / sfq) / pfifo`.

use std::fmt;
use std::str::FromStr;

use crate::{Flaw, Parameter, ParameterError, Unit, Value};

/// How many classful queues a text may name: reading one inside another takes stack.
const MAX_CLASSFUL: usize = 64;

/// A specification that can stand inside another one.
pub trait Nested: FromStr<Err = ParameterError> + fmt::Display + fmt::Debug + Clone {}

impl<T: FromStr<Err = ParameterError> + fmt::Display + fmt::Debug + Clone> Nested for T {}

impl<L: Nested> Value for Vec<L> {
    fn text(&self, _unit: Unit) -> Option<String> {
        let texts = self.iter().map(|leaf| match leaf.to_string() {
            text if !text.contains(" / ") => text,
            text => format!("({text})"),
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(" / "))
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        *self = parse(text, parameter.max)?;
        Ok(())
    }
}

fn parse<L: Nested>(text: &str, max: u64) -> Result<Vec<L>, Flaw> {
    if text.matches("leaf").count() > MAX_CLASSFUL {
        return Err(format!("contains too many classful queues (maximum {MAX_CLASSFUL})").into());
    }
    let parts = split_leaves(text)?;
    if parts.len() as u64 > max {
        let given = parts.len();
        return Err(format!("has {given} queues, more than the maximum of {max}").into());
    }
    let mut leaves = Vec::with_capacity(parts.len());
    for (number, part) in (1..).zip(&parts) {
        if part.is_empty() {
            return Err(format!("has no queue at position {number} of {}", parts.len()).into());
        }
        let leaf = part.parse().map_err(|e| Flaw::Leaf(number, Box::new(e)))?;
        leaves.push(leaf);
    }
    Ok(leaves)
}

/// Splits the text of several specifications at each `/` outside parentheses; a part in parentheses loses them.
///
/// # Errors
/// If a parenthesis has no counterpart.
pub fn split_leaves(text: &str) -> Result<Vec<&str>, Flaw> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| "has an unmatched )".to_owned())?;
            }
            '/' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has an unmatched (".to_owned().into());
    }
    parts.push(&text[from..]);
    Ok(parts.into_iter().map(bare).collect())
}

fn bare(part: &str) -> &str {
    let part = part.trim();
    let inner = part.strip_prefix('(').and_then(|p| p.strip_suffix(')'));
    inner.unwrap_or(part).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A specification that is any text without `!`.
    #[derive(Clone, Debug, PartialEq)]
    struct Word(String);

    impl FromStr for Word {
        type Err = ParameterError;

        fn from_str(text: &str) -> Result<Self, ParameterError> {
            match text.strip_suffix('!') {
                None => Ok(Self(text.to_owned())),
                Some(_) => Err(ParameterError::Conflict {
                    kind: "word",
                    why: "is loud".to_owned(),
                }),
            }
        }
    }

    impl fmt::Display for Word {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    #[test]
    fn parentheses_keep_the_leaves_of_a_leaf_together() {
        let split = |text| split_leaves(text).unwrap_or_default();
        assert_eq!(split("codel"), ["codel"]);
        assert_eq!(split("a b / c/d"), ["a b", "c", "d"]);
        assert_eq!(split("(p leaf a / b) / c"), ["p leaf a / b", "c"]);
        assert_eq!(
            split("p leaf (q leaf a / b) / c"),
            ["p leaf (q leaf a / b)", "c"]
        );
    }

    #[test]
    fn what_is_not_a_list_of_queues_is_refused() {
        for (wrong, why) in [
            ("codel / ", "no queue at position 2 of 2"),
            ("codel) / pfifo", "unmatched )"),
            ("(codel / pfifo", "unmatched ("),
            (
                "codel / pfifo / sfq",
                "has 3 queues, more than the maximum of 2",
            ),
            ("codel / sfq!", "2: word: is loud"),
        ] {
            let flaw = match parse::<Word>(wrong, 2) {
                Err(Flaw::Value(flaw)) => flaw,
                Err(Flaw::Leaf(number, error)) => format!("{number}: {error}"),
                Err(Flaw::Entry(number, why)) => format!("{number}: {why}"),
                Ok(leaves) => panic!("{wrong}: {leaves:?}"),
            };
            assert!(flaw.contains(why), "{wrong}: {flaw}");
        }
    }

    #[test]
    fn leaves_read_back() {
        let text = "codel target 7ms / (prio leaf sfq / pfifo)";
        let leaves: Vec<Word> = parse(text, 2).unwrap_or_default();
        assert_eq!(leaves.len(), 2);
        assert_eq!(leaves.text(Unit::Leaves).as_deref(), Some(text));
    }
}
