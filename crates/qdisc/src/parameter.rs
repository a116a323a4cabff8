//! The parameters of a discipline as text: keys, units, ranges and the errors about them.
//!
//! A discipline lends its fields by key ([`Field`]); the catalogue says what each key means and
//! which values it may take ([`Parameter`]). Strings, tables and typed values all pass here.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use sojourn_net::{Bytes, Duration, Rate};

use crate::choice::Choice;
use crate::leaf;
use crate::registry::QdiscSpec;

/// Which law a discipline follows, where the implementations differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The RFC, or the paper where there is none.
    #[default]
    Rfc,
    /// Linux 6.1, with its fixed-point arithmetic.
    Linux,
    /// Linux 3.14, for studies of its time.
    Linux314,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rfc => "rfc",
            Self::Linux => "linux",
            Self::Linux314 => "linux-3.14",
        })
    }
}

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
                write!(f, "there is no queue discipline \"{given}\": {instead}")
            }
            Self::UnknownKey {
                kind,
                given,
                instead,
            } => write!(f, "{kind} has no parameter \"{given}\": {instead}"),
            Self::Value {
                kind,
                key,
                flaw,
                range,
            } => write!(f, "{kind}: {key} {flaw}; allowed: {range}"),
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

/// What kind of value a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A length of time, such as `5ms`.
    Time,
    /// A bit rate, such as `10mbit`.
    Rate,
    /// A quantity of data, such as `1514b`.
    Size,
    /// A number of packets; a `p` may follow.
    Packets,
    /// A plain number.
    Count,
    /// Small numbers in a row, such as `1 2 2 0`.
    Numbers,
    /// A number that need not be whole, such as `0.02` or `1.25`.
    Fraction,
    /// As [`Unit::Fraction`], and 0 too.
    Weight,
    /// A share in percent; a `%` may follow.
    Percent,
    /// Present or absent: `ecn`, `noecn`.
    Flag,
    /// The name of a [`Profile`].
    Profile,
    /// One of these words, which may stand alone: `diffserv4`.
    Choice(&'static [&'static str]),
    /// The disciplines inside a classful one, ` / ` between them; one stands for all classes.
    Leaves,
}

