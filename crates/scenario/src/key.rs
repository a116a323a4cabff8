//! The keys of a scenario's tables, each declared once with its default and its range; the decoder
//! rejects unknown keys, and the JSON Schema is derived from them.

use std::ops::RangeInclusive;

use sojourn_net::Duration;

use crate::value::{Node, Table};

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The name that older scenarios write, if it had another.
    pub(crate) older: Option<&'static str>,
    pub(crate) form: Form,
    pub(crate) presence: Presence,
    /// What it means, for the person who writes the file.
    pub(crate) meaning: &'static str,
}

/// Whether a key must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It must.
    Required,
    /// It need not be, and no value stands for it.
    Optional,
    /// It need not be: this is the value then, as a scenario file writes it, text without quotes.
    Default(&'static str),
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// One of these whole numbers.
    OneOf(&'static [i64]),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A quantity of data with its unit, from the first to the second number of bytes.
    Size(u64, u64),
    /// A time with its unit, at most this one.
    TimeUpTo(Duration),
    /// A time > 0 up to this.
    PositiveTimeUpTo(Duration),
    /// What the schema defines under this name.
    Def(&'static str),
    /// One of these texts.
    Choice(fn() -> Vec<&'static str>),
    /// A list with this many values or more.
    List(usize, &'static Form),
    /// A table of these keys.
    Table(&'static [Key]),
    /// Values by names that the scenario chooses.
    ByName(&'static Form),
    /// Any of these.
    Either(&'static [Form]),
}

impl Form {
    /// A text that names something.
    pub(crate) const NAME: Self = Self::Def("name");
    /// A time with its unit.
    pub(crate) const TIME: Self = Self::Def("time");
    /// A time with its unit, > 0.
    pub(crate) const POSITIVE_TIME: Self = Self::Def(POSITIVE_TIME);
    /// A rate with its unit.
    pub(crate) const RATE: Self = Self::Def("rate");
    /// A share such as `1%`.
    pub(crate) const PERCENT: Self = Self::Def("percent");
    /// A queue, as text or as a table.
    pub(crate) const QDISC: Self = Self::Def("qdisc");
    /// A congestion control.
    pub(crate) const CONTROL: Self = Self::Def("congestion_control");
    /// A size or a distribution of sizes.
    pub(crate) const AMOUNT: Self = Self::Def("amount");
    /// A time or a distribution of times.
    pub(crate) const WAIT: Self = Self::Def("wait");

    /// What `of` returns for this form, or for the first of its alternatives that it accepts.
    fn find<T>(self, of: impl Fn(Self) -> Option<T>) -> Option<T> {
        match self {
            Self::Either(forms) => forms.iter().find_map(|&form| of(form)),
            form => of(form),
        }
    }

    /// The whole numbers that it accepts.
    pub(crate) fn integers(self) -> Option<RangeInclusive<i64>> {
        self.find(|form| match form {
            Self::Integer(least, most) => Some(least..=most),
            _ => None,
        })
    }

    /// The numbers that it accepts.
    pub(crate) fn numbers(self) -> Option<RangeInclusive<f64>> {
        self.find(|form| match form {
            Self::Number(least, most) => Some(least..=most),
            _ => None,
        })
    }

    /// The sizes that it accepts, in bytes.
    pub(crate) fn sizes(self) -> Option<RangeInclusive<u64>> {
        self.find(|form| match form {
            Self::Size(least, most) => Some(least..=most),
            _ => None,
        })
    }

    /// The longest time that it accepts, where it declares one.
    pub(crate) fn longest(self) -> Option<Duration> {
        self.find(|form| match form {
            Self::TimeUpTo(most) | Self::PositiveTimeUpTo(most) => Some(most),
            _ => None,
        })
    }

    /// Whether a time of this form must be > 0.
    pub(crate) fn is_positive_time(self) -> bool {
        let positive = |form| match form {
            Self::Def(name) => name == POSITIVE_TIME,
            Self::PositiveTimeUpTo(_) => true,
            _ => false,
        };
        self.find(|form| positive(form).then_some(())).is_some()
    }

    /// The texts that it accepts.
    pub(crate) fn texts(self) -> Option<Vec<&'static str>> {
        self.find(|form| match form {
            Self::Choice(texts) => Some(texts()),
            _ => None,
        })
    }

    /// The form of the items, if it is a list.
    pub(crate) fn item(self) -> Option<Self> {
        self.find(|form| match form {
            Self::List(_, item) => Some(*item),
            _ => None,
        })
    }
}

/// The definition of times > 0 in the schema.
const POSITIVE_TIME: &str = "positive_time";

impl Key {
    /// A key that must be given.
    pub(crate) const fn required(name: &'static str, form: Form, meaning: &'static str) -> Self {
        Self {
            name,
            older: None,
            form,
            presence: Presence::Required,
            meaning,
        }
    }

    /// A key that need not be given.
    pub(crate) const fn optional(name: &'static str, form: Form, meaning: &'static str) -> Self {
        Self {
            presence: Presence::Optional,
            ..Self::required(name, form, meaning)
        }
    }

    /// The same key with a value that stands for it where it is not given.
    pub(crate) const fn or(self, value: &'static str) -> Self {
        Self {
            presence: Presence::Default(value),
            ..self
        }
    }

    /// The same key, which older scenarios call `older`.
    pub(crate) const fn formerly(self, older: &'static str) -> Self {
        Self {
            older: Some(older),
            ..self
        }
    }

    /// The value that stands for it where it is not given.
    pub(crate) fn default(&self) -> Option<Node> {
        let Presence::Default(text) = self.presence else {
            return None;
        };
        Some(match (self.form, text.parse::<bool>()) {
            (_, Ok(flag)) => flag.into(),
            (Form::Integer(..) | Form::OneOf(_) | Form::Number(..) | Form::List(..), _) => {
                Node::from_json(text).expect("the default of a number or a list is JSON")
            }
            _ => text.into(),
        })
    }
}

/// Inserts the value of the key `name`, one of `keys`, unless it is the default of the key.
pub(crate) fn insert_changed(fields: &mut Table, keys: &[Key], name: &str, node: Node) {
    let key = keys.iter().find(|key| key.name == name);
    if key.and_then(Key::default).as_ref() != Some(&node) {
        fields.insert(name.to_owned(), node);
    }
}

/// The names of keys.
pub(crate) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
