//! Units: what kind of value a parameter takes, and how it is written.

use std::fmt;
use std::str::FromStr;

use sojourn_net::{Bytes, Duration, Rate};

use crate::Parameter;

/// What kind of value a parameter takes. A value that is one number is kept as a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A length of time, such as `5ms`, in nanoseconds.
    Time,
    /// A time such as `100ms`, in milliseconds.
    Millis,
    /// A time such as `25ms`, in microseconds.
    Micros,
    /// A bit rate, such as `10mbit`, in bits per second.
    Rate,
    /// A quantity of data, such as `1514b`, in bytes.
    Size,
    /// A quantity of data that may be negative, in bytes; kept with this added.
    SignedSize(u32),
    /// A number of packets; a `p` may follow.
    Packets,
    /// A whole number of these, such as `rounds`; empty for a plain number.
    Count(&'static str),
    /// A whole number of these, or `off`, which is 0.
    CountOrOff(&'static str),
    /// Whole numbers in a row, such as `1 2 2 0`.
    Numbers,
    /// A number that need not be whole, such as `0.02` or `1.25`.
    Fraction,
    /// As [`Unit::Fraction`], and 0 too.
    Weight,
    /// A share in percent; a `%` may follow.
    Percent,
    /// A fraction such as `717/1024` or `0.7`, in parts of this.
    Ratio(u32),
    /// Fractions with commas between them, each in parts of this.
    Ratios(u32),
    /// A byte and a mask, such as `0x1/0x3`; kept as 256 times the byte plus the mask.
    Masked,
    /// A number with up to this many decimal places, in units of the last.
    Decimal(u32),
    /// On or off.
    Flag,
    /// The name of a profile: the specification or implementation to follow.
    Profile,
    /// One of these words, which may stand alone: `diffserv4`.
    Choice(&'static [&'static str]),
    /// The specifications inside one, ` / ` between them; one stands for all classes.
    Leaves,
    /// A text without spaces and parentheses, which this describes: `a name`.
    Word(&'static str),
    /// Entries in parentheses, each with these parameters: `(name a rate 1mbit) (name b rate 2mbit)`.
    Entries(&'static [Parameter]),
}

impl Unit {
    /// Its name in the catalogue, such as `time`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time | Self::Millis | Self::Micros => "time",
            Self::Rate => "rate",
            Self::Size | Self::SignedSize(_) => "size",
            Self::Packets => "packets",
            Self::Count(_) | Self::CountOrOff(_) => "count",
            Self::Numbers => "numbers",
            Self::Fraction => "fraction",
            Self::Weight => "weight",
            Self::Percent => "percent",
            Self::Ratio(_) => "ratio",
            Self::Ratios(_) => "ratios",
            Self::Masked => "masked",
            Self::Decimal(_) => "decimal",
            Self::Flag => "flag",
            Self::Profile => "profile",
            Self::Choice(_) => "choice",
            Self::Leaves => "leaves",
            Self::Word(_) => "word",
            Self::Entries(_) => "entries",
        }
    }

    /// Writes a kept value.
    pub fn text(self, kept: u64) -> String {
        match self {
            Self::Time => time_text(Duration::from_nanos(kept)),
            Self::Millis => time_text(Duration::from_millis(kept)),
            Self::Micros => time_text(Duration::from_micros(kept)),
            Self::Rate => Rate::from_bits_per_sec(kept).map_or("0bit".into(), |r| r.to_string()),
            Self::Size => format!("{kept}b"),
            Self::SignedSize(below) => format!("{}b", i128::from(kept) - i128::from(below)),
            Self::Flag => (if kept == 0 { "off" } else { "on" }).into(),
            Self::CountOrOff(_) if kept == 0 => "off".into(),
            Self::Ratio(whole) | Self::Ratios(whole) => ratio_text(kept, whole.into()),
            Self::Masked => format!("{:#x}/{:#x}", kept >> 8, kept & 0xFF),
            Self::Decimal(places) => decimal_text(kept, places),
            _ => kept.to_string(),
        }
    }

    /// Reads one value; the error says what is wrong with `text`.
    pub(crate) fn kept(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Time => Ok(read::<Duration>(text)?.as_nanos()),
            Self::Millis => read_time(text, 1_000_000, "milliseconds"),
            Self::Micros => read_time(text, 1_000, "microseconds"),
            Self::Rate => Ok(read::<Rate>(text)?.bits_per_sec()),
            Self::Size => Ok(read::<Bytes>(text)?.0),
            Self::SignedSize(below) => read_signed(text, below),
            Self::Flag => match text {
                "on" | "true" | "yes" => Ok(1),
                "off" | "false" | "no" => Ok(0),
                _ => Err(format!("\"{text}\" is neither on nor off")),
            },
            Self::CountOrOff(_) if text == "off" => Ok(0),
            Self::Ratio(whole) | Self::Ratios(whole) => read_ratio(text, whole),
            Self::Masked => read_masked(text),
            Self::Decimal(places) => {
                scaled(read_number(text)?, 10_f64.powi(places.cast_signed()), text)
            }
            Self::Packets => read_whole(text.strip_suffix(['p', 'P']).unwrap_or(text), text),
            _ => read_whole(text, text),
        }
    }
}

