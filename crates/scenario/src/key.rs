//! The keys of a scenario's tables, each declared once; the decoder rejects unknown keys, and the JSON
//! Schema is derived from them.

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
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
    /// It need not be: this is the value then, as a scenario file writes it, without quotes.
    Default(&'static str),
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// A number from the first to the second.
    Number(f64, f64),
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
    pub(crate) const POSITIVE_TIME: Self = Self::Def("positive_time");
    /// A rate with its unit.
    pub(crate) const RATE: Self = Self::Def("rate");
    /// A quantity of data with its unit.
    pub(crate) const SIZE: Self = Self::Def("size");
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
}

impl Key {
    /// A key that must be given.
    pub(crate) const fn required(name: &'static str, form: Form, meaning: &'static str) -> Self {
        Self {
            name,
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
}

/// The names of keys.
pub(crate) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
