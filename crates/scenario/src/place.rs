//! Access to a tree of values: each value knows its path, for error messages.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sojourn_net::{Bytes, Duration, Rate};

use crate::error::{ScenarioError, instead_of};
use crate::key::{Key, names};
use crate::value::{Node, Table, Value, joined};

/// Ten years: far beyond any run, and far from where sums of times would overflow.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

/// The fields of a table and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    table: &'a Table,
    place: Place<'a>,
}

impl<'a> Place<'a> {
    /// The whole tree.
    pub(crate) const fn root(node: &'a Node) -> Self {
        Self {
            node,
            path: String::new(),
        }
    }

    pub(crate) fn fail(&self, rule: impl Into<String>) -> ScenarioError {
        ScenarioError {
            path: self.path.clone(),
            rule: rule.into(),
            line: self.node.line,
        }
    }

    fn not(&self, what: &str, right: &str) -> ScenarioError {
        self.fail(format!(
            "{} is not {what}; expected {right}",
            self.node.shown()
        ))
    }

    /// The table here, none of whose keys is missing from `known`.
    pub(crate) fn fields(&self, known: &[Key]) -> Result<Fields<'a>, ScenarioError> {
        let fields = self.open_table()?;
        let known = names(known);
        for (key, node) in fields.table {
            if !known.contains(&key.as_str()) {
                let place = fields.at(key, node);
                return Err(place.fail(format!("unknown key; {}", instead_of(key, &known))));
            }
        }
        Ok(fields)
    }

    /// The table here, whatever its keys.
    pub(crate) fn open_table(&self) -> Result<Fields<'a>, ScenarioError> {
        match &self.node.value {
            Value::Table(table) => Ok(Fields {
                table,
                place: self.clone(),
            }),
            _ => Err(self.not("a table", "keys with values")),
        }
    }

    pub(crate) fn list(&self) -> Result<Vec<Self>, ScenarioError> {
        match &self.node.value {
            Value::List(nodes) => Ok(nodes
                .iter()
                .enumerate()
                .map(|(n, node)| Self {
                    node,
                    path: format!("{}[{n}]", self.path),
                })
                .collect()),
            _ => Err(self.not("a list", "values between [ and ]")),
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.not("a string", "a quoted string")),
        }
    }

    /// A text that names something: not empty, on one line, not excessively long.
    pub(crate) fn name(&self) -> Result<String, ScenarioError> {
        const LONGEST_NAME: usize = 200;
        let text = self.text()?;
        let fits = (1..=LONGEST_NAME).contains(&text.chars().count());
        if fits && !text.chars().any(char::is_control) && text.trim() == text {
            Ok(text.to_owned())
        } else {
            Err(self.not(
                "a name",
                "1 to 200 characters on one line, without leading or trailing spaces",
            ))
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, ScenarioError> {
        match self.node.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.not("a boolean", "true or false")),
        }
    }

    /// A whole number in `range`.
    pub(crate) fn integer(&self, range: RangeInclusive<i64>) -> Result<i64, ScenarioError> {
        let (least, most) = (range.start(), range.end());
        let right = format!("a whole number from {least} to {most}");
        match self.node.value {
            Value::Int(n) if range.contains(&n) => Ok(n),
            Value::Int(n) => Err(self.fail(format!("{n} is out of range; expected {right}"))),
            _ => Err(self.not("a whole number", &format!("{least} to {most}"))),
        }
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn count(&self, least: u32, most: u32) -> Result<u32, ScenarioError> {
        let n = self.integer(least.into()..=most.into())?;
        u32::try_from(n).map_err(|_| self.fail("is out of range"))
    }

    /// A number in `range`.
    pub(crate) fn number(&self, range: RangeInclusive<f64>) -> Result<f64, ScenarioError> {
        let (least, most) = (range.start(), range.end());
        let right = format!("{least} to {most}");
        let x = match self.node.value {
            Value::Float(x) => x,
            #[expect(clippy::cast_precision_loss, reason = "settings are small")]
            Value::Int(n) => n as f64,
            _ => return Err(self.not("a number", &right)),
        };
        if range.contains(&x) {
            Ok(x)
        } else {
            Err(self.fail(format!("{x} is out of range; expected {right}")))
        }
    }

    pub(crate) fn time(&self) -> Result<Duration, ScenarioError> {
        let time = self.quantity::<Duration>("a time", "s")?;
        if time > LONGEST {
            let shown = self.node.shown();
            return Err(self.fail(format!(
                "{shown} is out of range; expected at most ten years"
            )));
        }
        Ok(time)
    }

    /// A time that is not zero.
    pub(crate) fn positive_time(&self) -> Result<Duration, ScenarioError> {
        match self.time()? {
            Duration::ZERO => Err(self.fail("must be > 0")),
            time => Ok(time),
        }
    }

    /// A share of all: the number before the `%`, 0 to 100.
    pub(crate) fn percent(&self) -> Result<f64, ScenarioError> {
        const RIGHT: &str = "0% to 100%";
        let number = match &self.node.value {
            Value::Text(text) => text.trim().strip_suffix('%').map(str::trim),
            _ => None,
        };
        match number.and_then(|number| number.parse::<f64>().ok()) {
            Some(share) if (0.0..=100.0).contains(&share) => Ok(share + 0.0),
            Some(_) => Err(self.fail(format!(
                "{} is out of range; expected {RIGHT}",
                self.node.shown()
            ))),
            None => Err(self.not("a percentage", "a string such as \"1%\"")),
        }
    }

    pub(crate) fn rate(&self) -> Result<Rate, ScenarioError> {
        self.quantity("a rate", "mbit")
    }

    /// A size from `least` to `most` bytes.
    pub(crate) fn size(&self, least: u64, most: u64) -> Result<Bytes, ScenarioError> {
        let size = self.quantity::<Bytes>("a size", "b")?;
        if (least..=most).contains(&size.0) {
            Ok(size)
        } else {
            let right = format!("{least}b to {most}b");
            Err(self.fail(format!(
                "{} is out of range; expected {right}",
                self.node.shown()
            )))
        }
    }

    /// A number of bytes that may be negative.
    pub(crate) fn signed_size(&self) -> Result<i16, ScenarioError> {
        const RIGHT: &str = "-32768b to 32767b";
        let (sign, magnitude) = match &self.node.value {
            Value::Text(text) => match text.trim().strip_prefix('-') {
                Some(rest) => (-1, rest.to_owned().into()),
                None => (1, self.node.clone()),
            },
            _ => (1, self.node.clone()),
        };
        let place = Place {
            node: &magnitude,
            path: self.path.clone(),
        };
        let size = place.quantity::<Bytes>("a size", "b").map_err(|mut e| {
            e.line = self.node.line;
            e
        })?;
        i64::try_from(size.0)
            .ok()
            .and_then(|n| i16::try_from(sign * n).ok())
            .ok_or_else(|| {
                self.fail(format!(
                    "{} is out of range; expected {RIGHT}",
                    self.node.shown()
                ))
            })
    }

    fn quantity<T: FromStr<Err: Display>>(
        &self,
        noun: &str,
        unit: &str,
    ) -> Result<T, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => text.parse().map_err(|e: T::Err| self.fail(e.to_string())),
            Value::Int(n) => {
                let right = format!("a unit, such as \"{n}{unit}\"");
                Err(self.not(noun, &right))
            }
            _ => Err(self.not(noun, &format!("a string such as \"10{unit}\""))),
        }
    }
}