fn read<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The number that `digits`, the value `text` without its unit, says.
fn read_whole(digits: &str, text: &str) -> Result<u64, String> {
    digits.parse().map_err(|_| {
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            format!("{text} is out of range")
        } else {
            format!("\"{text}\" is not a whole number")
        }
    })
}

/// A number of bytes that may be negative, plus `below`.
fn read_signed(text: &str, below: u32) -> Result<u64, String> {
    let below = u64::from(below);
    let kept = match text.strip_prefix('-') {
        Some(size) => below.checked_sub(read::<Bytes>(size)?.0),
        None => below.checked_add(read::<Bytes>(text)?.0),
    };
    kept.ok_or_else(|| format!("{text} is out of range"))
}

/// `5ms`, `12500us`: the largest unit that leaves a whole number.
pub fn time_text(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 && ns > 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

fn read_time(text: &str, unit_nanos: u64, units: &str) -> Result<u64, String> {
    let nanos = read::<Duration>(text)?.as_nanos();
    if !nanos.is_multiple_of(unit_nanos) {
        return Err(format!("{text} is not a whole number of {units}"));
    }
    Ok(nanos / unit_nanos)
}

fn ratio_text(value: u64, whole: u64) -> String {
    let divisor = gcd(value, whole).max(1);
    match (value / divisor, whole / divisor) {
        (n, 1) => n.to_string(),
        (n, d) => format!("{n}/{d}"),
    }
}

/// The greatest common divisor.
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn decimal_text(value: u64, places: u32) -> String {
    let whole = 10_u64.pow(places);
    let digits = format!("{:0width$}", value % whole, width = places as usize);
    match digits.trim_end_matches('0') {
        "" => (value / whole).to_string(),
        digits => format!("{}.{digits}", value / whole),
    }
}

fn read_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| x.is_finite());
    number.ok_or_else(|| format!("\"{text}\" is not a number"))
}

/// A fraction, `7/10` or `0.7`, to the nearest part of `whole`.
fn read_ratio(text: &str, whole: u32) -> Result<u64, String> {
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

/// A byte and its mask, each decimal or hexadecimal.
fn read_masked(text: &str) -> Result<u64, String> {
    let byte = |digits: &str| match digits.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        // tc reads 010 as an octal number.
        None if digits.len() > 1 && digits.starts_with('0') => None,
        None if digits.starts_with('+') => None,
        None => digits.parse().ok(),
    };
    let bytes = text
        .split_once('/')
        .and_then(|(value, mask)| Some((byte(value)?, byte(mask)?)));
    let (value, mask) = bytes.ok_or_else(|| format!("\"{text}\" is not VALUE/MASK"))?;
    Ok(u64::from(value) << 8 | u64::from(mask))
}

/// `number` times `scale`, to the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn scaled(number: f64, scale: f64, text: &str) -> Result<u64, String> {
    let value = (number * scale).round();
    if (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u64)
    } else {
        Err(format!("{text} is out of range"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (unit, kept, text) in [
            (Unit::Time, 12_500_000, "12500us"),
            (Unit::Millis, 0, "0ms"),
            (Unit::Micros, 2_000_000, "2s"),
            (Unit::Rate, 10_000_000, "10mbit"),
            (Unit::Size, 1_514, "1514b"),
            (Unit::SignedSize(64), 60, "-4b"),
            (Unit::SignedSize(64), 82, "18b"),
            (Unit::Packets, 7, "7"),
            (Unit::CountOrOff("rounds"), 0, "off"),
            (Unit::Ratio(1_024), 717, "717/1024"),
            (Unit::Ratio(256), 512, "2"),
            (Unit::Decimal(3), 1_250, "1.25"),
            (Unit::Masked, 0x103, "0x1/0x3"),
            (Unit::Masked, 0x50FC, "0x50/0xfc"),
            (Unit::Flag, 1, "on"),
        ] {
            assert_eq!(unit.text(kept), text);
            assert_eq!(unit.kept(text), Ok(kept), "{text}");
        }
        assert_eq!(Unit::Packets.kept("7p"), Ok(7));
        assert_eq!(Unit::SignedSize(64).kept("-4"), Ok(60));
        assert!(Unit::SignedSize(64).kept("-65").is_err());
        assert_eq!(Unit::Ratio(1_024).kept("0.7"), Ok(717));
        assert_eq!(Unit::Masked.kept("80/0xFC"), Ok(0x50FC));
        for wrong in ["0x1", "1/256", "010/3", "+1/3", "x/3", "/", ""] {
            let refused = format!("\"{wrong}\" is not VALUE/MASK");
            assert_eq!(Unit::Masked.kept(wrong), Err(refused));
        }
    }

    #[test]
    fn a_number_too_large_is_out_of_range_and_a_word_is_none() {
        let huge = "99999999999999999999";
        let beyond = Unit::Count("").kept(huge).unwrap_err();
        assert_eq!(beyond, format!("{huge} is out of range"));
        let word = Unit::Packets.kept("7q").unwrap_err();
        assert_eq!(word, "\"7q\" is not a whole number");
    }
}
