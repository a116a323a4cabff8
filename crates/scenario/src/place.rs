//! Access to a tree of values: each value knows its path, for error messages.

use std::fmt::Display;
use std::str::FromStr;

use sojourn_net::{Bytes, Duration, Rate};

use crate::error::{ScenarioError, instead_of, renamed_to};
use crate::key::{Form, Key, names};
use crate::value::{Node, Table, Value, joined, time_text};
use sojourn_apps::LONGEST;

/// A value, where it stands and what its key declares.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
    /// What the value must be; `None`: the value has no declared key.
    form: Option<Form>,
}

/// The fields of a table, where it stands and the keys that it may have.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    table: &'a Table,
    place: Place<'a>,
    /// With the values that stand for those that are not given.
    keys: Vec<(Key, Option<Node>)>,
}

impl<'a> Place<'a> {
    /// The whole tree.
    pub(crate) const fn root(node: &'a Node) -> Self {
        Self {
            node,
            path: String::new(),
            form: None,
        }
    }

    /// The same value, read as `form`: that of the definition to which its key refers.
    pub(crate) fn formed(&self, form: Form) -> Self {
        Self {
            form: Some(form),
            ..self.clone()
        }
    }

    /// What `of` takes from the declared form.
    ///
    /// # Panics
    /// If the key of the value declares another type.
    fn declared<T>(&self, of: impl Fn(Form) -> Option<T>) -> T {
        let declared = self.form.and_then(of);
        declared.unwrap_or_else(|| panic!("{}: {:?} is read as another type", self.path, self.form))
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

    pub(crate) fn out_of_range(&self, right: &str) -> ScenarioError {
        let given = self.node.shown();
        self.fail(format!("{given} is out of range; expected {right}"))
    }

    /// The table here, none of whose keys is missing from `known`.
    pub(crate) fn fields(&self, known: &[Key]) -> Result<Fields<'a>, ScenarioError> {
        let fields = self.open_table()?;
        let names = names(known);
        for (key, node) in fields.table {
            if !names.contains(&key.as_str()) {
                let place = fields.at(key, node);
                if let Some(renamed) = known.iter().find(|k| k.older == Some(key.as_str())) {
                    if fields.table.contains_key(renamed.name) {
                        return Err(place.fail(renamed_to(key, renamed.name)));
                    }
                    continue;
                }
                return Err(place.fail(format!("unknown key; {}", instead_of(key, &names))));
            }
        }
        Ok(Fields {
            keys: known.iter().map(|key| (*key, key.default())).collect(),
            ..fields
        })
    }

