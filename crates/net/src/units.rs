//! Times, rates and sizes as text, in the units of `tc` (iproute2).
//!
//! | kind | units | plain number |
//! |---|---|---|
//! | time | `s`, `ms`, `us`, `ns` (also `sec`, `msec`, `usec`, `nsec`) | refused |
//! | rate | `bit`, `kbit` … `tbit` = 1000^n bit/s; `kibit` … `tibit` = 1024^n bit/s | refused |
//! | rate | `bps`, `kbps` … `tbps`, `kibps` … = **bytes** a second, as in `tc` | refused |
//! | size | `b`; `k`, `kb` … `g`, `gb` = 1024^n bytes; `kbit` … `gbit` = 1024^n / 8 bytes | bytes |
//!
//! Upper and lower case are the same, decimals are allowed (`12.5ms`), a space may precede the
//! unit and `/s` may follow the unit of a rate (`10 Mbit/s`). The arithmetic is in integers; what
//! falls between two units is rounded to the nearest.

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// Why a text is not a time, a rate or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitError {
    given: Excerpt,
    quantity: Quantity,
    flaw: Flaw,
}

impl FromStr for Duration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Quantity::Time.parse(text).map(Self::from_nanos)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bits_per_sec = Quantity::Rate.parse(text)?;
        Self::from_bits_per_sec(bits_per_sec)
            .ok_or_else(|| Quantity::Rate.error(text, Flaw::NotPositive))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Quantity::Size.parse(text).map(Self)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.given, self.problem())
    }
}

impl UnitError {
    /// The text that was given; `None` if only its beginning is known.
    pub fn given(&self) -> Option<&str> {
        self.given.whole()
    }

    /// What is wrong with it, such as `not a time: the unit is missing; write 5s or 5ms`.
    pub const fn problem(&self) -> impl fmt::Display {
        Problem(self)
    }
}

/// The problem of an error, without the text that was given.
struct Problem<'a>(&'a UnitError);

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnitError {
            given,
            quantity,
            flaw,
        } = self.0;
        write!(f, "not a {}: ", quantity.noun())?;
        match flaw {
            Flaw::NoNumber => write!(
                f,
                "it must start with a number; write, for example, {}",
                quantity.example()
            ),
            Flaw::NoUnit => {
                f.write_str("the unit is missing; write")?;
                // A bare rate may have been meant in bit/s.
                match given.whole().filter(|number| *number != "0") {
                    Some(number) if *quantity == Quantity::Time => {
                        write!(f, " {number}s or {number}ms")
                    }
                    _ => write!(f, ", for example, {}", quantity.example()),
                }
            }
            Flaw::UnknownUnit => write!(f, "unknown unit; the units are {}", quantity.units()),
            Flaw::NotPositive if *quantity == Quantity::Rate => f.write_str("it must be > 0"),
            Flaw::NotPositive => f.write_str("it must be >= 0"),
            Flaw::TooLarge => write!(f, "it is too large; the maximum is {}", quantity.most()),
        }
    }
}

impl core::error::Error for UnitError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    NoNumber,
    NoUnit,
    UnknownUnit,
    NotPositive,
    TooLarge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Size,
}

