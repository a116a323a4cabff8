//! Parameters of a congestion control, declared beside the control.
//!
//! [`parameters!`](super::parameters) turns a declaration into a struct with defaults and a table of
//! [`Parameter`]s, from which texts are read, checked and written.

use std::num::NonZero;

use sojourn_net::Duration;

/// How the value of a parameter is written, and in which unit it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `on` or `off`.
    Flag,
    /// A whole number of these, such as `rounds`; empty for a plain number.
    Count(&'static str),
    /// A whole number of these, or `off`, kept as 0.
    CountOrOff(&'static str),
    /// A fraction such as `717/1024` or `0.7`, kept in parts of this.
    Ratio(u32),
    /// Comma-separated fractions, kept as multiples of 1 over this.
    Ratios(u32),
    /// A number with up to this many decimal places.
    Decimal(u32),
    /// A time such as `100ms`, kept in ms.
    Millis,
    /// A time such as `25ms`, kept in µs.
    Micros,
}

/// A flag that is not set, and a number that is none.
const OFF: &str = "off";

impl Unit {
    /// Writes a kept value.
    pub(super) fn text(self, value: u32) -> String {
        match self {
            Self::Flag => (if value == 0 { OFF } else { "on" }).into(),
            Self::CountOrOff(_) if value == 0 => OFF.into(),
            Self::Count(_) | Self::CountOrOff(_) => value.to_string(),
            Self::Ratio(whole) | Self::Ratios(whole) => ratio_text(value, whole),
            Self::Decimal(places) => decimal_text(value, places),
            Self::Millis => time_text(1_000 * u64::from(value)),
            Self::Micros => time_text(value.into()),
        }
    }

    /// Reads one value; the error says what is wrong with `text`.
    fn read(self, text: &str) -> Result<u32, String> {
        match self {
            Self::Flag => match text {
                "on" | "true" => Ok(1),
                OFF | "false" => Ok(0),
                _ => Err(format!("\"{text}\" is neither on nor off")),
            },
            Self::Count(_) | Self::CountOrOff(_) => text.parse().map_err(|_| {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                if digits {
                    format!("{text} is out of range")
                } else {
                    format!("\"{text}\" is not a whole number")
                }
            }),
            Self::Ratio(whole) | Self::Ratios(whole) => read_ratio(text, whole),
            Self::Decimal(places) => {
                scaled(read_number(text)?, 10_f64.powi(places.cast_signed()), text)
            }
            Self::Millis => read_time(text, 1_000_000, "milliseconds"),
            Self::Micros => read_time(text, 1_000, "microseconds"),
        }
    }
}

/// One parameter of a congestion control.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name in a specification.
    pub key: &'static str,
    /// How values are written.
    pub unit: Unit,
    /// The smallest and the largest value allowed, as kept; a smallest number of 0 that may be off is another way
    /// to write `off`.
    pub range: (u32, u32),
    /// What it means.
    pub meaning: &'static str,
    /// Where it comes from: a module parameter, a constant of a module, a section of an RFC or draft.
    pub source: &'static str,
}

impl Parameter {
    /// The allowed values, as text.
    pub fn range_text(&self) -> String {
        let (least, most) = (self.unit.text(self.range.0), self.unit.text(self.range.1));
        match self.unit {
            Unit::Flag => "on or off".into(),
            Unit::Ratios(_) => format!("{least} to {most} each"),
            Unit::CountOrOff(_) => format!("{OFF} or {} to {most}", self.range.0.max(1)),
            _ => format!("{least} to {most}"),
        }
    }

    /// The value in `slot`, as text.
    pub(super) fn text(&self, slot: &dyn Slot) -> String {
        let texts: Vec<_> = slot.get().into_iter().map(|n| self.unit.text(n)).collect();
        texts.join(",")
    }

    /// Puts the value written in `text` into `slot`; the error says what is wrong with it.
    pub(super) fn set(&self, slot: &mut dyn Slot, text: &str) -> Result<(), String> {
        let words: Vec<_> = match self.unit {
            Unit::Ratios(_) => text.split(',').collect(),
            _ => vec![text],
        };
        let needed = slot.get().len();
        if words.len() != needed {
            return Err(format!("needs {needed} values, not {}", words.len()));
        }
        let mut values = Vec::with_capacity(needed);
        for word in words {
            if matches!(self.unit, Unit::CountOrOff(_)) && word == OFF {
                values.push(0);
                continue;
            }
            let value = self.unit.read(word)?;
            if !(self.range.0..=self.range.1).contains(&value) {
                return Err(format!("{word} is out of range"));
            }
            values.push(value);
        }
        slot.put(&values);
        Ok(())
    }
}

/// The place of a parameter's value.
pub trait Slot {
    /// The values there: one, or those of a list.
    fn get(&self) -> Vec<u32>;

    /// Replaces them; their number and their range have been checked.
    fn put(&mut self, values: &[u32]);
}

impl Slot for bool {
    fn get(&self) -> Vec<u32> {
        vec![(*self).into()]
    }

