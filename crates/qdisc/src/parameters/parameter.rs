//! One parameter: its key, unit and range, and how a value is read.

use std::fmt;
use std::str::FromStr;

use sojourn_net::{Bytes, Duration};

use super::error::Flaw;
use super::field::{Field, time_text};
use super::profile::Profile;

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
    /// Whole numbers in a row, such as `1 2 2 0`.
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

impl Unit {
    /// Its name in the catalogue, such as `time`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Rate => "rate",
            Self::Size => "size",
            Self::Packets => "packets",
            Self::Count => "count",
            Self::Numbers => "numbers",
            Self::Fraction => "fraction",
            Self::Weight => "weight",
            Self::Percent => "percent",
            Self::Flag => "flag",
            Self::Profile => "profile",
            Self::Choice(_) => "choice",
            Self::Leaves => "leaves",
        }
    }
}

/// One parameter of a discipline.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub(crate) key: &'static str,
    pub(crate) unit: Unit,
    /// The smallest allowed value, in nanoseconds, bytes or packets.
    pub(crate) min: u64,
    /// The largest allowed value.
    pub(crate) max: u64,
    /// The value that applies if none is given; empty if the field always has one.
    pub(crate) unset: &'static str,
    pub(crate) meaning: &'static str,
    /// The RFC section, kernel symbol or paper that it comes from.
    pub(crate) provenance: &'static str,
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
        let (min, max) = (self.min, self.max);
        match self.unit {
            Unit::Time => format!(
                "{} to {}",
                time_text(Duration::from_nanos(min)),
                time_text(Duration::from_nanos(max))
            ),
            Unit::Rate => "1bit or more".into(),
            Unit::Size => format!("{min}b to {max}b"),
            Unit::Fraction | Unit::Percent if min == 0 => format!("> 0 and at most {max}"),
            Unit::Count if min == max => min.to_string(),
            Unit::Packets | Unit::Count | Unit::Fraction | Unit::Weight | Unit::Percent => {
                format!("{min} to {max}")
            }
            Unit::Numbers => format!("numbers from {min} to {max}"),
            Unit::Flag => format!("{0} or no{0}", self.key),
            Unit::Profile => {
                let names: Vec<_> = profiles.iter().map(ToString::to_string).collect();
                names.join(", ")
            }
            Unit::Choice(words) => words.join(", "),
            Unit::Leaves => "queues separated by /".into(),
        }
    }

    /// The allowed values, as the end of an error message.
    pub(crate) fn expected(&self, profiles: &[Profile]) -> String {
        let range = self.range(profiles);
        let several = range.contains(", ");
        match self.unit {
            Unit::Choice(_) | Unit::Profile if several => format!("one of {range}"),
            _ => range,
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
                let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
                if !places.replace(&numbers) {
                    let (needed, given) = (places.count(), numbers.len());
                    return Err(format!("needs {needed} numbers, not {given}").into());
                }
            }
            Field::Fraction(place) => *place = self.fraction(text)?,
            Field::OptionalFraction(place) => *place = Some(self.fraction(text)?),
            Field::Flag(place) => *place = flag(text)?,
            Field::Choice(place) => {
                if !place.choose(text) {
                    return Err(format!("\"{text}\" is unknown").into());
                }
            }
            Field::Leaves(place) => place.set(text, self.max)?,
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
        let (min, max) = (self.min as f64, self.max as f64);
        let allowed = |x: f64| x > 0.0 || self.unit == Unit::Weight;
        match digits.parse() {
            // There is but one zero.
            Ok(x) if allowed(x) && x >= min && x <= max => Ok(x.abs()),
            Ok(_) => Err(out_of_range(text)),
            Err(_) => Err(format!("\"{text}\" is not a number")),
        }
    }

    fn check(&self, value: u64, text: &str) -> Result<(), String> {
        if (self.min..=self.max).contains(&value) {
            Ok(())
        } else {
            Err(out_of_range(text))
        }
    }
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