impl Quantity {
    /// The quantity in nanoseconds, bits per second or bytes.
    fn parse(self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(self.error(text, Flaw::NotPositive));
        }
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let (digits, scale) = decimal(number).ok_or_else(|| self.error(text, Flaw::NoNumber))?;
        let unit = unit.trim_start();
        if unit.is_empty() && self != Self::Size {
            return Err(self.error(text, Flaw::NoUnit));
        }
        let (numerator, denominator) = self
            .factor(unit)
            .ok_or_else(|| self.error(text, Flaw::UnknownUnit))?;
        digits
            .checked_mul(numerator)
            .and_then(|n| rounded(n, u128::from(denominator) * scale))
            .ok_or_else(|| self.error(text, Flaw::TooLarge))
    }

    /// What one `unit` is worth, as a fraction.
    fn factor(self, unit: &str) -> Option<(u128, u8)> {
        let is = |names: &[&str]| names.iter().any(|n| unit.eq_ignore_ascii_case(n));
        match self {
            Self::Time => {
                let nanos = match unit {
                    _ if is(&["s", "sec", "secs"]) => 1_000_000_000,
                    _ if is(&["ms", "msec", "msecs"]) => 1_000_000,
                    _ if is(&["us", "usec", "usecs", "µs"]) => 1_000,
                    _ if is(&["ns", "nsec", "nsecs"]) => 1,
                    _ => return None,
                };
                Some((nanos, 1))
            }
            Self::Rate => {
                // `bps` is bytes a second, so that `/s` after it would say the second twice.
                if let Some(prefix) = strip_suffix(unit, "bps") {
                    return Some((8 * rate_prefix(prefix)?, 1));
                }
                let unit = strip_suffix(unit, "/s").unwrap_or(unit);
                Some((rate_prefix(strip_suffix(unit, "bit")?)?, 1))
            }
            Self::Size => {
                if let Some(prefix) = strip_suffix(unit, "bit") {
                    return Some((size_prefix(prefix)?, 8));
                }
                let prefix = strip_suffix(unit, "b").unwrap_or(unit);
                Some((size_prefix(prefix)?, 1))
            }
        }
    }

    fn error(self, text: &str, flaw: Flaw) -> UnitError {
        UnitError {
            given: Excerpt::of(text.trim()),
            quantity: self,
            flaw,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Rate => "rate",
            Self::Size => "size",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Time => "5ms",
            Self::Rate => "10mbit",
            Self::Size => "15140b",
        }
    }

    /// The largest value in its largest unit, rounded down: `u64::MAX` in the base unit.
    const fn most(self) -> &'static str {
        match self {
            Self::Time => "18446744073s",
            Self::Rate => "18446744tbit",
            Self::Size => "17179869183gb",
        }
    }

    const fn units(self) -> &'static str {
        match self {
            Self::Time => "s, ms, us, ns",
            Self::Rate => {
                "bit, kbit, mbit, gbit, tbit, kibit to tibit (powers of 1024 bit/s), bps to tbps \
                 (bytes/s)"
            }
            Self::Size => "b, k, kb, m, mb, g, gb, kbit, mbit, gbit",
        }
    }
}

/// Multiples of 1000, or with an `i` of 1024.
fn rate_prefix(prefix: &str) -> Option<u128> {
    let (letter, base) = match strip_suffix(prefix, "i") {
        Some("") => return None,
        Some(letter) => (letter, 1_024),
        None => (prefix, 1_000),
    };
    power(letter, base)
}

/// Multiples of 1024, with or without the `i` of `KiB`.
fn size_prefix(prefix: &str) -> Option<u128> {
    match strip_suffix(prefix, "i") {
        Some("") => None,
        Some(letter) => power(letter, 1_024),
        None => power(prefix, 1_024),
    }
}

fn power(letter: &str, base: u128) -> Option<u128> {
    let exponent = match letter {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    Some(base.pow(exponent))
}

fn strip_suffix<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(suffix.len())?;
    let (head, tail) = (text.get(..at)?, text.get(at..)?);
    tail.eq_ignore_ascii_case(suffix).then_some(head)
}

/// `12.5` as 125 and 10; nothing if it is no number or has more than 24 digits.
fn decimal(number: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.len() + fraction.len();
    if digits == 0 || digits > 24 || fraction.contains('.') {
        return None;
    }
    let mut value = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value * 10 + u128::from(digit - b'0');
    }
    let scale = fraction.bytes().fold(1, |scale, _| scale * 10);
    Some((value, scale))
}

/// `numerator / denominator` to the nearest, ties upward.
fn rounded(numerator: u128, denominator: u128) -> Option<u64> {
    let twice = numerator.checked_mul(2)?.checked_add(denominator)?;
    u64::try_from(twice / (2 * denominator)).ok()
}

/// The beginning of a text, kept without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Excerpt {
    text: [u8; Self::ROOM],
    length: usize,
    cut: bool,
}

impl Excerpt {
    /// Longer than any quantity a person types.
    const ROOM: usize = 32;

    fn of(text: &str) -> Self {
        let mut length = text.len().min(Self::ROOM);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; Self::ROOM];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self {
            text: bytes,
            length,
            cut: length < text.len(),
        }
    }

    fn beginning(&self) -> &str {
        core::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }

    fn whole(&self) -> Option<&str> {
        (!self.cut).then(|| self.beginning())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}", self.beginning())?;
        f.write_str(if self.cut { "…\"" } else { "\"" })
    }
}

#[cfg(test)]
mod tests;