    /// The table here, whatever its keys.
    pub(crate) fn open_table(&self) -> Result<Fields<'a>, ScenarioError> {
        match &self.node.value {
            Value::Table(table) => Ok(Fields {
                table,
                place: self.clone(),
                keys: Vec::new(),
            }),
            _ => Err(self.not("a table", "keys with values")),
        }
    }

    /// The value of a parameter of a queue or a congestion control, as text.
    pub(crate) fn setting(&self) -> Result<String, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Int(n) => Ok(n.to_string()),
            Value::Float(x) => Ok(x.to_string()),
            Value::List(_) | Value::Table(_) => Err(self.not(
                "a parameter value",
                "a boolean, a number or a string such as \"5ms\"",
            )),
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
                    form: self.form.and_then(Form::item),
                })
                .collect()),
            Value::Table(_) if !self.path.contains('.') => {
                Err(self.not("a list", &format!("[[{}]]", self.path)))
            }
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

    /// A whole number in the declared range.
    pub(crate) fn integer<T: TryFrom<i64>>(&self) -> Result<T, ScenarioError> {
        let range = self.declared(Form::integers);
        let (least, most) = (range.start(), range.end());
        let Value::Int(n) = self.node.value else {
            return Err(self.not("a whole number", &format!("{least} to {most}")));
        };
        let fits = T::try_from(n).ok().filter(|_| range.contains(&n));
        fits.ok_or_else(|| self.out_of_range(&format!("a whole number from {least} to {most}")))
    }

    /// A number in the declared range.
    pub(crate) fn number(&self) -> Result<f64, ScenarioError> {
        let range = self.declared(Form::numbers);
        let right = format!("{} to {}", range.start(), range.end());
        let x = match self.node.value {
            Value::Float(x) => x,
            #[expect(clippy::cast_precision_loss, reason = "settings are small")]
            Value::Int(n) => n as f64,
            _ => return Err(self.not("a number", &right)),
        };
        if range.contains(&x) {
            Ok(x)
        } else {
            Err(self.out_of_range(&right))
        }
    }

    /// A time; > 0 and up to a longest one if the key declares so.
    pub(crate) fn time(&self) -> Result<Duration, ScenarioError> {
        let time = self.quantity::<Duration>("a time", "s")?;
        if let Some(most) = self.form.and_then(Form::longest)
            && time > most
        {
            return Err(self.out_of_range(&format!("at most {}", time_text(most))));
        }
        if time > LONGEST {
            return Err(self.out_of_range("at most one year"));
        }
        if time == Duration::ZERO && self.form.is_some_and(Form::is_positive_time) {
            return Err(self.fail("must be > 0"));
        }
        Ok(time)
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
            Some(_) => Err(self.out_of_range(RIGHT)),
            None => Err(self.not("a percentage", "a string such as \"1%\"")),
        }
    }

    pub(crate) fn rate(&self) -> Result<Rate, ScenarioError> {
        self.quantity("a rate", "mbit")
    }

    /// A size in the declared range.
    pub(crate) fn size(&self) -> Result<Bytes, ScenarioError> {
        self.size_as().map(Bytes)
    }

    /// A size in the declared range, as a number of bytes of another type.
    pub(crate) fn size_as<T: TryFrom<u64>>(&self) -> Result<T, ScenarioError> {
        let range = self.declared(Form::sizes);
        let size = self.quantity::<Bytes>("a size", "b")?.0;
        let fits = T::try_from(size).ok().filter(|_| range.contains(&size));
        fits.ok_or_else(|| self.out_of_range(&format!("{}b to {}b", range.start(), range.end())))
    }

    /// One of the declared texts: the item of `all` at its position. An error calls it a `what`.
    pub(crate) fn one_of<T: Copy>(&self, what: &str, all: &[T]) -> Result<T, ScenarioError> {
        let known = self.declared(Form::texts);
        debug_assert_eq!(known.len(), all.len(), "{}", self.path);
        choice(self, what, &known).map(|n| all[n])
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
            ..self.clone()
        };
        let size = place.quantity::<Bytes>("a size", "b").map_err(|mut e| {
            e.line = self.node.line;
            e
        })?;
        i64::try_from(size.0)
            .ok()
            .and_then(|n| i16::try_from(sign * n).ok())
            .ok_or_else(|| self.out_of_range(RIGHT))
    }

    fn quantity<T: FromStr<Err: Display>>(
        &self,
        noun: &str,
        unit: &str,
    ) -> Result<T, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => text.parse().map_err(|e: T::Err| self.fail(e.to_string())),
            Value::Int(n) => {
                // A bare rate may have been meant in bit/s.
                let n = if unit == "mbit" { 1 } else { *n };
                let right = format!("a unit, such as \"{n}{unit}\"");
                Err(self.not(noun, &right))
            }
            _ => Err(self.not(noun, &format!("a string such as \"10{unit}\""))),
        }
    }
}

impl<'a> Fields<'a> {
    fn key(&self, name: &str) -> Option<&(Key, Option<Node>)> {
        let named = |key: &Key| key.name == name || key.older == Some(name);
        self.keys.iter().find(|(key, _)| named(key))
    }

    fn at<'n>(&self, key: &str, node: &'n Node) -> Place<'n> {
        Place {
            node,
            path: joined(&self.place.path, key),
            form: self.key(key).map(|(key, _)| key.form),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Place<'a>> {
        let given = |name| self.table.get(name).map(|node| self.at(name, node));
        let older = || self.key(key).and_then(|(key, _)| key.older);
        given(key).or_else(|| given(older()?))
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

    /// What `read` makes of the value of `key`, or of the declared default where there is none.
    ///
    /// # Panics
    /// If the key declares no default.
    pub(crate) fn value<'s, T>(
        &'s self,
        key: &str,
        read: impl Fn(&Place<'s>) -> Result<T, ScenarioError>,
    ) -> Result<T, ScenarioError> {
        if let Some(place) = self.get(key) {
            return read(&place);
        }
        match self.key(key) {
            Some((_, Some(default))) => read(&self.at(key, default)),
            _ => panic!("{key} has no default"),
        }
    }

    /// A time in the range of its key, or the default.
    pub(crate) fn time(&self, key: &str) -> Result<Duration, ScenarioError> {
        self.value(key, Place::time)
    }

    /// A size in the range of its key, or the default.
    pub(crate) fn size(&self, key: &str) -> Result<Bytes, ScenarioError> {
        self.value(key, Place::size)
    }

    /// The item of `all` at the position of the text among those of its key, or of the default.
    /// An error calls it a `what`.
    pub(crate) fn one_of<T: Copy>(
        &self,
        key: &str,
        what: &str,
        all: &[T],
    ) -> Result<T, ScenarioError> {
        self.value(key, |place| place.one_of(what, all))
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