    fn put(&mut self, values: &[u32]) {
        *self = values[0] != 0;
    }
}

impl Slot for u32 {
    fn get(&self) -> Vec<u32> {
        vec![*self]
    }

    fn put(&mut self, values: &[u32]) {
        *self = values[0];
    }
}

/// Narrow numbers, whose declared range fits them.
macro_rules! narrow {
    ($($type:ty)+) => {$(
        impl Slot for $type {
            fn get(&self) -> Vec<u32> {
                vec![(*self).into()]
            }

            fn put(&mut self, values: &[u32]) {
                *self = <$type>::try_from(values[0]).unwrap_or(<$type>::MAX);
            }
        }
    )+};
}

narrow!(u8 u16);

/// Numbers that may be off.
macro_rules! or_none {
    ($($type:ty)+) => {$(
        impl Slot for Option<NonZero<$type>> {
            fn get(&self) -> Vec<u32> {
                self.map_or(0, NonZero::get).get()
            }

            fn put(&mut self, values: &[u32]) {
                let mut value = 0;
                <$type as Slot>::put(&mut value, values);
                *self = NonZero::new(value);
            }
        }
    )+};
}

or_none!(u16 u32);

impl<const N: usize> Slot for [u16; N] {
    fn get(&self) -> Vec<u32> {
        self.iter().map(|&value| value.into()).collect()
    }

    fn put(&mut self, values: &[u32]) {
        for (place, &value) in self.iter_mut().zip(values) {
            place.put(&[value]);
        }
    }
}

/// Parameters that can be listed and found by key.
pub trait Parameters {
    /// Every parameter, in the order of canonical texts.
    fn table(&self) -> &'static [Parameter];

    /// The place of the value of parameter `key`.
    ///
    /// # Panics
    /// If there is no such parameter.
    fn slot(&mut self, key: &str) -> &mut dyn Slot;
}

/// Declares parameters: a struct with defaults and its table.
macro_rules! parameters {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $(
                $key:ident: $type:ty = $default:expr, $unit:expr, $range:expr,
                $meaning:literal, $source:literal;
            )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $(
                #[doc = concat!($meaning, " (", $source, ").")]
                pub $key: $type,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::cc::parameter::Parameters for $name {
            fn table(&self) -> &'static [$crate::cc::parameter::Parameter] {
                &[$($crate::cc::parameter::Parameter {
                    key: stringify!($key),
                    unit: $unit,
                    range: $range,
                    meaning: $meaning,
                    source: $source,
                },)+]
            }

            fn slot(&mut self, key: &str) -> &mut dyn $crate::cc::parameter::Slot {
                match key {
                    $(stringify!($key) => &mut self.$key,)+
                    _ => panic!("{key}: no such parameter"),
                }
            }
        }
    };
}
pub(super) use parameters;

fn ratio_text(value: u32, whole: u32) -> String {
    let divisor = gcd(value, whole).max(1);
    match (value / divisor, whole / divisor) {
        (n, 1) => n.to_string(),
        (n, d) => format!("{n}/{d}"),
    }
}

/// The greatest common divisor.
pub(super) const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn decimal_text(value: u32, places: u32) -> String {
    let whole = 10_u32.pow(places);
    let digits = format!("{:0width$}", value % whole, width = places as usize);
    match digits.trim_end_matches('0') {
        "" => (value / whole).to_string(),
        digits => format!("{}.{digits}", value / whole),
    }
}

/// The largest unit that leaves a whole number: `5ms`, `12500us`.
fn time_text(micros: u64) -> String {
    match micros {
        n if n % 1_000_000 == 0 && n > 0 => format!("{}s", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{}ms", n / 1_000),
        n => format!("{n}us"),
    }
}

fn read_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| x.is_finite());
    number.ok_or_else(|| format!("\"{text}\" is not a number"))
}

/// A fraction, `7/10` or `0.7`, to the nearest part of `whole`.
fn read_ratio(text: &str, whole: u32) -> Result<u32, String> {
    let number = match text.split_once('/') {
        Some((n, d)) => {
            let parts = (n.parse::<u32>(), d.parse::<u32>());
            let (Ok(n), Ok(d @ 1..)) = parts else {
                return Err(format!("\"{text}\" is not a fraction"));
            };
            f64::from(n) / f64::from(d)
        }
        None => read_number(text)?,
    };
    scaled(number, whole.into(), text)
}

/// `number` times `scale`, to the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn scaled(number: f64, scale: f64, text: &str) -> Result<u32, String> {
    let value = (number * scale).round();
    if (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(format!("{text} is out of range"))
    }
}

fn read_time(text: &str, unit_nanos: u64, units: &str) -> Result<u32, String> {
    let time: Duration = text
        .parse()
        .map_err(|error: sojourn_net::UnitError| error.to_string())?;
    if !time.as_nanos().is_multiple_of(unit_nanos) {
        return Err(format!("{text} is not a whole number of {units}"));
    }
    u32::try_from(time.as_nanos() / unit_nanos).map_err(|_| format!("{text} is out of range"))
}