/// A place where a value is kept, lent by the parameters of a discipline.
#[derive(Debug)]
pub(crate) enum Field<'a> {
    Time(&'a mut Duration),
    OptionalTime(&'a mut Option<Duration>),
    OptionalRate(&'a mut Option<Rate>),
    Size(&'a mut Bytes),
    OptionalSize(&'a mut Option<Bytes>),
    Packets(&'a mut usize),
    Count(&'a mut u32),
    Numbers(&'a mut [u8]),
    OptionalCount(&'a mut Option<u32>),
    Fraction(&'a mut f64),
    OptionalFraction(&'a mut Option<f64>),
    Flag(&'a mut bool),
    Profile(&'a mut Profile),
    Choice(&'a mut dyn Choice),
    Leaves(&'a mut Vec<QdiscSpec>),
}

/// What is wrong with the value of a parameter.
#[derive(Debug)]
pub(crate) enum Flaw {
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

/// One parameter of a discipline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) key: &'static str,
    pub(crate) unit: Unit,
    /// The smallest value allowed, in nanoseconds, bytes or packets.
    pub(crate) least: u64,
    /// The largest value allowed.
    pub(crate) most: u64,
    /// What it means that no value was given; empty if there is always one.
    pub(crate) unset: &'static str,
    pub(crate) meaning: &'static str,
}

impl Parameter {
    pub(crate) fn is_flag(&self) -> bool {
        self.unit == Unit::Flag
    }

    /// The words that it goes by.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        let choices = match self.unit {
            Unit::Choice(words) => words,
            _ => &[],
        };
        std::iter::once(self.key).chain(choices.iter().copied())
    }

    /// The allowed values, as a person writes them.
    pub(crate) fn range(&self, profiles: &[Profile]) -> String {
        let (least, most) = (self.least, self.most);
        match self.unit {
            Unit::Time => format!(
                "{} to {}",
                time_text(Duration::from_nanos(least)),
                time_text(Duration::from_nanos(most))
            ),
            Unit::Rate => "1bit or more".into(),
            Unit::Size => format!("{least}b to {most}b"),
            Unit::Fraction | Unit::Percent if least == 0 => format!("more than 0, at most {most}"),
            Unit::Packets | Unit::Count | Unit::Fraction | Unit::Weight | Unit::Percent => {
                format!("{least} to {most}")
            }
            Unit::Numbers => format!("numbers from {least} to {most}"),
            Unit::Flag => format!("{0} or no{0}", self.key),
            Unit::Profile => {
                let names: Vec<_> = profiles.iter().map(ToString::to_string).collect();
                names.join(", ")
            }
            Unit::Choice(words) => words.join(", "),
            Unit::Leaves => "queues, / between them".into(),
        }
    }

    /// Puts `text` into `field` if it is allowed there; else says what is wrong with it.
    pub(crate) fn set(
        &self,
        field: Field<'_>,
        text: &str,
        profiles: &[Profile],
    ) -> Result<(), Flaw> {
        match field {
            Field::Time(place) => *place = self.time(text)?,
            Field::OptionalTime(place) => *place = Some(self.time(text)?),
            Field::OptionalRate(place) => *place = Some(read(text)?),
            Field::Size(place) => *place = self.size(text)?,
            Field::OptionalSize(place) => *place = Some(self.size(text)?),
            Field::Packets(place) => *place = self.number(text)?,
            Field::Count(place) => *place = self.number(text)?,
            Field::OptionalCount(place) => *place = Some(self.number(text)?),
            Field::Numbers(places) => {
                let words = text.split([' ', ',']).filter(|word| !word.is_empty());
                let numbers = words.map(|word| self.number(word));
                let numbers = numbers.collect::<Result<Vec<u8>, _>>()?;
                if numbers.len() != places.len() {
                    let (needed, given) = (places.len(), numbers.len());
                    return Err(format!("needs {needed} numbers, not {given}").into());
                }
                places.copy_from_slice(&numbers);
            }
            Field::Fraction(place) => *place = self.fraction(text)?,
            Field::OptionalFraction(place) => *place = Some(self.fraction(text)?),
            Field::Flag(place) => *place = flag(text)?,
            Field::Choice(place) => {
                if !place.choose(text) {
                    return Err(format!("\"{text}\" is unknown").into());
                }
            }
            Field::Leaves(place) => *place = leaf::parse(text, self.most)?,
            Field::Profile(place) => {
                *place = profiles
                    .iter()
                    .copied()
                    .find(|p| p.to_string() == text)
                    .ok_or_else(|| format!("\"{text}\" is unknown"))?;
            }
        }
        Ok(())
    }

    fn time(&self, text: &str) -> Result<Duration, String> {
        let time: Duration = read(text)?;
        self.check(time.as_nanos(), text)?;
        Ok(time)
    }

    fn size(&self, text: &str) -> Result<Bytes, String> {
        let size: Bytes = read(text)?;
        self.check(size.0, text)?;
        Ok(size)
    }

    fn number<N: TryFrom<u64>>(&self, text: &str) -> Result<N, String> {
        let digits = match self.unit {
            Unit::Packets => text.strip_suffix(['p', 'P']).unwrap_or(text),
            _ => text,
        };
        let number = digits
            .parse()
            .map_err(|_| format!("\"{text}\" is not a whole number"))?;
        self.check(number, text)?;
        N::try_from(number).map_err(|_| out_of_range(text))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the ends of a range are small numbers"
    )]
    fn fraction(&self, text: &str) -> Result<f64, String> {
        let digits = match self.unit {
            Unit::Percent => text.strip_suffix('%').unwrap_or(text),
            _ => text,
        };
        let (least, most) = (self.least as f64, self.most as f64);
        let allowed = |x: f64| x > 0.0 || self.unit == Unit::Weight;
        match digits.parse() {
            // There is but one zero.
            Ok(x) if allowed(x) && x >= least && x <= most => Ok(x.abs()),
            Ok(_) => Err(out_of_range(text)),
            Err(_) => Err(format!("\"{text}\" is not a number")),
        }
    }

    fn check(&self, value: u64, text: &str) -> Result<(), String> {
        if (self.least..=self.most).contains(&value) {
            Ok(())
        } else {
            Err(out_of_range(text))
        }
    }
}

impl Field<'_> {
    /// The value as it is read back; nothing if there is none.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match self {
            Field::Time(time) => time_text(**time),
            Field::OptionalTime(time) => time_text((**time)?),
            Field::OptionalRate(rate) => (**rate)?.to_string(),
            Field::Size(size) => size_text(**size),
            Field::OptionalSize(size) => size_text((**size)?),
            Field::Packets(n) => n.to_string(),
            Field::Count(n) => n.to_string(),
            Field::OptionalCount(n) => (**n)?.to_string(),
            Field::Numbers(numbers) => {
                let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                texts.join(" ")
            }
            Field::Fraction(x) => x.to_string(),
            Field::OptionalFraction(x) => (**x)?.to_string(),
            Field::Flag(flag) => (if **flag { "on" } else { "off" }).into(),
            Field::Profile(profile) => profile.to_string(),
            Field::Choice(choice) => choice.word().into(),
            Field::Leaves(leaves) if leaves.is_empty() => return None,
            Field::Leaves(leaves) => leaf::text(leaves),
        })
    }
}

/// `5ms`, `12500us`: the largest unit that leaves a whole number.
pub(crate) fn time_text(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 && ns > 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

fn size_text(size: Bytes) -> String {
    format!("{}b", size.0)
}

fn read<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" => Ok(true),
        "off" | "false" | "no" => Ok(false),
        _ => Err(format!("\"{text}\" is neither on nor off")),
    }
}

fn out_of_range(text: &str) -> String {
    format!("{text} is out of range")
}

/// The name nearest to `given`, or all of them if none is near.
pub(crate) fn instead_of<'a>(given: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(given, names.clone()) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// Which of `names` somebody who wrote `given` may have meant, if one is near.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (edits(given, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + given.chars().count() / 3).then_some(name)
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
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("rate", "rate"), 0);
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let nearest = |given| nearest(given, ["rate", "delay"].into_iter());
        assert_eq!(nearest("rat"), Some("rate"));
        assert_eq!(nearest("colour"), None);
        // One edit for two letters, three for six.
        assert_eq!(nearest("ra"), None);
        assert_eq!(nearest("rt"), None);
        assert_eq!(nearest("ray"), Some("rate"));
        assert_eq!(nearest("relays"), Some("delay"));
        assert_eq!(nearest("raters"), Some("rate"));
    }
}
