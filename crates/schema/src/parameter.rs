//! One parameter: its key, unit and range, and how its values are checked.

mod unit;

use std::fmt;

use crate::Flaw;

pub use unit::{Unit, gcd, time_text};

/// The type of a parameter: it decides how its values are read and written.
pub trait Value: fmt::Debug {
    /// The value as text that is read back; `None` if there is none.
    fn text(&self, unit: Unit) -> Option<String>;

    /// Takes the value that `text` says if `parameter` allows it.
    ///
    /// # Errors
    /// What is wrong with `text`.
    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw>;

    /// Takes the value away, where there may be none.
    fn clear(&mut self) {}

    /// The value, if it is one whole number of its unit.
    fn whole(&self) -> Option<u64> {
        None
    }

    /// The parameters of one of its entries, if it is a list of them.
    fn entry(&self) -> Vec<ParameterInfo> {
        Vec::new()
    }
}

/// One parameter of a queue or a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name in a specification.
    pub key: &'static str,
    /// What kind of value it takes.
    pub unit: Unit,
    /// The smallest allowed value, as [`Unit`] keeps it.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// The value that applies if none is given; empty if the field always has one.
    pub unset: &'static str,
    /// The unit of a time that `tc` takes as a plain number.
    pub plain: Option<&'static str>,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// The RFC section, kernel symbol or paper that it comes from.
    pub provenance: &'static str,
}

impl Parameter {
    /// Whether it is on or off.
    pub fn is_flag(&self) -> bool {
        self.unit == Unit::Flag
    }

    /// The words that are its values.
    pub const fn choices(&self) -> &'static [&'static str] {
        match self.unit {
            Unit::Choice(words) => words,
            _ => &[],
        }
    }

    /// The words that it goes by.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        std::iter::once(self.key).chain(self.choices().iter().copied())
    }

    /// The allowed values, as text.
    pub fn range(&self) -> String {
        let (min, max) = (self.min, self.max);
        let text = |kept| self.unit.text(kept);
        match self.unit {
            Unit::Rate => "1bit or more".into(),
            Unit::Fraction | Unit::Percent if min == 0 => format!("> 0 and at most {max}"),
            Unit::Count(_) if min == max => min.to_string(),
            Unit::CountOrOff(_) => format!("off or {} to {max}", min.max(1)),
            Unit::Numbers => format!("numbers from {min} to {max}"),
            Unit::Ratios(_) => format!("{} to {} each", text(min), text(max)),
            Unit::Masked => "VALUE/MASK, two bytes such as 0x1/0x3".into(),
            Unit::Flag => "on or off".into(),
            Unit::Choice(words) => words.join(", "),
            Unit::Profile => "the name of a profile".into(),
            Unit::Leaves => "queues separated by /".into(),
            Unit::Word(what) => what.into(),
            Unit::Entries(parameters) => {
                let keys: Vec<_> = parameters.iter().map(|parameter| parameter.key).collect();
                format!("entries in parentheses with {}", keys.join(", "))
            }
            _ => format!("{} to {}", text(min), text(max)),
        }
    }

    /// `value` as text that is read back; `None` if there is none.
    pub fn text(&self, value: &dyn Value) -> Option<String> {
        value.text(self.unit)
    }

    /// Sets `value` to what `text` says.
    ///
    /// # Errors
    /// What is wrong with `text`.
    pub fn set(&self, value: &mut dyn Value, text: &str) -> Result<(), Flaw> {
        value.read(self, text)
    }

    /// The whole number of the unit that `text` says, allowed or not.
    pub fn whole(&self, text: &str) -> Option<u64> {
        self.unit.kept(text).ok()
    }

    /// The whole number of the unit that `text` says.
    pub(crate) fn kept<N: TryFrom<u64>>(&self, text: &str) -> Result<N, Flaw> {
        let kept = self.unit.kept(text)?;
        let off = kept == 0 && matches!(self.unit, Unit::CountOrOff(_)) && text == "off";
        let checked = Some(kept).filter(|kept| off || (self.min..=self.max).contains(kept));
        let fits = checked.and_then(|kept| N::try_from(kept).ok());
        fits.ok_or_else(|| out_of_range(text))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the ends of a range are small numbers"
    )]
    pub(crate) fn fraction(&self, text: &str) -> Result<f64, Flaw> {
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
            Err(_) => Err(format!("\"{text}\" is not a number").into()),
        }
    }
}

/// A parameter, as a person who sets it wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The name in a specification.
    pub key: &'static str,
    /// The kind of value.
    pub unit: Unit,
    /// The value if none is given, as text.
    pub default: String,
    /// Whether `default` describes a derived value instead of being one.
    pub derived: bool,
    /// The smallest allowed value as [`Unit`] keeps it.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// The allowed values, as text.
    pub range: String,
    /// The allowed values, if they are words.
    pub choices: Vec<&'static str>,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// The RFC section, kernel symbol or paper that it comes from.
    pub provenance: &'static str,
    /// The parameters of each entry, if the value is a list of them.
    pub entry: Vec<ParameterInfo>,
}

impl ParameterInfo {
    /// The entry of `parameter`, whose default is in `value`.
    pub fn of(parameter: &Parameter, value: Option<&dyn Value>) -> Self {
        let default = value.and_then(|value| parameter.text(value));
        Self {
            key: parameter.key,
            unit: parameter.unit,
            derived: default.is_none(),
            default: default.unwrap_or_else(|| parameter.unset.into()),
            min: parameter.min,
            max: parameter.max,
            range: parameter.range(),
            choices: parameter.choices().to_vec(),
            meaning: parameter.meaning,
            provenance: parameter.provenance,
            entry: value.map_or_else(Vec::new, Value::entry),
        }
    }
}

pub(crate) fn out_of_range(text: &str) -> Flaw {
    format!("{text} is out of range").into()
}