impl<'a> Fields<'a> {
    fn at(&self, key: &str, node: &'a Node) -> Place<'a> {
        Place {
            node,
            path: joined(&self.place.path, key),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Place<'a>> {
        self.table.get(key).map(|node| self.at(key, node))
    }

    /// The value of a key that must be there; `example` is one that would do.
    pub(crate) fn need(&self, key: &str, example: &str) -> Result<Place<'a>, ScenarioError> {
        self.get(key).ok_or_else(|| {
            let mut error = self
                .place
                .fail(format!("missing; set it, for example {key} = {example}"));
            error.path = joined(&self.place.path, key);
            error
        })
    }

    /// What `read` makes of the value of `key`; `default` where there is none.
    pub(crate) fn or<T>(
        &self,
        key: &str,
        default: T,
        read: impl Fn(&Place<'a>) -> Result<T, ScenarioError>,
    ) -> Result<T, ScenarioError> {
        self.get(key).map_or(Ok(default), |place| read(&place))
    }

    /// What `read` makes of the value of `key`, where there is one.
    pub(crate) fn option<T>(
        &self,
        key: &str,
        read: impl Fn(&Place<'a>) -> Result<T, ScenarioError>,
    ) -> Result<Option<T>, ScenarioError> {
        self.get(key).as_ref().map(read).transpose()
    }

    /// All fields, in the order of their keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a String, Place<'a>)> + '_ {
        let table: &'a Table = self.table;
        table.iter().map(|(key, node)| (key, self.at(key, node)))
    }
}

/// The position in `known` of the text here; an error calls it a `what`.
pub(crate) fn choice(
    place: &Place<'_>,
    what: &str,
    known: &[&str],
) -> Result<usize, ScenarioError> {
    let text = place.text()?;
    known.iter().position(|k| *k == text).ok_or_else(|| {
        let instead = instead_of(text, known);
        place.fail(format!("unknown {what} \"{text}\"; {instead}"))
    })
}
